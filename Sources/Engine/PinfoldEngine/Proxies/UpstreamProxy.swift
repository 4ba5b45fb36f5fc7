import HTTPCore
import PinfoldConfiguration
import ProxyProtocols

/// A proxy that requests are sent through, as seen by its client: one that the library's user has
/// named, or an entry of a gateway's `parents`.
///
/// Two are equal if they have the same address, are reached in the same way and get the same
/// credentials: then they share connections.
package final class UpstreamProxy: Sendable, Hashable, CustomStringConvertible {
    /// The value of Proxy-Authorization for a request with this method and target, as in the
    /// request line; `nil` to send none. Called on the loop's thread.
    package typealias Authorization =
        @Sendable (_ method: String, _ target: String) -> String?
    /// How it is spoken to.
    package typealias Scheme = ParentConfiguration.Scheme

    /// Lower case, an address without brackets.
    package let host: String
    package let port: UInt16
    package let scheme: Scheme
    /// Distinguishes proxies with different credentials.
    private let identity: String
    private let authorization: Authorization?
    /// Who asks a SOCKS5 proxy; `nil` for anybody.
    let socksCredentials: SOCKS5ClientHandshake.Credentials?
    /// What is known about it as a gateway's parent; `nil` for the library's.
    package let standing: ParentStanding?
    /// Whether it is sent the credentials that a client has for a proxy.
    let passesCredentials: Bool
    /// The same parent without a client's credentials; `nil` if it has none.
    private let withoutClient: UpstreamProxy?
    /// Whether names that it resolves are resolved by the gateway, too.
    private let checksNames: Bool

    /// A proxy of the library.
    ///
    /// - Parameters:
    ///   - host: in lower case, an address without brackets.
    ///   - identity: differs between different credentials; never displayed.
    ///   - socksCredentials: for a SOCKS5 proxy, in place of `authorization`.
    ///   - authorization: called for each CONNECT and each forwarded request.
    package init(
        host: String, port: UInt16, scheme: Scheme, identity: String = "",
        socksCredentials: SOCKS5ClientHandshake.Credentials? = nil,
        authorization: Authorization? = nil
    ) {
        self.host = host
        self.port = port
        self.scheme = scheme
        self.identity = identity
        self.authorization = authorization
        self.socksCredentials = socksCredentials
        standing = nil
        passesCredentials = false
        withoutClient = nil
        checksNames = false
    }

    /// The same for an HTTP proxy.
    package convenience init(
        host: String, port: UInt16, isSecure: Bool, identity: String = "",
        authorization: Authorization? = nil
    ) {
        self.init(
            host: host, port: port, scheme: isSecure ? .https : .http, identity: identity,
            authorization: authorization)
    }

    /// A gateway's parent.
    init(_ parent: ParentConfiguration, _ standing: ParentStanding) {
        host = parent.host
        port = parent.port
        scheme = parent.scheme
        self.standing = standing
        passesCredentials = parent.authorization == .pass
        withoutClient = nil
        checksNames = parent.resolves == .gateway
        // What a user name cannot contain separates it.
        identity = "\(parent.name):\(parent.user ?? ""):\(parent.password.text)"
        let user = parent.user.map { Array($0.utf8) }
        let password = Array(parent.password.text.utf8)
        socksCredentials =
            parent.scheme.isHTTP
            ? nil : user.flatMap { SOCKS5ClientHandshake.Credentials(user: $0, password: password) }
        if let user, parent.scheme.isHTTP {
            let value = "Basic " + Base64.encode(user + [UInt8(ascii: ":")] + password)
            authorization = { _, _ in value }
        } else {
            authorization = nil
        }
    }

    /// A parent that is sent a client's credentials, on connections of their own.
    private init(_ parent: UpstreamProxy, passing credentials: String) {
        host = parent.host
        port = parent.port
        scheme = parent.scheme
        standing = parent.standing
        passesCredentials = true
        withoutClient = parent
        checksNames = parent.checksNames
        identity = parent.identity + credentials
        socksCredentials = nil
        authorization = { _, _ in credentials }
    }

    /// The same proxy for a client with these credentials: whoever else has others, or none, uses
    /// none of its tunnels.
    ///
    /// - Parameter credentials: the value of the client's Proxy-Authorization; `nil` for none.
    func passing(_ credentials: String?) -> UpstreamProxy {
        guard passesCredentials, let credentials else { return self }
        return UpstreamProxy(self, passing: credentials)
    }

    /// The proxy that it is to all clients together.
    var forAll: UpstreamProxy { withoutClient ?? self }

    package static func == (one: UpstreamProxy, other: UpstreamProxy) -> Bool {
        one === other
            || one.host == other.host && one.port == other.port
                && one.scheme == other.scheme && one.identity == other.identity
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
        hasher.combine(scheme)
        hasher.combine(identity)
    }

    /// Whether TLS is used with it.
    package var isSecure: Bool { scheme == .https }

    /// Whether it takes requests that it forwards itself, rather than only opening tunnels.
    package var forwardsRequests: Bool { scheme.isHTTP }

    /// Whether the gateway has to find out the addresses of a name before the proxy is asked for
    /// it: to send it one, or to see that none of them is refused.
    ///
    /// - Parameter isRestricted: whether rules on addresses apply to the destination.
    func needsAddresses(isRestricted: Bool) -> Bool {
        scheme == .socks5 || checksNames && isRestricted
    }

    /// The host entry by which it is verified; `nil` if none applies: the library's entries are for
    /// servers only.
    func entryIndex(under policy: PolicySnapshot) -> Int? {
        standing == nil ? nil : policy.entry(host: host, port: port)
    }

    /// The field line with CRLF, or nothing. A value with control characters is ignored.
    func authorizationLine(_ method: String, _ target: String) -> [UInt8] {
        guard let value = authorization?(method, target)?.utf8,
            value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { return [] }
        return Array("Proxy-Authorization: ".utf8) + value + [0x0D, 0x0A]
    }

    /// A parent's name in UTF-8; empty for another proxy.
    package var nameBytes: [UInt8] { standing?.nameBytes ?? [] }

    var authority: BoundAuthority { BoundAuthority(host: host, port: port) }

    package var description: String { "\(scheme.rawValue)://\(authority)" }
}

/// How requests are sent through a proxy.
package struct ProxyRoute: Sendable, Hashable {
    package let proxy: UpstreamProxy
    /// Whether a tunnel is also requested for clear text to the server, as for WebSocket (RFC 6455
    /// §4.1); otherwise such requests are sent to the proxy as they are.
    package let tunnelsClearText: Bool

    /// - Parameter tunnelsClearText: always the case for a proxy that forwards no requests.
    package init(_ proxy: UpstreamProxy, tunnelsClearText: Bool = false) {
        self.proxy = proxy
        self.tunnelsClearText = tunnelsClearText || !proxy.forwardsRequests
    }
}
