import CachePolicy
import HTTPCore
import Locking

/// The cache's store: a memory tier, and levels below it (`CacheLevel`), of which the first is in
/// SQLite.
///
/// Any thread may call it, and none ever waits for a level. What memory does not have is read by
/// the levels' own threads, from one level after the other; what they store is queued for them.
///
/// **Consistency.** Every change of a key's entries, in all levels, is made under one lock, that of
/// the key's memory shard, with the levels' locks inside. Therefore:
/// - A store replaces the variant with the same Vary key in all levels atomically.
/// - An entry that was replaced, invalidated or purged does not come back: a load that had begun
///   before is told by its level, when it is about to publish what it read, that the entry is gone;
///   a queued write finds the same before it is carried out; and a store whose request was sent
///   before an invalidation of its key (`StoreFlight`) is refused.
/// - Rows are written and removed in the order of these changes. After `kill -9` the database is in
///   the state of a moment ago: each transaction is there completely or not at all.
public final class CacheStore: Sendable {
    let options: CacheStoreOptions
    let memory: MemoryTier
    let disk: DiskTier
    /// The levels below memory, in the order in which they are asked.
    let levels: [any CacheLevel]
    let bans = BansInForce()
    let purging = PurgeWork()
    let trust = TrustNames()
    let clerk = CacheClerk()
    var lister: EntryLister { EntryLister(memory: memory, disk: disk, bans: bans, trust: trust) }
    /// Runs of bytes that are being received.
    let runs = RunsUnderWay()
    private let partsLock = Locked(())
    private let claims = Locked<Set<UInt64>>([])
    private let refusals = Locked([UInt64](repeating: 0, count: StoreRefusalReason.allCases.count))

    /// Opens the store. The database is opened in the background: until then, and whenever the disk
    /// tier is off, the store is a memory cache. Never fails: problems with the disk are reported
    /// to `onEvent`, which is called on the store's threads.
    public convenience init(
        options: CacheStoreOptions, onEvent: @escaping @Sendable (StoreEvent) -> Void = { _ in }
    ) {
        self.init(options: options, below: [], onEvent: onEvent)
    }

    /// The same with further levels, which are asked in this order for what neither memory nor the
    /// disk has.
    package convenience init(
        options: CacheStoreOptions, below further: [any CacheLevel],
        onEvent: @escaping @Sendable (StoreEvent) -> Void = { _ in }
    ) {
        self.init(withoutThreads: options, below: further, onEvent: onEvent)
        disk.start(with: memory)
    }

    /// A store whose disk tier does nothing until somebody carries out what is queued for it.
    init(
        withoutThreads options: CacheStoreOptions, below further: [any CacheLevel] = [],
        onEvent: @escaping @Sendable (StoreEvent) -> Void
    ) {
        self.options = options
        disk = DiskTier(options: options, bans: bans, trust: trust, onEvent: onEvent)
        levels = [disk] + further
        memory = MemoryTier(options: options, below: levels, bans: bans) { [disk] in
            disk.index.count($0.token, hits: $1)
        }
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
    public func lookup(_ key: CacheKeyView) -> MemoryMatch {
        if disk.attention.load(ordering: .relaxed) != 0 { return lookUpClosely(key) }
        return memory.find(key)
    }

    /// While another process changes the database, or bans are being carried out.
    @inline(never)
    private func lookUpClosely(_ key: CacheKeyView) -> MemoryMatch {
        if disk.isBeside { disk.catchUp(memory) }
        return memory.findClosely(key)
    }

    /// What the levels below memory may hold for a request: whether a `load` is worthwhile, and of
    /// which variants. No I/O, and equally fast whatever the number and size of the variants.
    /// - Parameter varyKey: returns the request's key for the names that a stored response
    ///   nominates (`VaryKey.init(names:for:in:)`); called once for each different list of names.
    public func levelVariants(
        _ key: CacheKeyView, _ varyKey: ([UInt8]) -> VaryKey?
    ) -> LevelVariants {
        guard var names = levels.first?.varyNames(key) else { return .none }
        if levels.count > 1 { for level in levels.dropFirst() { names += level.varyNames(key) } }
        guard !names.isEmpty else { return .none }
        var variants: [VaryKey] = []
        for case let names? in names {
            if let variant = varyKey(names) { variants.append(variant) }
        }
        return levels.contains { $0.mayHold(key, variants) } ? .candidates(variants) : .others
    }

    /// Reads a key's variants from the first level that has any, and calls `completion` on one of
    /// the levels' threads. Bodies of up to `wholeBodyBytes` are read completely and put into the
    /// memory tier.
    ///
    /// - Parameters:
    ///   - variants: which of them, as returned by `levelVariants`; `nil` for all.
    ///   - policy: the policy for the metadata of the stored heads.
    ///   - trust: the fingerprint of the security policy that the request is under, which a level
    ///     prefers that has several.
    ///   - fetches: whether the caller will fetch the response if there is none, and may store it:
    ///     of several gateways one is to do so, and the others wait for it for a while.
    ///   - wakes: `false` if the caller will soon call ``wakeReaders()``, once for all its
    ///     requests.
    /// - Returns: `false` if too many reads are waiting (or the store is closed): treat it as a
    ///   miss; `completion` will not be called.
    public func load(
        _ key: CacheKeyView, _ variants: [VaryKey]? = nil, policy: PolicyOptions,
        trust: UInt64? = nil, fetches: Bool = false, wakes: Bool = true,
        completion: @escaping @Sendable (LoadResult) -> Void
    ) -> Bool {
        if disk.isBeside { disk.catchUp(memory) }
        let load = LevelLoad(
            key: [UInt8](key.bytes), hash: key.hash, variants: variants, policy: policy,
            memory: memory, trust: trust, born: bans.settled, fetches: fetches,
            completion: completion)
        return load.begin(at: levels[...], wakes: wakes)
    }

    /// Makes sure that readers are awake for the loads that did not wake them.
    public func wakeReaders() { for level in levels { level.wakeReaders() } }

    /// Reads one chunk of a large body from the level that has it, and calls `completion` on one of
    /// the level's threads. The caller chooses how many chunks to request ahead.
    ///
    /// - Parameter index: 0 ..< `body.chunkCount`.
    /// - Returns: `false` if too many reads are waiting; `completion` will not be called.
    public func readChunk(
        _ body: LevelBody, _ index: Int, completion: @escaping @Sendable (ChunkResult) -> Void
    ) -> Bool {
        body.source.readChunk(body, index, completion: completion)
    }

    // MARK: Waiting for one response

    /// A request for a key is about to be sent, and others may wait for its response: at one place
    /// at a time, for instance one worker.
    /// - Returns: `place`, or another one at which a response to the same request is awaited.
    public func lead(_ hash: UInt64, at place: Int) -> Int { memory.lead(hash, at: place) }

    /// The place that leads; `nil` if none does.
    public func leader(_ hash: UInt64) -> Int? { memory.leader(hash) }

    /// Others need not wait for this place any longer.
    public func stopLeading(_ hash: UInt64, at place: Int) {
        memory.stopLeading(hash, at: place)
    }

    /// Of those who have stopped waiting for a response, one may store its own: whether the caller
    /// is the one. It must end the claim.
    public func claim(_ hash: UInt64) -> Bool { claims.withLock { $0.insert(hash).inserted } }

    /// Claims that have not ended.
    var claimCount: Int { claims.withLock { $0.count } }

    public func endClaim(_ hash: UInt64) { claims.withLock { _ = $0.remove(hash) } }

    /// Carries out `body`, which looks for parts of a representation and stores the head of one, as
    /// the only one that does.
    public func withParts<Result>(_ body: () -> Result) -> Result {
        partsLock.withLock { _ in body() }
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
    ///   - staleSince: since when a soft purge has made it stale where it was stored before, in
    ///     seconds since 1970; 0 if none has.
    ///   - expectedLength: the body's length if it is known.
    ///   - flight: the result of `beginFlight(of:)` when the request was sent. The ticket owns it
    ///     from then on; if there is no ticket, it is ended. `nil` for a request that is sent now.
    public func beginStore(
        key: CacheKeyView, vary: VaryKey, head: UnsafeRawBufferPointer, metadata: StoredMetadata,
        policy: UInt64 = 0, staleSince: Int64 = 0, expectedLength: UInt64?,
        flight: StoreFlight? = nil
    ) throws(StoreRefusalReason) -> StoreTicket {
        let flight = flight ?? beginFlight(of: key)
        do throws(StoreRefusalReason) {
            return try StoreTicket(
                store: self, key: key, varyKey: vary, head: head, metadata: metadata,
                policy: policy, staleSince: staleSince, expected: expectedLength, flight: flight)
        } catch {
            endFlight(flight)
            count(error)
            throw error
        }
    }

    /// Calls `completion` once, on any thread, when the levels have caught up (the disk: at most a
    /// quarter of `queueBytes` is on its way to it); at once if that is already so. For a caller
    /// that slows down on `isCongested`.
    public func whenStoresDrain(_ completion: @escaping @Sendable () -> Void) {
        Self.eachInTurn(levels[...], completion) { $0.whenDrained($1) }
    }

    /// Calls `step` for each level, which completes before the next one is asked.
    private static func eachInTurn(
        _ levels: ArraySlice<any CacheLevel>, _ completion: @escaping @Sendable () -> Void,
        _ step: @escaping @Sendable (any CacheLevel, @escaping @Sendable () -> Void) -> Void
    ) {
        guard let level = levels.first else { return completion() }
        let rest = levels.dropFirst()
        if rest.isEmpty { return step(level, completion) }
        step(level) { eachInTurn(rest, completion, step) }
    }

    /// Replaces a response's head after a 304; the body is shared.
    ///
    /// - Parameters:
    ///   - vary: the new head's Vary key (`FreshenedResponse.vary`).
    ///   - policy: fingerprint of the policy under which the 304 was obtained.
    ///   - flight: that of the request, which is not ended; `nil` if none was sent.
    ///
    /// Refused as `.superseded` if `old` is no longer the stored response, or the key was
    /// invalidated since the request was sent: another response, or none, is then correct.
    public func update(
        _ old: CachedResponse, vary: VaryKey, head: UnsafeRawBufferPointer,
        metadata: StoredMetadata, policy: UInt64, flight: StoreFlight? = nil
    ) throws(StoreRefusalReason) -> CachedResponse {
        do throws(StoreRefusalReason) {
            return try freshen(
                old, vary: vary, head: head, metadata: metadata, policy: policy, flight: flight)
        } catch {
            count(error)
            throw error
        }
    }

    // MARK: Removing

    /// Removes every variant of a key from all levels, including what is queued and under way.
    /// - Parameter flight: one that is not voided: that of the request whose response invalidates
    ///   the others. If an earlier invalidation has voided it, it stays so.
    public func invalidate(_ key: CacheKeyView, except flight: StoreFlight? = nil) {
        memory.withShard(key.hash) { shard, dropped in
            shard.invalidate(key.hash, key.bytes, except: flight, dropped: &dropped)
            var work = LevelWork()
            for level in levels { level.remove(key, &work) }
            return work
        }.perform()
        disk.tell(key.bytes)
    }

    /// Removes one response from all levels.
    public func remove(_ response: CachedResponse) {
        memory.withShard(response.keyHash) { shard, dropped in
            shard.remove(response, dropped: &dropped)
            var work = LevelWork()
            for level in levels { level.remove(response, &work) }
            return work
        }.perform()
        disk.tell(response.key)
    }

    /// Removes everything from all levels, including what is queued and under way.
    public func purgeAll() {
        // Memory first, so that stores under way are void before the levels are emptied; and again
        // after that, for what loads have added in between.
        memory.removeAll()
        for level in levels { level.purge() }
        memory.removeAll()
        disk.tell(nil)
    }

    /// Calls `completion`, on a level's thread, when everything queued until now has been carried
    /// out or given up; at once, and on this thread, if the levels are off.
    public func flush(_ completion: @escaping @Sendable () -> Void) {
        Self.eachInTurn(levels[...], completion) { $0.flush($1) }
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
        statistics.memoryFiles = memory.files.count
        statistics.gatheringBytes = memory.gathering.bytes
        statistics.stagingBytes = memory.staging.bytes
        statistics.sharingBytes = memory.sharing.bytes
        statistics.flights = memory.flightCount
        statistics.purges = bans.statistics
        statistics.refusals = refusals.withLock { $0 }
        disk.describe(&statistics)
        statistics.levels = levels.map { $0.statistics() }
        return statistics
    }

    func count(_ reason: StoreRefusalReason) {
        guard let index = StoreRefusalReason.allCases.firstIndex(of: reason) else { return }
        refusals.withLock { $0[index] += 1 }
    }

    /// Carries out what is queued for the levels, the disk for at most `closeMilliseconds`, and
    /// ends their threads. Memory continues to serve. Safe to call again.
    public func close() {
        purging.close()
        clerk.close()
        for level in levels { level.close() }
    }
}
