import CacheStore
import Clocks
import EventLoop
import RedisProtocol
import SharedCache

// When the level is taken into use, and when not.
extension LevelLoop {
    /// Asks which run of the engine it is; what follows is asked when that is known.
    func prepare() {
        engine.clock = EngineClock()
        send(.info) {
            $0.begin(2)
            $0.add("INFO")
            $0.add("server")
        }
        flush()
    }

    /// It is known which run it is.
    func began(_ run: [UInt8]) {
        engine.began(run)
        // The generation, two streams, and the time.
        preparations = 4
        begin(anew: false)
        askForStreams()
        askForTime()
        flush()
    }

    /// Whether something is waited for before it can be taken into use.
    var isPreparing: Bool { preparations > 0 }
    /// Whether lookups are sent.
    var canLookUp: Bool { isReady }

    /// Something that was waited for has come.
    func prepared() {
        guard preparations > 0 else { return }
        preparations -= 1
        guard preparations == 0 else { return }
        checked()
    }

    /// Takes the level into use, or probes the engine first.
    func proceedToReady() {
        let now = now
        guard isPrepared, !isReady, endsAt == nil, now >= home.holdOffUntil else { return }
        guard !home.breaker.isClosed else { return becomeReady(now) }
        guard home.probeDeadline == nil else { return }
        switch home.breaker.admit(now: now) {
        case .pass: becomeReady(now)
        case .reject: break
        case .probe:
            let deadline = now + options.timeoutMilliseconds
            home.probeDeadline = deadline
            send(.probe(deadline: deadline)) {
                $0.begin(1)
                $0.add("PING")
            }
            flush()
        }
        note()
    }

    /// A probe was answered.
    func probed(_ deadline: Int64) {
        guard home.probeDeadline == deadline else { return }
        home.probeDeadline = nil
        if now < deadline {
            home.breaker.succeeded(.probe, now: now)
        } else {
            _ = home.breaker.failed(.probe, now: now, random: random.next())
        }
        proceedToReady()
    }

    func becomeReady(_ now: Int64) {
        let isClosing = level.shared.withLock { state -> Bool in
            guard !state.isClosing else { return true }
            let lost = state.lost.take()
            // What was changed meanwhile is removed before what is accepted from now on.
            let everything = FleetPurge.everything(isSoft: false, at: Clock.wallSeconds())
            let purges = lost.isEverything ? [everything] : lost.purges
            var removals: [SharedCommand] = []
            if !purges.isEmpty {
                state.announcements += 1
                removals = [.announce(purges, number: state.announcements)]
            }
            for (key, hash) in lost.keys {
                state.changes.add(hash)
                removals.append(.remove(SharedKey(bytes: key, hash: hash)))
            }
            if !removals.isEmpty || level.record?.record.hasLost ?? false {
                removals.append(.barrier { [level] in level.toldLost() })
            }
            commands += removals
            if state.commands.isEmpty { takenChanges = state.changes.count }
            state.waiting += removals.count
            state.loads.voidAll()
            level.set(.ready, &state)
            state.statistics.breaker = breakerState
            state.statistics.reason = nil
            state.statistics.detail = ""
            return false
        }
        guard !isClosing else { return }
        isReady = true
        maintenanceAt = now + Self.maintenanceMilliseconds
        note()
        pump()
        level.onEvent(
            .ready(product: home.server?.product ?? "", version: home.server?.version ?? ""))
    }

    /// Nothing is asked from now on.
    func goOff(_ reason: SharedLevelReason, _ detail: String) {
        let wasReady = isReady
        isReady = false
        let isNews = level.shared.withLock { state -> Bool in
            let isNews = wasReady || state.statistics.reason != reason
            level.set(.off, &state)
            state.statistics.breaker = breakerState
            state.isOverloaded = false
            state.statistics.reason = reason
            state.statistics.detail = detail
            state.statistics[reason] += 1
            return isNews
        }
        // What was accepted before is carried out nevertheless, if there is a connection.
        takeCommands(evenIfOff: true)
        endLoads()
        note()
        if isNews { level.onEvent(.off(reason, detail: detail)) }
    }

    var breakerState: SharedLevelStatistics.Breaker {
        switch home.breaker.state {
        case .closed: .closed
        case .open: .open
        case .halfOpen: .halfOpen
        }
    }

    func note() {
        let breaker = breakerState
        level.shared.withLock { $0.statistics.breaker = breaker }
    }

    /// A lookup had no reply in time, or one that says that there can be none.
    func failed() {
        guard home.breaker.failed(.ordinary, now: now, random: random.next()) else { return }
        goOff(.timeout, "too many lookups had no reply in time")
    }

    func succeeded() { home.breaker.succeeded(.ordinary, now: now) }

    func maintain() {
        maintenanceAt = now + Self.maintenanceMilliseconds
        for name in [
            engine.generationName, engine.names.stream, engine.names.removed,
        ] { sendExpirySeconds(name) }
        askForTime()
        flush()
    }
}
