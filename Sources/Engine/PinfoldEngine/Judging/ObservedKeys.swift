import PinfoldConfiguration
import PinfoldTLS
import Trust

/// The keys that a server was seen to have: the SHA-256 of each public key of the chain that was
/// verified, the server's own first.
package struct ObservedKeys: Sendable, Hashable {
    package var keys: [SHA256Digest]

    /// - Returns: `nil` for no keys.
    package init?(_ keys: [SHA256Digest]) {
        if keys.isEmpty { return nil }
        self.keys = keys
    }
}

/// What pins make of such a server.
package enum ObservedVerdict: Sendable {
    /// It passes, or there are no pins.
    case passes
    /// It passes, and this is reported.
    case reported(TrustError)
    case refused(TrustError)
    /// Certificates are pinned, and only keys were seen.
    case unknown
}

/// A server as it was seen: its chain was valid then, and only its keys are known.
private struct ObservedChain: TrustEvidence {
    let chain: VerifiedChain

    init(_ observed: ObservedKeys) {
        guard let nothing = SHA256Digest(Array(repeating: 0, count: SHA256Digest.byteCount).span)
        else { preconditionFailure("a digest has 32 bytes") }
        chain = VerifiedChain(
            certificates: observed.keys.map {
                CertificateIdentity(key: $0, fingerprint: nothing, subject: "")
            }, expires: .max)
    }

    var leaf: CertificateIdentity { chain.certificates[0] }

    mutating func evaluateChain(
        anchors: TrustAnchors, host: String?
    ) -> Result<VerifiedChain, ChainError> { .success(chain) }

    mutating func otherChain(
        anchors: TrustAnchors, host: String?, where isWanted: (VerifiedChain) -> Bool
    ) -> VerifiedChain? { nil }
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
        let resolved: ResolvedPinningPolicy
        if let known = policies[entry] {
            resolved = known
        } else {
            resolved = try TrustVerifier.resolve(PinningPolicy(pinsets: pinsets))
            policies[entry] = resolved
        }
        var chain = ObservedChain(observed)
        switch resolved.evaluate(&chain, host: host, now: now) {
        case .trusted(let facts):
            for outcome in facts.outcomes {
                guard case .reported(let error) = outcome else { continue }
                return pinsets.contains(where: \.pinsCertificates) ? .unknown : .reported(error)
            }
            return .passes
        case .refused(let error):
            return pinsets.contains(where: \.pinsCertificates) ? .unknown : .refused(error)
        }
    }
}

extension Pinset {
    /// Whether it may look at more of a certificate than its key.
    fileprivate var pinsCertificates: Bool {
        mode == .certificate
            || mode == .publicKey
                && pins.contains { if case .certificateFingerprint = $0 { true } else { false } }
    }
}
