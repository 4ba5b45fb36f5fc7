import HTTPCore

/// What a request is for, as its span says it: taken from the request's target, and from what the
/// target does not say. It has neither user information nor a query.
struct SpanTarget: Equatable {
    /// `http` or `https`; `nil` if the request does not say so, as CONNECT.
    var scheme: String?
    /// The host, without brackets; `nil` if it is not known.
    var host: String?
    /// The port, if it is known.
    var port: UInt16?
    /// The path without the query; `nil` if there is none.
    var path: String?

    /// What an entry of a ring says about its request.
    init(_ entry: AccessLogRing.Entry) {
        let isSecure = entry.record.clientTLS != nil
        if entry.method.elementsEqual("CONNECT".utf8) {
            setAuthority(entry.target[...])
        } else if entry.target.first == UInt8(ascii: "/") || entry.target.elementsEqual("*".utf8) {
            setPath(entry.target[...])
            if !entry.tunnel.isEmpty {
                scheme = "https"
                setAuthority(entry.tunnel[...])
            } else {
                scheme = isSecure ? "https" : "http"
                setAuthority(entry.authority.isEmpty ? entry.host[...] : entry.authority[...])
            }
        } else {
            setURL(entry.target[...])
        }
    }

    private mutating func setURL(_ url: Slice<UnsafeRawBufferPointer>) {
        guard let colon = url.firstIndex(of: UInt8(ascii: ":")) else { return }
        let rest = url[(colon + 1)...]
        guard rest.starts(with: "//".utf8) else { return }
        scheme = Self.text(url[..<colon]).lowercasedASCII
        let start = rest.startIndex + 2
        let end = rest[start...].firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
        let authority = rest[start..<end]
        let host = authority.lastIndex(of: UInt8(ascii: "@")).map { authority[($0 + 1)...] }
        setAuthority(host ?? authority)
        setPath(rest[end...])
    }

    private mutating func setPath(_ path: Slice<UnsafeRawBufferPointer>) {
        let text = Self.text(path.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        self.path = text.isEmpty ? "/" : text
    }

    private mutating func setAuthority(_ authority: Slice<UnsafeRawBufferPointer>) {
        guard !authority.isEmpty else { return }
        var name = authority
        let afterName = authority.lastIndex(of: UInt8(ascii: "]")) ?? authority.startIndex
        if let colon = authority[afterName...].firstIndex(of: UInt8(ascii: ":")) {
            name = authority[..<colon]
            port = UInt16(Self.text(authority[(colon + 1)...]))
        }
        var host = Self.text(name).lowercasedASCII
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        self.host = host
        if port == nil, let scheme { port = scheme == "https" ? 443 : 80 }
    }

    /// Bytes as text; what is no UTF-8 is replaced, for a collector refuses what is not.
    static func text(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes, as: UTF8.self)
    }
}
