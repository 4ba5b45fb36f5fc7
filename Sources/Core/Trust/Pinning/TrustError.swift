import HTTPCore

/// Why a chain is not valid. Subjects and names come from the server: printable ASCII, of limited
/// length.
package enum ChainError: Error, Hashable, Sendable {
    /// The leaf is valid for `names`, not for `host`.
    case hostMismatch(host: String, names: [CertificateName])
    /// A certificate's end of validity, in seconds since 1970, has passed.
    case expired(subject: String, notAfter: Int64)
    /// A certificate's start of validity, in seconds since 1970, is in the future.
    case notYetValid(subject: String, notBefore: Int64)
    /// The leaf is self-signed and not a trust anchor.
    case selfSigned(subject: String)
    /// The chain ends in a self-signed certificate that is not a trust anchor.
    case untrustedRoot(subject: String)
    /// The issuer of a certificate was not sent and is not a trust anchor.
    case incompleteChain(subject: String, issuer: String)
    /// A signature in the chain is wrong.
    case badSignature(subject: String)
    /// A certificate is not valid for TLS servers, or not for signing others.
    case wrongPurpose(subject: String)
    /// A key is too short or a signature's hash too weak.
    case weakCryptography(subject: String)
    /// A CA in the chain may not issue for these names, or at this depth.
    case constraintViolated(subject: String)
    /// The element at this position of the chain, from 1, is not a certificate.
    case malformed(position: Int)
    /// There is no certificate.
    case noCertificate
    /// A certificate breaks a rule of the profile (`tls.profile`).
    case rule(CertificateRule, subject: String)
    /// A certificate's revocation status does not let it pass.
    case revocation(RevocationError)
    /// Another of the library's reasons: its code (X509_V_ERR_…) and text.
    case other(code: Int32, text: String)

    /// Whether the chain was valid as far as it went, but led to none of the anchors.
    package var isMissingAnchor: Bool {
        switch self {
        case .selfSigned, .untrustedRoot, .incompleteChain: true
        case .hostMismatch, .expired, .notYetValid, .badSignature, .wrongPurpose,
            .weakCryptography, .constraintViolated, .malformed, .noCertificate, .rule, .revocation,
            .other:
            false
        }
    }
}

extension ChainError: CustomStringConvertible {
    /// One sentence for error replies and the log.
    package var description: String {
        switch self {
        case .hostMismatch(let host, let names):
            let list = names.isEmpty ? "no host" : names.map(\.description).joined(separator: ", ")
            let wanted = IPAddress(literal: host.utf8.span) == nil ? host : "the address \(host)"
            return "the certificate is for \(list), not for \(wanted)"
        case .expired(let subject, let notAfter):
            let end = CivilDate.text(secondsSince1970: notAfter)
            return "the certificate of \(subject) expired at \(end)"
        case .notYetValid(let subject, let notBefore):
            let begin = CivilDate.text(secondsSince1970: notBefore)
            return "the certificate of \(subject) is valid only from \(begin)"
        case .selfSigned(let subject):
            return "the certificate of \(subject) is self-signed and not a trust anchor"
        case .untrustedRoot(let subject):
            return "the chain ends in \(subject), which is not a trust anchor"
        case .incompleteChain(let subject, let issuer):
            return "the issuer of \(subject), \(issuer), is not a trust anchor,"
                + " and the server did not send its certificate"
        case .badSignature(let subject):
            return "the signature on the certificate of \(subject) is wrong"
        case .wrongPurpose(let subject):
            return "the certificate of \(subject) is not meant for this use"
        case .weakCryptography(let subject):
            return "the certificate of \(subject) has a key or signature that is too weak"
        case .constraintViolated(let subject):
            return "the certificate of \(subject) breaks a constraint of its issuer"
        case .malformed(let position):
            return "certificate \(position) of the chain cannot be read: it is not X.509 in DER"
        case .noCertificate:
            return "there is no certificate in the chain"
        case .rule(let rule, let subject):
            return "the certificate of \(subject) \(rule.problem)"
        case .revocation(let failure):
            return failure.description
        case .other(let code, let text):
            return "the chain is not valid: \(text) (\(code))"
        }
    }
}

/// Why a server is refused, and by which pinset.
package struct TrustError: Error, Hashable, Sendable {
    package enum Reason: Hashable, Sendable {
        /// The chain is not valid.
        case chain(ChainError)
        /// No certificate or key is pinned. `expected` are the pinset's pins; `chain` are the pins
        /// of the server's chain, from the leaf up; both ready to paste.
        case noPinMatches(expected: [String], chain: [ChainPin])
        /// The mode needs pins but there are none.
        case pinsetWithoutPins
        /// Invalid certificates are allowed, but a host name would have to be proved without pins.
        case invalidPolicy
        /// The pinset expired at `at`, in seconds since 1970.
        case pinsetExpired(at: Int64)
        /// Too few logs of Certificate Transparency have promised to publish the certificate.
        case transparency(TransparencyError)
    }

    package var reason: Reason
    /// The index in the policy and the name of the refusing pinset; `nil` if the policy has none.
    package var pinsetIndex: Int?
    package var pinset: String?

    package init(_ reason: Reason, pinsetIndex: Int? = nil, pinset: String? = nil) {
        self.reason = reason
        self.pinsetIndex = pinsetIndex
        self.pinset = pinset
    }
}

/// A certificate of a chain, as a pin.
package struct ChainPin: Hashable, Sendable, CustomStringConvertible {
    /// `sha256/…`, or a fingerprint in certificate mode.
    package var pin: String
    package var subject: String

    package init(pin: String, subject: String) {
        self.pin = pin
        self.subject = subject
    }

    package var description: String { "\(pin) (\(subject))" }
}

extension TrustError: CustomStringConvertible {
    /// One sentence for error replies and the log.
    package var description: String {
        let text: String
        switch reason {
        case .chain(let failure):
            text = failure.description
        case .noPinMatches(let expected, let chain):
            let found = chain.map(\.description).joined(separator: ", ")
            text =
                "no pin matches; expected one of \(expected.joined(separator: ", "));"
                + " the server's chain has \(found)"
        case .pinsetWithoutPins:
            text = "the mode needs pins, but there are none"
        case .invalidPolicy:
            text = "invalid certificates are allowed without pins, so no host name can be proved"
        case .pinsetExpired(let at):
            text = "the pinset expired at \(CivilDate.text(secondsSince1970: at))"
        case .transparency(let failure):
            text = failure.description
        }
        return pinset.map { "pinset \($0): \(text)" } ?? text
    }
}
