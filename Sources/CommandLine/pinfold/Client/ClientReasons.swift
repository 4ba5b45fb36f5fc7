import PinfoldClient

/// Explanations of the tokens that only the client commands print. For errors that no gateway
/// reports, the token is the error's reason.
enum ClientReasons {
    /// The token for a server that the program's own trust evaluation refused.
    private static let serverTrustRefused = (
        token: "server-trust-refused",
        meaning: "the program's own trust evaluation refused the server"
    )

    /// The token for a request that timed out in the queue.
    private static let queueTimeout = (
        token: QueueTimeoutError.token,
        meaning: "the request was queued for too long behind requests that made no progress"
    )

    static var all: [(token: String, meaning: String)] {
        ClientError.Reason.allCases.map { ($0.rawValue, $0.meaning) }
            + [serverTrustRefused, queueTimeout]
    }

    /// All tokens with their meanings, one per line.
    static var list: String {
        let width = 38
        let lines = all.map { token, meaning in
            let gap = String(repeating: " ", count: max(1, width - token.utf8.count))
            return "  \(token)\(gap)\(meaning)\n"
        }
        return "Client commands only:\n" + lines.joined()
    }

    /// The explanation of a token, or `nil` if the token is unknown.
    static func explanation(of token: String) -> String? {
        all.first { $0.token == token }.map {
            "\($0.token): client commands only\n  \($0.meaning)\n"
        }
    }
}

extension ClientError.Reason {
    /// A short explanation in lower case, without a full stop.
    fileprivate var meaning: String {
        switch self {
        case .invalidRequest: "the request is invalid and cannot be sent"
        case .invalidSecurityPolicy: "no server can satisfy the pins and TLS options"
        case .invalidClientCertificate: "a client certificate or its key cannot be used"
        case .invalidConfiguration:
            "the options contradict each other, or refer to something that does not exist"
        case .clearTextRefused: "requests to pinned servers are not sent in clear text"
        case .nameNotResolved: "the host's name cannot be resolved"
        case .cannotConnect: "cannot connect to the server"
        case .invalidProxy: "the proxy's URL is invalid"
        case .proxyFailed: "the proxy could not be reached, is not trusted, or refused the request"
        case .proxyAuthenticationRequired: "the proxy requires a valid user name and password"
        case .secureConnectionFailed: "the server is not trusted, or the TLS handshake failed"
        case .clientCertificateRequired: "the server requires a client certificate"
        case .clientCertificateRejected: "the server does not accept the client certificate"
        case .authenticationFailed: "the server's authentication challenge cannot be answered"
        case .connectionLost: "the connection closed before the response was complete"
        case .timedOut: "there was no progress for too long, or the total time limit was exceeded"
        case .badResponse: "the server's response violates the rules of HTTP"
        case .unacceptableStatus: "the response's status is not accepted"
        case .unexpectedResponse: "the response is not of the requested kind"
        case .protocolViolation: "the server violates the WebSocket protocol"
        case .contentUndecodable: "the content does not match its Content-Encoding"
        case .contentTooLong: "the content exceeds the size limit"
        case .tooManyRedirects: "there were more redirects than allowed"
        case .redirectRefused: "a redirect leads to a URL that cannot be followed"
        case .contentNotRepeatable: "the content can be read only once, but must be sent again"
        case .contentFailed: "the content to send could not be read"
        case .fileFailed: "a file could not be written, or already exists"
        case .notCached: "only a stored response was requested, and there is none"
        case .cancelled: "the request was cancelled"
        case .sessionInvalidated: "the session was invalidated"
        case .outOfResources: "the program is out of file descriptors or memory"
        case .transportFailed: "what answers requests instead of the network has failed"
        case .requestAdaptationFailed: "the program could not adapt the request"
        case .requestRetryFailed: "the program gave the request up instead of sending it again"
        case .serialization: "parameters or content cannot be converted as requested"
        }
    }
}
