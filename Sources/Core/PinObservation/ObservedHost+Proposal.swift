import HTTPCore
import Trust

// What to pin, from what has been seen.
//
// The key of the server's own certificate is the narrowest pin, but most servers have a new one at
// each renewal: it is proposed only if it has outlived one. Otherwise it is the issuer's key, and
// of several the nearest that no renewal has changed. There is always a second key, because a
// single one that changes is an outage: an issuer above it or before it, or one that the operator
// has ready. What appeared lately with no key that was known before is no renewal until it has
// been seen for the minimum: it could be an attack.
extension ObservedHost {
    /// Proposes pins.
    package func proposal(
        _ options: ProposalOptions
    ) throws(PinProposalReason) -> PinProposal {
        do throws(HostPatternError) {
            _ = try HostPattern(name.host)
        } catch {
            throw .noPattern(error)
        }
        guard let history = KeyHistory(self, options) else {
            throw chains.isEmpty ? .neverSeen : .onlyReported
        }
        let observed = history.last - history.first
        guard observed >= options.minimum else {
            throw .observedTooShort(seconds: observed, minimum: options.minimum)
        }
        let days = KeyHistory.days(of: history.chains)
        guard days >= options.minimumDays else {
            throw .tooFewDays(days, minimum: options.minimumDays)
        }
        guard options.now - history.last <= ProposalOptions.staleAfter else {
            throw .notSeenLately(last: history.last)
        }
        if let stranger = history.stranger {
            throw .strangeKey(
                subject: stranger.leaf.subject, issuer: stranger.leaf.issuer,
                since: stranger.firstSeen, addresses: stranger.addresses.count)
        }
        var keys = try history.mainKeys()
        for backup in options.backups where !keys.contains(where: { $0.key == backup }) {
            keys.append(
                PinProposal.Key(
                    key: backup, role: .backup, subject: history.subject(backup), isSure: true,
                    reason: "named with --backup"))
        }
        if keys.count < 2 {
            guard let second = history.second(besides: keys) else { throw .noSecondKey }
            keys.append(second)
        }
        var proposal = PinProposal(
            name: name, keys: keys, remarks: [],
            enforceFrom: options.now + ProposalOptions.reportingPeriod, covered: 0,
            certificates: history.chains.count, firstSeen: history.first, lastSeen: history.last)
        proposal.covered = history.chains.count(where: proposal.accepts)
        proposal.remarks = remarks(on: proposal, history, options)
        return proposal
    }
}

extension KeyHistory {
    /// The keys by which all chains in use pass.
    fileprivate func mainKeys() throws(PinProposalReason) -> [PinProposal.Key] {
        if let leaf = steadyLeaf {
            let count = chains(with: leaf).count
            return [
                PinProposal.Key(
                    key: leaf, role: .leaf, subject: subject(leaf),
                    isSure: constancy(leaf) == .always,
                    reason: "the server's own key, the same in \(count) certificates since "
                        + PinProposal.day(firstSeen(leaf)))
            ]
        }
        if let issuer = commonIssuer { return [key(ofIssuer: issuer)] }
        // Servers of several operators answer for the host.
        var keys: [PinProposal.Key] = []
        var left = current
        while !left.isEmpty {
            let candidates = issuers(of: left)
            let best = candidates.max { one, other in
                let (a, b) = (left.count { $0.has(one) }, left.count { $0.has(other) })
                return a != b ? a < b : depth(one) > depth(other)
            }
            guard let best else {
                // Its own key is the only one that has been seen for long enough.
                let chain = left.removeFirst()
                keys.append(
                    PinProposal.Key(
                        key: chain.leaf.key, role: .leaf, subject: chain.leaf.subject,
                        isSure: false,
                        reason: "the server's own key, which no renewal has confirmed"))
                continue
            }
            keys.append(key(ofIssuer: best))
            left.removeAll { $0.has(best) }
        }
        guard keys.count <= ProposalOptions.keysLimit else { throw .tooManyIssuers(keys.count) }
        return keys
    }

    private func key(ofIssuer key: SHA256Digest) -> PinProposal.Key {
        let constancy = constancy(key)
        let count = chains(with: key).count
        let since = PinProposal.day(firstSeen(key))
        let reason =
            switch constancy {
            case .always: "above all \(count) certificates since \(since)"
            case .sinceFirstSeen: "above all certificates since \(since), but not before"
            case .unknown where count > 1:
                "above \(count) of \(chains.count) certificates since \(since)"
            case .unknown where current.contains(where: { $0.has(key) }):
                "above the certificate in use; no renewal has been seen"
            case .unknown:
                "above an earlier certificate, seen from \(since) to "
                    + PinProposal.day(chains(with: key).map(\.lastSeen).max() ?? last)
            }
        return PinProposal.Key(
            key: key, role: .issuer, subject: subject(key), isSure: constancy == .always,
            reason: reason)
    }

    /// The key that adds most: by which the most certificates pass that do not yet, or else the
    /// nearest.
    fileprivate func second(besides keys: [PinProposal.Key]) -> PinProposal.Key? {
        let missing = related.filter { chain in !keys.contains { chain.has($0.key) } }
        let candidates = (issuers(of: current) + issuers(of: related)).filter { candidate in
            !keys.contains { $0.key == candidate }
        }
        if keys.first?.role == .leaf, missing.isEmpty, let issuer = commonIssuer,
            candidates.contains(issuer)
        {
            return key(ofIssuer: issuer)
        }
        let best = candidates.enumerated().max { one, other in
            let (a, b) = (
                missing.count { $0.has(one.element) }, missing.count { $0.has(other.element) }
            )
            return a != b ? a < b : one.offset > other.offset
        }
        return best.map { key(ofIssuer: $0.element) }
    }
}

extension ObservedHost {
    fileprivate func remarks(
        on proposal: PinProposal, _ history: KeyHistory, _ options: ProposalOptions
    ) -> [PinProposal.Remark] {
        var remarks: [PinProposal.Remark] = []
        func add(_ isSure: Bool, _ text: String) {
            remarks.append(PinProposal.Remark(isSure: isSure, text: text))
        }
        add(
            proposal.covered == proposal.certificates,
            "\(proposal.covered) of the \(proposal.certificates) certificates seen since "
                + "\(PinProposal.day(history.first)) would have passed")
        let renewals = history.trusted.count - 1
        if renewals < 1 {
            add(false, "no renewal has been seen: whether keys and issuers stay is not known")
        }
        let roots = Set(history.current.flatMap(\.paths).compactMap(\.issuers.last?.subject))
        if roots.count > 1 {
            let names = roots.sorted().joined(separator: "; ")
            add(true, "its certificates lead to \(roots.count) roots: \(names)")
        }
        if proposal.keys.allSatisfy({ $0.role != .leaf }) {
            add(
                false,
                "an issuer's key lets pass every certificate for the host that the issuer signs, "
                    + "for whomever")
        }
        for chain in history.current where chain.addresses.count == 1 && hasSeveralAddresses {
            let since = PinProposal.day(chain.firstSeen)
            let address = chain.addresses[0].address
            add(false, "the certificate of \(since) was seen at one address only, \(address)")
        }
        for chain in history.chains where history.isStrange(chain) {
            let (from, to) = (PinProposal.day(chain.firstSeen), PinProposal.day(chain.lastSeen))
            add(
                false,
                "left out: a certificate of \(chain.leaf.issuer), seen from \(from) to \(to) with "
                    + "no key that was known for long enough")
        }
        let reported = chains.count { !$0.isEvidence }
        if reported > 0 {
            let what = "\(reported) \(reported == 1 ? "certificate" : "certificates")"
            add(
                false,
                "left out: \(what) that a report-only pinset let pass, only, more often than not, "
                    + "or the last time")
        }
        if forgottenChains > 0 {
            add(false, "\(forgottenChains) older certificates are no longer remembered")
        }
        if let end = history.current.map(\.leaf.notAfter).min(), end < proposal.enforceFrom {
            add(
                true,
                "a certificate expires on \(PinProposal.day(end)), before the pins are to be "
                    + "enforced: the renewal will show whether they hold")
        }
        return remarks
    }

    private var hasSeveralAddresses: Bool {
        Set(chains.flatMap { $0.addresses.map(\.address) }).count > 1
    }
}
