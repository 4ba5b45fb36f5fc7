/// The identity of a certificate, for pinning.
package struct CertificateIdentity: Hashable, Sendable {
    /// SHA-256 of the SubjectPublicKeyInfo.
    package var key: SHA256Digest
    /// SHA-256 of the certificate.
    package var fingerprint: SHA256Digest
    /// The subject, for display: printable ASCII.
    package var subject: String

    package init(key: SHA256Digest, fingerprint: SHA256Digest, subject: String) {
        self.key = key
        self.fingerprint = fingerprint
        self.subject = subject
    }
}

/// A chain to a trust anchor that passed every check.
package struct VerifiedChain: Hashable, Sendable {
    /// The certificates from the leaf to the anchor, including both.
    package var certificates: [CertificateIdentity]
    /// When the first of its certificates expires, in seconds since 1970.
    package var expires: Int64

    package init(certificates: [CertificateIdentity], expires: Int64) {
        self.certificates = certificates
        self.expires = expires
    }
}

/// The certificates that may end a chain.
package enum TrustAnchors: Hashable, Sendable {
    /// The configured roots, and the extra anchors of the pinset at this index, if any.
    case roots(pinset: Int?)
    /// Only the pinned certificates of the pinset at this index.
    case pins(pinset: Int)
}

/// What a server presented, and the means to verify it. The TLS adapter implements it during a
/// handshake.
package protocol TrustEvidence {
    /// The certificate whose private key the handshake proves.
    var leaf: CertificateIdentity { get }

    /// Builds a chain from the leaf to one of the anchors through the certificates that were sent,
    /// and checks signatures, dates, purpose and constraints, and the host name unless `host` is
    /// `nil`.
    mutating func evaluateChain(
        anchors: TrustAnchors, host: String?
    ) -> Result<VerifiedChain, ChainError>

    /// Finds a chain other than the one that ``evaluateChain(anchors:host:)`` found, to the same
    /// anchors and just as valid. There are several if authorities have cross-signed each other's
    /// keys; which one is found first depends on the order in which a server sends its
    /// certificates.
    ///
    /// - Parameter isWanted: whether a chain will do.
    /// - Returns: the first chain that will do, which from then on is the one by which the server
    ///   is trusted; `nil` if there is none within the bounds of the search.
    mutating func otherChain(
        anchors: TrustAnchors, host: String?, where isWanted: (VerifiedChain) -> Bool
    ) -> VerifiedChain?
}

/// What was found out about a trusted server.
package struct TrustFacts: Hashable, Sendable {
    /// How long the verdict is valid, in seconds since 1970: until the first certificate of the
    /// verified chains expires, or the first pinset that then refuses; `nil` if the policy requires
    /// neither. After that no session is resumed and no connection reused.
    package var expires: Int64?
    /// When the first certificate of the verified chains expires, in seconds since 1970; `nil` if
    /// the policy requires no valid chain.
    package var chainExpires: Int64?
    /// The result of each pinset of the policy, in order.
    package var outcomes: [PinsetOutcome]

    package init(expires: Int64? = nil, outcomes: [PinsetOutcome] = []) {
        self.expires = expires
        chainExpires = expires
        self.outcomes = outcomes
    }

    /// Limits the verdict's validity to `end`, in seconds since 1970.
    package mutating func limit(to end: Int64) { expires = min(expires ?? end, end) }

    /// Whether a pinset would have refused the server if it were enforced.
    package var isReported: Bool {
        outcomes.contains {
            if case .reported = $0 { true } else { false }
        }
    }
}

/// The verdict on a server.
package enum TrustVerdict: Hashable, Sendable {
    case trusted(TrustFacts)
    case refused(TrustError)
}
