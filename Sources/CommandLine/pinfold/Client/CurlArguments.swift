import ArgumentParser
import Gateway
import HTTPCore
import PinfoldClient

/// A URL as it is written on a command line.
enum CompletedURL {
    /// Adds `http://` where there is no scheme, as curl does: in front of `host`, `host/path` and
    /// `host:port`. Anything else is left as it is.
    static func text(_ url: String) -> String {
        let start = url.prefix { !":/?#".contains($0) }
        // One label without a dot is more likely a mistake, but for the name of this host.
        let isHost =
            (start.contains(".") || start == "localhost" || start.hasPrefix("["))
            && start.utf8.allSatisfy {
                ASCII.isLetter($0) || ASCII.isDigit($0) || ".-_[".utf8.contains($0)
            }
        guard isHost else { return url }
        let rest = url[start.endIndex...]
        // After a colon there is a port, or it ends a scheme.
        if rest.hasPrefix(":"), !start.hasPrefix("["),
            !(rest.dropFirst().first?.isNumber ?? false)
        {
            return url
        }
        return "http://" + url
    }
}

/// The argument of `--resolve`: `host:port:address[,address]…`.
struct ResolveArgument {
    let host: String
    let port: Int
    let addresses: [String]

    init(_ text: String) throws(ClientError) {
        var rest = text[...]
        if rest.hasPrefix("["), let end = rest.firstIndex(of: "]") {
            host = String(rest[...end])
            rest = rest[rest.index(after: end)...]
        } else {
            host = String(rest.prefix { $0 != ":" })
            rest = rest.dropFirst(host.count)
        }
        let parts = rest.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard !host.isEmpty, parts.count == 3, parts[0].isEmpty, let port = Int(parts[1]),
            !parts[2].isEmpty
        else {
            throw ClientError(
                .invalidConfiguration, "--resolve \(text): expected HOST:PORT:ADDRESS[,ADDRESS]")
        }
        self.port = port
        addresses = parts[2].split(separator: ",").map(String.init)
    }
}

/// The content of `-d`.
enum FormData {
    /// Joins texts and the contents of files by `&`. As with curl, line ends of files are left out.
    static func content(_ data: [String]) throws -> RequestContent {
        var bytes: [UInt8] = []
        for (index, text) in data.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: "&")) }
            guard text.hasPrefix("@") else {
                bytes += text.utf8
                continue
            }
            do {
                let file = try CommandFiles.read(String(text.dropFirst()))
                bytes += file.filter { $0 != 0x0A && $0 != 0x0D && $0 != 0 }
            } catch {
                throw ClientCommandError(.content, "-d \(text): \(error)")
            }
        }
        return .bytes(bytes)
    }
}
