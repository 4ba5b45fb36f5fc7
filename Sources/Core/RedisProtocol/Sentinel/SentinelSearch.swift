/// The search for a master by asking Sentinels: one after the other, until one names a server that
/// is one. Whoever has helped is asked first the next time.
///
///     asking(0) ─► named ─► isMaster ─► found
///         │           └► isReplica ─► asking(0), after a delay
///         └► asking(1) … ─► none
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
    /// Which of them is being asked.
    private var place = 0
    private var candidate: RedisNode?

    /// How many are known at most.
    package static let maximumSentinels = 32

    /// - Parameter sentinels: those that are configured.
    package init(_ sentinels: [RedisNode]) {
        self.sentinels = Array(sentinels.prefix(Self.maximumSentinels))
    }

    /// Begins a search.
    package mutating func begin() -> Step {
        place = 0
        candidate = nil
        return current
    }

    private var current: Step { place < sentinels.count ? .ask(sentinels[place]) : .giveUp }

    /// The Sentinel that was to be asked cannot be reached, or its reply is of no use.
    package mutating func failed() -> Step {
        candidate = nil
        place += 1
        return current
    }

    /// The Sentinel has named a server.
    package mutating func named(_ node: RedisNode) -> Step {
        guard place < sentinels.count else { return .giveUp }
        candidate = node
        sentinels.swapAt(0, place)
        place = 0
        return .verify(node)
    }

    /// The server has said what it is; `nil` if it cannot be reached or says nothing.
    package mutating func verified(_ role: RedisRole?) -> Step {
        guard let node = candidate else { return .giveUp }
        candidate = nil
        switch role {
        case .master: return .use(node)
        // The Sentinel does not know of the failover yet: another one may.
        case .replica, .sentinel, nil:
            place += 1
            return current
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
