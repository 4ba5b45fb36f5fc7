import HTTPCore
import PinfoldConfiguration
import Trust

extension UpstreamOrigin {
    /// Parses `http(s)://host[:port][/]`. The result is `nil` for anything more, such as userinfo.
    init?(url text: String) {
        let scheme: Scheme
        let rest: Substring
        if text.lowercasedASCII.hasPrefix("http://") {
            scheme = .http
            rest = text.dropFirst("http://".count)
        } else if text.lowercasedASCII.hasPrefix("https://") {
            scheme = .https
            rest = text.dropFirst("https://".count)
        } else {
            return nil
        }
        let authority = rest.hasSuffix("/") ? rest.dropLast() : rest
        // A pattern without wildcards has the same grammar: a name or address, optionally a port.
        guard !authority.contains("*"), let pattern = try? HostPattern(String(authority)) else {
            return nil
        }
        // Without brackets, an IPv6 address and its port cannot be distinguished.
        guard authority.hasPrefix("[") || authority.filter({ $0 == ":" }).count <= 1 else {
            return nil
        }
        let named = pattern.port.map { authority.dropLast("\($0)".utf8.count + 1) } ?? authority
        var host = String(named).lowercasedASCII
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        if host.hasSuffix(".") { host.removeLast() }
        self.init(scheme: scheme, host: host, port: pattern.port ?? scheme.defaultPort)
    }
}

extension SnapshotReader {
    /// A server of a reverse listener: its URL, or its Unix socket, whose path may be relative to
    /// the file's folder.
    func upstreamOrigin(_ field: Field) -> UpstreamOrigin? {
        let expected = UpstreamSet.Server.urlExpected
        guard let text = field.text(expected: expected) else { return nil }
        if text.hasPrefix(UnixSocketPath.scheme) {
            return unixSocketPath(text, of: field).map { UpstreamOrigin(unixPath: $0) }
        }
        // As nginx writes it.
        for scheme in ["http://", "https://"]
        where text.hasPrefix(scheme + UnixSocketPath.scheme) {
            field.fail(
                "\(quoted(text)) is not valid: the socket's path follows unix: at once, and clear "
                    + "text is spoken there",
                expected: "unix: and a path, such as unix:/run/app.sock")
            return nil
        }
        return field.parsed(expected: expected) { UpstreamOrigin(url: $0) }
    }
}
