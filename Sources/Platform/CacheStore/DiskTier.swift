import CLinux
import CachePolicy
import Clocks
import HTTPCore
import Locking
import Synchronization
import Threads

/// The disk tier: the index, the writer's and the readers' queues, and their threads.
///
/// The caller's threads touch only the index and the queues. The writer thread owns the writing
/// connection and turns the tier on and off; each reader thread owns a connection that the writer
/// closes when the database is closed.
final class DiskTier: Sendable {
    let options: CacheStoreOptions
    let memory: MemoryTier
    let intake: DiskIntake
    let index: DiskIndex
    let queue: DiskQueue
    let reads: ReadQueue
    /// Bytes of responses queued for the disk, and of bodies that are streamed to it.
    let budget: StoreBudget
    /// Bytes of responses being received, small enough to be written to disk at once.
    let gathering: StoreBudget
    /// Bytes of larger bodies being gathered for the memory tier.
    let staging: StoreBudget
    let descriptors: DescriptorBudget
    let counters = DiskCounters()
    let onEvent: @Sendable (StoreEvent) -> Void
    /// The readers' connections. A reader holds its lock while it uses it.
    let connections: [ReaderSlot]
    private let threads = Locked<[Thread]>([])
    private let ended = Monitor(false)
    /// Opened once the first attempt to open the database has succeeded or failed.
    let settled = Latch()

    init(
        memory: MemoryTier, intake: DiskIntake, descriptors: DescriptorBudget,
        onEvent: @escaping @Sendable (StoreEvent) -> Void
    ) {
        options = intake.options
        self.memory = memory
        self.intake = intake
        index = intake.index
        queue = intake.queue
        budget = intake.budget
        self.descriptors = descriptors
        self.onEvent = onEvent
        reads = ReadQueue(limit: options.pendingReads)
        gathering = StoreBudget(limit: options.gatheringBytes)
        staging = StoreBudget(limit: options.stagingBytes)
        connections = (0..<max(1, options.readers)).map { _ in ReaderSlot() }
    }

    /// Starts the threads.
    func start() {
        guard index.phase == .opening else { return settled.open() }
        threads.withLock { threads in
            // When cores are scarce it gets a worker's share, and no less: otherwise it would write
            // next to nothing beside busy workers, and most of what is stored would never reach the
            // disk.
            let writer = try? Thread(name: "cache-writer") { [self] in
                DiskWriter(self).run()
                ended.withLock { $0 = true }
                ended.broadcast()
            }
            guard let writer else {
                index.turnOff(.other)
                settled.open()
                return
            }
            threads.append(writer)
            for number in connections.indices {
                let reader = try? Thread(name: "cache-reader-\(number)") { [self] in
                    DiskReader(self, connections[number]).run()
                }
                if let reader { threads.append(reader) }
            }
        }
    }

    /// Queues rows for removal.
    func remove(_ removals: [Removal]) {
        guard !removals.isEmpty else { return }
        _ = queue.append(.remove(removals))
    }

    /// A handle on a body whose chunks have been pinned.
    func body(id: Int64, count: UInt64, chunkBytes: Int) -> DiskBody {
        DiskBody(id: id, count: count, chunkBytes: chunkBytes) { [self] id in release(body: id) }
    }

    /// Drops the entry of a body with a damaged chunk.
    func dropDamaged(body id: Int64) {
        guard let removal = index.remove(body: id) else { return }
        remove([removal])
        counters.damaged.wrappingAdd(1, ordering: .relaxed)
        onEvent(.damagedEntry(id: removal.id))
    }

    /// Ends a pin.
    func release(body id: Int64) {
        if index.unpin(id) { _ = queue.append(.dropBody(id)) }
    }

    /// Makes a loaded entry available in memory; `nil` if it was replaced or invalidated while it
    /// was being read. Returns what memory now has for it, which may be another reader's copy.
    func promote(_ response: CachedResponse) -> CachedResponse? {
        let fits = memory.admits(response.memoryBytes) && !response.isOnDiskOnly
        return memory.withShard(response.keyHash, adding: response) { shard, dropped in
            guard index.promote(response.token, resident: fits) else { return nil }
            guard fits else { return response }
            if let existing = shard.existing(response.token, hash: response.keyHash) {
                return existing
            }
            shard.insert(response, dropped: &dropped)
            return response
        }
    }

    /// Writes what is queued to the disk, within the options' time limit, and ends the threads.
    func close() {
        index.stopAdmitting()
        queue.close()
        reads.close()
        let all = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        guard !all.isEmpty else { return }
        // The last reference was dropped in a completion: a thread cannot wait for itself.
        if all.contains(where: \.isCurrent) {
            for thread in all { thread.detach() }
            return
        }
        let deadline =
            Clock.monotonicNanoseconds() + (Int64(options.closeMilliseconds) + 1000) * 1_000_000
        let inTime = ended.wait { ended in
            if ended { return .done(true) }
            return Clock.monotonicNanoseconds() >= deadline ? .done(false) : .until(deadline)
        }
        // A device that does not respond must not keep the process from ending.
        for thread in all { inTime ? thread.join() : thread.detach() }
    }
}

/// Counters of the disk tier, written by its threads.
final class DiskCounters: Sendable {
    let hits = Atomic<UInt64>(0)
    let misses = Atomic<UInt64>(0)
    let writes = Atomic<UInt64>(0)
    let damaged = Atomic<UInt64>(0)
    let fileBytes = Atomic<Int64>(0)
    let logBytes = Atomic<Int64>(0)
    let rowsRead = Atomic<UInt64>(0)
    let bytesRead = Atomic<UInt64>(0)
    let restarts = Atomic<UInt64>(0)
    let noRoom = Atomic<UInt64>(0)

    /// Counts a row of this many bytes.
    func read(bytes: Int) {
        rowsRead.wrappingAdd(1, ordering: .relaxed)
        bytesRead.wrappingAdd(UInt64(bytes), ordering: .relaxed)
    }

    func loaded(isHit: Bool) {
        if isHit {
            hits.wrappingAdd(1, ordering: .relaxed)
        } else {
            misses.wrappingAdd(1, ordering: .relaxed)
        }
    }
}

extension CachedResponse {
    /// Whether the body can only be read from disk.
    public var isOnDiskOnly: Bool {
        if case .disk = body { return true }
        return false
    }
}
