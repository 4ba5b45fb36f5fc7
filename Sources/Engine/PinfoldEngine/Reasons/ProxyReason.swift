/// What goes wrong with a proxy that requests are sent through, in the order of the documentation.
package enum ProxyReason: UInt8, Sendable, CaseIterable {
    case unreachable
    case tlsFailed
    case timeout
    case refused
    case authenticationRequired
    case badResponse
    case loop
    case nameUnchecked

    /// The token, status, meaning and remedy.
    package var entry: ReasonEntry {
        switch self {
        case .unreachable:
            Self.entry(
                "proxy-unreachable", .destinationUnavailable,
                "cannot connect to the proxy that the request was to be sent through",
                "Correct the proxy's name and port, or start it: the message says why it failed.")
        case .tlsFailed:
            Self.entry(
                "proxy-tls-failed", .tlsProtocolError, "no secure connection to the proxy",
                "Its certificate must name the proxy and be valid under the client's roots; of a "
                    + "gateway's parent, its entry of hosts decides, pins included. For a proxy in "
                    + "clear text, use http://.")
        case .timeout:
            Self.entry(
                "proxy-timeout", .connectionTimeout, "the proxy did not open the tunnel in time",
                "The proxy or the server behind it is slow: the proxy's log says which.", 504)
        case .refused:
            Self.entry(
                "proxy-refused", .requestDenied, "the proxy refused to open a tunnel to the server",
                "The message has the proxy's status: 403 if the tunnel is not allowed, 502 to 504 "
                    + "if the proxy cannot reach the server.")
        case .authenticationRequired:
            Self.entry(
                "proxy-authentication-required", .requestDenied,
                "the proxy requires a user name and password, or rejected those that were sent",
                "Give them to the gateway in user and passwordFile of its entry of parents, or to "
                    + "the library in the proxy's URL: http://user:password@host:port.")
        case .badResponse:
            Self.entry(
                "proxy-bad-response", .protocolError,
                "the proxy's answer to CONNECT or by SOCKS5 is not valid",
                "Check that an HTTP proxy listens there, or a SOCKS5 proxy for a socks5 URL. The "
                    + "message says what is wrong.")
        case .loop:
            Self.entry(
                "proxy-loop", .loopDetected,
                "the request goes round in a circle of proxies",
                "One of the proxies that it was sent through is this gateway, or has it as a way "
                    + "to the server: remove one of the two.", 508)
        case .nameUnchecked:
            Self.entry(
                "proxy-name-unchecked", .dnsError,
                "the proxy would resolve a name whose addresses the gateway cannot check",
                "Correct the gateway's name servers, or write resolves: parent in the proxy's "
                    + "entry of parents: access.destinations then judges names only.")
        }
    }

    private static func entry(
        _ token: String, _ errorType: ProxyErrorType, _ meaning: String, _ remedy: String,
        _ status: UInt16 = 502
    ) -> ReasonEntry {
        ReasonEntry(token, .proxy, status, errorType, meaning, remedy: remedy)
    }
}
