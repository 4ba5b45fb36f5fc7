import CLinux
import CSQLite

/// The writer thread: owns the writing connection, carries out the queue in batches of one
/// transaction, makes room, and decides whether the tier is on or off.
///
///     opening ──ok──► ready ──fault──► off ──retry──► (opening again)
///        │  ▲           │ damage
///        │  └─set aside─┘
///        └──fault──► off
final class DiskWriter {
    let tier: DiskTier
    let options: CacheStoreOptions
    private let files: DatabaseFiles
    private var lock: Int32 = -1
    var connection: WriterConnection?
    /// Failures in a row, for the time until the next try.
    private var failures = 0
    /// Databases set aside in a row: a file that is damaged at once again is not a file's fault.
    private var damages = 0
    /// When to try again to open (monotonic nanoseconds); nil: never.
    private var retryAt: Int64?
    private var accessFlushAt: Int64

    /// Ranges of ids whose content and chunks are still to be removed.
    var garbage: [ClosedRange<Int64>] = []
    /// Bytes written so far of each body being received.
    var receiving: [Int64: Int64] = [:]
    var receivingBytes: Int64 = 0
    /// Bytes of pages in use beyond what the index counts.
    private var unaccountedBytes: Int64 = 0
    /// Bytes of pages in use when last looked at, and bytes written since.
    private var usedBytes: Int64 = 0
    var writtenBytes: Int64 = 0
    /// Bytes written to the log since it was last copied.
    private var logBytes = 0
    private var freePages: Int64 = 0
    /// The last idle turn has changed something.
    private var idleWasOfUse = true
    /// Reused for every record.
    let scratch = WriterScratch()

    init(_ tier: DiskTier) {
        self.tier = tier
        options = tier.options
        files = DatabaseFiles(folder: tier.options.folder)
        accessFlushAt =
            StoreClock.monotonic() + Int64(tier.options.accessFlushSeconds) * 1_000_000_000
    }

    func run() {
        open()
        tier.settled.open()
        loop: while true {
            switch tier.queue.take(until: deadline()) {
            case .operations(let operations): perform(operations)
            case .idle: beIdle()
            case .closing: break loop
            }
        }
        shutDown()
    }

    // MARK: On and off

    private func open() {
        let start = StoreClock.monotonic()
        retryAt = nil
        do {
            try files.makeFolder()
            if lock < 0 { lock = try files.takeLock() }
        } catch {
            return turnOff(error.reason, error.detail)
        }
        let opened: WriterOpening.Opened
        do {
            opened = try WriterOpening(options: options, files: files, onEvent: tier.onEvent).open()
        } catch {
            switch error {
            case .off(let reason, let detail): return turnOff(reason, detail)
            case .unusable(let word, let detail): return setAside(word, detail)
            }
        }
        connection = opened.connection
        garbage = opened.garbage
        tier.queue.open()
        let entries = opened.contents.table.count
        let bytes = opened.contents.table.bytes
        let changed = tier.index.begin(opened.contents)
        failures = 0
        measure()
        let milliseconds = Int((StoreClock.monotonic() - start) / 1_000_000)
        tier.onEvent(.diskReady(entries: entries, bytes: bytes, milliseconds: milliseconds))
        // Keys that changed while there was no index.
        if let changed {
            tier.remove(changed)
        } else if entries > 0 {
            _ = tier.queue.append(.purge(through: opened.contents.lastID))
        }
    }

    /// The database can no longer be used, or not now.
    func fail(_ error: DatabaseError) {
        connection?.abandonTransaction()
        if error.isDamage {
            leave(.corrupt)
            setAside("corrupt", error.message)
        } else {
            turnOff(error.reason, error.message)
        }
    }

    private func setAside(_ word: String, _ detail: String) {
        damages += 1
        guard damages <= 3, let path = files.setAside(word) else {
            return turnOff(.corrupt, detail)
        }
        tier.onEvent(.setAside(path: path, detail: detail))
        open()
    }

    private func turnOff(_ reason: DiskOffReason, _ detail: String) {
        let wasOpen = connection != nil
        leave(reason)
        tier.onEvent(.diskOff(reason: reason, detail: detail))
        if wasOpen, reason == .full || reason == .inputOutput, files.remove() {
            // What is stored or invalidated from now on would not be known to it: it must not be
            // found by the next start. It also gives back the space.
            tier.onEvent(.discarded(reason: reason))
        }
        if lock >= 0 {
            close(lock)
            lock = -1
        }
        guard options.retrySeconds > 0 else { return }
        let seconds = Int64(options.retrySeconds) << Int64(min(failures, 4))
        failures += 1
        retryAt = StoreClock.monotonic() + seconds * 1_000_000_000
    }

    /// Closes every connection and forgets what is on disk and on its way there.
    private func leave(_ reason: DiskOffReason) {
        tier.index.turnOff(reason)
        discard(tier.queue.reset())
        for slot in tier.connections {
            slot.connection.withLock { connection in
                connection?.close()
                connection = nil
            }
        }
        connection?.close()
        connection = nil
        garbage = []
        receiving = [:]
        receivingBytes = 0
        unaccountedBytes = 0
        logBytes = 0
        tier.counters.fileBytes.store(0, ordering: .relaxed)
    }

    /// Gives back what operations hold that will not be carried out.
    func discard(_ operations: some Sequence<DiskOperation>) {
        for operation in operations {
            switch operation {
            case .row(_, _, let reserved), .chunk(_, _, _, let reserved):
                tier.budget.release(reserved)
            case .barrier(let completion): completion()
            case .beginBody, .dropBody, .remove, .purge, .fault: break
            }
        }
    }

    // MARK: Idle

    private func deadline() -> Int64? {
        guard connection != nil else { return retryAt }
        let hasWork = hasRemovableGarbage || isOverLimit || wantsShrinking
        // What could not be done a moment ago is not tried again and again.
        if hasWork, idleWasOfUse { return 0 }
        idleWasOfUse = true
        guard hasWork || !garbage.isEmpty else { return accessFlushAt }
        return min(accessFlushAt, StoreClock.monotonic() + 1_000_000_000)
    }

    private var hasRemovableGarbage: Bool {
        garbage.contains { !tier.index.isPinned($0) }
    }

    private func beIdle() {
        guard connection != nil else {
            if let retryAt, StoreClock.monotonic() >= retryAt { open() }
            return
        }
        do throws(DatabaseError) {
            let before = (garbage.count, tier.index.figures().entries, freePages)
            var removed = false
            try transaction { connection throws(DatabaseError) in
                removed = try removeGarbage(connection)
                try makeRoom(connection, for: 0, limit: 64)
                if StoreClock.monotonic() >= accessFlushAt { try flushAccesses(connection) }
            }
            if wantsShrinking { try connection?.shrink(pages: 64) }
            try afterCommit(bytes: 64 * Schema.pageBytes)
            idleWasOfUse =
                removed || before != (garbage.count, tier.index.figures().entries, freePages)
        } catch {
            fail(error)
        }
    }

    private var wantsShrinking: Bool {
        freePages > 0
            && tier.counters.fileBytes.load(ordering: .relaxed)
                > options.diskBytes + options.diskBytes / 32 + 512 << 10
    }

    private func flushAccesses(_ connection: WriterConnection) throws(DatabaseError) {
        for (id, accessed) in tier.index.takeAccesses(limit: 4096) {
            try connection.setAccessed(id, accessed)
        }
        accessFlushAt =
            StoreClock.monotonic() + Int64(options.accessFlushSeconds) * 1_000_000_000
    }

    // MARK: Room

    private var isOverLimit: Bool {
        let figures = tier.index.figures()
        return figures.bytes + receivingBytes + unaccountedBytes > options.diskBytes
            || figures.entries > options.diskEntries
    }

    /// Removes least recently used entries until `bytes` more fit, at most `limit` of them.
    func makeRoom(
        _ connection: WriterConnection, for bytes: Int64, limit: Int = .max
    ) throws(DatabaseError) {
        // What is no longer visible still takes space.
        if usedBytes + writtenBytes > options.diskBytes { _ = try removeGarbage(connection) }
        let target = options.diskBytes - receivingBytes - unaccountedBytes - bytes
        var removed = 0
        while removed < limit,
            let removal = tier.index.evict(bytes: max(0, target), entries: options.diskEntries)
        {
            try remove(removal, connection)
            removed += 1
        }
    }

    /// Removes some rows that are no longer visible and that nobody reads; false without any.
    private func removeGarbage(_ connection: WriterConnection) throws(DatabaseError) -> Bool {
        guard let first = garbage.firstIndex(where: { !tier.index.isPinned($0) }) else {
            return false
        }
        if try !connection.removeSome(of: garbage[first]) { garbage.remove(at: first) }
        return true
    }

    // MARK: Transactions

    /// Runs `body` in a transaction. Without a database it does nothing.
    func transaction(
        _ body: (WriterConnection) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        guard let connection else { return }
        try connection.beginTransaction()
        try body(connection)
        try connection.commitTransaction()
    }

    /// Copies the log when it is due, and looks how large the file has become.
    func afterCommit(bytes: Int) throws(DatabaseError) {
        guard let connection else { return }
        damages = 0
        logBytes += bytes
        if logBytes >= options.checkpointBytes {
            // A log that readers keep from being copied must not grow without end.
            let left = try connection.checkpoint(waiting: logBytes > 4 * options.checkpointBytes)
            logBytes = left > 0 ? logBytes - options.checkpointBytes / 2 : 0
        }
        measure()
    }

    private func measure() {
        guard let connection, let pages = try? connection.pages() else { return }
        let pageBytes = Int64(Schema.pageBytes)
        freePages = pages.free
        tier.counters.fileBytes.store(pages.count * pageBytes, ordering: .relaxed)
        usedBytes = (pages.count - pages.free) * pageBytes
        writtenBytes = 0
        // What waits for its removal is not held against the entries.
        guard garbage.isEmpty else { return }
        unaccountedBytes = max(0, usedBytes - tier.index.figures().bytes - receivingBytes)
    }

    // MARK: The end

    private func shutDown() {
        if connection != nil {
            do throws(DatabaseError) {
                try transaction { connection throws(DatabaseError) in
                    try flushAccesses(connection)
                }
                try connection?.finish()
            } catch {
                connection?.abandonTransaction()
            }
        }
        leave(.closed)
        if lock >= 0 { close(lock) }
    }
}
