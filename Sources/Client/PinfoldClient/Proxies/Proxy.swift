import HTTPAuthentication
import HTTPCore

/// A proxy for HTTP: where it is, how it is reached, and who one is to it.
///
/// Requests for `http` URLs are given to it as they are (RFC 9112 section 3.2.2); for `https` URLs
/// it is asked for a tunnel (RFC 9110 section 9.3.6), in which the server is judged by the
/// session's ``SecurityPolicy`` as without a proxy. Only the proxy's name is looked up, not the
/// servers'.
public struct Proxy: Sendable, Hashable, CustomStringConvertible {
    /// How a proxy is reached.
    public enum Scheme: String, Sendable, Hashable, CaseIterable {
        /// In clear text: what is not within a tunnel can be read on the way, the password too.
        case http
        /// By TLS: its certificate must be valid under the session's trust anchors, and name it.
        /// Pins do not apply to it.
        case https

        /// What a URL means that names no port.
        public var defaultPort: UInt16 { self == .http ? 80 : 443 }
    }

    /// How it is reached.
    public let scheme: Scheme
    /// In lower case, an address without brackets.
    public let host: String
    /// Not 0.
    public let port: UInt16
    /// Nil: it is given no credentials unless it asks.
    public let user: String?
    /// In clear text.
    public let password: String?
    /// The value of Proxy-Authorization.
    let authorization: String?

    /// - Parameters:
    ///   - host: A name, or an address with or without brackets.
    ///   - user: Sent with the password along with each request to the proxy, by the Basic scheme
    ///     (RFC 7617); without a colon.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidProxy``.
    public init(
        scheme: Scheme = .http, host: String, port: UInt16, user: String? = nil,
        password: String? = nil
    ) throws(ClientError) {
        guard let host = Self.checked(host) else {
            throw Self.invalid("its host is neither a name nor an address")
        }
        guard port > 0 else { throw Self.invalid("its port is 0") }
        self.scheme = scheme
        self.host = host
        self.port = port
        self.user = user
        self.password = user == nil ? nil : password ?? ""
        guard let user else {
            authorization = nil
            return
        }
        do throws(AuthenticationError) {
            authorization = try UserCredentials(user: user, password: password ?? "").basic()
        } catch {
            throw Self.invalid("its user name or password: \(error)", error)
        }
    }

    /// A proxy by its URL: `http://proxy.example:3128`, `https://user:password@[2001:db8::1]:8443`.
    ///
    /// - Parameter url: Without a scheme it is `http`, without a port the scheme's own: 80 for
    ///   `http`, where curl takes 1080, and 443 for `https`. In user name and password `%` begins
    ///   an octet in hexadecimal digits (RFC 3986 section 2.1).
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidProxy``; the message has no part
    ///   of the URL before `@`.
    public init(_ url: String) throws(ClientError) {
        do throws(ClientError) {
            try self.init(parsing: url)
        } catch {
            throw ClientError(
                .invalidProxy,
                "the proxy \(URIReference.withoutCredentials(url)): "
                    + error.explanation, underlying: error.underlying)
        }
    }

    private init(parsing url: String) throws(ClientError) {
        var rest = url[...]
        var scheme = Scheme.http
        if let mark = rest.firstRange(of: "://") {
            guard let named = Scheme(rawValue: rest[..<mark.lowerBound].lowercasedASCII) else {
                throw Self.invalid(
                    "its scheme is not supported: expected http:// or https://")
            }
            scheme = named
            rest = rest[mark.upperBound...]
        }
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        var user: String?
        var password: String?
        if let sign = rest.lastIndex(of: "@") {
            let parts = rest[..<sign].split(
                separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            user = try Self.decoded(parts[0])
            password = parts.count > 1 ? try Self.decoded(parts[1]) : nil
            rest = rest[rest.index(after: sign)...]
        }
        guard !rest.contains(where: { "/?#".contains($0) }) else {
            throw Self.invalid("expected nothing behind its host and port")
        }
        let (host, port) = try Self.authority(rest, scheme)
        try self.init(scheme: scheme, host: host, port: port, user: user, password: password)
    }

    private static func authority(
        _ text: Substring, _ scheme: Scheme
    ) throws(ClientError) -> (host: String, port: UInt16) {
        let hasPort = text.lastIndex(of: ":").flatMap { colon in
            text[colon...].contains("]") ? nil : colon
        }
        guard let colon = hasPort else { return (String(text), scheme.defaultPort) }
        let host = text[..<colon]
        guard !host.contains(":") || host.hasPrefix("[") else {
            throw invalid("an IPv6 address needs brackets: [2001:db8::1]:3128")
        }
        let digits = text[text.index(after: colon)...]
        if digits.isEmpty { return (String(host), scheme.defaultPort) }
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits)
        else { throw invalid("its port is no number from 1 to 65535") }
        return (String(host), port)
    }

    /// A host in the form in which it is kept; nil: it is none.
    private static func checked(_ text: String) -> String? {
        var host = text.lowercasedASCII
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
            guard let address = IPAddress(host), address.family == .v6 else { return nil }
            return "\(address)"
        }
        if host.contains(":") { return IPAddress(host).map { "\($0)" } }
        let isName = host.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        return isName && (1...253).contains(host.utf8.count) ? host : nil
    }

    private static func decoded(_ text: Substring) throws(ClientError) -> String {
        guard let bytes = PercentCoding.decode(text.utf8) else {
            throw invalid("behind a % of its user name or password are no two digits")
        }
        guard let decoded = String(validating: bytes, as: UTF8.self) else {
            throw invalid("its user name or password is no UTF-8")
        }
        return decoded
    }

    private static func invalid(
        _ explanation: String, _ underlying: (any Error)? = nil
    ) -> ClientError {
        ClientError(.invalidProxy, explanation, underlying: underlying)
    }

    /// Its URL, without user name and password.
    public var description: String {
        "\(scheme.rawValue)://\(HostText.text(host, port: port))"
    }
}

extension Proxy: CustomReflectable, CustomDebugStringConvertible {
    /// As ``description``.
    public var debugDescription: String { description }

    /// What is dumped has no password.
    public var customMirror: Mirror { Mirror(self, children: ["url": description]) }
}
