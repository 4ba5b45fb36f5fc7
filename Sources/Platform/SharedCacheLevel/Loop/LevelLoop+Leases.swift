import CacheStore
import Clocks
import RedisProtocol
import SharedCache

// One fetch for the fleet: what becomes of a lookup that has found nothing.
//
//     nothing ─► SET lease NX GET, and look again ─┬─ free ──────────────► leads: fetches it
//                  ▲                               ├─ found ─────────────► all have it
//                  │                               ├─ note, unreadable ──► nothing
//                  └──── 5…100 ms later ── waits ◄─┴─ another's
//                                            └─ patience is over ────────► nothing
//
// It looks after the lease was asked for, and its holder ends that after it has stored: so whoever
// finds it free finds what was stored under it. A lease that its holder does not prolong ends by
// the engine's clock.
extension LevelLoop {
    /// A lookup that has found nothing leads, or waits for another gateway.
    func waitOrLead(_ pending: PendingLoad) {
        if joins(pending) { return }
        let digest = pending.digest
        let name = engine.names.lease(digest)
        let token = SharedToken.drawn()
        let now = now
        guard leases.waits[digest] == nil, !leases.isImpatient(digest, now), isReady,
            endsAt == nil,
            let record = SharedLease(token).record(under: name, by: engine.keyring)
        else { return answer(pending, []) }
        let wait = LeaseWait(digest, name: name, token, record: record, at: now)
        guard add(pending, to: wait) else { return answer(pending, []) }
        leases.add(wait)
        ask(wait)
    }

    /// Whether a lookup is answered by what is known of its lease, or waits with others: then
    /// nothing is asked.
    func joins(_ pending: PendingLoad) -> Bool {
        if let lease = leases.lease(pending.digest) {
            close(pending)
            level.shared.withLock { $0.statistics.misses += 1 }
            pending.load.completion(.lead(lease))
            return true
        }
        guard let wait = leases.waits[pending.digest],
            !leases.isImpatient(pending.digest, now)
        else { return false }
        return add(pending, to: wait)
    }

    private func add(_ pending: PendingLoad, to wait: LeaseWait) -> Bool {
        let isAdded = leases.add(
            pending.load, until: now + options.waitMilliseconds, to: wait,
            limit: options.waitingLookups)
        if isAdded { close(pending) }
        return isAdded
    }

    /// It is not waited for by its deadline any longer.
    private func close(_ pending: PendingLoad) {
        pending.isOver = true
        pending.found = []
        let took = now - pending.began
        level.shared.withLock { state in
            state.loads.end(pending.flight)
            state.statistics.took(took)
        }
    }

    /// Whether a lookup may wait for the response that another gateway fetches.
    func mayWait(_ pending: PendingLoad) -> Bool {
        pending.load.fetches && pending.wait == nil && pending.load.look == nil
            && options.waitMilliseconds > 0
    }

    // MARK: Looking again

    private func ask(_ wait: LeaseWait) {
        guard let load = wait.load else { return }
        wait.lookAt = nil
        wait.standing = .unknown
        // Behind the changes that are queued, which void only the lookups that began before them.
        level.shared.withLock { state in
            let flight = state.loads.begin(load.hash)
            state.add(.lookAgain(wait, load, flight))
        }
        level.proceed()
    }

    /// Asks for the lease, and for what there is by now.
    func lookAgain(_ wait: LeaseWait, _ load: LevelLoad, _ flight: StoreFlight) {
        guard !wait.isOver, let link = link(of: wait.digest) else {
            level.shared.withLock { $0.loads.end(flight) }
            return end(wait)
        }
        send(.lease(wait), to: link) {
            $0.begin(7)
            $0.add("SET")
            $0.add(wait.name)
            $0.add(wait.record)
            $0.add("NX")
            $0.add("GET")
            $0.add("PX")
            $0.add(options.leaseMilliseconds)
        }
        let pending = PendingLoad(
            load, flight, began: now, deadline: .max, digest: wait.digest,
            removals: engine.removals, mark: level.mark(of: load), for: wait)
        (pending.link, pending.announcement) = (link, fleet.sent)
        sendGetAll(engine.hash(wait.digest), .value(pending), to: link)
    }

    /// The lease was asked for.
    func readLease(_ wait: LeaseWait, _ reply: RESPValue) {
        if let error = reply.redisError {
            wait.standing = .none
            count(SharedLevelReason(error.code))
            // Another program's would be there for ever.
            if case .wrongType = error.code { removeLease(wait) }
            return
        }
        guard let bytes = reply.bytes else {
            wait.standing = .taken
            // Nobody waits any longer.
            if wait.isOver { giveBack(wait) }
            return
        }
        guard bytes != wait.verified else {
            wait.standing = .another
            return
        }
        do throws(SharedRecordError) {
            switch try standing(bytes, under: wait.name) {
            case .taken:
                wait.verified = bytes
                wait.standing = .another
            case .note: wait.standing = .none
            }
        } catch {
            wait.standing = .none
            count(SharedLevelReason(error))
            if case .deleteAndReport = error.handling { removeLease(wait) }
        }
    }

    private func standing(
        _ bytes: [UInt8], under name: [UInt8]
    ) throws(SharedRecordError) -> LeaseStanding {
        try SharedRecord.reading(bytes) { bytes throws(SharedRecordError) in
            try LeaseStanding(bytes, under: name, by: engine.keyring)
        }
    }

    private func removeLease(_ wait: LeaseWait) {
        guard let link = link(of: wait.digest) else { return }
        send(.nothing, to: link) {
            $0.begin(2)
            $0.add("UNLINK")
            $0.add(wait.name)
        }
    }

    /// It was looked again.
    func looked(_ pending: PendingLoad, for wait: LeaseWait, _ found: [CachedResponse]) {
        pending.isOver = true
        pending.found = []
        level.shared.withLock { $0.loads.end(pending.flight) }
        guard !wait.isOver else {
            if case .taken = wait.standing { giveBack(wait) }
            return
        }
        guard found.isEmpty else {
            if case .taken = wait.standing { giveBack(wait) }
            return share(found, of: pending, of: wait)
        }
        switch wait.standing {
        case .taken: lead(wait)
        case .another:
            level.shared.withLock { $0.statistics.waitingLookups = leases.waiting }
            let time = now + wait.pause(now)
            wait.lookAt = time
            leases.remind(at: time)
        case .none, .unknown: end(wait)
        }
    }

    /// This gateway fetches the response.
    private func lead(_ wait: LeaseWait) {
        let (digest, token, now) = (wait.digest, wait.token, now)
        let loads = leases.remove(wait)
        let lease = FetchLease { [level] end in level.endLease(digest, token, end) }
        leases.hold(
            KeyLeases.Held(
                token: token, record: wait.record, lease: lease, began: now,
                prolongAt: now + options.leaseMilliseconds / 3), digest)
        level.shared.withLock { state in
            state.statistics.leases += 1
            if wait.hasWaited { state.statistics.waits += UInt64(loads.count) }
            state.statistics.misses += UInt64(loads.count)
            describe(&state)
        }
        for load in loads { load.completion(.lead(lease)) }
    }

    /// All that waited have what one of them has found, unless they would have read it under other
    /// rules.
    private func share(
        _ found: [CachedResponse], of pending: PendingLoad, of wait: LeaseWait
    ) {
        let loads = leases.remove(wait)
        let (trust, policy) = (pending.load.trust, pending.load.policy)
        var shared: UInt64 = 0
        for load in loads {
            if load.trust == trust, load.policy == policy,
                load.stale?.varyKey == pending.load.stale?.varyKey
            {
                shared += 1
                load.completion(.found(found, isShared: true))
            } else {
                var other = load
                other.fetches = false
                let now = now
                level.shared.withLock { state in
                    state.add(
                        .load(
                            other, state.loads.begin(load.hash), began: now,
                            deadline: now + options.timeoutMilliseconds))
                }
            }
        }
        level.proceed()
        level.shared.withLock { state in
            state.statistics.hits += shared
            if wait.hasWaited {
                state.statistics.waits += UInt64(loads.count)
                state.statistics.waitsAnswered += UInt64(loads.count)
            }
            describe(&state)
        }
    }

    // MARK: The end of waiting

    private func describe(_ state: inout SharedLevel.State) {
        state.statistics.waitingLookups = leases.waiting
        state.statistics.heldLeases = leases.held.count
    }

    /// Those that wait find nothing.
    private func end(_ wait: LeaseWait) {
        answer(leases.remove(wait), of: wait, inVain: false)
    }

    private func answer(_ loads: [LevelLoad], of wait: LeaseWait, inVain: Bool) {
        guard !loads.isEmpty else { return }
        level.shared.withLock { state in
            state.statistics.misses += UInt64(loads.count)
            if wait.hasWaited || inVain { state.statistics.waits += UInt64(loads.count) }
            if inVain { state.statistics.waitsInVain += UInt64(loads.count) }
            describe(&state)
        }
        for load in loads { load.completion(.nothing) }
    }

    /// The key is removed: its response is not waited for.
    func endWait(_ digest: [UInt8]) {
        if let wait = leases.waits[digest] { end(wait) }
    }

    func endWaits() {
        for wait in leases.waits.values { end(wait) }
    }

    /// Looks again, ends what has waited for long enough, and prolongs the leases that are held.
    func attendToLeases(_ now: Int64) {
        guard let next = leases.next, next <= now else { return }
        leases.begin()
        for wait in leases.waits.values {
            let expired = leases.expired(wait, now)
            if !expired.isEmpty {
                leases.noteImpatience(wait.digest, until: now + options.noteMilliseconds)
                answer(expired, of: wait, inVain: true)
            }
            guard wait.count > 0 else {
                end(wait)
                continue
            }
            if let end = wait.firstEnd { leases.remind(at: end) }
            guard let lookAt = wait.lookAt else { continue }
            if lookAt <= now, hasRoomForLooking {
                ask(wait)
            } else {
                leases.remind(at: max(lookAt, now + 5))
            }
        }
        for (digest, held) in leases.held { attend(to: held, digest, now) }
        level.shared.withLock { describe(&$0) }
        flush()
    }

    // MARK: Own leases

    private func attend(to held: KeyLeases.Held, _ digest: [UInt8], _ now: Int64) {
        guard held.prolongAt <= now else { return leases.remind(at: held.prolongAt) }
        guard now - held.began < options.longestLeaseMilliseconds else {
            leases.lose(digest, held.token)
            return
        }
        leases.prolong(digest, until: now + max(1, options.leaseMilliseconds / 3))
        // Its end is in the queue if nobody has it any longer.
        guard isReady, leases.lease(digest) != nil else { return }
        replace(
            held.record, of: digest, held.token, by: held.record,
            for: options.leaseMilliseconds)
    }

    func noteStore(_ response: CachedResponse, _ digest: [UInt8]) {
        // Who has waited could not use what has to be confirmed again.
        guard response.metadata.isFresh(at: Clock.wallSeconds()) else { return }
        leases.noteFresh(digest)
        // Others may have waited for what this gateway has stored.
        if let wait = leases.waits[digest], wait.lookAt != nil {
            wait.lookAt = now
            leases.remind(at: now)
        }
    }

    /// A fetch has ended, and what is stored of it has been sent.
    func endLease(_ digest: [UInt8], _ token: SharedToken, _ end: FetchLease.End) {
        guard let held = leases.lose(digest, token) else { return }
        level.shared.withLock { describe(&$0) }
        var note: NotStoredNote?
        switch end {
        case .stored: if !held.hasStored { note = .notShared }
        case .notStored: note = .notStored
        case .failed: break
        }
        replace(
            held.record, of: digest, token,
            by: note?.record(under: engine.names.lease(digest), by: engine.keyring) ?? [],
            for: options.noteMilliseconds)
    }

    /// All fetches end: the gateway does.
    func endLeases() {
        endWaits()
        guard home.connection.isReady else { return }
        for (digest, held) in leases.held { endLease(digest, held.token, .failed) }
        flush()
    }

    /// It is not needed.
    private func giveBack(_ wait: LeaseWait) {
        replace(wait.record, of: wait.digest, wait.token, by: [])
    }

    /// Puts something else in the place of a lease, or nothing, unless it is another's by now.
    private func replace(
        _ record: [UInt8], of digest: [UInt8], _ token: SharedToken, by successor: [UInt8],
        for milliseconds: Int64 = 0
    ) {
        guard let link = link(of: digest) else { return }
        send(.leaseKept(digest: digest, token), to: link) {
            $0.begin(7)
            $0.add("EVAL")
            $0.add(SharedLease.replacing)
            $0.add("1")
            $0.add(engine.names.lease(digest))
            $0.add(record)
            $0.add(successor)
            $0.add(milliseconds)
        }
    }
}

extension SharedLevel {
    /// A fetch has ended.
    fileprivate func endLease(_ digest: [UInt8], _ token: SharedToken, _ end: FetchLease.End) {
        shared.withLock { state in
            guard !state.isClosing else { return }
            // Even if it is off: the thread is to forget it.
            state.add(.endLease(digest: digest, token, end))
        }
        proceed()
    }
}
