extension ResolvedPinningPolicy {
    /// Evaluates every pinset in turn, up to the first that refuses the server.
    ///
    /// - Parameters:
    ///   - evidence: what the server presented.
    ///   - host: the requested name or address; `nil` if there is none to check.
    ///   - now: the current time, in seconds since 1970, for the pinsets' expiry.
    package func evaluate<Evidence: TrustEvidence>(
        _ evidence: inout Evidence, host: String?, now: Int64
    ) -> TrustVerdict {
        guard !entries.isEmpty else {
            switch evidence.evaluateChain(anchors: .roots(pinset: nil), host: host) {
            case .success(let chain): return .trusted(TrustFacts(expires: chain.expires))
            case .failure(let failure): return .refused(TrustError(.chain(failure)))
            }
        }
        var facts = TrustFacts()
        for (index, entry) in entries.enumerated() {
            do throws(PinsetEvaluationError) {
                let evaluation = try entry.evaluate(&evidence, index: index, host: host, now: now)
                facts.chainExpires = earlier(facts.chainExpires, evaluation.expires)
                facts.expires = earlier(
                    facts.expires, earlier(evaluation.expires, entry.pinset.ends))
                facts.outcomes.append(evaluation.outcome)
            } catch {
                return .refused(
                    TrustError(
                        error.reason, pinsetIndex: index, pinset: entry.pinset.name))
            }
        }
        return .trusted(facts)
    }
}

/// The error of one pinset that refuses a server.
struct PinsetEvaluationError: Error {
    var reason: TrustError.Reason

    /// Whether the server might pass a pinset without pins.
    var isAboutPins: Bool {
        switch reason {
        case .noPinMatches, .chain: true
        case .pinsetWithoutPins, .invalidPolicy, .pinsetExpired, .transparency: false
        }
    }
}

/// The result of one pinset for a server that passes.
struct PinsetEvaluation {
    /// When the verified chains expire, in seconds since 1970; `nil` if there are none.
    var expires: Int64?
    var outcome: PinsetOutcome
}

/// The earlier of two times; `nil` means no time.
private func earlier(_ left: Int64?, _ right: Int64?) -> Int64? {
    guard let left else { return right }
    guard let right else { return left }
    return min(left, right)
}

extension ResolvedPinningPolicy.Entry {
    /// Evaluates the pinset, taking its expiry into account. A server that a report-only pinset
    /// would refuse passes only if it would pass without the pinset: with a valid chain that names
    /// the host.
    func evaluate<Evidence: TrustEvidence>(
        _ evidence: inout Evidence, index: Int, host: String?, now: Int64
    ) throws(PinsetEvaluationError) -> PinsetEvaluation {
        if let reason = pinset.refusal(at: now) { throw PinsetEvaluationError(reason: reason) }
        do {
            return try performEvaluation(&evidence, index: index, host: host)
        } catch {
            guard pinset.isReportOnly(at: now), error.isAboutPins else { throw error }
            switch evidence.evaluateChain(anchors: .roots(pinset: index), host: host) {
            case .success(let chain):
                let failure = TrustError(
                    error.reason, pinsetIndex: index, pinset: pinset.name)
                return PinsetEvaluation(expires: chain.expires, outcome: .reported(failure))
            case .failure(let failure):
                throw PinsetEvaluationError(reason: .chain(failure))
            }
        }
    }

    /// Performs the steps of `PinningPolicy` for one pinset.
    private func performEvaluation<Evidence: TrustEvidence>(
        _ evidence: inout Evidence, index: Int, host: String?
    ) throws(PinsetEvaluationError) -> PinsetEvaluation {
        if host != nil, pinset.allowInvalidCertificates, pinset.validatesDomainName,
            pinset.mode == .none || pins.isEmpty
        {
            throw PinsetEvaluationError(reason: .invalidPolicy)
        }
        let name = pinset.validatesDomainName ? host : nil
        var chain: VerifiedChain?
        if !pinset.allowInvalidCertificates {
            switch evidence.evaluateChain(anchors: .roots(pinset: index), host: name) {
            case .success(let verified): chain = verified
            case .failure(let failure): throw PinsetEvaluationError(reason: .chain(failure))
            }
        }
        if pinset.mode != .none, pins.isEmpty {
            throw PinsetEvaluationError(reason: .pinsetWithoutPins)
        }
        switch pinset.mode {
        case .none:
            return PinsetEvaluation(expires: chain?.expires, outcome: .passed(PinMatches()))
        case .publicKey:
            let candidates = chain?.certificates ?? [evidence.leaf]
            var matches = keyMatches(candidates)
            if matches.isEmpty, chain != nil {
                chain = evidence.otherChain(anchors: .roots(pinset: index), host: name) {
                    !keyMatches($0.certificates).isEmpty
                }
                matches = keyMatches(chain?.certificates ?? [])
            }
            guard !matches.isEmpty else { throw noPinMatches(candidates) }
            return PinsetEvaluation(expires: chain?.expires, outcome: .passed(matches))
        case .certificate:
            let pinned = try pinnedChain(&evidence, index: index, host: name, first: chain)
            return PinsetEvaluation(
                expires: earlier(chain?.expires, pinned.chain.expires),
                outcome: .passed(pinned.matches))
        }
    }

    private func keyMatches(_ candidates: [CertificateIdentity]) -> PinMatches {
        matches { pin in candidates.contains { pin.matchesKey(of: $0) } }
    }

    private func matches(_ isMatch: (PinDigests) -> Bool) -> PinMatches {
        PinMatches(pins.indices.filter { isMatch(pins[$0]) })
    }

    /// Evaluates the chain with the pinned certificates as its only anchors.
    private func pinnedChain<Evidence: TrustEvidence>(
        _ evidence: inout Evidence, index: Int, host: String?, first: VerifiedChain?
    ) throws(PinsetEvaluationError) -> (chain: VerifiedChain, matches: PinMatches) {
        switch evidence.evaluateChain(anchors: .pins(pinset: index), host: host) {
        case .success(let chain):
            let matches = matches { pin in chain.certificates.contains { pin.matches($0) } }
            guard !matches.isEmpty else { throw noPinMatches(chain.certificates) }
            return (chain, matches)
        case .failure(let failure) where failure.isMissingAnchor:
            // In this mode a mismatch shows up as a chain that ends in none of the pinned
            // certificates.
            throw noPinMatches(first?.certificates ?? [evidence.leaf])
        case .failure(let failure):
            throw PinsetEvaluationError(reason: .chain(failure))
        }
    }

    private func noPinMatches(_ candidates: [CertificateIdentity]) -> PinsetEvaluationError {
        let mode = pinset.mode
        let found = candidates.map { identity in
            ChainPin(
                pin: mode == .certificate
                    ? identity.fingerprint.fingerprintText : identity.key.keyPinText,
                subject: identity.subject)
        }
        return PinsetEvaluationError(
            reason: .noPinMatches(expected: pins.map { $0.text(in: mode) }, chain: found))
    }
}
