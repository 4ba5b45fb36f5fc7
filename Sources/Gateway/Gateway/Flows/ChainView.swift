import Documents
import PinfoldEngine
import PinfoldTLS

/// What the server of an exchange presented, as operators see it: decoded when somebody asks.
struct ChainView: Sendable {
    /// One certificate.
    struct Certificate: Sendable {
        /// Counted from 1, the server's own.
        var position: Int
        /// `nil` if the bytes are no certificate.
        var inspection: CertificateInspection?
        var keyKind: String?
        /// The pins that it matched, as they are configured.
        var matches: [String]

        fileprivate init(_ der: [UInt8], at position: Int, _ matched: Set<String>) {
            self.position = position
            inspection = try? CertificateInspection(certificate: der)
            keyKind = CertificateInspection.keyKind(ofCertificate: der)
            let own = inspection.map {
                [$0.identity.key.keyPinText, $0.identity.fingerprint.fingerprintText]
            }
            matches = (own ?? []).filter { matched.contains($0) }
        }
    }

    let chain: ServerChain
    let certificates: [Certificate]

    init(_ chain: ServerChain) {
        self.chain = chain
        let matched = Set(chain.matches.flatMap(\.pins))
        certificates = chain.certificates.enumerated().map { index, der in
            Certificate(der, at: index + 1, matched)
        }
    }

    private static let certificate = ObjectShape<Certificate>(
        "A certificate.",
        [
            .number("position", "Counted from 1: the server's own.") { $0.position },
            .text("subject", "The subject; empty for what is no certificate.") {
                $0.inspection?.identity.subject ?? ""
            },
            .text("issuer", "The issuer.") { $0.inspection?.issuer ?? "" },
            .texts("names", "Names and addresses that it is for, the first 16.") {
                $0.inspection?.names ?? []
            },
            .optionalTime("notBefore", "When it begins to be valid.") {
                $0.inspection?.notBefore.inMilliseconds
            },
            .optionalTime("notAfter", "When it expires.") {
                $0.inspection?.notAfter.inMilliseconds
            },
            .optionalText("key", "The kind of its key: RSA 2048, EC P-256.") { $0.keyKind },
            .optionalText("pin", "The pin of its key, ready to paste.") {
                $0.inspection?.identity.key.keyPinText
            },
            .optionalText("fingerprint", "The SHA-256 of the certificate.") {
                $0.inspection?.identity.fingerprint.fingerprintText
            },
            .flag("isAuthority", "Whether it may be an issuer's.") {
                $0.inspection?.isAuthority ?? false
            },
            .texts("matches", "The configured pins that it matched.") { $0.matches },
        ])

    private static let match = ObjectShape<ServerChain.Match>(
        "The pins of a pinset that the chain matched.",
        [
            .text("pinset", "The pinset's name.") { $0.pinset },
            .texts("pins", "The pins as they are configured.") { $0.pins },
        ])

    static let shape = ObjectShape<ChainView>(
        "What the server presented; absent without TLS, without the token, and if it is not known.",
        [
            .word(
                "verdict", ServerChain.Verdict.allCases.map(\.rawValue),
                "reported: a pinset that only reports would have refused it."
            ) { $0.chain.verdict.rawValue },
            .time("verified", "When it was first verified with this result.") { $0.chain.time },
            .optionalText("problem", "Why it was refused, or would have been.") {
                $0.chain.problem
            },
            .optionalText("pinset", "The pinset that refused it, or would have.") {
                $0.chain.pinset
            },
            .flag("hasOtherPins", "Whether that is because none of its pins matched.") {
                $0.chain.hasOtherPins
            },
            .list(
                "matches", match,
                "The pins that it matched, also those of an authority whose "
                    + "certificate servers do not send."
            ) { $0.chain.matches },
            .list("certificates", certificate, "As the server sent them.") { $0.certificates },
            .flag("isCut", "Whether it sent more than is held.") { $0.chain.isCut },
        ])
}

extension Int64 {
    /// Seconds in milliseconds; `nil` for a time that could not be read, which is at an end of the
    /// range.
    fileprivate var inMilliseconds: Int64? {
        let (milliseconds, isTooMuch) = multipliedReportingOverflow(by: 1000)
        return isTooMuch ? nil : milliseconds
    }
}
