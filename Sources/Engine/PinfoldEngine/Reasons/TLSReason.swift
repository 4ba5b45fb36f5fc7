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

    /// The token, status, meaning and remedy.
    package var entry: ReasonEntry {
        switch self {
        case .timeout:
            Self.entry(
                "tls-timeout", .connectionTimeout,
                "the TLS handshake with the server did not finish in time",
                "Check that the server speaks TLS on this port. The limit is `timeouts.connect`.",
                504)
        case .alertReceived:
            Self.entry(
                "tls-alert-received", .tlsAlertReceived, "the server ended TLS with an alert",
                "The reply names the alert; the server's log may have the cause.")
        case .clientCertificateRequired:
            Self.entry(
                "tls-client-certificate-required", .tlsAlertReceived,
                "the server requires a client certificate, and the gateway has none for this host",
                "Get one that the server accepts, and name it in the host's entry: "
                    + "`tls.clientCertificate` and `tls.clientKey`.")
        case .clientCertificateRejected:
            Self.entry(
                "tls-client-certificate-rejected", .tlsAlertReceived,
                "the server does not accept the gateway's client certificate",
                "The reply names the alert; `pinfold check` warns of a certificate that has "
                    + "expired. Have it issued by a certificate authority that the server trusts.")
        case .versionRefused:
            Self.entry(
                "tls-version-refused", .tlsProtocolError,
                "the server supports none of the allowed TLS versions",
                "Update the server, or lower `tls.minimum` for its host.")
        case .notTLS:
            Self.entry(
                "tls-not-tls", .tlsProtocolError, "the server sent something other than TLS",
                "The port is probably for clear text: correct the URL's scheme or port; `upgrade: "
                    + "https` in the host's entry, and `https://` in a reverse listener's "
                    + "upstream, need a port that speaks TLS.")
        case .unanswered:
            Self.entry(
                "tls-unanswered", .connectionTerminated,
                "the connection to the server ended before any TLS data arrived",
                "The port is probably for clear text: correct the URL's scheme or port, or "
                    + "`upgrade: https` in the host's entry. Otherwise check the server's log, and "
                    + "any firewall in between.")
        case .truncated:
            Self.entry(
                "tls-truncated", .connectionTerminated,
                "the server closed the connection without ending the TLS session",
                "Check the server's log. A response that may be truncated is never treated as "
                    + "complete.")
        case .transportError:
            Self.entry(
                "tls-transport-error", .connectionTerminated,
                "the connection to the server broke during TLS",
                "Check the server's log, and any firewall in between.")
        case .protocolViolation:
            Self.entry(
                "tls-protocol-violation", .tlsProtocolError, "the server broke the TLS protocol",
                "The reply has the TLS library's message.")
        case .tooManyMessages:
            Self.entry(
                "tls-too-many-messages", .tlsProtocolError,
                "the server kept sending TLS messages without any data",
                "Check the server: it floods its clients, for example with key updates.")
        case .unauthenticated:
            Self.entry(
                "tls-unauthenticated", .tlsCertificateError,
                "the handshake did not prove the server's identity",
                "The server offers only cipher suites without authentication: correct it. In an "
                    + "inspected tunnel, somebody may be presenting a certificate without having "
                    + "its key.")
        case .resources:
            Self.entry(
                "tls-resources", .internalError, "the TLS connection could not be set up",
                "The gateway is out of memory, or its TLS library rejects its settings.")
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
    /// The reason of an exchange that fails with the error.
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
        // The second and the third occur on connections with clients only, so no exchange with a
        // server ends with them.
        case .protocolViolation, .identityRefused, .clientCertificate: .tls(.protocolViolation)
        case .tooManyMessages: .tls(.tooManyMessages)
        // The client library has its own token for the second; a gateway does not review servers.
        case .unauthenticated, .refusedByReview: .tls(.unauthenticated)
        case .resources: .tls(.resources)
        }
    }
}
