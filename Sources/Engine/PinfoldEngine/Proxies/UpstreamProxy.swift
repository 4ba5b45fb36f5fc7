import HTTPCore

/// A proxy that requests are sent through, as seen by its client.
///
/// Two are equal if they have the same address, are reached in the same way and get the same
/// credentials: then they share connections.
package final class UpstreamProxy: Sendable, Hashable, CustomStringConvertible {
    /// The value of Proxy-Authorization for a request with this method and target, as in the
    /// request line; `nil` to send none. Called on the loop's thread.
    package typealias Authorization =
        @Sendable (_ method: String, _ target: String) -> String?

    /// Lower case, an address without brackets.
    package let host: String
    package let port: UInt16
    /// Whether TLS is used with it.
    package let isSecure: Bool
    /// Distinguishes proxies with different credentials.
    private let identity: String
    private let authorization: Authorization?

    /// - Parameters:
    ///   - host: in lower case, an address without brackets.
    ///   - identity: differs between different credentials; never displayed.
    ///   - authorization: called for each CONNECT and each forwarded request.
    package init(
        host: String, port: UInt16, isSecure: Bool, identity: String = "",
        authorization: Authorization? = nil
    ) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.identity = identity
        self.authorization = authorization
    }

    package static func == (one: UpstreamProxy, other: UpstreamProxy) -> Bool {
        one === other
            || one.host == other.host && one.port == other.port
                && one.isSecure == other.isSecure && one.identity == other.identity
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
        hasher.combine(isSecure)
        hasher.combine(identity)
    }

    /// The field line with CRLF, or nothing. A value with control characters is ignored.
    func authorizationLine(_ method: String, _ target: String) -> [UInt8] {
        guard let value = authorization?(method, target)?.utf8,
            value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { return [] }
        return Array("Proxy-Authorization: ".utf8) + value + [0x0D, 0x0A]
    }

    var authority: BoundAuthority { BoundAuthority(host: host, port: port) }

    package var description: String { "\(isSecure ? "https" : "http")://\(authority)" }
}

/// How requests are sent through a proxy.
package struct ProxyRoute: Sendable, Hashable {
    package let proxy: UpstreamProxy
    /// Whether a tunnel is also requested for clear text to the server, as for WebSocket (RFC 6455
    /// §4.1); otherwise such requests are sent to the proxy as they are.
    package let tunnelsClearText: Bool

    package init(_ proxy: UpstreamProxy, tunnelsClearText: Bool = false) {
        self.proxy = proxy
        self.tunnelsClearText = tunnelsClearText
    }
}
