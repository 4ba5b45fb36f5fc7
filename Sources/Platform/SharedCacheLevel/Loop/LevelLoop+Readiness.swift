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
        askForIdentity(home)
        flush()
    }

    /// It is known which run it is, and which history of its data.
    func began(_ run: [UInt8], history: [UInt8]) {
        engine.began(run, history: history)
        // The generation, two streams, and the time.
        preparations = 4
        begin()
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
        if mayPass(home, now) { becomeReady(now) } else { note() }
    }

    /// Whether lookups may be sent to a server; if not, it is probed when it is time for that.
    func mayPass(_ link: ServerLink, _ now: Int64) -> Bool {
        guard !link.breaker.isClosed else { return true }
        guard link.probeDeadline == nil else { return false }
        switch link.breaker.admit(now: now) {
        case .pass: return true
        case .reject: return false
        case .probe:
            let deadline = now + options.timeoutMilliseconds
            link.probeDeadline = deadline
            send(.probe(deadline: deadline), to: link) {
                $0.begin(1)
                $0.add("PING")
            }
            flush()
            return false
        }
    }

    /// A probe was answered.
    func probed(_ link: ServerLink, _ deadline: Int64) {
        guard link.probeDeadline == deadline else { return }
        link.probeDeadline = nil
        if now < deadline {
            link.breaker.succeeded(.probe, now: now)
        } else {
            _ = link.breaker.failed(.probe, now: now, random: random.next())
        }
        if link === home { proceedToReady() } else { proceed(link, now) }
    }

    /// A probe that has taken too long has failed.
    func expireProbe(_ link: ServerLink, _ now: Int64) {
        guard let deadline = link.probeDeadline, now >= deadline else { return }
        link.probeDeadline = nil
        _ = link.breaker.failed(.probe, now: now, random: random.next())
    }

    func becomeReady(_ now: Int64) {
        // Then it has nothing of what was replaced here.
        let isAnew = usedGeneration.map { $0 != engine.generation } ?? false
        usedGeneration = engine.generation
        var hasForgotten = false
        let isClosing = level.shared.withLock { state -> Bool in
            guard !state.isClosing else { return true }
            if isAnew { state.lost.dropReplaced() }
            let lost = state.lost.take()
            hasForgotten = lost.hasForgotten
            // What was changed meanwhile is removed before what is accepted from now on.
            let everything = FleetPurge.everything(isSoft: false, at: Clock.wallSeconds())
            let purges = lost.isEverything ? [everything] : lost.purges
            var removals: [SharedCommand] = []
            if !purges.isEmpty {
                state.announcements += 1
                removals = [.announce(purges, number: state.announcements)]
            }
            for (bytes, lost) in lost.keys {
                state.changes.add(lost.hash)
                let key = SharedKey(bytes: bytes, hash: lost.hash)
                removals.append(lost.isInvalid ? .remove(key) : .discard(key))
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
        if hasForgotten { useNothingFromBefore() }
        tellLostAt = nil
        isReady = true
        maintenanceAt = now + Self.maintenanceMilliseconds
        note()
        pump()
        level.onEvent(
            .ready(product: home.server?.product ?? "", version: home.server?.version ?? ""))
    }

    /// More was replaced here than is known: what the engine has from before may be older than what
    /// this gateway has answered with.
    func useNothingFromBefore() {
        let now = engine.clock.engineSeconds(Clock.wallSeconds())
        fleet.obtainedAfter = now
        fleet.table?.obtainedAfter = now
        withdrawView()
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
    func failed(_ link: ServerLink) {
        guard link.breaker.failed(.ordinary, now: now, random: random.next()) else { return }
        let detail = "too many lookups had no reply in time"
        if link === home { goOff(.timeout, detail) } else { leave(link, .timeout, detail) }
    }

    func succeeded(_ link: ServerLink) { link.breaker.succeeded(.ordinary, now: now) }

    func maintain() {
        maintenanceAt = now + Self.maintenanceMilliseconds
        for name in [
            engine.generationName, engine.names.stream, engine.names.removed,
        ] { sendExpirySeconds(name) }
        askForTime()
        askForIdentities()
        flush()
    }
}
