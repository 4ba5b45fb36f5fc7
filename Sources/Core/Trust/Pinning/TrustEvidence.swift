/// A certificate, as far as pins are concerned.
package struct CertificateIdentity: Hashable, Sendable {
    /// SHA-256 of the SubjectPublicKeyInfo.
    package var key: SHA256Digest
    /// SHA-256 of the certificate.
    package var fingerprint: SHA256Digest
    /// The subject, for people: printable ASCII.
    package var subject: String

    package init(key: SHA256Digest, fingerprint: SHA256Digest, subject: String) {
        self.key = key
        self.fingerprint = fingerprint
        self.subject = subject
    }
}

/// A chain that was built to a trust anchor and passed every check.
package struct VerifiedChain: Hashable, Sendable {
    /// From the leaf to the anchor, both included.
    package var certificates: [CertificateIdentity]
    /// When the first of its certificates expires: seconds since 1970.
    package var expires: Int64

    package init(certificates: [CertificateIdentity], expires: Int64) {
        self.certificates = certificates
        self.expires = expires
    }
}

/// Which certificates end a chain.
package enum TrustAnchors: Hashable, Sendable {
    /// The configured roots, and the extra anchors of the pinset at the index, if any.
    case roots(pinset: Int?)
    /// Only the pinned certificates of the pinset at the index.
    case pins(pinset: Int)
}

/// What a server presented, and the means to verify it. The TLS adapter's during a handshake.
package protocol TrustEvidence {
    /// The certificate whose private key the handshake proves.
    var leaf: CertificateIdentity { get }

    /// Builds a chain from the leaf to one of the anchors through the certificates sent, and checks
    /// signatures, dates, purpose and constraints, and the host name unless `host` is nil.
    mutating func evaluateChain(
        anchors: TrustAnchors, host: String?
    ) -> Result<VerifiedChain, ChainFailure>

    /// Another chain than ``evaluateChain(anchors:host:)`` has found, to the same anchors and just
    /// as valid: there is more than one where authorities have certified each other's keys, and
    /// which one is found first is a matter of the order in which a server sends its certificates.
    ///
    /// - Parameter isWanted: which of them will do.
    /// - Returns: the first that will do, which is from now on what the server is trusted by; nil:
    ///   none within the bounds of the search.
    mutating func otherChain(
        anchors: TrustAnchors, host: String?, where isWanted: (VerifiedChain) -> Bool
    ) -> VerifiedChain?
}

/// What was found about a trusted server.
package struct TrustFacts: Hashable, Sendable {
    /// How long the verdict holds, in seconds since 1970: until the first certificate of the
    /// verified chains expires, or the first pinset that then refuses; nil when the policy asked
    /// for neither. No session is resumed and no connection used again later than that.
    package var expires: Int64?
    /// When the first certificate of the verified chains expires, in seconds since 1970; nil when
    /// the policy asked for no valid chain.
    package var chainExpires: Int64?
    /// What each pinset of the policy found, in their order.
    package var outcomes: [PinsetOutcome]

    package init(expires: Int64? = nil, outcomes: [PinsetOutcome] = []) {
        self.expires = expires
        chainExpires = expires
        self.outcomes = outcomes
    }

    /// Makes the verdict hold no longer than until `end`, in seconds since 1970.
    package mutating func limit(to end: Int64) { expires = min(expires ?? end, end) }

    /// Whether a pinset would have refused the server if it were enforced.
    package var isReported: Bool {
        outcomes.contains {
            if case .reported = $0 { true } else { false }
        }
    }
}

/// The judgement on a server.
package enum TrustVerdict: Hashable, Sendable {
    case trusted(TrustFacts)
    case refused(TrustFailure)
}
