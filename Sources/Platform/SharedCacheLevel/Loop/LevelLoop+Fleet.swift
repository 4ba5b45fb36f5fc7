import CachePolicy
import CacheStore
import Clocks
import RedisProtocol
import SharedCache

// Following what the other gateways purge: both streams are read several times a second, which also
// shows that nothing has been missed until then.
extension LevelLoop {
    /// What the streams are like has been asked and answered.
    func checked() {
        let now = now
        guard level.duties.withLock({ $0 != nil }), home.connection.isReady, preparations == 0,
            !fleet.isReading, let purges = fleet.purges.stream, let removed = fleet.removed.stream
        else { return }
        if fleet.table?.goesOn(in: purges) != true {
            var table = PurgeTable(
                floor: purges.beginning(of: engine.epoch), tagFields: fleet.tagFields)
            table.obtainedAfter = fleet.obtainedAfter
            fleet.table = table
        }
        _ = fleet.purges.follower.connected()
        _ = fleet.removed.follower.connected()
        perform([
            fleet.purges.follower.checked(purges, now: now),
            fleet.removed.follower.checked(removed, now: now),
        ])
        // The table may have to be read from before where the gateway is.
        if let table = fleet.table { fleet.purges.cursor = table.position }
        fleet.removed.cursor = fleet.removed.follower.position ?? fleet.removed.cursor
        (fleet.purges.isDrained, fleet.removed.isDrained) = (false, false)
        guard isConnected else { return }
        fleet.isReading = true
        poll()
    }

    private func perform(_ actions: [PurgeFollower.Action]) {
        var stale: PurgeFollower.StaleReason?
        for action in actions {
            switch action {
            // What is to be read is read anyway.
            case .none, .read, .check: break
            case .beginEpoch:
                return disconnect(.transport("its streams are gone"), because: .begunAnew)
            case .makeAllStale(let reason, _): stale = stale ?? reason
            case .join: joined()
            }
        }
        if let stale { makeAllStale(stale.rawValue) }
    }

    /// Has everything in the gateway's own tiers confirmed by its origin before it is used.
    private func makeAllStale(_ why: String) {
        fleet.addStale()
        fleet.staleAt = now + Self.staleAgainMilliseconds
        level.shared.withLock { $0.statistics.madeStale += 1 }
        level.onEvent(.madeStale(why))
        carryOutNext()
    }

    /// It has been away from the engine for longer than the grace period.
    func distrust(_ now: Int64) {
        guard now >= fleet.staleAt, level.duties.withLock({ $0 != nil }) else { return }
        makeAllStale("away")
    }

    private func joined() {
        guard fleet.isFollowing else { return }
        noteBorn()
        guard !isPrepared else { return }
        isPrepared = true
        home.isInUse = true
        noteNodes()
        sign()
        proceedToReady()
    }

    // MARK: Reading

    /// Entries read at once.
    static let pollEntries = 512
    /// How long after the last time everything is made stale again, while the engine is away.
    static let staleAgainMilliseconds: Int64 = 60_000

    func poll() {
        fleet.pollAt = nil
        guard fleet.isReading, isConnected else { return }
        guard fleet.waiting < FleetState.waitingPurges else {
            fleet.pollAt = now + options.pollMilliseconds
            return
        }
        sendGet(engine.generationName, .generation, to: home)
        send(.streams(asked: now, announced: fleet.written)) {
            $0.begin(8)
            $0.add("XREAD")
            $0.add("COUNT")
            $0.add(Int64(fleet.entries))
            $0.add("STREAMS")
            $0.add(engine.names.stream)
            $0.add(engine.names.removed)
            $0.add(fleet.purges.cursor.entry)
            $0.add(fleet.removed.cursor.entry)
        }
        // After that: what may have been removed before it was read shows.
        askForStreams()
        flush()
    }

    func readStreams(_ reply: RESPValue, asked: Int64, announced: UInt64) {
        if let error = reply.redisError {
            return disconnect(.transport("\(error)"), because: .init(error.code))
        }
        let streams = reply.streams
        let purges = streams[engine.names.stream] ?? []
        let removed = streams[engine.names.removed] ?? []
        fleet.before = FleetState.Cursors(
            purges: fleet.purges.cursor, removed: fleet.removed.cursor)
        for entry in purges { take(purge: entry) }
        for entry in removed { take(removal: entry) }
        fleet.purges.isDrained = purges.count < fleet.entries
        fleet.removed.isDrained = removed.count < fleet.entries
        fleet.poll = FleetState.Poll(asked: asked, announced: announced)
    }

    /// It is known as well what the streams were like after that.
    func polled() {
        guard let poll = fleet.poll.take(), let before = fleet.before.take() else { return }
        guard !fleet.purges.mayHaveMissed(after: before.purges),
            !fleet.removed.mayHaveMissed(after: before.removed)
        else {
            return disconnect(
                .transport("entries were removed before they were read"), because: .begunAnew)
        }
        fleet.entries = Self.pollEntries
        let (asked, announced) = (poll.asked, poll.announced)
        if fleet.purges.isDrained, fleet.removed.isDrained {
            fleet.currentSince = max(fleet.currentSince, asked)
            fleet.read = max(fleet.read, announced)
            fleet.pollAt = fleet.hasReadOwn ? now + options.pollMilliseconds : now
        } else {
            fleet.pollAt = now
        }
        advance()
        pump()
    }

    private func take(purge entry: RESPStreamEntry) {
        guard let position = PurgePosition(epoch: engine.epoch, entry: entry.id) else { return }
        defer {
            fleet.purges.cursor = position
            fleet.table?.read(to: position)
        }
        guard let record = entry.record else { return }
        let purge: FleetPurge
        var isOwn = false
        do throws(SharedRecordError) {
            let entry = try SharedRecord.reading(record) { bytes throws(SharedRecordError) in
                try PurgeEntry(bytes, under: engine.names.stream, by: engine.keyring)
            }
            isOwn = entry.gateway == fleet.instance.bytes
            purge = FleetPurge(
                pattern: entry.pattern, isSoft: entry.isSoft,
                seconds: engine.clock.ownSeconds(entry.seconds) ?? entry.seconds)
        } catch {
            count(SharedLevelReason(error))
            let replacement = PurgeEntry.replacement(for: error)
            purge = FleetPurge(
                pattern: replacement.pattern, isSoft: replacement.isSoft,
                seconds: Clock.wallSeconds())
        }
        // Whoever keeps it would make it be copied.
        withdrawView()
        fleet.table?.add(purge, at: position)
        // What was there before it joined.
        guard let done = fleet.purges.follower.position, done.isBefore(position) ?? false else {
            return
        }
        guard !isOwn else { return }
        fleet.lastForeign = position
        // Lookups that have read before may have found it.
        level.shared.withLock { state in
            state.loads.voidAll()
            state.bodies.forgetEntries()
            state.statistics.purgesReceived += 1
        }
        fleet.add(purge.purge)
    }

    private func take(removal entry: RESPStreamEntry) {
        guard let position = PurgePosition(epoch: engine.epoch, entry: entry.id) else { return }
        fleet.removed.cursor = position
        guard let record = entry.record else { return }
        do throws(SharedRecordError) {
            let removal = try SharedRecord.reading(record) { bytes throws(SharedRecordError) in
                try RemovedKey(bytes, under: engine.names.removed, by: engine.keyring)
            }
            guard removal.instance != fleet.instance else { return }
            let hash = removal.key.withUnsafeBytes { CacheKeyView.hash(of: $0) }
            level.shared.withLock { state in
                state.loads.void(hash)
                _ = state.bodies.void(hash, nil)
                state.statistics.removalsReceived += 1
            }
            guard let duties = level.duties.withLock({ $0 }) else { return }
            duties.remove(removal.key)
            if let uri = removal.uri { duties.removeURI(uri) }
        } catch {
            count(SharedLevelReason(error))
            makeAllStale("unreadable")
        }
    }

    // MARK: Carrying out

    private func carryOutNext() {
        guard !fleet.isCarryingOut, let batch = fleet.batches.first,
            let duties = level.duties.withLock({ $0 })
        else { return }
        fleet.isCarryingOut = true
        duties.purge(batch.purges) { [mailbox = level.mailbox] in
            mailbox.post(.carriedOut(isDurable: $0))
        }
    }

    /// The gateway has carried a batch out.
    func carriedOut(isDurable: Bool) {
        guard fleet.isCarryingOut else { return }
        // The next process has to do it again.
        if !isDurable { fleet.mayKeepPosition = false }
        fleet.isCarryingOut = false
        fleet.batches.removeFirst()
        carryOutNext()
        advance()
    }

    /// What has been read counts as carried out when nothing waits.
    private func advance() {
        carryOutNext()
        guard isConnected, fleet.isReading, fleet.batches.isEmpty else { return }
        let now = now
        var actions: [PurgeFollower.Action] = []
        if fleet.purges.isDrained { actions.append(fleet.purges.carriedOut(now: now)) }
        if fleet.removed.isDrained { actions.append(fleet.removed.carriedOut(now: now)) }
        perform(actions)
        guard fleet.isFollowing, isConnected else { return }
        fleet.staleAt = fleet.currentSince + options.graceMilliseconds
        noteBorn()
        if fleet.signed != fleet.purges.follower.position { sign() }
        endBarriers()
        keepPosition(now)
    }

    /// What was accepted before has been carried out, unless it has yet to be read again.
    func barrierReached(_ completion: @escaping @Sendable () -> Void) {
        guard fleet.isReading, !fleet.hasReadOwn else { return completion() }
        fleet.barriers.append(completion)
    }

    private func endBarriers() {
        guard !fleet.barriers.isEmpty, !fleet.isReading || fleet.hasReadOwn else { return }
        let ended = fleet.barriers
        fleet.barriers = []
        for completion in ended { completion() }
    }

    /// What is published from now on is known not to be purged up to here.
    private func noteBorn() {
        let born = fleet.removed.isFollowing ? fleet.purges.follower.born : nil
        let hasCaughtUp = level.shared.withLock { state in
            state.born = born
            let wasFollowing = state.statistics.isFollowing
            state.statistics.isFollowing = born != nil
            return born != nil && !wasFollowing
        }
        if hasCaughtUp { level.caughtUp.open() }
    }

    func keepPosition(_ now: Int64) {
        guard let record = level.record, fleet.mayKeepPosition, now >= fleet.keepAt,
            fleet.isFollowing,
            let purges = fleet.purges.follower.position,
            let removed = fleet.removed.follower.position
        else { return }
        fleet.keepAt = now + 1000
        record.change { $0.positions = .init(purges: purges, removed: removed) }
    }

    /// There is no connection any longer.
    func stopFollowing() {
        let now = now
        fleet.isReading = false
        fleet.pollAt = nil
        (fleet.poll, fleet.before) = (nil, nil)
        fleet.purges.disconnected(now: now)
        fleet.removed.disconnected(now: now)
        // What was not written is announced again.
        (fleet.written, fleet.read) = (fleet.sent, fleet.sent)
        noteBorn()
        endConfirmations()
        endBarriers()
    }
}

/// An entry of a stream.
struct RESPStreamEntry {
    let id: [UInt8]
    /// The record in it; `nil` for the entry that a stream begins with.
    let record: [UInt8]?
}

extension RESPValue {
    /// The reply to XREAD: a map, or in RESP2 an array of pairs; null for nothing.
    fileprivate var streams: [[UInt8]: [RESPStreamEntry]] {
        var pairs: [(RESPValue, RESPValue)] = []
        if case .map(let entries) = self {
            pairs = entries.map { ($0.key, $0.value) }
        } else {
            for case let parts? in (elements ?? []).map(\.elements) where parts.count == 2 {
                pairs.append((parts[0], parts[1]))
            }
        }
        var streams: [[UInt8]: [RESPStreamEntry]] = [:]
        for (name, entries) in pairs {
            guard let name = name.bytes else { continue }
            streams[name] = (entries.elements ?? []).compactMap { entry in
                guard let parts = entry.elements, parts.count == 2, let id = parts[0].bytes else {
                    return nil
                }
                let fields = parts[1].elements ?? []
                let isRecord = fields.count == 2 && fields[0].bytes == Array("r".utf8)
                return RESPStreamEntry(id: id, record: isRecord ? fields[1].bytes : nil)
            }
        }
        return streams
    }
}

extension PurgeFollower.Stream {
    /// Since when all of its entries are there.
    fileprivate func beginning(of epoch: UInt64) -> PurgePosition {
        let beginning = PurgePosition.beginning(of: epoch)
        let kept = hasRemoved ? first ?? last ?? beginning : beginning
        // One that was deleted by its number is missing among those that follow the first.
        guard let lastDeleted, kept.isBefore(lastDeleted) ?? false else { return kept }
        return lastDeleted
    }

    /// The reply to XINFO STREAM; `nil` if it is none.
    init?(_ reply: RESPValue, epoch: UInt64) {
        func position(_ name: String) -> PurgePosition? {
            guard let entry = reply.value(of: name)?.bytes, entry != Array("0-0".utf8) else {
                return nil
            }
            return PurgePosition(epoch: epoch, entry: entry)
        }
        guard let length = reply.value(of: "length")?.integer else { return nil }
        // Versions before 7 do not say how many were ever added.
        let added = reply.value(of: "entries-added")?.integer ?? .max
        let first = reply.value(of: "first-entry")?.elements?.first?.bytes
        self.init(
            epoch: epoch,
            first: first.flatMap { PurgePosition(epoch: epoch, entry: $0) },
            last: position("last-generated-id"), hasRemoved: added > length,
            lastDeleted: position("max-deleted-entry-id"))
    }
}
