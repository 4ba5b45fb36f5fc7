import CachePolicy
import Locking
import Synchronization

/// The memory tier, the first level of the cache: shards, each under its own lock, and one limit on
/// their total bytes. It also has the memory of responses that are being received or loaded.
///
/// It is called directly, not through `CacheLevel`. The lock of a key's shard is the lock under
/// which all levels change the key together.
///
/// When the limit is exceeded, room is made in one shard after the other; with keys spread evenly
/// by their hashes that comes close to a single list.
package final class MemoryTier: Sendable {
    let parts: [Locked<MemoryShard>]
    private let shift: UInt64
    /// The maximum number of bytes kept.
    let limit: Int
    /// The largest response that is kept.
    let objectLimit: Int
    /// Where the responses are allocated; `nil` to use malloc.
    let heap: BlockHeap?
    private let bytes = Atomic<Int>(0)
    private let cursor = Atomic<Int>(0)
    /// The open memory files.
    let files: DescriptorBudget
    /// Bytes of responses being received, small enough to be written at once.
    let gathering: StoreBudget
    /// Bytes of larger bodies being gathered.
    let staging: StoreBudget
    /// Bytes of bodies that are read while they arrive.
    let sharing: StoreBudget
    private let options: CacheStoreOptions
    let bans: BansInForce
    /// Told how often a response was used that leaves, under the lock of its key.
    private let onHits: @Sendable (CachedResponse, UInt32) -> Void
    /// Notified of evictions.
    let levels: [any CacheLevel]

    /// - Parameter levels: the levels below.
    init(
        options: CacheStoreOptions, below levels: [any CacheLevel], bans: BansInForce,
        onHits: @escaping @Sendable (CachedResponse, UInt32) -> Void
    ) {
        self.bans = bans
        self.onHits = onHits
        var count = 1
        while count < options.memoryShards, count < 1024 { count *= 2 }
        parts = (0..<count).map { _ in
            Locked(MemoryShard(variantLimit: options.variantsPerKey))
        }
        shift = UInt64(64 - count.trailingZeroBitCount)
        limit = max(0, options.memoryBytes)
        heap = BlockHeap.suitable(limit: limit)
        objectLimit = min(options.memoryObjectBytes, limit / 8)
        files = DescriptorBudget(limit: options.memoryFiles)
        gathering = StoreBudget(limit: options.gatheringBytes)
        staging = StoreBudget(limit: options.stagingBytes)
        // What is on its way to a level is in memory twice.
        sharing = StoreBudget(limit: options.queueBytes + options.stagingBytes)
        self.options = options
        self.levels = levels
    }

    /// Whether a response of this size is kept in memory.
    func admits(_ memoryBytes: Int) -> Bool { memoryBytes <= objectLimit }

    @inline(__always)
    func part(_ hash: UInt64) -> Locked<MemoryShard> {
        // The upper half of the product: every bit of the hash contributes. With one shard, shift
        // is 64, for which Swift's smart shift returns 0.
        parts[Int(truncatingIfNeeded: (hash &* 0x9E37_79B9_7F4A_7C15) >> shift)]
    }

    /// See `CacheStore.lookup`.
    @inline(__always)
    func find(_ key: CacheKeyView) -> MemoryMatch {
        part(key.hash).withLock { $0.find(key.hash, key.bytes) }
    }

    /// See `CacheStore.beginFlight`.
    @inline(__always)
    func beginFlight(_ hash: UInt64) -> StoreFlight {
        part(hash).withLock { $0.flights.begin(hash) }
    }

    /// See `CacheStore.endFlight`.
    @inline(__always)
    func endFlight(_ flight: StoreFlight) {
        part(flight.hash).withLock { $0.flights.end(flight) }
    }

    /// See `CacheStore.lead`.
    func lead(_ hash: UInt64, at place: Int) -> Int {
        part(hash).withLock { shard in
            if let other = shard.leaders[hash] { return other }
            shard.leaders[hash] = place
            return place
        }
    }

    /// See `CacheStore.leader`.
    func leader(_ hash: UInt64) -> Int? { part(hash).withLock { $0.leaders[hash] } }

    /// See `CacheStore.stopLeading`.
    func stopLeading(_ hash: UInt64, at place: Int) {
        part(hash).withLock { shard in
            if shard.leaders[hash] == place { shard.leaders[hash] = nil }
        }
    }

    /// Nothing is stored or confirmed of requests for a key that were sent before this: a level has
    /// learned that the key was invalidated, and not when. What is stored stays.
    package func voidFlights(_ hash: UInt64) { part(hash).withLock { $0.flights.void(hash) } }

    /// Whether the flight's response may currently be stored: it has this key and this head.
    func isValid(
        _ flight: StoreFlight, _ key: UnsafeRawBufferPointer, _ head: UnsafeRawBufferPointer
    ) -> Bool {
        part(flight.hash).withLock { shard in
            guard shard.flights.isValid(flight) else { return false }
            guard let suspicion = shard.flights.suspectSince(flight) else { return true }
            return bans.verdict(key: key, head: head, .born(suspicion - 1)).isNone
        }
    }

    // MARK: Purging

    /// The same as `find`, while bans are being carried out: without what is banned.
    func findClosely(_ key: CacheKeyView) -> MemoryMatch {
        withShard(key.hash) { shard, dropped in
            shard.sweep(key.hash, key.bytes, bans, dropped: &dropped)
            return shard.find(key.hash, key.bytes)
        }
    }

    /// Carries the bans out for one key.
    func sweep(_ key: CacheKeyView) {
        withShard(key.hash) { shard, dropped in
            shard.sweep(key.hash, key.bytes, bans, dropped: &dropped)
        }
    }

    /// Tells all shards of a ban.
    func note(_ serial: UInt64) {
        for part in parts { part.withLock { $0.note(serial) } }
    }

    /// Nothing is stored of requests that were sent before a purge.
    func voidSuspects(through serial: UInt64) {
        for part in parts { part.withLock { $0.flights.voidSuspects(through: serial) } }
    }

    /// The first purge that a request under way may have preceded; `nil` if there is none.
    var firstSuspicion: UInt64? {
        parts.compactMap { $0.withLock { $0.flights.firstSuspicion } }.min()
    }

    /// Carries the bans out in a few slots. Returns where to continue; `nil` at the end.
    func sweep(from place: Place) -> Place? {
        guard place.part < parts.count else { return nil }
        var dropped: [CachedResponse] = []
        let (next, change) = parts[place.part].withLock { shard in
            let before = shard.bytes
            let next = shard.sweep(
                from: place.slot, count: Self.sweepStep, bans, dropped: &dropped)
            return (next, shard.bytes - before)
        }
        if change != 0 { bytes.wrappingAdd(change, ordering: .relaxed) }
        return Place(part: next == nil ? place.part + 1 : place.part, slot: next ?? 0)
    }

    /// The slots swept under one lock: each may be copied.
    private static let sweepStep = 16

    /// Flights under way.
    var flightCount: Int { parts.reduce(0) { $0 + $1.withLock { $0.flights.count } } }

    /// Keys for whose responses others wait at one place.
    var leaderCount: Int { parts.reduce(0) { $0 + $1.withLock { $0.leaders.count } } }

    /// Runs `body` under the lock of the key's shard. What it drops is freed afterwards, and room
    /// is made if it added something.
    func withShard<Result: Sendable>(
        _ hash: UInt64, adding: CachedResponse? = nil,
        _ body: (inout MemoryShard, inout [CachedResponse]) -> Result
    ) -> Result {
        var dropped: [CachedResponse] = []
        let (result, change) = part(hash).withLock { shard in
            let before = shard.bytes
            let result = body(&shard, &dropped)
            return (result, shard.bytes - before)
        }
        if change != 0 { bytes.wrappingAdd(change, ordering: .relaxed) }
        if change > 0 { makeRoom(for: adding) }
        return result
    }

    private func makeRoom(for kept: CachedResponse?) {
        var misses = 0
        while bytes.load(ordering: .relaxed) > limit, misses < parts.count {
            let turn = cursor.wrappingAdd(1, ordering: .relaxed).oldValue
            let part = parts[turn & (parts.count - 1)]
            let (evicted, work, change) = part.withLock { shard in
                let before = shard.bytes
                var work = LevelWork()
                let evicted = shard.evict(except: kept)
                // Under the lock, so that an invalidation finds it where it has gone to.
                if let evicted {
                    for level in levels {
                        level.leaveMemory(evicted.response, wasUsed: evicted.wasProven, &work)
                    }
                    onHits(evicted.response, evicted.hits)
                }
                return (evicted?.response, work, before - shard.bytes)
            }
            // What was evicted is freed here, without the lock.
            guard evicted != nil else {
                misses += 1
                continue
            }
            misses = 0
            bytes.wrappingSubtract(change, ordering: .relaxed)
            work.perform()
        }
    }

    // MARK: For the levels below

    /// Where `visit` continues.
    struct Place {
        private(set) var part = 0
        private(set) var slot = 0

        init() {}
        init(part: Int, slot: Int) { (self.part, self.slot) = (part, slot) }
    }

    /// The slots visited under one lock.
    static let visitStep = 64

    /// Calls `body` with some of the responses, each under the lock of its key, until it returns
    /// `false`. What it leaves to do is done here. Responses that come and go meanwhile may be
    /// missed or visited twice.
    /// - Returns: where to continue, with the response that was refused; `nil` at the end.
    func visit(
        from place: Place, _ body: (CachedResponse, inout LevelWork) -> Bool
    ) -> Place? {
        guard place.part < parts.count else { return nil }
        let (next, work) = parts[place.part].withLock { shard in
            var work = LevelWork()
            let next = shard.visit(from: place.slot, count: Self.visitStep) { body($0, &work) }
            return (next, work)
        }
        work.perform()
        return Place(part: next == nil ? place.part + 1 : place.part, slot: next ?? 0)
    }

    /// A response that a level has read; `nil` if there is no memory for it.
    /// - Parameter body: complete; copied.
    package func makeResponse(
        _ loaded: LoadedHead, for load: LevelLoad, body: UnsafeRawBufferPointer
    ) -> CachedResponse? {
        guard body.count >= options.memoryFileBytes else {
            return makeResponse(
                loaded, for: load, inline: body, storage: .contiguous,
                chunkBytes: options.chunkBytes)
        }
        let large = LargeBody(files, heap)
        guard large.append(body) else { return nil }
        return makeResponse(
            loaded, for: load, storage: large.complete(), chunkBytes: options.chunkBytes)
    }

    /// The same with a body that stays in the level.
    package func makeResponse(
        _ loaded: LoadedHead, for load: LevelLoad, body: LevelBody
    ) -> CachedResponse? {
        makeResponse(loaded, for: load, storage: .disk(body), chunkBytes: body.chunkBytes)
    }

    /// - Parameters:
    ///   - inline: the body if `storage` is `.contiguous`.
    ///   - chunkBytes: bytes of its chunks in the level, if it has any there.
    func makeResponse(
        _ loaded: LoadedHead, for load: LevelLoad,
        inline: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
        storage: BodyStorage, chunkBytes: Int
    ) -> CachedResponse? {
        var made: ResponseBlock?
        load.key.withUnsafeBytes { key in
            made = ResponseBlock(
                key: key, head: loaded.head, bodyCapacity: inline.count, heap: heap)
        }
        guard var block = made.take() else { return nil }
        guard block.append(inline, limit: inline.count) else { return nil }
        let response = CachedResponse(
            keyHash: load.hash, varyKey: loaded.vary, metadata: loaded.metadata,
            policy: loaded.policy, block: block, body: storage, chunkBytes: chunkBytes,
            staleSince: loaded.staleSince)
        response.born = load.born
        return response
    }

    /// Makes available what a level has read, and keeps it if it fits.
    /// - Parameters:
    ///   - isNear: whether it can be read again at little cost. Once memory is full, it is then
    ///     kept only if it was read before, not long ago: what is read once would displace what is
    ///     as likely to be used.
    ///   - trust: under which the request asks. A response that was obtained under it replaces one
    ///     that was not.
    ///   - isCurrent: called under the lock of the key, with whether memory keeps the response.
    ///     Returns whether the level still has it.
    /// - Returns: what memory has for it, which may be another load's copy; `nil` if it was
    ///   replaced, invalidated or evicted while it was being read.
    package func promote(
        _ response: CachedResponse, isNear: Bool = false,
        under trust: UInt64? = nil,
        _ isCurrent: (_ isInMemory: Bool) -> Bool
    ) -> CachedResponse? {
        let fits = admits(response.memoryBytes) && !response.isOnDiskOnly
        let isSelective =
            isNear && bytes.load(ordering: .relaxed) + response.memoryBytes > limit
        return withShard(response.keyHash, adding: response) { shard, dropped in
            switch shard.verdict(response, bans) {
            case .none: break
            // What was read when the ban was not known: the next request reads it again.
            case .gone, .stale: return nil
            }
            if bans.isInForce {
                shard.sweep(response.keyHash, response.key, bans, dropped: &dropped)
            }
            var existing = fits ? shard.variant(of: response) : nil
            if let other = existing, other.policy != trust, response.policy == trust {
                existing = nil
            }
            let isKept =
                existing != nil
                || fits && (!isSelective || shard.isWorthKeeping(response.keyHash))
            guard isCurrent(isKept) else { return nil }
            if let existing { return existing }
            if isKept { shard.insert(response, dropped: &dropped) }
            return response
        }
    }

    /// Whether what a level has read is still what is stored: neither replaced nor purged
    /// meanwhile. Nothing changes.
    func isCurrent(
        _ response: CachedResponse, _ isCurrent: (_ isInMemory: Bool) -> Bool
    ) -> Bool {
        withShard(response.keyHash) { shard, _ in
            shard.verdict(response, bans).isNone && isCurrent(false)
        }
    }

    /// Removes everything.
    func removeAll() {
        for part in parts {
            let (removed, change) = part.withLock { shard in
                let before = shard.bytes
                return (shard.removeAll(), before)
            }
            withExtendedLifetime(removed) {}
            bytes.wrappingSubtract(change, ordering: .relaxed)
        }
    }

    /// Entries, bytes and evictions so far.
    func statistics() -> (entries: Int, bytes: Int, evictions: UInt64) {
        var entries = 0
        var evictions: UInt64 = 0
        for part in parts {
            part.withLock { shard in
                entries += shard.count
                evictions += shard.evictions
            }
        }
        return (entries, bytes.load(ordering: .relaxed), evictions)
    }
}

/// What a level has read of a response, besides its body.
package struct LoadedHead {
    package let vary: VaryKey
    package let metadata: StoredMetadata
    package let policy: UInt64
    /// The stored head; copied when a response is made of it.
    package let head: UnsafeRawBufferPointer
    /// Since when a soft purge has made it stale, in seconds since 1970; 0 if none has.
    package let staleSince: Int64

    package init(
        vary: VaryKey, metadata: StoredMetadata, policy: UInt64, head: UnsafeRawBufferPointer,
        staleSince: Int64 = 0
    ) {
        self.staleSince = staleSince
        self.vary = vary
        self.metadata = metadata
        self.policy = policy
        self.head = head
    }
}
