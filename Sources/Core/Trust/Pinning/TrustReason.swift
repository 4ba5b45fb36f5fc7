/// Why a server is not trusted: a ``TrustError`` without its details. The raw value is a permanent
/// token.
package enum TrustReason: String, Sendable, CaseIterable {
    // Pins and the policy.
    case noPinMatches = "no-pin-matches"
    case pinsetWithoutPins = "pinset-without-pins"
    case invalidPolicy = "invalid-policy"
    case pinsetExpired = "pinset-expired"
    case transparency = "certificate-transparency"
    // The chain.
    case hostMismatch = "host-mismatch"
    case expired = "certificate-expired"
    case notYetValid = "certificate-not-yet-valid"
    case selfSigned = "self-signed"
    case untrustedRoot = "untrusted-root"
    case incompleteChain = "incomplete-chain"
    case badSignature = "bad-signature"
    case wrongPurpose = "wrong-purpose"
    case weakCryptography = "weak-cryptography"
    case constraintViolated = "constraint-violated"
    case malformedCertificate = "malformed-certificate"
    case noCertificate = "no-certificate"
    case invalidChain = "invalid-chain"
}

extension TrustError {
    /// The reason without its details. Rules of a profile and revocation have lists of their own
    /// (`CertificateRule`, `RevocationReason`); here they are an invalid chain.
    package var kind: TrustReason {
        switch reason {
        case .noPinMatches: .noPinMatches
        case .pinsetWithoutPins: .pinsetWithoutPins
        case .invalidPolicy: .invalidPolicy
        case .pinsetExpired: .pinsetExpired
        case .transparency: .transparency
        case .chain(.hostMismatch): .hostMismatch
        case .chain(.expired): .expired
        case .chain(.notYetValid): .notYetValid
        case .chain(.selfSigned): .selfSigned
        case .chain(.untrustedRoot): .untrustedRoot
        case .chain(.incompleteChain): .incompleteChain
        case .chain(.badSignature): .badSignature
        case .chain(.wrongPurpose): .wrongPurpose
        case .chain(.weakCryptography): .weakCryptography
        case .chain(.constraintViolated): .constraintViolated
        case .chain(.malformed): .malformedCertificate
        case .chain(.noCertificate): .noCertificate
        case .chain(.rule), .chain(.revocation), .chain(.other): .invalidChain
        }
    }

    /// The token of the reason, from one of the three lists.
    package var token: String {
        switch reason {
        case .chain(.rule(let rule, _)): rule.token
        case .chain(.revocation(let failure)): failure.reason.token
        default: kind.rawValue
        }
    }
}
