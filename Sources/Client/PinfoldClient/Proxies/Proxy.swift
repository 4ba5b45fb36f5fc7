import HTTPCore
import ProxyProtocols

/// A proxy: its address, how to connect to it, and credentials for it.
///
/// Requests for `http` URLs are forwarded by an HTTP proxy (RFC 9112 section 3.2.2). For `https`
/// URLs, it is asked for a tunnel (RFC 9110 section 9.3.6), in which the server is evaluated by
/// the session's ``SecurityPolicy`` as without a proxy. A SOCKS5 proxy (RFC 1928) connects to the
/// server for both. Only the proxy's name is resolved, not those of the servers, except with
/// ``Scheme/socks5``.
public struct Proxy: Sendable, Hashable, CustomStringConvertible {
    /// How to connect to the proxy.
    public enum Scheme: String, Sendable, Hashable, CaseIterable {
        /// In clear text. Anything outside a tunnel can be read on the way, including the password.
        case http
        /// By TLS. The proxy's certificate must be valid under the session's trust anchors and
        /// match its name. Pins are not applied to it.
        case https
        /// By SOCKS5, in clear text. The names of servers are resolved here.
        case socks5
        /// By SOCKS5, in clear text. The proxy resolves the names of servers.
        case socks5h

        /// The port if the URL does not name one.
        public var defaultPort: UInt16 {
            switch self {
            case .http: 80
            case .https: 443
            case .socks5, .socks5h: 1080
            }
        }

        /// Whether it is an HTTP proxy.
        var isHTTP: Bool { self == .http || self == .https }
    }

    /// How to connect to the proxy.
    public let scheme: Scheme
    /// The host in lower case. An IPv6 address has no brackets.
    public let host: String
    /// The port; never 0.
    public let port: UInt16
    /// The user name, or `nil` if no credentials are sent unless the proxy requires them.
    public let user: String?
    /// The password in clear text.
    public let password: String?
    /// The value of Proxy-Authorization, for an HTTP proxy.
    let authorization: String?
    /// The user name and password in the form that SOCKS5 sends.
    let socksCredentials: SOCKS5ClientHandshake.Credentials?

    /// Creates a proxy.
    ///
    /// - Parameters:
    ///   - host: A host name, or an IP address with or without brackets.
    ///   - user: The user name, without a colon. It is sent together with the password in each
    ///     request to the proxy, by the Basic scheme (RFC 7617), or to a SOCKS5 proxy that asks for
    ///     them (RFC 1929).
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
        guard let user, scheme.isHTTP else {
            authorization = nil
            socksCredentials = user.flatMap {
                SOCKS5ClientHandshake.Credentials(
                    user: Array($0.utf8), password: Array((password ?? "").utf8))
            }
            if user != nil, socksCredentials == nil {
                throw Self.invalid(
                    "its user name or password: expected 1 to 255 bytes of each (RFC 1929)")
            }
            return
        }
        socksCredentials = nil
        do throws(AuthenticationError) {
            authorization = try UserCredentials(user: user, password: password ?? "").basic()
        } catch {
            throw Self.invalid("its user name or password: \(error)", error)
        }
    }

    /// Creates a proxy from its URL: `http://proxy.example:3128`,
    /// `https://user:password@[2001:db8::1]:8443`.
    ///
    /// - Parameter url: The URL. Without a scheme, it is `http`. Without a port, it is the scheme's
    ///   default: 80 for `http` (where curl uses 1080), and 443 for `https`. User name and password
    ///   are percent-decoded (RFC 3986 section 2.1).
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidProxy``. The message contains no
    ///   part of the URL before `@`.
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
                    "its scheme is not supported: expected http://, https://, socks5:// or "
                        + "socks5h://")
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
            throw Self.invalid("expected nothing after its host and port")
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
        else { throw invalid("its port is not a number from 1 to 65535") }
        return (String(host), port)
    }

    /// Returns the host in canonical form, or `nil` if it is not valid.
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
            throw invalid("a % in its user name or password is not followed by two digits")
        }
        guard let decoded = String(validating: bytes, as: UTF8.self) else {
            throw invalid("its user name or password is not valid UTF-8")
        }
        return decoded
    }

    private static func invalid(
        _ explanation: String, _ underlying: (any Error)? = nil
    ) -> ClientError {
        ClientError(.invalidProxy, explanation, underlying: underlying)
    }

    /// The proxy's URL without user name and password.
    public var description: String {
        "\(scheme.rawValue)://\(HostText.text(host, port: port))"
    }
}

extension Proxy: CustomReflectable, CustomDebugStringConvertible {
    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Omits the password.
    public var customMirror: Mirror { Mirror(self, children: ["url": description]) }
}
