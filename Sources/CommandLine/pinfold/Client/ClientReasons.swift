import PinfoldClient

/// What is said of the tokens that only the client's commands print: of what no gateway refuses,
/// the error's reason is the token.
enum ClientReasons {
    /// The token of a server that the program's own review refused.
    private static let serverTrustRefused = (
        token: "server-trust-refused", meaning: "the session's own review refused the server"
    )

    /// The token of a request whose turn did not come in time.
    private static let queueTimeout = (
        token: QueueTimeout.token,
        meaning: "it waited for its turn in vain: the requests ahead of it came to no end"
    )

    static var all: [(token: String, meaning: String)] {
        ClientError.Reason.allCases.map { ($0.rawValue, $0.meaning) }
            + [serverTrustRefused, queueTimeout]
    }

    /// All of them, a line each.
    static var list: String {
        let width = 38
        let lines = all.map { token, meaning in
            let gap = String(repeating: " ", count: max(1, width - token.utf8.count))
            return "  \(token)\(gap)\(meaning)\n"
        }
        return "The client's own:\n" + lines.joined()
    }

    /// What is known of one; nil if there is no such token.
    static func explanation(of token: String) -> String? {
        all.first { $0.token == token }.map { "\($0.token): the client's own\n  \($0.meaning)\n" }
    }
}

extension ClientError.Reason {
    /// One sentence without full stop.
    fileprivate var meaning: String {
        switch self {
        case .invalidRequest: "the request cannot be sent as it is"
        case .invalidSecurityPolicy: "the pins and options for TLS can let no server pass"
        case .invalidClientCertificate: "a client certificate or its key cannot be used"
        case .invalidConfiguration: "the options contradict each other, or name what is not there"
        case .clearTextRefused: "what is pinned is not sent in clear text"
        case .nameNotResolved: "the host's name has no address"
        case .cannotConnect: "no connection came about"
        case .invalidProxy: "what names a proxy cannot be understood"
        case .proxyFailed: "the proxy could not be reached, is not trusted, or refused"
        case .proxyAuthenticationRequired: "the proxy asks for a name and password it accepts"
        case .secureConnectionFailed: "there is no trust in the server, or no TLS with it"
        case .clientCertificateRequired: "the server asks for a client certificate"
        case .clientCertificateRejected: "the server does not accept the client certificate"
        case .authenticationFailed: "credentials cannot be sent in the way that the server asks for"
        case .connectionLost: "the connection ended before the response did"
        case .timedOut: "nothing moved for too long, or all of it took too long"
        case .badResponse: "what the server sent is no response by the rules of HTTP"
        case .unacceptableStatus: "the response's status is not one that is accepted"
        case .unexpectedResponse: "the response is none of the kind that was asked for"
        case .protocolViolation: "the server breaks the rules of a WebSocket"
        case .contentUndecodable: "the content is not what its Content-Encoding says"
        case .contentTooLong: "the content is longer than is taken"
        case .tooManyRedirects: "there were more redirects than allowed"
        case .redirectRefused: "a redirect leads to where it cannot be followed"
        case .contentNotRepeatable: "content that can be read once only would be sent again"
        case .contentFailed: "the content to be sent could not be read"
        case .fileFailed: "a file could not be written, or was not to be"
        case .notCached: "only a stored response was wanted, and there is none"
        case .cancelled: "it was cancelled"
        case .sessionInvalidated: "the session was invalidated"
        case .outOfResources: "no descriptors or no memory are left"
        case .serialization: "parameters or content cannot be translated as was asked for"
        }
    }
}
