import Synchronization

/// What takes responses up for the disk: the index, the writer's queue, and the bytes that may wait
/// in it. Nobody waits for the disk: what its writer cannot follow is passed over and counted, and
/// memory has it all the same.
///
/// What memory keeps may fill half of the queue when it is stored. The other half is for what has
/// no other chance: what memory alone had when it leaves it, and what memory does not take.
final class DiskIntake: Sendable {
    /// A response that memory alone had and that the index has taken up while it left memory.
    struct Departure: Sendable {
        let response: CachedResponse
        let superseded: [Removal]
        let reserved: Int
    }

    let options: CacheStoreOptions
    let index: DiskIndex
    let queue: DiskQueue
    /// Bytes of responses queued for the disk, and of bodies that are streamed to it.
    let budget: StoreBudget
    /// Times that a response was not written because the queue was full.
    let passedOver = Atomic<UInt64>(0)

    init(options: CacheStoreOptions, index: DiskIndex) {
        self.options = options
        self.index = index
        queue = DiskQueue(options: options)
        budget = StoreBudget(limit: options.queueBytes)
    }

    /// Bytes a response will take on disk; nil: it is not kept there. A body that is to be written
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

    /// Takes room in the queue for a response that is written from memory; nil: it is full, which
    /// is counted while the disk is on.
    func reserve(_ response: CachedResponse, isInMemory: Bool) -> Int? {
        let count = response.rowBytes
        if budget.reserve(count, within: isInMemory ? budget.limit / 2 : budget.limit) {
            return count
        }
        if index.phase == .ready { passOver() }
        return nil
    }

    func passOver() { passedOver.wrappingAdd(1, ordering: .relaxed) }

    /// Queues a response that the index has taken up. Where it answers false its place in the index
    /// is given up, and the `reserved` bytes stay the caller's.
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

    /// A response is leaving memory to make room. Under the lock of its shard: what memory alone
    /// had passes to the disk at the same moment, so that an invalidation finds it there.
    func takeOver(_ response: CachedResponse) -> Departure? {
        // Before the index is read, and while the disk is off, its journal has the key already.
        guard index.phase == .ready, response.token == .none, let bytes = bytes(of: response),
            let reserved = reserve(response, isInMemory: false)
        else { return nil }
        let (token, removals) = index.admit(
            response, bytes: bytes, body: 0, isChunked: isChunked(response))
        response.token = token
        return Departure(response: response, superseded: removals, reserved: reserved)
    }

    /// It has left, and no lock is held any more.
    func hasLeft(_ response: CachedResponse, _ departure: Departure?) {
        guard let departure else {
            if response.token != .none { index.leftMemory(response.token, now: LastUse.now()) }
            return
        }
        let isQueued = enqueue(
            response, response.token, superseded: departure.superseded,
            reserved: departure.reserved)
        if !isQueued { budget.release(departure.reserved) }
    }
}
