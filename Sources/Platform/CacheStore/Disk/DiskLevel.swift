import CachePolicy

/// The disk tier as a level of the cache. Its index in memory changes under the lock of the key;
/// the rows follow, in the order of the writer's queue.
extension DiskTier: CacheLevel {
    var largestBody: UInt64 { UInt64(clamping: options.diskBytes / 2) }

    var state: LevelState {
        switch index.phase {
        case .opening: .opening
        case .ready: .ready
        case .handedOver, .off: .off
        }
    }

    func statistics() -> LevelStatistics {
        var statistics = LevelStatistics(name: "disk", state: state)
        statistics.hits = counters.hits.load(ordering: .relaxed)
        statistics.misses = counters.misses.load(ordering: .relaxed)
        statistics.stores = counters.writes.load(ordering: .relaxed)
        statistics.skipped =
            counters.skipped.load(ordering: .relaxed) + counters.noRoom.load(ordering: .relaxed)
        return statistics
    }

    /// Adds the figures that only this level has.
    func describe(_ statistics: inout StoreStatistics) {
        let (common, known) = (self.statistics(), index.statistics())
        statistics.diskState = known.phase
        statistics.diskEntries = known.entries
        statistics.diskBytes = known.bytes
        statistics.diskEvictions = known.evictions
        statistics.diskFileBytes = counters.fileBytes.load(ordering: .relaxed)
        statistics.diskLogBytes = counters.logBytes.load(ordering: .relaxed)
        statistics.diskRowsRead = counters.rowsRead.load(ordering: .relaxed)
        statistics.diskBytesRead = counters.bytesRead.load(ordering: .relaxed)
        statistics.diskRestarts = counters.restarts.load(ordering: .relaxed)
        statistics.diskHits = common.hits
        statistics.diskMisses = common.misses
        statistics.diskWrites = common.stores
        statistics.diskSkipped = common.skipped
        statistics.damagedEntries = counters.damaged.load(ordering: .relaxed)
        statistics.diskEntriesLimit = options.diskEntries
        statistics.queueBytes = budget.bytes
        statistics.queueLimitBytes = budget.limit
        statistics.queueDepth = queue.depth
        statistics.pendingReads = reads.count
        if let index = StoreRefusalReason.allCases.firstIndex(of: .noRoom) {
            statistics.refusals[index] += counters.noRoom.load(ordering: .relaxed)
        }
    }

    // MARK: Looking

    func varyNames(_ key: CacheKeyView) -> [[UInt8]?] { index.varyNames(key.bytes) }

    func mayHold(_ key: CacheKeyView, _ variants: [VaryKey]) -> Bool {
        index.mayHold(key.bytes, variants)
    }

    func load(_ load: LevelLoad, wakes: Bool) -> Bool { reads.append(.load(load), wakes: wakes) }

    func wakeReaders() { reads.wakeReaders() }

    func readChunk(
        _ body: LevelBody, _ index: Int, completion: @escaping @Sendable (ChunkResult) -> Void
    ) -> Bool {
        reads.append(.chunk(body, index: index, completion))
    }

    func release(body id: Int64) {
        if index.unpin(id) { _ = queue.append(.dropBody(id)) }
    }

    // MARK: Changes of a key

    func store(
        _ response: CachedResponse, isInMemory: Bool, _ work: inout LevelWork
    ) -> StoreRefusalReason? {
        tellOfReplacement(of: response, &work)
        let bytes = self.bytes(of: response)
        let reserved = bytes == nil ? nil : reserve(response, isInMemory: isInMemory)
        let token = admit(
            response, bytes: reserved == nil ? nil : bytes, reserved: reserved ?? 0, &work)
        if token != .none { return nil }
        guard bytes != nil else { return .tooLarge }
        return reserved == nil ? .queueFull : .diskOff
    }

    func forget(variantOf response: CachedResponse, _ work: inout LevelWork) {
        tellOfReplacement(of: response, &work)
        let (_, removals) = index.admit(response, bytes: nil, body: 0, isChunked: false)
        remove(removals, &work)
    }

    func holds(_ response: CachedResponse) -> Bool { index.holds(response) }

    func freshen(
        _ old: CachedResponse, with response: CachedResponse, isInMemory: Bool,
        _ work: inout LevelWork
    ) -> Bool {
        let reserved = reserve(response, isInMemory: isInMemory)
        let held = reserved ?? 0
        switch index.succeed(old.token, with: response) {
        case .takenOver(let token, let body, let removals):
            guard let row = rowOfHead(response, token, body: body) else {
                remove(removals + (index.remove(token).map { [$0] } ?? []), &work)
                work.add { [budget] in budget.release(held) }
                return false
            }
            response.token = token
            // Queued under the lock: a body's rows must be written in the order in which they have
            // taken it over.
            let isQueued = enqueue(
                row, token, superseded: removals, reserved: held, wakes: false)
            work.add { [self] in
                guard !isQueued else { return queue.wakeWriter() }
                budget.release(held)
                tell(response.key)
            }
            return true
        case .rewrite:
            // Its body is gone, or the tier is about to be: nothing changes.
            if case .disk(let body) = response.body, body.source === self {
                work.add { [budget] in budget.release(held) }
                return false
            }
            // With another Vary key it would not be replaced by itself.
            let replaced = old.varyKey == response.varyKey ? [] : index.remove(old)
            let mayBeWritten = reserved != nil && !response.isOnDiskOnly
            let token = admit(
                response, bytes: mayBeWritten ? bytes(of: response) : nil, reserved: held,
                replacing: replaced, &work)
            return token != .none
        }
    }

    func leaveMemory(_ response: CachedResponse, wasUsed: Bool, _ work: inout LevelWork) {
        guard response.token == .none else {
            return index.leftMemory(response.token, wasUsed: wasUsed, now: LastUse.now())
        }
        // Before the index is read, and while the disk is off, its journal already has the key.
        guard index.phase == .ready, bans.verdict(response).isNone,
            let bytes = self.bytes(of: response),
            let reserved = reserve(response, isInMemory: false)
        else { return }
        admit(response, bytes: bytes, reserved: reserved, &work)
    }

    func remove(_ key: CacheKeyView, _ work: inout LevelWork) {
        remove(index.remove(key: key.bytes), &work)
    }

    func remove(_ response: CachedResponse, _ work: inout LevelWork) {
        remove(index.remove(response), &work)
    }

    private func remove(_ removals: [Removal], _ work: inout LevelWork) {
        guard !removals.isEmpty else { return }
        work.add { [self] in remove(removals) }
    }

    /// What is written for a response whose chunks stay as they are. The chunks were pinned for it.
    private func rowOfHead(
        _ response: CachedResponse, _ token: IndexToken, body: Int64
    ) -> CachedResponse? {
        let pinned = self.body(
            id: body, count: response.bodyCount, chunkBytes: response.chunkBytes)
        let row = response.isOnDiskOnly ? response : response.onDisk(pinned)
        row?.token = token
        return row
    }

    // MARK: Bodies that arrive in pieces

    func beginStream(_ arriving: ArrivingResponse) throws(StoreRefusalReason) -> any LevelStream {
        try DiskStream(self, textBytes: arriving.textBytes)
    }

    func hasRoom(for bytes: Int) -> Bool { budget.bytes + bytes <= budget.limit }

    var isCongested: Bool { budget.isCongested }

    func whenDrained(_ completion: @escaping @Sendable () -> Void) {
        budget.whenMostlyFree(completion)
    }

    // MARK: As a whole

    func purge() {
        // If the database has been closed in between, it is outdated when it is opened again.
        if index.purge({ queue.append(.purge(through: $0)) }) == false { index.forgetAll() }
    }

    func flush(_ completion: @escaping @Sendable () -> Void) {
        if !queue.append(.barrier(completion)) { completion() }
    }
}
