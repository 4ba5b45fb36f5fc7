import Synchronization

/// Accepts responses for the disk: the index, the writer's queue, and the bytes that may wait in
/// it. Nobody waits for the disk: what its writer cannot keep up with is skipped and counted, and
/// stays in memory nevertheless.
///
/// A response that memory keeps may use up to half of the queue when it is stored. The other half
/// is for those that have no other chance: responses held only by memory when they are evicted from
/// it, and those that memory does not accept.
final class DiskIntake: Sendable {
    /// A response held only by memory that the index has accepted while it was evicted.
    struct EvictedResponse: Sendable {
        let response: CachedResponse
        let superseded: [Removal]
        let reserved: Int
    }

    let options: CacheStoreOptions
    let index: DiskIndex
    let queue: DiskQueue
    /// Bytes of responses queued for the disk, and of bodies that are streamed to it.
    let budget: StoreBudget
    /// How often a response was not written because the queue was full.
    let skipped = Atomic<UInt64>(0)

    init(options: CacheStoreOptions, index: DiskIndex) {
        self.options = options
        self.index = index
        queue = DiskQueue(options: options)
        budget = StoreBudget(limit: options.queueBytes)
    }

    /// The bytes that a response will take on disk; `nil` if it is not kept there. A body written
    /// from memory goes into one transaction, so it must not be large; larger ones were streamed.
    func bytes(of response: CachedResponse) -> Int64? {
        guard options.diskBytes > 0,
            response.isOnDiskOnly || response.bodyCount <= UInt64(options.wholeBodyBytes)
        else { return nil }
        let record =
            EntryRecord.headerBytes + response.key.count + response.varyKey.bytes.count
            + response.head.count
        let isInline = !isChunked(response)
        let bytes = Schema.footprint(
            recordBytes: record, inlineBytes: isInline ? Int(response.bodyCount) : 0,
            chunked: isInline ? 0 : response.bodyCount, chunkBytes: response.chunkBytes)
        return bytes <= options.diskBytes / 2 ? bytes : nil
    }

    /// Whether its body is, or will be, in chunks.
    func isChunked(_ response: CachedResponse) -> Bool {
        response.isOnDiskOnly || response.bodyCount > UInt64(options.inlineBodyBytes)
    }

    /// Reserves space in the queue for a response that is written from memory; `nil` if the queue
    /// is full, which is counted while the disk is on.
    func reserve(_ response: CachedResponse, isInMemory: Bool) -> Int? {
        let count = response.rowBytes
        if budget.reserve(count, within: isInMemory ? budget.limit / 2 : budget.limit) {
            return count
        }
        if index.phase == .ready { passOver() }
        return nil
    }

    func passOver() { skipped.wrappingAdd(1, ordering: .relaxed) }

    /// Queues a response that the index has accepted. If it returns `false`, its index entry has
    /// been given up, and the `reserved` bytes remain the caller's.
    func enqueue(
        _ response: CachedResponse, _ token: IndexToken, superseded: [Removal], reserved: Int
    ) -> Bool {
        if token != .none,
            queue.append(.row(response, superseded: superseded, reserved: reserved))
        {
            return true
        }
        if token != .none { _ = index.remove(token) }
        if !superseded.isEmpty { _ = queue.append(.remove(superseded)) }
        return false
    }

    // MARK: Leaving memory

    /// Called when a response is being evicted from memory, under the lock of its shard: what was
    /// held only by memory passes to the disk atomically, so that an invalidation finds it there.
    func takeOver(_ response: CachedResponse) -> EvictedResponse? {
        // Before the index is read, and while the disk is off, its journal already has the key.
        guard index.phase == .ready, response.token == .none, let bytes = bytes(of: response),
            let reserved = reserve(response, isInMemory: false)
        else { return nil }
        let (token, removals) = index.admit(
            response, bytes: bytes, body: 0, isChunked: isChunked(response))
        response.token = token
        return EvictedResponse(response: response, superseded: removals, reserved: reserved)
    }

    /// Called after the eviction, when no lock is held any more.
    func hasLeft(_ response: CachedResponse, _ taken: EvictedResponse?) {
        guard let taken else {
            if response.token != .none { index.leftMemory(response.token, now: LastUse.now()) }
            return
        }
        let isQueued = enqueue(
            response, response.token, superseded: taken.superseded,
            reserved: taken.reserved)
        if !isQueued { budget.release(taken.reserved) }
    }
}
