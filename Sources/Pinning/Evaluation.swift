extension ResolvedSecurityPolicy {
    /// Judges a server by every pinset in turn, up to the first that refuses.
    ///
    /// - Parameters:
    ///   - evidence: what the server presented.
    ///   - host: the name or address that was asked for; nil when there is none to check.
    package func evaluate<Evidence: TrustEvidence>(
        _ evidence: inout Evidence, host: String?
    ) -> TrustVerdict {
        guard !entries.isEmpty else {
            switch evidence.evaluateChain(anchors: .roots(pinset: nil), host: host) {
            case .success(let chain): return .trusted(TrustFacts(expires: chain.expires))
            case .failure(let failure): return .refused(TrustFailure(.chain(failure)))
            }
        }
        var facts = TrustFacts()
        for (index, entry) in entries.enumerated() {
            do throws(EntryFailure) {
                let expires = try entry.evaluate(&evidence, index: index, host: host)
                facts.expires = earlier(facts.expires, expires)
            } catch {
                return .refused(
                    TrustFailure(
                        error.reason, pinsetIndex: index, pinset: entry.pinset.name))
            }
        }
        return .trusted(facts)
    }
}

/// Why one pinset refuses.
struct EntryFailure: Error {
    var reason: TrustFailure.Reason
}

/// The earlier of two times, where nil is none.
private func earlier(_ left: Int64?, _ right: Int64?) -> Int64? {
    guard let left else { return right }
    guard let right else { return left }
    return min(left, right)
}

extension ResolvedSecurityPolicy.Entry {
    /// The steps of `SecurityPolicy` for one pinset. Returns when the verified chains expire.
    func evaluate<Evidence: TrustEvidence>(
        _ evidence: inout Evidence, index: Int, host: String?
    ) throws(EntryFailure) -> Int64? {
        if host != nil, pinset.allowInvalidCertificates, pinset.validatesDomainName,
            pinset.mode == .none || pins.isEmpty
        {
            throw EntryFailure(reason: .invalidPolicy)
        }
        let name = pinset.validatesDomainName ? host : nil
        var chain: VerifiedChain?
        if !pinset.allowInvalidCertificates {
            switch evidence.evaluateChain(anchors: .roots(pinset: index), host: name) {
            case .success(let verified): chain = verified
            case .failure(let failure): throw EntryFailure(reason: .chain(failure))
            }
        }
        if pinset.mode != .none, pins.isEmpty { throw EntryFailure(reason: .pinsetWithoutPins) }
        switch pinset.mode {
        case .none:
            return chain?.expires
        case .publicKey:
            let candidates = chain?.certificates ?? [evidence.leaf]
            guard
                candidates.contains(where: { identity in
                    pins.contains { $0.matchesKey(of: identity) }
                })
            else { throw noPinMatches(candidates) }
            return chain?.expires
        case .certificate:
            let pinned = try pinnedChain(&evidence, index: index, host: name, first: chain)
            return earlier(chain?.expires, pinned.expires)
        }
    }

    /// Evaluates the chain with the pinned certificates as its only anchors.
    private func pinnedChain<Evidence: TrustEvidence>(
        _ evidence: inout Evidence, index: Int, host: String?, first: VerifiedChain?
    ) throws(EntryFailure) -> VerifiedChain {
        switch evidence.evaluateChain(anchors: .pins(pinset: index), host: host) {
        case .success(let chain):
            guard
                chain.certificates.contains(where: { identity in
                    pins.contains { $0.matches(identity) }
                })
            else { throw noPinMatches(chain.certificates) }
            return chain
        case .failure(let failure) where failure.isMissingAnchor:
            // That no pin ends the chain is what a mismatch looks like in this mode.
            throw noPinMatches(first?.certificates ?? [evidence.leaf])
        case .failure(let failure):
            throw EntryFailure(reason: .chain(failure))
        }
    }

    private func noPinMatches(_ candidates: [CertificateIdentity]) -> EntryFailure {
        let mode = pinset.mode
        let found = candidates.map { identity in
            ChainPin(
                pin: mode == .certificate
                    ? identity.fingerprint.fingerprintText : identity.key.keyPinText,
                subject: identity.subject)
        }
        return EntryFailure(
            reason: .noPinMatches(expected: pins.map { $0.text(in: mode) }, chain: found))
    }
}
