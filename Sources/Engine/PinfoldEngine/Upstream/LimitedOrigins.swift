import HTTPCore

/// The origins of one worker whose connections count towards the same limit, as far as they have
/// connections or exchanges wait for one.
///
/// Usually there is one. There are several if a parent is asked with the credentials of different
/// clients (`authorization: pass`): no connection serves two of them, but the parent sees the
/// connections of all. Then the clients share the limit, however many credentials each has. An
/// origin counts for the client for whom its first connection was made.
struct LimitedOrigins {
    /// In the order of their last turns.
    private(set) var all: [Origin] = []
    /// When a connection was last made for a client, by the count of all that were made.
    private var turns: [IPNetwork?: Int] = [:]
    private var turn = 0
    /// Whether connections are being made for all who wait (`UpstreamPool.connectForAll(with:)`).
    var isConnectingForAll = false

    var isEmpty: Bool { all.isEmpty }
    var areSeveral: Bool { all.count > 1 }

    /// One under the latest policy; `nil` if there is none at all.
    var latest: Origin? { all.max { $0.policy.generation < $1.policy.generation } }

    /// - Parameter client: the one for whom it is to be connected to.
    mutating func add(_ origin: Origin, for client: IPNetwork?) {
        if origin.connections == 0 { origin.holder = client }
        guard !origin.isAmongLimited else { return }
        origin.isAmongLimited = true
        all.append(origin)
    }

    mutating func remove(_ origin: Origin) {
        guard origin.isAmongLimited else { return }
        origin.isAmongLimited = false
        all.removeAll { $0 === origin }
    }

    /// Connections, those on their way included.
    var connections: Int { all.reduce(0) { $0 + $1.connections } }

    /// The origin of which an idle connection makes room for another one: that of the client with
    /// the most connections. `nil` if no connection is idle.
    var idle: Origin? {
        guard areSeveral else { return all.first { !$0.idle.isEmpty } }
        let held = held
        return all.filter { !$0.idle.isEmpty }.max {
            (held[$0.holder, default: 0], $0.connections)
                < (held[$1.holder, default: 0], $1.connections)
        }
    }

    /// The origin that gets the next connection: of those that need one, the one whose client has
    /// the fewest; of several, the one whose last turn was before the others'. `nil` if none needs
    /// one.
    var next: Origin? {
        guard areSeveral else { return all.first { $0.needsConnection } }
        let held = held
        func rank(_ origin: Origin) -> (held: Int, turn: Int, connections: Int) {
            let client = origin.waitingClient
            return (held[client, default: 0], turns[client, default: 0], origin.connections)
        }
        return all.filter(\.needsConnection).min { rank($0) < rank($1) }
    }

    /// A connection is being made to an origin.
    /// - Parameter client: for whom.
    mutating func hadTurn(_ origin: Origin, _ client: IPNetwork?) {
        turn += 1
        turns[client] = turn
        // Clients that have left are forgotten now and then.
        if turns.count > 2 * all.count + 16 {
            let present = Set(all.map(\.holder) + all.map(\.waitingClient))
            turns = turns.filter { present.contains($0.key) }
        }
        guard let index = all.firstIndex(where: { $0 === origin }) else { return }
        all.remove(at: index)
        all.append(origin)
    }

    /// Whether an origin gives up a connection that its own exchanges could use, because at another
    /// one a client waits that has none, or clearly fewer.
    func givesWay(_ origin: Origin) -> Bool {
        guard areSeveral else { return false }
        let held = held
        let own = held[origin.holder, default: 0]
        return all.contains { other in
            guard other !== origin, other.needsConnection else { return false }
            let client = other.waitingClient
            return client == origin.holder
                ? Self.givesWay(origin.connections, to: other.connections)
                : Self.givesWay(own, to: held[client, default: 0])
        }
    }

    /// Whoever has none has a turn even if there are fewer connections than clients. Otherwise
    /// nobody gives up one only to have the other give it back.
    static func givesWay(_ own: Int, to other: Int) -> Bool { other == 0 || own > other + 1 }

    /// How many connections each client has.
    private var held: [IPNetwork?: Int] {
        all.reduce(into: [:]) { $0[$1.holder, default: 0] += $1.connections }
    }

    /// The origin whose last waiter gives way to one more of a client, because its client has more
    /// of them: `nil` if that would leave it fewer.
    func surplus(for client: IPNetwork?) -> (origin: Origin, client: IPNetwork?)? {
        var counted: [IPNetwork?: Int] = [:]
        for origin in all { counted.merge(origin.waiters.counted) { $0 + $1 } }
        guard let (most, count) = counted.max(by: { $0.value < $1.value }),
            count > counted[client, default: 0] + 1
        else { return nil }
        let origin = all.max {
            $0.waiters.counted[most, default: 0] < $1.waiters.counted[most, default: 0]
        }
        return origin.map { ($0, most) }
    }
}

extension Origin {
    /// Connections, those on their way included.
    var connections: Int { open + connecting }

    /// Whose exchange would get the next connection; `nil` if nobody's in particular.
    fileprivate var waitingClient: IPNetwork? { waiters.first?.client }
}

extension Origin.Key {
    /// What the limit on connections is found by: a parent sees connections, whoever's credentials
    /// they are for.
    var ofLimit: Origin.Key {
        var key = self
        switch proxyUse {
        case .direct: break
        case .tunnel(let proxy): key.proxyUse = .tunnel(proxy.forAll)
        case .forwarded(let proxy): key.proxyUse = .forwarded(proxy.forAll)
        case .proxy(let proxy): key.proxyUse = .proxy(proxy.forAll)
        }
        return key
    }
}
