/// What goes wrong with a proxy that requests are sent through, in the order of the documentation.
package enum ProxyReason: UInt8, Sendable, CaseIterable {
    case unreachable
    case tlsFailed
    case timeout
    case refused
    case authenticationRequired
    case badResponse

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
                "Its certificate must name the proxy and be valid under the client's roots; pins "
                    + "apply to servers only. For a proxy in clear text, use http://.")
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
                "Put them into the proxy's URL: http://user:password@host:port.")
        case .badResponse:
            Self.entry(
                "proxy-bad-response", .protocolError,
                "the proxy's answer to the CONNECT request is not valid HTTP",
                "Check that an HTTP proxy listens there. The message says what is wrong.")
        }
    }

    private static func entry(
        _ token: String, _ errorType: ProxyErrorType, _ meaning: String, _ remedy: String,
        _ status: UInt16 = 502
    ) -> ReasonEntry {
        ReasonEntry(token, .proxy, status, errorType, meaning, remedy: remedy)
    }
}
