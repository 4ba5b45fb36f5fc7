import Trust

extension TrustReason {
    /// The token, status, meaning and remedy.
    package var entry: ReasonEntry {
        switch self {
        case .noPinMatches:
            entry(
                "no certificate or key in the server's chain is pinned",
                "First find out whether the server changed its key or somebody is intercepting the "
                    + "connection. The reply lists the chain's pins, ready to paste into the "
                    + "pinset.")
        case .pinsetWithoutPins:
            entry(
                "the pinset's mode requires pins, but it has none",
                "Add pins to the pinset.")
        case .invalidPolicy:
            entry(
                "the pinset allows invalid certificates and has no pins",
                "Add pins, or set `validatesDomainName: false` if no proof is wanted.")
        case .pinsetExpired:
            entry(
                "the pinset has expired",
                "Determine the current pins and set a later `expires`; until then, `afterExpiry: "
                    + "report` accepts valid servers.")
        case .transparency:
            entry(
                "too few logs have promised to publish the server's certificate",
                "The reply says why each timestamp does not count. If it names unknown logs, get a "
                    + "current list of logs; otherwise find out who issued the certificate.")
        case .hostMismatch:
            entry(
                "the server's certificate is for another name",
                "Use one of the names that the reply lists, or replace the certificate.")
        case .expired:
            entry(
                "a certificate in the server's chain has expired",
                "Renew the certificate on the server; check the gateway's clock.")
        case .notYetValid:
            entry(
                "a certificate in the server's chain is not valid yet",
                "Check the gateway's clock, then the certificate.")
        case .selfSigned:
            entry(
                "the server's certificate is self-signed and not a trust anchor",
                "If the certificate is the right one, add it to `tls.roots` or the pinset's "
                    + "`anchors`.")
        case .untrustedRoot:
            entry(
                "the server's chain ends in a root that is not trusted",
                "If the root should be trusted here, add it to `tls.roots`.")
        case .incompleteChain:
            entry(
                "the server did not send a necessary intermediate certificate",
                "Have the server send its intermediate certificates.")
        case .badSignature:
            entry(
                "a signature in the server's chain is invalid",
                "The chain is damaged or forged: check what the server is configured to send.")
        case .wrongPurpose:
            entry(
                "a certificate is not intended for TLS servers",
                "Issue the server a certificate with the server authentication purpose.")
        case .weakCryptography:
            entry(
                "a key or signature in the chain is too weak",
                "Reissue the certificate with a current key size and hash.")
        case .constraintViolated:
            entry(
                "a certificate breaks a constraint of its issuer",
                "A CA in the chain is not permitted to issue certificates for this name: get a "
                    + "certificate from another CA.")
        case .malformedCertificate:
            entry(
                "the server sent something that is not a certificate",
                "Check what the server is configured to send; the reply says at which position.")
        case .noCertificate:
            entry(
                "the server sent no certificate",
                "Configure the server with its certificate and the intermediate certificates.")
        case .invalidChain:
            entry(
                "the server's chain is not valid",
                "The reply has the TLS library's message.")
        }
    }

    private func entry(_ meaning: String, _ remedy: String) -> ReasonEntry {
        ReasonEntry("tls-\(rawValue)", .tls, 502, .tlsCertificateError, meaning, remedy: remedy)
    }
}
