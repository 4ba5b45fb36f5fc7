import PinfoldTLS

extension TLSReason {
    /// The token, status, meaning and remedy.
    package var entry: ReasonEntry {
        switch self {
        case .timeout:
            entry(
                .connectionTimeout,
                "the TLS handshake with the server did not finish in time",
                "Check that the server speaks TLS on this port. The limit is `timeouts.connect`.",
                504)
        case .alertReceived:
            entry(
                .tlsAlertReceived, "the server ended TLS with an alert",
                "The reply names the alert; the server's log may have the cause.")
        case .clientCertificateRequired:
            entry(
                .tlsAlertReceived,
                "the server requires a client certificate, and the gateway has none for this host",
                "Get one that the server accepts, and name it in the host's entry: "
                    + "`tls.clientCertificate` and `tls.clientKey`.")
        case .clientCertificateRejected:
            entry(
                .tlsAlertReceived,
                "the server does not accept the gateway's client certificate",
                "The reply names the alert; `pinfold check` warns of a certificate that has "
                    + "expired. Have it issued by a certificate authority that the server trusts.")
        case .versionRefused:
            entry(
                .tlsProtocolError,
                "the server supports none of the allowed TLS versions",
                "Update the server, or lower `tls.minimum` for its host.")
        case .notTLS:
            entry(
                .tlsProtocolError, "the server sent something other than TLS",
                "The port is probably for clear text: correct the URL's scheme or port; `upgrade: "
                    + "https` in the host's entry, and `https://` in a reverse listener's "
                    + "upstream, need a port that speaks TLS.")
        case .unanswered:
            entry(
                .connectionTerminated,
                "the connection to the server ended before any TLS data arrived",
                "The port is probably for clear text: correct the URL's scheme or port, or "
                    + "`upgrade: https` in the host's entry. Otherwise check the server's log, and "
                    + "any firewall in between.")
        case .truncated:
            entry(
                .connectionTerminated,
                "the server closed the connection without ending the TLS session",
                "Check the server's log. A response that may be truncated is never treated as "
                    + "complete.")
        case .transportError:
            entry(
                .connectionTerminated,
                "the connection to the server broke during TLS",
                "Check the server's log, and any firewall in between.")
        case .protocolViolation:
            entry(
                .tlsProtocolError, "the server broke the TLS protocol",
                "The reply has the TLS library's message.")
        case .tooManyMessages:
            entry(
                .tlsProtocolError,
                "the server kept sending TLS messages without any data",
                "Check the server: it floods its clients, for example with key updates.")
        case .unauthenticated:
            entry(
                .tlsCertificateError,
                "the handshake did not prove the server's identity",
                "The server offers only cipher suites without authentication: correct it. In an "
                    + "inspected tunnel, somebody may be presenting a certificate without having "
                    + "its key.")
        case .resources:
            entry(
                .internalError, "the TLS connection could not be set up",
                "The gateway is out of memory, or its TLS library rejects its settings.")
        }
    }

    private func entry(
        _ errorType: ProxyErrorType, _ meaning: String, _ remedy: String, _ status: UInt16 = 502
    ) -> ReasonEntry {
        ReasonEntry("tls-\(rawValue)", .tls, status, errorType, meaning, remedy: remedy)
    }
}

extension TLSError {
    /// The reason of an exchange that fails with the error.
    package var reason: Reason {
        if case .trust(let failure) = self { Reason(failure) } else { .tls(kind) }
    }
}
