import CLinux
import CSQLite
import Clocks

/// The writer thread: owns the writing connection, carries out the queue in batches of one
/// transaction, makes room, keeps the write-ahead log short, and decides whether the tier is on or
/// off.
///
///     opening ──ok──► ready ──fault──► off ──retry──► (opening again)
///        │  ▲           │ damage; files gone
///        │  └─set aside─┘
///        └──fault──► off
///
/// When it has handed the database over (`WriterHandover.swift`) it writes nothing.
final class DiskWriter {
    let tier: DiskTier
    let options: CacheStoreOptions
    let files: DatabaseFiles
    var lock: FolderLock
    var connection: WriterConnection?
    /// Whether the database was handed over, and not taken back since.
    var isAway = false
    /// The bodies that the former writer still reads, which are pinned for it.
    var borrowed: [Int64] = []
    /// When to look whether the other processes have gone (monotonic nanoseconds).
    var sharingAt: Int64 = 0
    /// Consecutive failures, which determine the time until the next attempt.
    private var failures = 0
    /// Consecutive databases set aside: if a new file is damaged at once, the file is not to blame.
    var damages = 0
    /// When to try to open again (monotonic nanoseconds), or `nil` for never.
    var retryAt: Int64?
    /// Whether the tier is off only because another process has the database.
    private var isWaiting = false
    private var accessFlushAt: Int64
    /// The sweep under way for what was purged; `nil` if there is none.
    var sweep: DiskSweep?
    /// When to go on with it (monotonic nanoseconds).
    var sweepAt: Int64 = 0
    /// Rows should have been removed, but the database failed before they were.
    private var hasLostRemovals = false
    /// The files' state when they were last checked.
    var watch: FileWatch

    var freePages: Int64 = 0
    /// Bytes of the log after the last commit, and of its file, which shrinks only when it is
    /// truncated.
    var logBytes: Int64 = 0
    var logFileBytes: Int64 = 0
    /// When to return the log's space (monotonic nanoseconds).
    var truncateAt: Int64 = 0
    /// Whether the last idle turn changed anything.
    private var idleWasOfUse = true
    /// Carries out operations.
    let rows: RowWriter
    let memory: MemoryTier?
    /// Where to look next for responses that only memory has; `nil` if that was done.
    private var missing: MemoryTier.Place?
    /// When to continue with them, if the queue was full (monotonic nanoseconds).
    private var missingAt: Int64 = 0

    /// - Parameter memory: see `DiskTier.start(with:)`.
    init(_ tier: DiskTier, _ memory: MemoryTier? = nil) {
        self.tier = tier
        self.memory = memory
        options = tier.options
        rows = RowWriter(tier)
        files = tier.files
        lock = FolderLock(path: files.lock, inherited: tier.options.inheritedLock ?? -1)
        watch = FileWatch(files)
        accessFlushAt =
            Clock.monotonicNanoseconds() + Int64(tier.options.accessFlushSeconds) * 1_000_000_000
    }

    func run() {
        open()
        tier.settled.open()
        loop: while true {
            switch tier.queue.take(until: deadline()) {
            case .operations(let operations):
                if isAway {
                    rows.discard(operations)
                } else {
                    perform(operations)
                    _ = storeMissing()
                }
            case .request(let request): carryOut(request)
            case .idle: if !isAway, isWorkDue, !storeMissing() { beIdle() }
            case .closing: break loop
            }
            lookAround()
            sweepSome()
        }
        for request in tier.queue.takeRequests() { request.giveUp() }
        shutDown()
    }

    /// Queues some of the responses that were stored while the database was not open or was behind,
    /// as long as there is room for them beside those that are stored now. Returns `false` if there
    /// are none, or no room.
    private func storeMissing() -> Bool {
        guard let memory, connection != nil, Clock.monotonicNanoseconds() >= missingAt else {
            return false
        }
        if missing == nil, tier.mayLackSome.exchange(false, ordering: .relaxed) {
            missing = MemoryTier.Place()
        }
        var rounds = 16
        while let place = missing, rounds > 0, !tier.queue.isClosing {
            rounds -= 1
            var isFull = false
            missing = memory.visit(from: place) { response, work in
                isFull = !tier.storeMissing(response, &work)
                return !isFull
            }
            if isFull {
                missingAt = Clock.monotonicNanoseconds() + missingPause
                missingPause = min(2 * missingPause, Self.longestMissingPause)
                return false
            }
            missingPause = Self.leastMissingPause
        }
        return rounds < 16
    }

    /// Nanoseconds until the next attempt when the queue was full; twice as many after each that
    /// was in vain.
    private var missingPause = DiskWriter.leastMissingPause
    private static let leastMissingPause: Int64 = 10_000_000
    private static let longestMissingPause: Int64 = 1_000_000_000

    // MARK: On and off

    /// - Parameter isTakingBack: whether this process itself still reads from it.
    func open(isTakingBack: Bool = false) {
        let start = Clock.monotonicNanoseconds()
        let wasWaiting = isWaiting
        isWaiting = false
        retryAt = nil
        do {
            try takeLock()
        } catch {
            return error.reason == .locked
                ? wait(error.detail, wasWaiting) : turnOff(error.reason, error.detail)
        }
        let isShared = isTakingBack || lock.hasReaders
        guard readChanges(isShared: isShared) else {
            return wait("\(files.changes) cannot be opened", wasWaiting)
        }
        if isShared { lock.beginFollowing() }
        tier.access = isShared ? .shared : .exclusive
        let opened: WriterOpening.Opened
        do {
            opened = try WriterOpening(
                options: options, files: files, onEvent: tier.onEvent, isShared: isShared
            ).open()
        } catch {
            switch error {
            case .inUse(let detail): return wait(detail, wasWaiting)
            case .off(let reason, let detail): return turnOff(reason, detail)
            case .unusable(let word, let detail): return setAside(word, detail)
            }
        }
        connection = opened.connection
        hasLostRemovals = false
        borrowed = opened.contents.borrowed
        rows.garbage = opened.garbage
        tier.trust.add(opened.trust)
        for (policy, text) in tier.trust.all { tier.write(trust: policy, text) }
        do throws(DatabaseError) {
            // The log left by the last process may be long, and would be read at each start.
            try restartLog(truncating: true)
        } catch {
            return fail(error)
        }
        tier.queue.open()
        let entries = opened.contents.table.count
        let bytes = opened.contents.table.bytes
        let lastID = opened.contents.lastID
        openPurges(lastID: lastID)
        let changed = tier.index.begin((consume opened).contents)
        // What others have told of meanwhile; from now on they find the index.
        tier.sharing.withLock { _ in tier.bans.settleRows(through: tier.index.lastID) }
        failures = 0
        missing = memory.map { _ in MemoryTier.Place() }
        measure()
        let milliseconds = Int((Clock.monotonicNanoseconds() - start) / 1_000_000)
        tier.onEvent(.diskReady(entries: entries, bytes: bytes, milliseconds: milliseconds))
        if isShared { tier.onEvent(.sharing(true)) }
        // Keys that changed while there was no index.
        if let changed {
            if !changed.isEmpty { perform([.remove(changed)]) }
        } else if entries > 0 {
            perform([.purge(through: lastID)])
        }
        // After the removals, so that a process that is killed in between begins again.
        if !isShared { tier.endSharing() }
    }

    /// Keeps trying: another process has the database, and may end at any time.
    private func wait(_ detail: String, _ wasWaiting: Bool) {
        isWaiting = true
        guard wasWaiting, options.retrySeconds > 0 else { return turnOff(.locked, detail) }
        lock.closeAll()
        retryAt = Clock.monotonicNanoseconds() + Self.waitingPause
    }

    /// Nanoseconds between attempts to get a database that another process has.
    private static let waitingPause: Int64 = 500_000_000

    /// Handles a database that is unusable, for good or for now. `operations` were not carried out.
    func fail(_ error: DatabaseError, _ operations: some Sequence<DiskOperation>) {
        if operations.contains(where: \.removesRows) { hasLostRemovals = true }
        fail(error)
    }

    func fail(_ error: DatabaseError) {
        connection?.abandonTransaction()
        // Somebody has deleted or truncated the files: that does not reflect on the disk.
        if let change = watch.change() { return recreateDatabase(change) }
        if error.isDamage {
            leave(.corrupt)
            setAside("corrupt", error.message)
        } else {
            turnOff(error.reason, error.message)
        }
    }

    /// Abandons files that are no longer what was written to them, and opens the database again.
    private func recreateDatabase(_ change: FileWatch.Change) {
        tier.onEvent(.filesChanged(detail: change.description))
        tier.counters.restarts.wrappingAdd(1, ordering: .relaxed)
        leave(.filesChanged)
        // A different file in place of ours is not ours to remove.
        if change != .databaseReplaced { _ = files.remove() }
        open()
    }

    /// Checks whether the files are still there. Returns `false` if they were not.
    ///
    /// Checked before every batch: appending to a truncated log would hide the truncation.
    func filesExist() -> Bool {
        guard connection != nil else { return true }
        if let change = watch.change() {
            recreateDatabase(change)
            return false
        }
        do {
            if watch.isDue() { try takeLock() }
            return true
        } catch {
            turnOff(error.reason, error.detail)
            return false
        }
    }

    /// Takes the folder's lock, if we do not have it or its file is no longer there: otherwise
    /// another process could take the folder.
    private func takeLock() throws(DatabaseFiles.FolderError) {
        try files.makeFolder()
        try lock.take()
        try lock.beginWriting()
    }

    private func setAside(_ word: String, _ detail: String) {
        damages += 1
        guard damages <= 3, let path = files.setAside(word) else {
            return turnOff(.corrupt, detail)
        }
        tier.onEvent(.setAside(path: path, detail: detail))
        tier.counters.restarts.wrappingAdd(1, ordering: .relaxed)
        open()
    }

    func turnOff(_ reason: DiskOffReason, _ detail: String) {
        let wasOpen = connection != nil
        leave(reason)
        let retry = planRetry()
        tier.onEvent(.diskOff(reason: reason, detail: detail, retrySeconds: retry))
        let isStale = hasLostRemovals
        hasLostRemovals = false
        if isStale { tier.index.forgetAll() }
        if wasOpen, isStale || reason == .full || reason == .inputOutput, files.remove() {
            // It would not know what should have been removed, and what is stored or invalidated
            // from now on: the next start must not find it. Removing it also frees the space.
            tier.onEvent(.discarded(reason: reason))
        }
        lock.closeAll()
    }

    /// Schedules another attempt at the tier. Returns the seconds until then, or `nil` for never.
    private func planRetry() -> Int? {
        guard options.retrySeconds > 0 else { return nil }
        if isWaiting {
            retryAt = Clock.monotonicNanoseconds() + Self.waitingPause
            return 1
        }
        let seconds = options.retrySeconds << min(failures, 4)
        failures += 1
        retryAt = Clock.monotonicNanoseconds() + Int64(seconds) * 1_000_000_000
        return seconds
    }

    /// Closes every connection and forgets what is on disk and on its way there.
    func leave(_ reason: DiskOffReason) {
        tier.index.turnOff(reason)
        closePurges()
        let dropped = tier.queue.reset()
        if dropped.contains(where: \.removesRows) { hasLostRemovals = true }
        rows.discard(dropped)
        for slot in tier.connections { slot.close() }
        borrowed = []
        connection?.close()
        connection = nil
        rows.forget()
        logBytes = 0
        logFileBytes = 0
        watch.forget()
        tier.counters.fileBytes.store(0, ordering: .relaxed)
        tier.counters.logBytes.store(0, ordering: .relaxed)
    }

    // MARK: Idle

    private func deadline() -> Int64? {
        guard connection != nil else { return retryAt }
        if !isAway, tier.bans.isInForce { return min(sweepAt, usualDeadline() ?? .max) }
        return usualDeadline()
    }

    private func usualDeadline() -> Int64? {
        guard tier.isBeside else { return deadlineOfWork() }
        if isAway { return sharingAt }
        if isWorkDue { workAt = deadlineOfWork() }
        return min(sharingAt, workAt)
    }

    /// When to do what is done when idle, while the others are looked for more often.
    private var workAt: Int64 = 0
    private var isWorkDue: Bool {
        !tier.isBeside || Clock.monotonicNanoseconds() >= workAt
    }

    private func deadlineOfWork() -> Int64 {
        if missing != nil { return missingAt }
        let hasWork = hasRemovableGarbage || isOverLimit || wantsShrinking
        // What could not be done a moment ago is not tried over and over.
        if hasWork, idleWasOfUse { return 0 }
        idleWasOfUse = true
        // Missing files must be noticed even if nothing is stored.
        let seconds: Int64 = hasWork || !rows.garbage.isEmpty ? 1 : 5
        let deadline = min(accessFlushAt, Clock.monotonicNanoseconds() + seconds * 1_000_000_000)
        return logFileBytes > 0 ? min(deadline, truncateAt) : deadline
    }

    private var hasRemovableGarbage: Bool {
        rows.garbage.contains { !tier.index.isPinned($0) }
    }

    private func beIdle() {
        guard connection != nil else {
            if !isAway, let retryAt, Clock.monotonicNanoseconds() >= retryAt { open() }
            return
        }
        guard filesExist() else { return }
        do throws(DatabaseError) {
            let before = (tier.index.statistics().entries, freePages)
            var removed = false
            try transaction { connection throws(DatabaseError) in
                removed = try rows.removeGarbage(connection)
            }
            try makeRoom(pages: 0, transactions: 1)
            if wantsShrinking { try connection?.shrink(pages: 64) }
            try afterCommit()
            if Clock.monotonicNanoseconds() >= accessFlushAt { try flushAccesses() }
            idleWasOfUse = removed || before != (tier.index.statistics().entries, freePages)
            if logFileBytes > 0, Clock.monotonicNanoseconds() >= truncateAt {
                try restartLog(truncating: true)
            }
        } catch {
            fail(error)
        }
    }

    private var wantsShrinking: Bool {
        freePages > 0
            && tier.counters.fileBytes.load(ordering: .relaxed) - logFileBytes
                > limitPages * Int64(Schema.pageBytes)
    }

    /// Writes the entries' times of last use, and how often they were used. Each may be on a page
    /// of its own.
    func flushAccesses() throws(DatabaseError) {
        var place = memory.map { _ in MemoryTier.Place() }
        while let from = place {
            place = memory?.takeHits(from: from) { tier.index.count($0.token, hits: $1) }
        }
        var rounds = 16
        while rounds > 0 {
            rounds -= 1
            let accesses = tier.index.takeAccesses(limit: options.batchPages)
            guard !accesses.isEmpty else { break }
            try transaction { connection throws(DatabaseError) in
                for use in accesses {
                    try connection.setAccessed(use.id, use.accessed, hits: use.hits)
                }
            }
            try afterCommit()
        }
        accessFlushAt =
            Clock.monotonicNanoseconds() + Int64(options.accessFlushSeconds) * 1_000_000_000
    }

    // MARK: The end

    private func shutDown() {
        if connection != nil, !isAway {
            do throws(DatabaseError) {
                try flushAccesses()
                try restartLog(truncating: true)
            } catch {
                connection?.abandonTransaction()
            }
        }
        leave(.closed)
        lock.closeAll()
    }
}
