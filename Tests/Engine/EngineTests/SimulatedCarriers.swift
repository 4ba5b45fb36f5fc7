import HTTPCore

/// What the clients of a world speak, and what its servers do.
struct SimulatedCarriers {
    var clients = HTTPCarrier.http1
    var servers = HTTPCarrier.http1

    /// HTTP/1 on either side.
    init() {}

    /// Those of a seed: all four pairs in turn.
    init(ofSeed seed: UInt64) {
        if seed & 1 == 1 { clients = .http2 }
        if seed & 2 == 2 { servers = .http2 }
    }
}

extension String {
    /// A head of HTTP/1 as it would be if it had been assembled from HTTP/2: with the version of
    /// that, names in lower case, and without what belongs to connections of HTTP/1.
    var assembledFromHTTP2: String {
        var lines: [String] = []
        for line in split(separator: "\r\n") {
            guard !lines.isEmpty else {
                let words = line.split(separator: " ")
                let isResponse = words[0].hasPrefix("HTTP/")
                lines.append(
                    isResponse ? "HTTP/2.0 \(words[1]) " : "\(words[0]) \(words[1]) HTTP/2.0")
                continue
            }
            let colon = line.firstIndex(of: ":") ?? line.endIndex
            let name = line[..<colon].lowercased()
            guard !["connection", "transfer-encoding", "upgrade"].contains(name) else { continue }
            lines.append(name + line[colon...])
        }
        return lines.joined(separator: "\r\n") + "\r\n\r\n"
    }
}
