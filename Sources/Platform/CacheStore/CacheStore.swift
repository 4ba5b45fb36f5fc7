import CachePolicy
import HTTPCore
import Locking

/// The cache's store: a memory tier in front of SQLite.
///
/// Any thread may call it, and none ever waits for the disk. An index in memory knows what is on
/// the disk; reads are made by reader threads, and writes are queued for the writer thread.
///
/// **Consistency.** Every change of a key's entries, in both tiers, is made under one lock, that of
/// the key's memory shard, with the index's lock inside. Therefore:
/// - A store replaces the variant with the same Vary key in both tiers atomically.
/// - An entry that was replaced, invalidated or purged does not come back: a load that had begun
///   before finds its entry gone from the index when it is about to publish what it read; a queued
///   write finds the same before it is carried out; and a store whose request was sent before an
///   invalidation of its key (`StoreFlight`) is refused.
/// - Rows are written and removed in the order of these changes. After `kill -9` the database is in
///   the state of a moment ago: each transaction is there completely or not at all.
public final class CacheStore: Sendable {
    let options: CacheStoreOptions
    let memory: MemoryTier
    let disk: DiskTier
    private let refusals = Locked([UInt64](repeating: 0, count: StoreRefusalReason.allCases.count))

    /// Opens the store. The database is opened in the background: until then, and whenever the disk
    /// tier is off, the store is a memory cache. Never fails: problems with the disk are reported
    /// to `onEvent`, which is called on the store's threads.
    public convenience init(
        options: CacheStoreOptions, onEvent: @escaping @Sendable (StoreEvent) -> Void = { _ in }
    ) {
        self.init(withoutThreads: options, onEvent: onEvent)
        disk.start()
    }

    /// A store whose disk tier does nothing until somebody carries out what is queued for it.
    init(
        withoutThreads options: CacheStoreOptions, onEvent: @escaping @Sendable (StoreEvent) -> Void
    ) {
        self.options = options
        let index = DiskIndex(
            phase: options.diskBytes > 0 ? .opening : .off(.disabled),
            accessSeconds: options.accessFlushSeconds, variantLimit: options.variantsPerKey)
        let intake = DiskIntake(options: options, index: index)
        memory = MemoryTier(options: options, intake: intake)
        disk = DiskTier(
            memory: memory, intake: intake,
            descriptors: DescriptorBudget(limit: options.memoryFiles), onEvent: onEvent)
    }

    deinit { close() }

    /// Waits until the database is open or the disk tier is off, with a time limit. For the start
    /// of the process, so that the first requests find what is on disk.
    public func waitUntilDiskSettled(milliseconds: Int) -> DiskState {
        disk.settled.wait(milliseconds: milliseconds)
        return disk.index.phase
    }

    // MARK: Finding

    /// What memory holds for a key. Allocates nothing unless there are several variants.
    public func lookup(_ key: CacheKeyView) -> MemoryMatch { memory.find(key) }

    /// Whether the disk may hold the key, in any variant. No I/O.
    func diskMayHold(_ key: CacheKeyView) -> Bool { disk.index.mayHold(key.bytes) }

    /// What the disk may hold for a request: whether a `load` is worthwhile, and of which variants.
    /// No I/O, and equally fast whatever the number and size of the variants.
    /// - Parameter varyKey: returns the request's key for the names that a stored response
    ///   nominates (`VaryKey.init(names:for:in:)`); called once for each different list of names.
    public func diskVariants(
        _ key: CacheKeyView, _ varyKey: ([UInt8]) -> VaryKey?
    ) -> DiskVariants {
        let names = disk.index.varyNames(key.bytes)
        guard !names.isEmpty else { return .none }
        var variants: [VaryKey] = []
        for case let names? in names {
            if let variant = varyKey(names) { variants.append(variant) }
        }
        return disk.index.mayHold(key.bytes, variants) ? .candidates(variants) : .others
    }

    /// Reads a key's variants from disk, on a reader thread, and calls `completion` there. Bodies
    /// of up to `wholeBodyBytes` are read completely and put into the memory tier.
    ///
    /// - Parameters:
    ///   - variants: which of them, as returned by `diskVariants`; `nil` for all.
    ///   - policy: the policy for the metadata of the stored heads.
    ///   - wakes: `false` if the caller will soon call ``wakeReaders()``, once for all its
    ///     requests.
    /// - Returns: `false` if too many reads are waiting (or the store is closed): treat it as a
    ///   miss; `completion` will not be called.
    public func load(
        _ key: CacheKeyView, _ variants: [VaryKey]? = nil, policy: PolicyOptions,
        wakes: Bool = true, completion: @escaping @Sendable (LoadResult) -> Void
    ) -> Bool {
        disk.reads.append(
            .load(
                LoadRequest(
                    key: [UInt8](key.bytes), hash: key.hash, variants: variants, policy: policy,
                    completion: completion)), wakes: wakes)
    }

    /// Makes sure that readers are awake for the loads that did not wake them.
    public func wakeReaders() { disk.reads.wakeReaders() }

    /// Reads one chunk of a large body, on a reader thread, and calls `completion` there. The
    /// caller chooses how many chunks to request ahead.
    ///
    /// - Parameter index: 0 ..< `body.chunkCount`.
    /// - Returns: `false` if too many reads are waiting; `completion` will not be called.
    public func readChunk(
        _ body: DiskBody, _ index: Int, completion: @escaping @Sendable (ChunkResult) -> Void
    ) -> Bool {
        disk.reads.append(.chunk(body, index: index, completion))
    }

    // MARK: Storing

    /// Call this when a request is sent upstream: an invalidation of its key from then on voids the
    /// store of its response. The flight must be ended once, with `endFlight` or by the ticket that
    /// it is passed to.
    @inline(__always)
    public func beginFlight(of key: CacheKeyView) -> StoreFlight { memory.beginFlight(key.hash) }

    /// Call this if the response to the request will not be stored.
    @inline(__always)
    public func endFlight(_ flight: StoreFlight) { memory.endFlight(flight) }

    /// Begins to store a response.
    ///
    /// - Parameters:
    ///   - head: the stored head (`StoredHead.append`); copied.
    ///   - metadata: created from `head`.
    ///   - policy: fingerprint of the security policy it was obtained under, returned with it. It
    ///     must mean the same after a restart.
    ///   - expectedLength: the body's length if it is known.
    ///   - flight: the result of `beginFlight(of:)` when the request was sent. The ticket owns it
    ///     from then on; if there is no ticket, it is ended. `nil` for a request that is sent now.
    public func beginStore(
        key: CacheKeyView, vary: VaryKey, head: UnsafeRawBufferPointer, metadata: StoredMetadata,
        policy: UInt64 = 0, expectedLength: UInt64?, flight: StoreFlight? = nil
    ) throws(StoreRefusalReason) -> StoreTicket {
        let flight = flight ?? beginFlight(of: key)
        do throws(StoreRefusalReason) {
            return try StoreTicket(
                store: self, key: key, varyKey: vary, head: head, metadata: metadata,
                policy: policy, expected: expectedLength, flight: flight)
        } catch {
            endFlight(flight)
            count(error)
            throw error
        }
    }

    /// Calls `completion` once, on any thread, when at most a quarter of `queueBytes` is on its way
    /// to disk; at once if that is already so. For a caller that slows down on `isCongested`.
    public func whenStoresDrain(_ completion: @escaping @Sendable () -> Void) {
        disk.budget.whenMostlyFree(completion)
    }

    /// Replaces a response's head after a 304; the body is shared.
    ///
    /// - Parameters:
    ///   - vary: the new head's Vary key (`FreshenedResponse.vary`).
    ///   - policy: fingerprint of the policy under which the 304 was obtained.
    ///
    /// Refused as `.superseded` if `old` is no longer the stored response: another response, or
    /// none, is then correct.
    public func update(
        _ old: CachedResponse, vary: VaryKey, head: UnsafeRawBufferPointer,
        metadata: StoredMetadata, policy: UInt64
    ) throws(StoreRefusalReason) -> CachedResponse {
        do throws(StoreRefusalReason) {
            return try freshen(
                old, vary: vary, head: head, metadata: metadata, policy: policy)
        } catch {
            count(error)
            throw error
        }
    }

    // MARK: Removing

    /// Removes every variant of a key from both tiers, including what is queued and under way.
    public func invalidate(_ key: CacheKeyView) {
        let removals = memory.withShard(key.hash) { shard, dropped in
            shard.invalidate(key.hash, key.bytes, dropped: &dropped)
            return disk.index.remove(key: key.bytes)
        }
        disk.remove(removals)
    }

    /// Removes one response from both tiers.
    public func remove(_ response: CachedResponse) {
        let removal = memory.withShard(response.keyHash) { shard, dropped in
            shard.remove(response, dropped: &dropped)
            return disk.index.remove(response.token)
        }
        if let removal { disk.remove([removal]) }
    }

    /// Removes everything from both tiers, including what is queued and under way.
    public func purgeAll() {
        // Memory first, so that stores under way are void before the index is emptied; and again
        // after it, for what loads have added in between.
        memory.removeAll()
        if let lastID = disk.index.purge() { _ = disk.queue.append(.purge(through: lastID)) }
        memory.removeAll()
    }

    /// Calls `completion`, on the writer's thread, when everything queued until now has been
    /// committed or given up; at once, and on this thread, if the disk tier is off.
    public func flush(_ completion: @escaping @Sendable () -> Void) {
        if !disk.queue.append(.barrier(completion)) { completion() }
    }

    /// Returns idle memory between stored responses to the system, if there is much of it. Returns
    /// the number of bytes that the store's own heap occupies.
    public func releaseIdleMemory() -> Int {
        guard let heap = memory.heap else { return 0 }
        while heap.releaseIdlePages() {}
        return heap.residentBytes
    }

    // MARK: Statistics

    /// Values for metrics.
    public func statistics() -> StoreStatistics {
        var statistics = StoreStatistics()
        let memoryStatistics = memory.statistics()
        statistics.memoryEntries = memoryStatistics.entries
        statistics.memoryBytes = memoryStatistics.bytes
        statistics.memoryEvictions = memoryStatistics.evictions
        statistics.memoryHeapBytes = memory.heap?.residentBytes ?? 0
        statistics.memoryFiles = disk.descriptors.count
        let diskStatistics = disk.index.statistics()
        statistics.diskState = diskStatistics.phase
        statistics.diskEntries = diskStatistics.entries
        statistics.diskBytes = diskStatistics.bytes
        statistics.diskEvictions = diskStatistics.evictions
        statistics.diskFileBytes = disk.counters.fileBytes.load(ordering: .relaxed)
        statistics.diskLogBytes = disk.counters.logBytes.load(ordering: .relaxed)
        statistics.diskRowsRead = disk.counters.rowsRead.load(ordering: .relaxed)
        statistics.diskBytesRead = disk.counters.bytesRead.load(ordering: .relaxed)
        statistics.diskRestarts = disk.counters.restarts.load(ordering: .relaxed)
        statistics.diskHits = disk.counters.hits.load(ordering: .relaxed)
        statistics.diskMisses = disk.counters.misses.load(ordering: .relaxed)
        statistics.diskWrites = disk.counters.writes.load(ordering: .relaxed)
        statistics.damagedEntries = disk.counters.damaged.load(ordering: .relaxed)
        statistics.queueBytes = disk.budget.bytes
        statistics.gatheringBytes = disk.gathering.bytes
        statistics.stagingBytes = disk.staging.bytes
        statistics.flights = memory.flightCount
        statistics.diskSkipped =
            disk.intake.skipped.load(ordering: .relaxed)
            + disk.counters.noRoom.load(ordering: .relaxed)
        statistics.queueDepth = disk.queue.depth
        statistics.pendingReads = disk.reads.count
        statistics.refusals = refusals.withLock { $0 }
        if let index = StoreRefusalReason.allCases.firstIndex(of: .noRoom) {
            statistics.refusals[index] += disk.counters.noRoom.load(ordering: .relaxed)
        }
        return statistics
    }

    func count(_ reason: StoreRefusalReason) {
        guard let index = StoreRefusalReason.allCases.firstIndex(of: reason) else { return }
        refusals.withLock { $0[index] += 1 }
    }

    /// Writes what is queued to the disk, for at most `closeMilliseconds`, and ends the threads.
    /// Memory continues to serve. Safe to call again.
    public func close() { disk.close() }
}
