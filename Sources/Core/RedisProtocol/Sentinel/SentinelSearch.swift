/// The search for a master by asking Sentinels: one after the other, until one names a server that
/// is one. Whoever has helped is asked first the next time, and whoever has not is asked last.
///
///     asking ─► named ─► isMaster ─► found
///      ▲  │        └► isReplica ─┐
///      │  └► (no answer) ────────┤
///      └─────(another one)───────┴─► none, if all have been asked
package struct SentinelSearch: Sendable, Hashable {
    /// What to do.
    package enum Step: Sendable, Hashable {
        /// Connect to this Sentinel and ask it.
        case ask(RedisNode)
        /// Connect to this server, and make sure that it is a master (`ROLE`).
        case verify(RedisNode)
        /// Use this server.
        case use(RedisNode)
        /// No Sentinel helps now: begin again after a delay.
        case giveUp
    }

    /// In the order in which they are asked.
    package private(set) var sentinels: [RedisNode]
    /// How many of them may still be asked in this search, the first being asked among them.
    private var left = 0
    private var candidate: RedisNode?

    /// How many are known at most.
    package static let maximumSentinels = 32

    /// - Parameter sentinels: those that are configured.
    package init(_ sentinels: [RedisNode]) {
        self.sentinels = Array(sentinels.prefix(Self.maximumSentinels))
    }

    /// Begins a search.
    package mutating func begin() -> Step {
        left = sentinels.count
        candidate = nil
        return current
    }

    private var current: Step {
        if left > 0, let first = sentinels.first { .ask(first) } else { .giveUp }
    }

    /// The Sentinel that was to be asked cannot be reached, or its reply is of no use.
    package mutating func failed() -> Step {
        candidate = nil
        guard left > 0 else { return .giveUp }
        left -= 1
        sentinels.append(sentinels.removeFirst())
        return current
    }

    /// The Sentinel has named a server.
    package mutating func named(_ node: RedisNode) -> Step {
        guard left > 0 else { return .giveUp }
        candidate = node
        return .verify(node)
    }

    /// The server has said what it is; `nil` if it cannot be reached or says nothing.
    package mutating func verified(_ role: RedisRole?) -> Step {
        guard let node = candidate else { return .giveUp }
        switch role {
        case .master:
            candidate = nil
            return .use(node)
        // The Sentinel does not know of the failover yet: another one may.
        case .replica, .sentinel, nil: return failed()
        }
    }

    /// Other Sentinels are known to one.
    package mutating func add(_ others: [RedisNode]) {
        for node in others
        where !sentinels.contains(node) && sentinels.count < Self.maximumSentinels {
            sentinels.append(node)
        }
    }
}
