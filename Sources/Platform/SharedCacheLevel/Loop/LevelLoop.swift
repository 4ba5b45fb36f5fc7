import CacheStore
import Clocks
import EventLoop
import RedisProtocol
import SharedCache

/// The level's thread: the connection, and what is asked on it.
///
///     off ──(connected, and the generation is known)──► probing ──► ready
///      ▲                                                  ▲           │
///      ├──────────────(the connection ends)───────────────┼───────────┤
///      └──────────────────────────────────────────────────┴─(slow)────┘
///
/// It probes while the circuit breaker is not closed. Only when it is ready does the level accept
/// anything; before that it removes what could not be removed.
final class LevelLoop: EventHandler {
    let level: SharedLevel
    let options: SharedLevelOptions
    let loop: EventLoop
    /// The connection to the server that has the fleet's streams.
    let home: ServerLink
    /// The other masters of a cluster; `nil` without one.
    var cluster: ClusterLinks?
    /// Who asks the cluster which masters there are, and when that was and is done.
    let finder: TopologyFinder?
    var topologyAskedAt = Int64.min / 2
    var topologyAt = Int64.max
    /// Whether the home connection is made when that is known.
    var homeAwaitsTopology = false
    /// When it is tried next to remove what could not be removed; `nil` if there is nothing.
    var tellLostAt: Int64?
    /// What the others are told of, or were a moment ago.
    var removedURIs = RemovedURIs()
    /// The generation that was in use last; `nil` before that.
    var usedGeneration: SharedToken?
    let memory = UnsafeMutableRawBufferPointer.allocate(
        byteCount: LevelLoop.readBytes, alignment: 16)
    var engine: Engine
    /// Commands that were taken from the level's queue.
    var commands: [SharedCommand] = []
    var first = 0
    /// Lookups that were sent and not answered, by their deadlines.
    var loads: [PendingLoad] = []
    var firstLoad = 0
    var fleet: FleetState
    var leases = KeyLeases()
    /// Whether the generation and the engine's time are known, and what others have purged has been
    /// carried out here.
    var isPrepared = false
    /// What is waited for before that.
    var preparations = 0
    /// When the generation's life is prolonged, and the engine asked for its time.
    var maintenanceAt: Int64 = 0
    var isReady = false
    /// Changes of keys among the commands that were taken.
    var takenChanges: UInt64 = 0
    /// Which changes have been carried out when the engine has replied to how many commands.
    var marks = FIFO<(changes: UInt64, asked: UInt64)>()
    /// Of these, the last one that has been carried out.
    var endedChanges: UInt64 = 0
    /// Until when what is queued may be carried out; `nil` while it is not to end.
    var endsAt: Int64?
    var random = SystemRandomNumberGenerator()

    static let readBytes = 128 << 10
    static let maintenanceMilliseconds: Int64 = 60_000
    /// Reads in one turn.
    static let readsPerTurn = 32

    var now: Int64 { Clock.monotonicMilliseconds() }

    /// Runs the level's thread until it is closed.
    static func run(_ level: SharedLevel) {
        do throws(Errno) {
            let body = try LevelLoop(level)
            try body.run()
        } catch {
            level.shared.withLock { state in
                level.set(.off, &state)
                state.statistics.reason = .refused
                state.statistics.detail = "\(error)"
            }
            level.onEvent(.off(.refused, detail: "\(error)"))
        }
    }

    private init(_ level: SharedLevel) throws(Errno) {
        self.level = level
        options = level.options
        loop = try EventLoop()
        let now = Clock.monotonicMilliseconds()
        let socket = ServerSocket(
            level.options.server, resolver: level.options.resolver, on: loop,
            mailbox: level.mailbox)
        home = ServerLink(level.options, socket: socket, now: now)
        if case .cluster(let options) = level.options.server {
            cluster = ClusterLinks(level.options.names)
            finder = TopologyFinder(
                options, session: level.options.session, resolver: level.options.resolver,
                on: loop, mailbox: level.mailbox)
        } else {
            finder = nil
        }
        engine = Engine(level.options)
        let record = level.record?.record ?? FleetRecord()
        fleet = FleetState(level.options, at: record.positions, now: now)
        if record.hasLost { level.shared.withLock { $0.lost.noteEverything() } }
        super.init()
    }

    deinit { memory.deallocate() }

    private func run() throws(Errno) {
        let receiver = MailboxReceiver(level.mailbox) { [unowned self] in receive($0) }
        try loop.add(receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
        try loop.add(self)
        home.socket.start { [unowned self] in happened($0, on: home) }
        perform(home.connection.start(now: now), on: home)
        updateDeadline()
        loop.run()
        home.socket.close()
        loop.remove(self)
        loop.remove(receiver, keepingOpen: receiver.descriptor)
        loop.forgetDeferred()
    }

    // MARK: Events

    func receive(_ message: LevelMessage) {
        switch message {
        case .work: takeCommands()
        case .resolved(let addresses, let attempt):
            for link in links { link.socket.resolved(addresses, attempt: attempt) }
            finder?.resolved(addresses, attempt: attempt)
        case .begin: checked()
        case .carriedOut(let isDurable): carriedOut(isDurable: isDurable)
        case .tagFields(let names):
            for name in names where !fleet.tagFields.contains(name) {
                fleet.tagFields.append(name)
            }
            fleet.table?.setTagFields(fleet.tagFields)
            withdrawView()
        case .lookupWasLate(let answered):
            // Beyond some it makes no difference.
            for _ in 0..<min(answered, 1000) { succeeded(home) }
            failed(home)
        case .close:
            guard endsAt == nil else { return }
            signOff()
            tellAllRemoved()
            level.shared.withLock { state in
                for command in state.bodies.abandonAll() { state.add(command) }
            }
            takeCommands()
            endLeases()
            endsAt = now + options.closeMilliseconds
            endIfDone()
        }
        updateDeadline()
    }

    func happened(_ event: ServerSocket.Event, on link: ServerLink) {
        switch event {
        case .opened:
            link.isOpen = true
            level.shared.withLock { $0.statistics.connections += 1 }
            perform(link.connection.connected(now: now), on: link)
            readAll(link)
        case .ready(let readiness):
            guard link.isOpen else { return }
            if readiness.mayRead { readAll(link) }
            if link.isOpen, readiness.mayWrite { pump() }
        case .failed(let reason, let detail):
            disconnect(link, .transport(detail), because: reason)
        }
        endIfDone()
        updateDeadline()
    }

    override func deadlineReached() {
        let now = now
        if let endsAt, now >= endsAt { return end() }
        expireLoads(now)
        attendToLeases(now)
        perform(home.connection.timePassed(now: now), on: home)
        expireProbe(home, now)
        attendToCluster(now)
        if let at = tellLostAt, now >= at { tellLost() }
        tellRemoved(now)
        if isReady, now >= maintenanceAt { maintain() }
        if let pollAt = fleet.pollAt, now >= pollAt { poll() }
        if fleet.isFollowing, now >= fleet.signAt { sign() }
        if let at = confirmationsAt, now >= at { askForConfirmations() }
        distrust(now)
        proceedToReady()
        endIfDone()
        updateDeadline()
    }

    func updateDeadline() {
        offerView()
        var next = [home.connection.deadline, home.probeDeadline, endsAt, leases.next].compactMap {
            $0
        }
        if firstLoad < loads.count { next.append(loads[firstLoad].deadline) }
        if first < commands.count { next.append(now + options.timeoutMilliseconds) }
        if isReady {
            next.append(maintenanceAt)
            next += [tellLostAt, removedURIs.next].compactMap { $0 }
        }
        next += [fleet.pollAt, confirmationsAt, clusterDeadline].compactMap { $0 }
        if fleet.isFollowing, isConnected { next.append(fleet.signAt) }
        if level.duties.withLock({ $0 != nil }) { next.append(fleet.staleAt) }
        if isPrepared, !isReady {
            if home.holdOffUntil > now { next.append(home.holdOffUntil) }
            switch home.breaker.state {
            case .closed: break
            case .open(let until): next.append(max(until, home.holdOffUntil))
            case .halfOpen(let since, _):
                if since == nil { next.append(now) }
            }
        }
        loop.setDeadline(self, after: next.min().map { max(1, $0 - now) })
    }

    // MARK: The end

    func endIfDone() {
        guard endsAt != nil else { return }
        let isDone = first == commands.count && hasAnswers
        if isDone || !home.connection.isReady { end() }
    }

    func end() {
        endsAt = nil
        isReady = false
        fleet.keepAt = 0
        keepPosition(now)
        stopFollowing()
        endLoads()
        isPrepared = false
        home.close()
        for expected in home.ended(.stopped, now: now, random: 0) { giveUp(expected) }
        endCluster()
        takeCommands(evenIfOff: true)
        giveUpCommands()
        tellAllRemoved()
        level.shared.withLock { state in
            level.set(.off, &state)
            state.statistics.reason = .closed
        }
        level.keepLost()
        level.caughtUp.open()
        loop.stop()
    }
}
