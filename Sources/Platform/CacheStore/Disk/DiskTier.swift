import Clocks
import Locking
import Synchronization
import Threads

/// The disk tier, the level below memory that is in SQLite: its index, the writer's and the
/// readers' queues, and their threads.
///
/// The caller's threads touch only the index and the queues. The writer thread owns the writing
/// connection and turns the tier on and off; each reader thread owns a connection that the writer
/// closes when the database is closed.
///
/// What it does as a `CacheLevel` is in `DiskLevel.swift`, which responses it accepts in
/// `DiskIntake.swift`.
final class DiskTier: Sendable {
    let options: CacheStoreOptions
    let files: DatabaseFiles
    let index: DiskIndex
    let queue: DiskQueue
    let reads: ReadQueue
    /// Bytes of responses queued for the disk, and of bodies that are streamed to it.
    let budget: StoreBudget
    let counters = DiskCounters()
    /// Whether it has passed over a response that memory keeps, since the writer looked for such.
    let mayLackSome = Atomic<Bool>(false)
    let onEvent: @Sendable (StoreEvent) -> Void
    /// The readers' connections. A reader holds its lock while it uses it.
    let connections: [ReaderSlot]
    /// The last of them is for those who look into the cache.
    var listing: ReaderSlot { connections[connections.count - 1] }
    private let threads = Locked<[Thread]>([])
    private let ended = Monitor(false)
    /// How connections are opened; changed under the locks of all readers' connections.
    private let accessValue = Atomic<UInt8>(DiskAccess.exclusive.rawValue)
    /// Whether another process uses the database, or soon may: then there is a log of changes.
    var isBeside: Bool { attention.load(ordering: .relaxed) & DiskTier.beside != 0 }
    /// What a lookup has to look at: bits.
    let attention = Atomic<UInt8>(0)
    /// Another process uses the database, or soon may.
    static let beside: UInt8 = 1
    /// Memory may have what is banned.
    static let purging: UInt8 = 2
    let bans: BansInForce
    let trust: TrustNames
    /// Where the bans are written down that are in force for what is on disk.
    let purges = Locked(PurgeFile())
    /// Locked before the locks of keys.
    let sharing = Locked(DiskSharing())
    /// After this moment (monotonic nanoseconds) no more responses are written.
    let storesUntil = Atomic<Int64>(.max)
    /// Distinguishes what this store has written down from what others have.
    let number = Int64.random(in: 1 ... .max)
    /// Opened once the first attempt to open the database has succeeded or failed.
    let settled = Latch()

    init(
        options: CacheStoreOptions, bans: BansInForce = BansInForce(),
        trust: TrustNames = TrustNames(), onEvent: @escaping @Sendable (StoreEvent) -> Void
    ) {
        self.options = options
        self.bans = bans
        self.trust = trust
        files = DatabaseFiles(folder: options.folder)
        self.onEvent = onEvent
        index = DiskIndex(
            phase: options.diskBytes > 0 ? .opening : .off(.disabled),
            accessSeconds: options.accessFlushSeconds, variantLimit: options.variantsPerKey)
        queue = DiskQueue(options: options)
        budget = StoreBudget(limit: options.queueBytes)
        reads = ReadQueue(limit: options.pendingReads)
        connections = (0...max(1, options.readers)).map { _ in ReaderSlot() }
    }

    /// Starts the threads.
    /// - Parameter memory: of which everything is written that was stored before the database was
    ///   open. The writer's thread keeps it until the tier is closed.
    func start(with memory: MemoryTier? = nil) {
        guard index.phase == .opening else {
            if let lock = options.inheritedLock { FolderLock.discard(lock) }
            reads.close()
            return settled.open()
        }
        threads.withLock { threads in
            // When cores are scarce it gets a worker's share, and no less: otherwise it would write
            // next to nothing beside busy workers, and most of what is stored would never reach the
            // disk.
            let writer = try? Thread(name: "cache-writer") { [self] in
                DiskWriter(self, memory).run()
                ended.withLock { $0 = true }
                ended.broadcast()
            }
            guard let writer else {
                index.turnOff(.other)
                reads.close()
                settled.open()
                return
            }
            threads.append(writer)
            for number in connections.indices.dropLast() {
                let reader = try? Thread(name: "cache-reader-\(number)") { [self] in
                    DiskReader(self, connections[number]).run()
                }
                if let reader { threads.append(reader) }
            }
        }
    }

    var access: DiskAccess {
        get { DiskAccess(rawValue: accessValue.load(ordering: .acquiring)) ?? .exclusive }
        set { accessValue.store(newValue.rawValue, ordering: .releasing) }
    }

    /// Whether a reader may open a connection.
    var mayOpenReader: Bool { access != .kept && index.isReadable }

    /// Queues rows for removal. If the database has been closed since they left the index, nothing
    /// else knows that they must not be found when it is opened again: then all of it is given up.
    /// If it was handed over, its next writer learns of the key (`tell`).
    func remove(_ removals: [Removal]) {
        guard !removals.isEmpty, !queue.append(.remove(removals)), index.phase != .handedOver
        else { return }
        purge()
    }

    /// Whether it has threads that carry something out.
    var isRunning: Bool { threads.withLock { !$0.isEmpty } }

    /// A handle on a body whose chunks have been pinned.
    func body(id: Int64, count: UInt64, chunkBytes: Int) -> LevelBody {
        LevelBody(id: id, count: count, chunkBytes: chunkBytes, source: self)
    }

    /// Drops the entry of a body with a damaged chunk.
    func dropDamaged(body id: Int64) {
        guard index.phase == .ready, let removal = index.remove(body: id) else { return }
        remove([removal])
        counters.damaged.wrappingAdd(1, ordering: .relaxed)
        onEvent(.damagedEntry(id: removal.id))
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

/// How the connections to the database are opened.
enum DiskAccess: UInt8 {
    /// No other process can use it, and there is no file of shared memory.
    case exclusive
    /// Another process reads from it, too.
    case shared
    /// Another process writes to it. The connections that there are are kept, and no others opened:
    /// that process may set the file aside.
    case kept
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
    /// How often a response was not written because the queue was full.
    let skipped = Atomic<UInt64>(0)

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
