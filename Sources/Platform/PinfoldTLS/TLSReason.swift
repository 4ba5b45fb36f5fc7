/// Why a TLS connection to a server failed, apart from trust: a ``TLSError`` without its details.
/// The raw value is a permanent token.
package enum TLSReason: String, Sendable, CaseIterable {
    case timeout
    case alertReceived = "alert-received"
    case clientCertificateRequired = "client-certificate-required"
    case clientCertificateRejected = "client-certificate-rejected"
    case versionRefused = "version-refused"
    case notTLS = "not-tls"
    case unanswered
    case truncated
    case transportError = "transport-error"
    case protocolViolation = "protocol-violation"
    case tooManyMessages = "too-many-messages"
    case unauthenticated
    case resources
}

extension TLSError {
    /// The error without its details. Of a server that is not trusted, `TrustError.kind` says more.
    package var kind: TLSReason {
        switch self {
        case .alertReceived: .alertReceived
        case .certificateRequired: .clientCertificateRequired
        case .certificateRejected: .clientCertificateRejected
        case .versionRefused: .versionRefused
        case .notTLS, .clearText: .notTLS
        case .unanswered: .unanswered
        case .truncated: .truncated
        case .transport: .transportError
        // The second and the third occur on connections with clients only, so no exchange with a
        // server ends with them.
        case .protocolViolation, .identityRefused, .clientCertificate: .protocolViolation
        case .tooManyMessages: .tooManyMessages
        // The client library has its own token for the second; a gateway does not review servers.
        case .unauthenticated, .refusedByReview, .trust: .unauthenticated
        case .resources: .resources
        }
    }
}
