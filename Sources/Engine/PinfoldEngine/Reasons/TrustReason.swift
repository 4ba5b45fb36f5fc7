import Trust

/// Why a server is not trusted: a `TrustError` without its details.
package enum TrustReason: UInt8, Sendable, CaseIterable {
    // Pins and the policy.
    case noPinMatches
    case pinsetWithoutPins
    case invalidPolicy
    case pinsetExpired
    case transparency
    // The chain.
    case hostMismatch
    case expired
    case notYetValid
    case selfSigned
    case untrustedRoot
    case incompleteChain
    case badSignature
    case wrongPurpose
    case weakCryptography
    case constraintViolated
    case malformedCertificate
    case noCertificate
    case invalidChain

    /// The reason of a failure.
    package init(_ failure: TrustError) {
        switch failure.reason {
        case .noPinMatches: self = .noPinMatches
        case .pinsetWithoutPins: self = .pinsetWithoutPins
        case .invalidPolicy: self = .invalidPolicy
        case .pinsetExpired: self = .pinsetExpired
        case .transparency: self = .transparency
        case .chain(.hostMismatch): self = .hostMismatch
        case .chain(.expired): self = .expired
        case .chain(.notYetValid): self = .notYetValid
        case .chain(.selfSigned): self = .selfSigned
        case .chain(.untrustedRoot): self = .untrustedRoot
        case .chain(.incompleteChain): self = .incompleteChain
        case .chain(.badSignature): self = .badSignature
        case .chain(.wrongPurpose): self = .wrongPurpose
        case .chain(.weakCryptography): self = .weakCryptography
        case .chain(.constraintViolated): self = .constraintViolated
        case .chain(.malformed): self = .malformedCertificate
        case .chain(.noCertificate): self = .noCertificate
        case .chain(.rule), .chain(.revocation): self = .invalidChain
        case .chain(.other): self = .invalidChain
        }
    }

    /// The token, status, meaning and remedy.
    package var entry: ReasonEntry {
        switch self {
        case .noPinMatches:
            Self.entry(
                "tls-no-pin-matches", "no certificate or key in the server's chain is pinned",
                "First find out whether the server changed its key or somebody is intercepting the "
                    + "connection. The reply lists the chain's pins, ready to paste into the "
                    + "pinset.")
        case .pinsetWithoutPins:
            Self.entry(
                "tls-pinset-without-pins", "the pinset's mode requires pins, but it has none",
                "Add pins to the pinset.")
        case .invalidPolicy:
            Self.entry(
                "tls-invalid-policy", "the pinset allows invalid certificates and has no pins",
                "Add pins, or set `validatesDomainName: false` if no proof is wanted.")
        case .pinsetExpired:
            Self.entry(
                "tls-pinset-expired", "the pinset has expired",
                "Determine the current pins and set a later `expires`; until then, `afterExpiry: "
                    + "report` accepts valid servers.")
        case .transparency:
            Self.entry(
                "tls-certificate-transparency",
                "too few logs have promised to publish the server's certificate",
                "The reply says why each timestamp does not count. If it names unknown logs, get a "
                    + "current list of logs; otherwise find out who issued the certificate.")
        case .hostMismatch:
            Self.entry(
                "tls-host-mismatch", "the server's certificate is for another name",
                "Use one of the names that the reply lists, or replace the certificate.")
        case .expired:
            Self.entry(
                "tls-certificate-expired", "a certificate in the server's chain has expired",
                "Renew the certificate on the server; check the gateway's clock.")
        case .notYetValid:
            Self.entry(
                "tls-certificate-not-yet-valid",
                "a certificate in the server's chain is not valid yet",
                "Check the gateway's clock, then the certificate.")
        case .selfSigned:
            Self.entry(
                "tls-self-signed", "the server's certificate is self-signed and not a trust anchor",
                "If the certificate is the right one, add it to `tls.roots` or the pinset's "
                    + "`anchors`.")
        case .untrustedRoot:
            Self.entry(
                "tls-untrusted-root", "the server's chain ends in a root that is not trusted",
                "If the root should be trusted here, add it to `tls.roots`.")
        case .incompleteChain:
            Self.entry(
                "tls-incomplete-chain",
                "the server did not send a necessary intermediate certificate",
                "Have the server send its intermediate certificates.")
        case .badSignature:
            Self.entry(
                "tls-bad-signature", "a signature in the server's chain is invalid",
                "The chain is damaged or forged: check what the server is configured to send.")
        case .wrongPurpose:
            Self.entry(
                "tls-wrong-purpose", "a certificate is not intended for TLS servers",
                "Issue the server a certificate with the server authentication purpose.")
        case .weakCryptography:
            Self.entry(
                "tls-weak-cryptography", "a key or signature in the chain is too weak",
                "Reissue the certificate with a current key size and hash.")
        case .constraintViolated:
            Self.entry(
                "tls-constraint-violated", "a certificate breaks a constraint of its issuer",
                "A CA in the chain is not permitted to issue certificates for this name: get a "
                    + "certificate from another CA.")
        case .malformedCertificate:
            Self.entry(
                "tls-malformed-certificate",
                "the server sent something that is not a certificate",
                "Check what the server is configured to send; the reply says at which position.")
        case .noCertificate:
            Self.entry(
                "tls-no-certificate", "the server sent no certificate",
                "Configure the server with its certificate and the intermediate certificates.")
        case .invalidChain:
            Self.entry(
                "tls-invalid-chain", "the server's chain is not valid",
                "The reply has the TLS library's message.")
        }
    }

    private static func entry(
        _ token: String, _ meaning: String, _ remedy: String
    ) -> ReasonEntry {
        ReasonEntry(token, .tls, 502, .tlsCertificateError, meaning, remedy: remedy)
    }
}
