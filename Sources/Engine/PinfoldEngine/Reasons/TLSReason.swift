import PinfoldTLS

/// Why a TLS connection to a server failed, apart from trust: a `TLSError` without its details.
package enum TLSReason: UInt8, Sendable, CaseIterable {
    case timeout
    case alertReceived
    case clientCertificateRequired
    case clientCertificateRejected
    case versionRefused
    case notTLS
    case unanswered
    case truncated
    case transportError
    case protocolViolation
    case tooManyMessages
    case unauthenticated
    case resources

    /// Everything that is said of it.
    package var entry: ReasonEntry {
        switch self {
        case .timeout:
            Self.entry(
                "tls-timeout", .connectionTimeout,
                "the TLS handshake with the server did not end in time",
                "Does the server speak TLS on this port? `timeouts.connect` is the bound.", 504)
        case .alertReceived:
            Self.entry(
                "tls-alert-received", .tlsAlertReceived, "the server ended TLS with an alert",
                "The reply names the alert; the server's log says why.")
        case .clientCertificateRequired:
            Self.entry(
                "tls-client-certificate-required", .tlsAlertReceived,
                "the server asks for a client certificate, and the gateway has none for its host",
                "Get one that the server accepts, and name it in the host's entry: "
                    + "`tls.clientCertificate` and `tls.clientKey`.")
        case .clientCertificateRejected:
            Self.entry(
                "tls-client-certificate-rejected", .tlsAlertReceived,
                "the server does not accept the gateway's client certificate",
                "The reply names the alert; `pinfold check` warns of a certificate that has "
                    + "expired. Have it issued by an authority that the server trusts.")
        case .versionRefused:
            Self.entry(
                "tls-version-refused", .tlsProtocolError,
                "the server supports no TLS version that is allowed",
                "Update the server, or lower `tls.minimum` for its host.")
        case .notTLS:
            Self.entry(
                "tls-not-tls", .tlsProtocolError, "what the server sent is not TLS",
                "The port is probably one for clear text: correct the URL's scheme or port; "
                    + "`upgrade: https` in the host's entry, and `https://` in a reverse "
                    + "listener's upstream, need a port that speaks TLS.")
        case .unanswered:
            Self.entry(
                "tls-unanswered", .connectionTerminated,
                "the server ended the connection without a byte of TLS",
                "The port is probably one for clear text: correct the URL's scheme or port, or "
                    + "`upgrade: https` in the host's entry. Else look at the server's log, and at "
                    + "firewalls between.")
        case .truncated:
            Self.entry(
                "tls-truncated", .connectionTerminated,
                "the server closed the connection without ending the TLS session",
                "Look at the server's log; a response that may be cut off is never taken as whole.")
        case .transportError:
            Self.entry(
                "tls-transport-error", .connectionTerminated,
                "the connection to the server broke within TLS",
                "Look at the server's log, and at firewalls between.")
        case .protocolViolation:
            Self.entry(
                "tls-protocol-violation", .tlsProtocolError, "the server broke the TLS protocol",
                "The reply has the TLS library's words.")
        case .tooManyMessages:
            Self.entry(
                "tls-too-many-messages", .tlsProtocolError,
                "the server sent TLS messages without end and no data",
                "Look at the server: it floods its clients, with key updates for example.")
        case .unauthenticated:
            Self.entry(
                "tls-unauthenticated", .tlsCertificateError,
                "the handshake did not prove who the server is",
                "The server offers only cipher suites that prove nothing: correct it. In an "
                    + "inspected tunnel: somebody may be sending a certificate that is not his.")
        case .resources:
            Self.entry(
                "tls-resources", .internalError, "no TLS connection could be set up",
                "The gateway is short of memory, or its TLS library refuses its settings.")
        }
    }

    private static func entry(
        _ token: String, _ errorType: ProxyErrorType, _ meaning: String, _ remedy: String,
        _ status: UInt16 = 502
    ) -> ReasonEntry {
        ReasonEntry(token, .tls, status, errorType, meaning, remedy: remedy)
    }
}

extension TLSError {
    /// The reason that the error is for an exchange.
    package var reason: Reason {
        switch self {
        case .trust(let failure): Reason(failure)
        case .alertReceived: .tls(.alertReceived)
        case .certificateRequired: .tls(.clientCertificateRequired)
        case .certificateRejected: .tls(.clientCertificateRejected)
        case .versionRefused: .tls(.versionRefused)
        case .notTLS, .clearText: .tls(.notTLS)
        case .unanswered: .tls(.unanswered)
        case .truncated: .tls(.truncated)
        case .transport: .tls(.transportError)
        // The second and the third are of a server's connections only: no exchange with a server
        // ends so.
        case .protocolViolation, .identityRefused, .clientCertificate: .tls(.protocolViolation)
        case .tooManyMessages: .tls(.tooManyMessages)
        // The client library has a token of its own for it; a gateway reviews no servers.
        case .unauthenticated, .refusedByReview: .tls(.unauthenticated)
        case .resources: .tls(.resources)
        }
    }
}
