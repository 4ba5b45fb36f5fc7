import PinfoldConfiguration
import PinfoldTLS
import Trust

/// A server as it was seen: the certificates of each valid path from its own to a trusted root, of
/// which at least the keys are known.
package struct ObservedKeys: Sendable, Hashable {
    /// A certificate.
    package struct Certificate: Sendable, Hashable {
        /// SHA-256 of the public key.
        package var key: SHA256Digest
        /// SHA-256 of the certificate; `nil` if it is not known.
        package var fingerprint: SHA256Digest?

        package init(key: SHA256Digest, fingerprint: SHA256Digest? = nil) {
            self.key = key
            self.fingerprint = fingerprint
        }
    }

    /// The paths, the one that verification found first at the beginning, each with the server's
    /// own certificate first.
    package let paths: [[Certificate]]

    /// - Returns: `nil` if there is no path, or one has no certificates.
    package init?(_ paths: [[Certificate]]) {
        if paths.isEmpty || paths.contains(where: \.isEmpty) { return nil }
        self.paths = paths
    }

    /// Whether more is known of each certificate than its key.
    var hasCertificates: Bool { paths.allSatisfy { $0.allSatisfy { $0.fingerprint != nil } } }
}

/// What pins make of such a server.
package enum ObservedVerdict: Sendable {
    /// It passes, or there are no pins.
    case passes
    /// It passes, and this is reported.
    case reported(TrustError)
    case refused(TrustError)
    /// Certificates are pinned, and too little of them was seen.
    case unknown
}

/// A server as it was seen: its chains were valid then.
private struct ObservedChain: TrustEvidence {
    let chains: [VerifiedChain]

    init(_ observed: ObservedKeys) {
        guard let nothing = SHA256Digest(Array(repeating: 0, count: SHA256Digest.byteCount).span)
        else { preconditionFailure("a digest has 32 bytes") }
        chains = observed.paths.map { path in
            VerifiedChain(
                certificates: path.map {
                    CertificateIdentity(
                        key: $0.key, fingerprint: $0.fingerprint ?? nothing, subject: "")
                }, expires: .max)
        }
    }

    var leaf: CertificateIdentity { chains[0].certificates[0] }

    mutating func evaluateChain(
        anchors: TrustAnchors, host: String?
    ) -> Result<VerifiedChain, ChainError> { .success(chains[0]) }

    mutating func otherChain(
        anchors: TrustAnchors, host: String?, where isWanted: (VerifiedChain) -> Bool
    ) -> VerifiedChain? { chains.dropFirst().first(where: isWanted) }
}

/// The pins of each entry of `hosts`, for servers as they were seen.
package final class ObservedKeysJudge {
    private let configuration: ConfigurationSnapshot
    private var policies: [Int: ResolvedPinningPolicy] = [:]

    package init(_ configuration: ConfigurationSnapshot) {
        self.configuration = configuration
    }

    /// What the pins of an entry make of a server, by the evaluation that handshakes use.
    ///
    /// - Parameters:
    ///   - entry: the entry that applies to the host; `nil` if none does.
    ///   - now: by which pinsets expire, in seconds since 1970.
    /// - Throws: for a pin that is no certificate or key, which no valid configuration has.
    package func judge(
        _ observed: ObservedKeys, entry: Int?, host: String, now: Int64
    ) throws(TLSContextError) -> ObservedVerdict {
        guard let entry else { return .passes }
        let pinsets = configuration.hosts.entries[entry].pinsets.map {
            configuration.pinsets[$0].pinset
        }
        if pinsets.allSatisfy({ $0.mode == .none }) { return .passes }
        // Chains are built to the pinned certificates, for which those of the server are needed.
        if pinsets.contains(where: { $0.mode == .certificate }) { return .unknown }
        let resolved: ResolvedPinningPolicy
        if let known = policies[entry] {
            resolved = known
        } else {
            resolved = try TrustVerifier.resolve(PinningPolicy(pinsets: pinsets))
            policies[entry] = resolved
        }
        let isUnknown =
            !observed.hasCertificates && pinsets.contains(where: \.pinsFingerprints)
        var chain = ObservedChain(observed)
        switch resolved.evaluate(&chain, host: host, now: now) {
        case .trusted(let facts):
            for outcome in facts.outcomes {
                guard case .reported(let error) = outcome else { continue }
                return isUnknown ? .unknown : .reported(error)
            }
            return .passes
        case .refused(let error):
            return isUnknown ? .unknown : .refused(error)
        }
    }
}

extension Pinset {
    /// Whether it looks at more of a certificate than its key.
    fileprivate var pinsFingerprints: Bool {
        mode == .publicKey
            && pins.contains { if case .certificateFingerprint = $0 { true } else { false } }
    }
}
