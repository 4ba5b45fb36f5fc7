import CacheStore
import Clocks
import EventLoop
import RedisProtocol
import SharedCache

// A cluster: a connection to each master, the home one among them, as its topology changes. Nothing
// is sent after a redirection (MOVED, ASK): a lookup has found nothing, a change is made up for as
// after the end of a connection, and what a slot has taken with it to another node is of no use
// there (`SharedToken.ofNode`).
extension LevelLoop {
    /// How often the cluster is asked for its topology at most, and at least.
    static let topologyPause: Int64 = 500
    private static let topologyMilliseconds: Int64 = 60_000
    /// How long a node that is no master, or has lost its cluster, is left alone.
    private static let nodePause: Int64 = 500
    /// How long one node may keep the commands of all others waiting.
    private static let fullMilliseconds: Int64 = 100

    // MARK: Which connection

    /// The connection to the server that has a key; `nil` if it cannot be asked at present.
    func link(of digest: [UInt8]) -> ServerLink? {
        cluster == nil ? home : cluster?.link(of: ClusterSlot.of(digest.span))
    }

    /// The number that everything names which is stored on a server.
    func generation(of link: ServerLink) -> SharedToken? {
        cluster == nil ? engine.generation : link.generation
    }

    /// All connections.
    var links: [ServerLink] { [home] + (cluster?.links ?? []) }

    /// Whether commands may be written: one that is for a node without room would be late.
    var hasRoom: Bool {
        guard let cluster else { return home.hasRoom }
        var hasRoom = hasRoom(home)
        for link in cluster.links where !self.hasRoom(link) { hasRoom = false }
        return hasRoom
    }

    private func hasRoom(_ link: ServerLink) -> Bool {
        if link.hasRoom {
            link.fullSince = nil
        } else if link.fullSince == nil {
            link.fullSince = now
        }
        return link.fullSince == nil
    }

    /// Whether there is room to look again for what others fetch.
    var hasRoomForLooking: Bool {
        links.allSatisfy { $0.connection.pipeline.count < ServerLink.pipelineLimit / 2 }
    }

    /// Whether all that was written has been passed on.
    var isDrained: Bool {
        home.output.unsentCount == 0
            && (cluster?.links.allSatisfy { $0.output.unsentCount == 0 } ?? true)
    }

    /// Whether no reply is waited for.
    var hasAnswers: Bool {
        home.connection.pipeline.count == 0
            && (cluster?.links.allSatisfy { $0.connection.pipeline.count == 0 } ?? true)
    }

    // MARK: Topologies

    /// Makes a connection.
    func open(_ link: ServerLink) {
        guard cluster != nil else { return link.socket.open() }
        guard link === home else {
            if let node = link.node { link.socket.open(place(of: node)) }
            return
        }
        homeAwaitsTopology = true
        if let cluster, cluster.home != nil, now < topologyAskedAt + Self.topologyPause {
            adopt(cluster.topology)
        } else {
            askForTopology()
        }
    }

    private func place(of node: RedisNode) -> ServerPlace {
        guard case .cluster(let cluster) = options.server else {
            return .tcp(host: node.host, port: node.port, tls: nil)
        }
        return .tcp(host: node.host, port: node.port, tls: cluster.tls(node))
    }

    /// The cluster is asked soon.
    func wantTopology() {
        guard cluster != nil else { return }
        topologyAt = min(topologyAt, max(now, topologyAskedAt + Self.topologyPause))
    }

    private func askForTopology() {
        guard let finder, !finder.isSearching, endsAt == nil else { return }
        topologyAskedAt = now
        topologyAt = now + Self.topologyMilliseconds
        // Who answers at present is asked first.
        let known = links.filter(\.isConnected) + links.filter { !$0.isConnected }
        finder.find(first: known.compactMap(\.node)) { [unowned self] outcome in
            switch outcome {
            case .found(let topology): adopt(topology)
            case .none(let reason, let detail):
                if homeAwaitsTopology {
                    disconnect(.transport(detail), because: reason)
                } else {
                    topologyAt = now + Self.topologyPause
                }
            }
            updateDeadline()
        }
    }

    private func adopt(_ topology: ClusterTopology) {
        guard let slot = cluster?.fleetSlot else { return }
        let node = topology.owner(of: slot)
        if node != home.node {
            if !homeAwaitsTopology {
                disconnect(
                    .transport("slot \(slot) is of \(node.map { "\($0)" } ?? "no node") now"),
                    because: .moved)
            }
            home.node = node
        }
        let changed = cluster?.adopt(topology, home: home) { node in
            let socket = ServerSocket(
                resolver: options.resolver, on: loop, mailbox: level.mailbox)
            let link = ServerLink(options, socket: socket, now: now)
            link.node = node
            return link
        }
        for link in changed?.gone ?? [] { end(link) }
        for link in changed?.new ?? [] {
            link.socket.start { [unowned self, unowned link] in happened($0, on: link) }
            perform(link.connection.start(now: now), on: link)
        }
        settle(now)
        tellLost()
        noteNodes()
        guard homeAwaitsTopology else { return }
        guard let node else {
            return disconnect(.transport("slot \(slot) has no master"), because: .loading)
        }
        homeAwaitsTopology = false
        home.socket.open(place(of: node))
    }

    /// Notes how many nodes there are.
    func noteNodes() {
        guard let cluster else { return }
        let used = links.count { $0.isInUse }
        level.shared.withLock { state in
            state.statistics.knownNodes = cluster.topology.nodes.count
            state.statistics.usedNodes = used
        }
    }

    // MARK: Nodes

    /// Asks a node what it is.
    func askForIdentity(_ link: ServerLink) {
        send(.info, to: link) {
            $0.begin(1)
            $0.add("INFO")
        }
    }

    /// A node has said what it is.
    func identified(_ link: ServerLink, as identity: [UInt8]) {
        guard link.identity != identity else { return }
        link.identity = identity
        link.generation = engine.generation?.ofNode(identity)
        proceed(link, now)
    }

    /// It is known what everything belongs to.
    func generationIsKnown() {
        for link in links {
            link.generation = link.identity.flatMap { engine.generation?.ofNode($0) }
        }
    }

    /// Takes a master besides the home one into use, or probes it first.
    func proceed(_ link: ServerLink, _ now: Int64) {
        guard link !== home, link.isConnected, link.identity != nil, !link.isInUse,
            now >= link.holdOffUntil, endsAt == nil
        else { return }
        if mayPass(link, now) { use(link) }
    }

    private func use(_ link: ServerLink) {
        link.isInUse = true
        link.reason = nil
        noteNodes()
        // Before anything is looked for there.
        tellLost()
        if let node = link.node { level.onEvent(.nodeReady("\(node)")) }
    }

    /// A master besides the home one is not to be asked for the time being.
    func leave(_ link: ServerLink, _ reason: SharedLevelReason, _ detail: String) {
        link.isInUse = false
        count(reason)
        noteNodes()
        let isNews = link.reason != reason
        link.reason = reason
        if isNews, let node = link.node {
            level.onEvent(.nodeOff("\(node)", reason, detail: detail))
        }
    }

    /// The connection to a master besides the home one has ended.
    func lost(_ link: ServerLink, _ error: RedisConnectionError, _ reason: SharedLevelReason) {
        let now = now
        let hasProbe = link.probeDeadline != nil
        link.close()
        if hasProbe { _ = link.breaker.failed(.probe, now: now, random: random.next()) }
        hold(link, reason)
        leave(link, reason, "\(error)")
        for expected in link.ended(error, now: now, random: random.next()) { giveUp(expected) }
        wantTopology()
        settle(now)
        level.keepLost()
        endIfDone()
    }

    /// It is not needed any longer.
    private func end(_ link: ServerLink) {
        link.close()
        for expected in link.ended(.stopped, now: now, random: 0) { giveUp(expected) }
    }

    /// Does not take a server into use at once again, after an error that may last.
    func hold(_ link: ServerLink, _ reason: SharedLevelReason) {
        guard cluster != nil else {
            if reason.isLasting { link.holdOffUntil = now + options.holdOffMilliseconds }
            return
        }
        switch reason {
        // Another one is the master, or will be.
        case .readOnly, .moved, .loading:
            link.holdOffUntil = now + min(Self.nodePause, options.holdOffMilliseconds)
        default: if reason.isLasting { link.holdOffUntil = now + options.holdOffMilliseconds }
        }
    }

    /// All connections end.
    func endCluster() {
        finder?.stop()
        for link in cluster?.links ?? [] { end(link) }
    }

    // MARK: Time

    /// When something is to be done for a cluster.
    var clusterDeadline: Int64? {
        guard let cluster else { return nil }
        var next = topologyAt
        for link in cluster.links {
            for time in [link.connection.deadline, link.probeDeadline] {
                next = min(next, time ?? next)
            }
            if link.isConnected, !link.isInUse { next = min(next, now + 20) }
        }
        if !cluster.unsettled.isEmpty { next = min(next, now + 20) }
        return next
    }

    func attendToCluster(_ now: Int64) {
        guard let cluster else { return }
        for link in cluster.links {
            perform(link.connection.timePassed(now: now), on: link)
            expireProbe(link, now)
            proceed(link, now)
        }
        for link in links {
            if let since = link.fullSince, now >= since + Self.fullMilliseconds {
                disconnect(link, .stalled)
            }
        }
        settle(now)
        if now >= topologyAt { askForTopology() }
    }

    /// Each minute all are asked whether they are still the same.
    func askForIdentities() {
        for link in links where link.isConnected { askForIdentity(link) }
    }

    // MARK: Redirections

    /// A node has replied that a key is another's.
    func redirected(_ code: RedisErrorCode, by link: ServerLink, _ expected: Expected) {
        switch code {
        case .moved(let place):
            level.shared.withLock { $0.statistics.moved += 1 }
            wantTopology()
            guard let asked = link.node, let node = place.node(asked: asked) else { return }
            // Whoever works on a reply goes on with what it is about first.
            loop.afterTurn { [self] in
                guard let cluster, endsAt == nil,
                    let topology = cluster.topology(moving: place.slot, from: link, to: node)
                else { return }
                adopt(topology)
                updateDeadline()
            }
        case .ask(let place):
            level.shared.withLock { $0.statistics.asked += 1 }
            if place.slot == cluster?.fleetSlot {
                return disconnect(.transport("its slot is moving"), because: .moved)
            }
            guard expected.isChange else { return }
            cluster?.isMoving(place.slot, from: link, retryAt: now + Self.retryMilliseconds)
        default: break
        }
    }

    // MARK: All of them

    /// Calls a completion when everything that was sent until now has been answered.
    func sendBarrier(_ completion: @escaping @Sendable () -> Void) {
        guard cluster != nil else {
            return send(.barrier(completion)) {
                $0.begin(1)
                $0.add("PING")
            }
        }
        let links = links.filter(\.isConnected)
        let barrier = LinkBarrier(links.count, completion)
        for link in links {
            send(.barrier { barrier.arrived() }, to: link) {
                $0.begin(1)
                $0.add("PING")
            }
        }
        if links.isEmpty { completion() }
    }
}

/// What waits for several connections. Used by the level's thread alone.
private final class LinkBarrier: @unchecked Sendable {
    private var missing: Int
    private let completion: @Sendable () -> Void

    init(_ count: Int, _ completion: @escaping @Sendable () -> Void) {
        missing = count
        self.completion = completion
    }

    func arrived() {
        missing -= 1
        if missing == 0 { completion() }
    }
}

extension Expected {
    /// Whether a key is not what it is meant to be if the command was not carried out.
    fileprivate var isChange: Bool {
        switch self {
        case .queued, .stored, .removed, .numberQueued, .numberSet: true
        default: false
        }
    }
}
