import COpenSSL
import Clocks
import Trust

/// What a server presented, for the policy to evaluate. Lives within one call of the verification
/// callback, or of `TrustVerifier.verify`.
struct PeerEvidence: TrustEvidence {
    private struct Evaluation {
        var host: String?
        var result: Result<BuiltChain, ChainError>
        /// The other valid chains, or `nil` if they have not been looked for.
        var others: [BuiltChain]?
    }

    let leaf: CertificateIdentity
    let certificate: OpaquePointer
    let sent: OpaquePointer?
    private let verifier: TrustVerifier
    private let time: Int64?
    /// Evaluations under the configured roots, which several pinsets request in the same form.
    private var evaluations: [Evaluation] = []
    /// How long the revocation information about the accepted chains is valid, in seconds since
    /// 1970; `nil` if none was requested.
    private var statusEnd: Int64?
    /// The first accepted chain, or `nil` if the policy requested none.
    private(set) var accepted: CertificateStack?

    /// - Parameters:
    ///   - certificate: the leaf.
    ///   - sent: the certificates of the server's message, or `nil` if there are none.
    ///   - verifier: the anchors and settings that the policy is applied with.
    ///   - time: when the certificates must be valid, in seconds since 1970; `nil` for now.
    /// Nil only if the library is out of memory.
    init?(
        certificate: OpaquePointer, sent: OpaquePointer?, verifier: TrustVerifier,
        time: Int64? = nil
    ) {
        guard let leaf = X509View(certificate).identity else { return nil }
        self.leaf = leaf
        self.certificate = certificate
        self.sent = sent
        self.verifier = verifier
        self.time = time
    }

    mutating func evaluateChain(
        anchors: TrustAnchors, host: String?
    ) -> Result<VerifiedChain, ChainError> {
        let result: Result<BuiltChain, ChainError>
        switch anchors {
        case .roots(let pinset):
            result = underRoots(pinset: pinset, host: host)
        case .pins(let pinset):
            result = underPins(pinset, host: host)
        }
        if case .success(let chain) = result { note(chain) }
        return result.map(\.verified)
    }

    mutating func otherChain(
        anchors: TrustAnchors, host: String?, where isWanted: (VerifiedChain) -> Bool
    ) -> VerifiedChain? {
        // Among pinned certificates, any one will do.
        guard case .roots(let pinset) = anchors,
            case .success(let first) = underRoots(pinset: pinset, host: host),
            let other = others(than: first, pinset: pinset, host: host).first(where: {
                isWanted($0.verified)
            })
        else { return nil }
        if accepted === first.certificates { accepted = nil }
        note(other)
        return other.verified
    }

    private mutating func note(_ chain: BuiltChain) {
        if accepted == nil { accepted = chain.certificates }
        guard
            let end = verifier.revocation?.end(
                of: chain.certificates, at: time ?? Clock.wallSeconds())
        else { return }
        statusEnd = min(statusEnd ?? end, end)
    }

    /// Limits a verdict reached from this evidence to the validity of the revocation information.
    func limited(_ verdict: TrustVerdict) -> TrustVerdict {
        guard let statusEnd, case .trusted(var facts) = verdict else { return verdict }
        facts.limit(to: statusEnd)
        return .trusted(facts)
    }

    /// The certificates of the chain that is valid under the roots and the pinset's own anchors,
    /// regardless of its name, or `nil` if there is none.
    mutating func validated(pinset: Int?) -> CertificateStack? {
        try? underRoots(pinset: pinset, host: nil).get().certificates
    }

    /// All valid chains under the roots and the pinsets' own anchors, regardless of names, the one
    /// that is found first at the beginning.
    mutating func paths() -> [BuiltChain] {
        var found: [BuiltChain] = []
        func add(_ chains: [BuiltChain]) {
            for chain in chains
            where !found.contains(where: {
                $0.verified.certificates == chain.verified.certificates
            }) {
                found.append(chain)
            }
        }
        let pinsets = verifier.pinsets.indices.filter { verifier.pinsets[$0].anchors != nil }
        for pinset in [nil] + pinsets.map(Optional.some) {
            guard case .success(let first) = underRoots(pinset: pinset, host: nil) else { continue }
            add([first])
            add(others(than: first, pinset: pinset, host: nil))
        }
        return found
    }

    /// Verifies a stapled OCSP response, once the policy has been evaluated.
    var stapleVerifier: StapleVerifier {
        StapleVerifier(chain: accepted, verifier: verifier, time: time)
    }

    /// A chain that ends in a configured root or, failing that, in one of the pinset's own anchors.
    /// Every chain ends in one anchor, so trying one set after the other is the same as trying
    /// their union.
    private mutating func underRoots(
        pinset: Int?, host: String?
    ) -> Result<BuiltChain, ChainError> {
        let result: Result<BuiltChain, ChainError>
        if let known = evaluations.first(where: { $0.host == host }) {
            result = known.result
        } else {
            result = build(store: verifier.roots.store, trusted: nil, host: host)
            evaluations.append(Evaluation(host: host, result: result))
        }
        guard case .failure(let failure) = result, let pinset,
            let anchors = verifier.pinsets[pinset].anchors
        else { return result }
        let second = build(store: nil, trusted: anchors, host: host)
        // The more informative failure: a chain that reached an anchor and then broke a rule.
        if case .failure(let other) = second, other.isMissingAnchor || !failure.isMissingAnchor {
            return result
        }
        return second
    }

    /// The valid chains other than the result of ``underRoots(pinset:host:)``.
    private mutating func others(
        than first: BuiltChain, pinset: Int?, host: String?
    ) -> [BuiltChain] {
        var found: [BuiltChain] = []
        if let index = evaluations.firstIndex(where: { $0.host == host }) {
            if evaluations[index].others == nil {
                var others: [BuiltChain] = []
                if case .success(let chain) = evaluations[index].result {
                    others = builder(store: verifier.roots.store, trusted: nil, host: host)
                        .others(than: chain)
                }
                evaluations[index].others = others
            }
            found = evaluations[index].others ?? []
        }
        guard let pinset, let anchors = verifier.pinsets[pinset].anchors else { return found }
        let own = builder(store: nil, trusted: anchors, host: host)
        if case .success(let chain) = own.build() {
            found.append(chain)
            found += own.others(than: chain)
        }
        return found
    }

    /// A chain that ends in one of a pinset's pinned certificates.
    private mutating func underPins(
        _ pinset: Int, host: String?
    ) -> Result<BuiltChain, ChainError> {
        guard let pinned = pinnedCertificates(pinset) else { return .failure(.outOfMemory) }
        let builder = builder(store: nil, trusted: pinned, host: host)
        let result = builder.build()
        guard case .failure(let failure) = result,
            case .success(let first) = underRoots(pinset: pinset, host: nil)
        else { return result }
        // Intermediates that lead to a pin need not have been sent: they may be among the roots.
        var best = failure
        for chain in [first] + others(than: first, pinset: pinset, host: nil) {
            guard let end = verifier.pinsets[pinset].lastIndex(in: chain), end > 0 else { continue }
            switch builder.attempt(chain.certificates, endingAt: end).result {
            case .success(let chain): return .success(chain)
            // A chain that reached a pin and then broke a rule is more informative than none.
            case .failure(let other): if best.isMissingAnchor { best = other }
            }
        }
        return .failure(best)
    }

    /// The pinned certificates: those configured in full, and those with a pinned fingerprint that
    /// the server sent or that complete its chain.
    private mutating func pinnedCertificates(_ pinset: Int) -> CertificateStack? {
        let certificates = verifier.pinsets[pinset]
        guard !certificates.fingerprints.isEmpty else { return certificates.pinned }
        guard let stack = CertificateStack() else { return nil }
        for index in 0..<certificates.pinned.count {
            if let pinned = certificates.pinned[index] { stack.append(pinned) }
        }
        func appendIfPinned(_ candidate: OpaquePointer?) {
            guard let candidate, let fingerprint = X509View(candidate).fingerprint,
                certificates.fingerprints.contains(fingerprint)
            else { return }
            stack.append(candidate)
        }
        appendIfPinned(certificate)
        if let sent {
            for index in 0..<pinfold_sk_X509_num(sent) {
                appendIfPinned(pinfold_sk_X509_value(sent, index))
            }
        }
        // Servers do not send their root; the verified chain contains it.
        if case .success(let chain) = underRoots(pinset: pinset, host: nil) {
            for index in 0..<chain.certificates.count {
                appendIfPinned(chain.certificates[index])
            }
        }
        return stack
    }

    /// The known certificates other than those that were sent: those of valid chains, and those
    /// configured in full in the pinsets.
    mutating func knownCertificates() -> [CertificateStack] {
        _ = underRoots(pinset: nil, host: nil)
        var known: [CertificateStack] = []
        for case .success(let chain) in evaluations.map(\.result) {
            known.append(chain.certificates)
        }
        for pinset in verifier.pinsets {
            known.append(pinset.pinned)
            if let anchors = pinset.anchors { known.append(anchors) }
        }
        return known
    }

    /// Builds and verifies a chain to an anchor of the store or of `trusted`.
    private func build(
        store: OpaquePointer?, trusted: CertificateStack?, host: String?
    ) -> Result<BuiltChain, ChainError> {
        builder(store: store, trusted: trusted, host: host).build()
    }

    private func builder(
        store: OpaquePointer?, trusted: CertificateStack?, host: String?
    ) -> ChainBuilder {
        ChainBuilder(
            leaf: certificate, leafIdentity: leaf, sent: sent, store: store, trusted: trusted,
            host: host, verifier: verifier, time: time)
    }
}
