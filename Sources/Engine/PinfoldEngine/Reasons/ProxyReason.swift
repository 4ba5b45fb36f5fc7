/// What goes wrong with a proxy that requests are sent through. The order is that of the
/// documentation.
package enum ProxyReason: UInt8, Sendable, CaseIterable {
    case unreachable
    case tlsFailed
    case timeout
    case refused
    case authenticationRequired
    case badResponse

    /// Everything that is said of it.
    package var entry: ReasonEntry {
        switch self {
        case .unreachable:
            Self.entry(
                "proxy-unreachable", .destinationUnavailable,
                "there is no connection to the proxy that the request was to be sent through",
                "Correct the proxy's name and port, or start it: the message has the cause.")
        case .tlsFailed:
            Self.entry(
                "proxy-tls-failed", .tlsProtocolError, "there is no secure connection to the proxy",
                "Its certificate must name the proxy and be valid under the client's roots; pins "
                    + "are for servers. A proxy in clear text is named with http://.")
        case .timeout:
            Self.entry(
                "proxy-timeout", .connectionTimeout, "the proxy did not open the tunnel in time",
                "The proxy or the server behind it is slow: the proxy's log says which.", 504)
        case .refused:
            Self.entry(
                "proxy-refused", .requestDenied, "the proxy refused to open a tunnel to the server",
                "The message has the proxy's status: 403 for what is not allowed, 502 to 504 for a "
                    + "server that it cannot reach.")
        case .authenticationRequired:
            Self.entry(
                "proxy-authentication-required", .requestDenied,
                "the proxy asks for a user's name and password, or does not accept those it got",
                "Name them in the proxy's URL: http://user:password@host:port.")
        case .badResponse:
            Self.entry(
                "proxy-bad-response", .protocolError,
                "the proxy did not answer the request for a tunnel as HTTP says",
                "Is it a proxy for HTTP that listens there? The message says what is wrong.")
        }
    }

    private static func entry(
        _ token: String, _ errorType: ProxyErrorType, _ meaning: String, _ remedy: String,
        _ status: UInt16 = 502
    ) -> ReasonEntry {
        ReasonEntry(token, .proxy, status, errorType, meaning, remedy: remedy)
    }
}
