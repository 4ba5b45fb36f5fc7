import Trust

/// What the record says of each key of a server, as far as pins may be drawn from it: of chains
/// that passed in every respect, and not mostly because a pinset only reports.
struct KeyHistory {
    /// The chains, in the order in which they were first seen.
    let chains: [ObservedChain]
    /// Those in use.
    let current: [ObservedChain]
    /// When the first and the last of all were seen, in seconds since 1970.
    let first: Int64
    let last: Int64
    private let minimum: Int64
    private let minimumDays: Int

    /// - Parameter options: for how long, and on how many days, a key must have been seen to be
    ///   trusted.
    init?(_ host: ObservedHost, _ options: ProposalOptions) {
        let chains = host.chains.filter(\.isEvidence).sorted { $0.firstSeen < $1.firstSeen }
        guard let first = chains.first?.firstSeen, let last = chains.map(\.lastSeen).max() else {
            return nil
        }
        self.chains = chains
        self.first = first
        self.last = last
        minimum = options.minimum
        minimumDays = options.minimumDays
        current = chains.filter { $0.lastSeen >= last - ProposalOptions.currentPeriod }
    }

    func chains(with key: SHA256Digest) -> [ObservedChain] { chains.filter { $0.has(key) } }

    /// On how many different days (UTC) chains were verified, at least: of each only the number of
    /// its days is known, the last, and the first if all its connections were verified.
    static func days(of chains: [ObservedChain]) -> Int {
        var known: Set<Int64> = []
        for chain in chains {
            if chain.reported == 0 { known.insert(chain.firstSeen / ProposalOptions.day) }
            if let last = chain.lastVerified { known.insert(last / ProposalOptions.day) }
        }
        return max(known.count, chains.map { Int(clamping: $0.verifiedDays) }.max() ?? 0)
    }

    /// Whether a key has been seen for long enough, from the first time to the last, and on enough
    /// days.
    func isSettled(_ key: SHA256Digest) -> Bool {
        let with = chains(with: key)
        guard let first = with.map(\.firstSeen).min(), let last = with.map(\.lastSeen).max() else {
            return false
        }
        return last - first >= minimum && Self.days(of: with) >= minimumDays
    }

    /// Whether a chain says nothing of what the server's keys are: it has no key that has been seen
    /// for long enough; or none but a root's, which nearly every certificate leads to, and it came,
    /// or came and went, while the server went on to show an earlier one.
    func isStrange(_ chain: ObservedChain) -> Bool {
        guard chain.keys.contains(where: isSettled) else { return true }
        guard !chain.keysBelowRoot.contains(where: isSettled),
            chain.lastSeen - chain.firstSeen < minimum
        else { return false }
        return chains.contains { other in
            other.firstSeen < chain.firstSeen
                && (other.lastSeen >= chain.lastSeen || isCurrent(other) && isCurrent(chain))
        }
    }

    private func isCurrent(_ chain: ObservedChain) -> Bool {
        chain.lastSeen >= last - ProposalOptions.currentPeriod
    }

    /// A chain in use that is strange.
    var stranger: ObservedChain? { current.first(where: isStrange) }

    /// The chains that are not strange.
    var trusted: [ObservedChain] { chains.filter { !isStrange($0) } }

    /// Those of them that are in use, or have a root in common with one that is. What another
    /// authority has certified, and the server does not show any more, is no reason to pin its key:
    /// it may have been an attacker's for as long as that lasted.
    var related: [ObservedChain] {
        let roots = Set(current.flatMap(\.rootKeys))
        return trusted.filter { isCurrent($0) || !roots.isDisjoint(with: $0.rootKeys) }
    }

    /// How far above the server's own certificate a key is, at most, in the chains in use.
    func depth(_ key: SHA256Digest) -> Int {
        var depth = 0
        for path in (current + chains.suffix(1)).flatMap(\.paths) {
            if let index = path.issuers.firstIndex(where: { $0.key == key }) {
                depth = max(depth, index + 1)
            }
        }
        return depth == 0 ? .max : depth
    }

    /// The settled keys above the server's own of some chains, nearest first.
    func issuers(of chains: [ObservedChain]) -> [SHA256Digest] {
        var keys: [SHA256Digest] = []
        for chain in chains {
            for key in chain.keys.dropFirst() where !keys.contains(key) && isSettled(key) {
                keys.append(key)
            }
        }
        return keys.enumerated().sorted {
            (depth($0.element), $0.offset) < (depth($1.element), $1.offset)
        }.map(\.element)
    }

    /// The subject of the certificate that a key was last seen in.
    func subject(_ key: SHA256Digest) -> String {
        for chain in chains.reversed() {
            if chain.leaf.key == key { return chain.leaf.subject }
            for path in chain.paths {
                if let found = path.issuers.first(where: { $0.key == key }) {
                    return found.subject
                }
            }
        }
        return ""
    }

    /// When a key was first seen, in seconds since 1970.
    func firstSeen(_ key: SHA256Digest) -> Int64 {
        chains(with: key).map(\.firstSeen).min() ?? last
    }

    /// What renewals show about a key that all chains in use have.
    enum Constancy: Int, Comparable {
        /// No renewal has been seen with it.
        case unknown
        /// It has been in every chain since it was first seen.
        case sinceFirstSeen
        /// It has been in all chains.
        case always

        static func < (left: Constancy, right: Constancy) -> Bool {
            left.rawValue < right.rawValue
        }
    }

    func constancy(_ key: SHA256Digest) -> Constancy {
        let with = chains(with: key)
        guard with.count >= 2, let first = with.first?.firstSeen else { return .unknown }
        if trusted.allSatisfy({ $0.has(key) }) { return .always }
        let since = trusted.filter { $0.firstSeen >= first }
        return since.allSatisfy { $0.has(key) } ? .sinceFirstSeen : .unknown
    }

    /// The key of the server's own certificates, if it is the same in all in use and has outlived a
    /// renewal.
    var steadyLeaf: SHA256Digest? {
        let keys = Set(current.map(\.leaf.key))
        guard keys.count == 1, let key = keys.first, isSettled(key),
            trusted.suffix(2).count == 2, trusted.suffix(2).allSatisfy({ $0.leaf.key == key })
        else { return nil }
        return key
    }

    /// The best key above the server's own that all chains in use have: the nearest that renewals
    /// have not changed.
    var commonIssuer: SHA256Digest? {
        let common = issuers(of: current).filter { key in
            current.allSatisfy { $0.keys.dropFirst().contains(key) }
        }
        let best = common.map(constancy).max()
        return common.first { constancy($0) == best }
    }
}
