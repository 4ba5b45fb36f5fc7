import CachePolicy
import Locking
import Synchronization

/// The memory tier: shards, each under its own lock, and one limit on their total bytes.
///
/// When the limit is exceeded, room is made in one shard after the other; with keys spread evenly
/// by their hashes that comes close to a single list.
final class MemoryTier: Sendable {
    private let parts: [Locked<MemoryShard>]
    private let shift: UInt64
    /// The maximum number of bytes kept.
    let limit: Int
    /// The largest response that is kept.
    let objectLimit: Int
    /// Where the responses are allocated; `nil` to use malloc.
    let heap: BlockHeap?
    private let bytes = Atomic<Int>(0)
    private let cursor = Atomic<Int>(0)
    /// Notified of evictions.
    private let intake: DiskIntake

    init(options: CacheStoreOptions, intake: DiskIntake) {
        var count = 1
        while count < options.memoryShards, count < 1024 { count *= 2 }
        parts = (0..<count).map { _ in
            Locked(MemoryShard(variantLimit: options.variantsPerKey))
        }
        shift = UInt64(64 - count.trailingZeroBitCount)
        limit = max(0, options.memoryBytes)
        heap = BlockHeap.suitable(limit: limit)
        objectLimit = min(options.memoryObjectBytes, limit / 8)
        self.intake = intake
    }

    /// Whether a response of this size is kept in memory.
    func admits(_ memoryBytes: Int) -> Bool { memoryBytes <= objectLimit }

    @inline(__always)
    private func part(_ hash: UInt64) -> Locked<MemoryShard> {
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

    /// Whether the flight's response may currently be stored.
    func isValid(_ flight: StoreFlight) -> Bool {
        part(flight.hash).withLock { $0.flights.isValid(flight) }
    }

    /// Flights under way.
    var flightCount: Int { parts.reduce(0) { $0 + $1.withLock { $0.flights.count } } }

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
            let (evicted, taken, change) = part.withLock { shard in
                let before = shard.bytes
                let evicted = shard.evict(except: kept)
                let taken = evicted.flatMap { intake.takeOver($0) }
                return (evicted, taken, before - shard.bytes)
            }
            guard let evicted else {
                misses += 1
                continue
            }
            misses = 0
            bytes.wrappingSubtract(change, ordering: .relaxed)
            intake.hasLeft(evicted, taken)
        }
    }

    /// Removes everything.
    func removeAll() {
        for part in parts {
            var dropped: [CachedResponse] = []
            let change = part.withLock { shard in
                let before = shard.bytes
                shard.removeAll(dropped: &dropped)
                return before - shard.bytes
            }
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
