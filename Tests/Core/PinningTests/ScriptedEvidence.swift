@testable import Trust

/// Evidence that answers from a script and records what it was asked.
struct ScriptedEvidence: TrustEvidence {
    enum Question: Hashable {
        case roots(Int?, String?)
        case pins(Int, String?)
    }

    var leaf: CertificateIdentity
    var answers: [Question: Result<VerifiedChain, ChainError>]
    var asked: [Question] = []
    /// The other valid chains under the roots.
    var others: [VerifiedChain] = []

    mutating func evaluateChain(
        anchors: TrustAnchors, host: String?
    ) -> Result<VerifiedChain, ChainError> {
        let question: Question
        switch anchors {
        case .roots(let pinset): question = .roots(pinset, host)
        case .pins(let pinset): question = .pins(pinset, host)
        }
        asked.append(question)
        return answers[question] ?? .failure(.other(code: -1, text: "unexpected \(question)"))
    }

    mutating func otherChain(
        anchors: TrustAnchors, host: String?, where isWanted: (VerifiedChain) -> Bool
    ) -> VerifiedChain? { others.first(where: isWanted) }
}

enum Sample {
    static func digest(_ value: UInt8) -> SHA256Digest {
        let bytes = [UInt8](repeating: value, count: 32)
        guard let digest = SHA256Digest(bytes.span) else { fatalError("32 bytes") }
        return digest
    }

    /// The key's digest is `value` repeated, the certificate's `value + 100`.
    static func identity(_ value: UInt8, _ subject: String) -> CertificateIdentity {
        CertificateIdentity(key: digest(value), fingerprint: digest(value + 100), subject: subject)
    }

    static let leaf = identity(1, "CN=leaf")
    static let intermediate = identity(2, "CN=intermediate")
    static let root = identity(3, "CN=root")
    static let chain = VerifiedChain(certificates: [leaf, intermediate, root], expires: 1000)
    static let other = Pin.keyDigest(digest(9))
    static let otherCertificate = Pin.certificateFingerprint(digest(109))
    static let untrusted = ChainError.untrustedRoot(subject: "CN=root")
    static let expired = ChainError.expired(subject: "CN=leaf", notAfter: 0)

    /// The key pin, and the certificate pin, of a chain's member.
    static func key(_ value: UInt8) -> Pin { .keyDigest(digest(value)) }
    static func certificate(_ value: UInt8) -> Pin { .certificateFingerprint(digest(value + 100)) }
}
