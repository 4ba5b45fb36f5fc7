import CLinux
import CSQLite
import CachePolicy
import Clocks

/// Passing the database from one process to the next while it is in use.
///
///     writer ──hand over──► reader ──end of the process──►
///        ▲                    │ the successor has failed
///        └─────take back──────┘
///
/// A process that hands the database over writes what is queued, writes down which large bodies it
/// is reading (`reading`), lets others in, and gives away the lock; it goes on reading. The next
/// writer opens the database for several processes as long as the other one reads, keeps those
/// bodies, and has the database for itself from when the other one has ended, however it has.
/// Meanwhile each of them appends the keys that are invalidated there to a `ChangeLog`, and looks
/// into it before it looks for a response.
extension DiskWriter {
    // MARK: Handing over

    func carryOut(_ request: HandoverRequest) {
        defer { tier.storesUntil.store(.max, ordering: .relaxed) }
        switch request {
        case .handOver(let keepsLock, let completion):
            if !isAway { handOver() }
            guard isAway else { return completion(.nothing) }
            if !keepsLock {
                let wasHeld = lock.isHeld
                lock.release()
                return completion(wasHeld || connection != nil ? .released : .nothing)
            }
            completion(lock.duplicate().map { .lock($0) } ?? .nothing)
        case .takeBack(let completion):
            if isAway { takeBack() }
            tier.index.isTakingBack = false
            completion(!isAway && connection != nil)
        }
    }

    private func handOver() {
        let start = Clock.monotonicNanoseconds()
        retryAt = nil
        var reading: [Int64]?
        // A database that turns out to be damaged is replaced, and that one handed over.
        for _ in 0..<3 where reading == nil && connection != nil {
            // Again, for one that was opened since this was requested.
            guard tier.beginSharing(memory) else { return }
            perform(tier.queue.handOver())
            guard connection != nil else { continue }
            do throws(DatabaseError) {
                reading = try prepareToHandOver()
            } catch {
                fail(error)
            }
        }
        isAway = true
        retryAt = nil
        guard let reading, connection != nil else {
            if connection != nil { leave(.other) }
            return lock.closeAll()
        }
        do throws(DatabaseError) {
            try reopen(.kept)
        } catch {
            turnOff(error.reason, error.message)
            retryAt = nil
            return
        }
        rows.forget()
        watch.forget()
        borrowed = []
        closePurges()
        lock.endFollowing()
        lock.endWriting()
        let milliseconds = Int((Clock.monotonicNanoseconds() - start) / 1_000_000)
        tier.onEvent(.handedOver(reading: reading.count, milliseconds: milliseconds))
    }

    /// What the next writer has to know. Returns the bodies that are read here.
    private func prepareToHandOver() throws(DatabaseError) -> [Int64] {
        try flushAccesses()
        let reading = tier.index.handBodiesOver()
        try transaction { connection throws(DatabaseError) in
            try connection.insert(reading: reading, lastID: tier.index.lastID)
        }
        if keepToldBans() { tier.settleChanges() }
        try restartLog(truncating: true)
        guard lock.beginReading() else {
            throw DatabaseError(code: SQLITE_IOERR, message: "\(files.lock) cannot be locked")
        }
        return reading
    }

    /// Takes the database back from a successor that has failed. Nothing changes if it still has
    /// it.
    private func takeBack() {
        guard connection != nil else {
            // It was off when it should have been handed over, or could not be opened again.
            isAway = false
            tier.sharing.withLock { $0.isHandingOver = false }
            return open()
        }
        do throws(DatabaseFiles.FolderError) {
            try lock.take()
            try lock.beginWriting()
        } catch {
            return
        }
        isAway = false
        connection?.close()
        connection = nil
        tier.sharing.withLock { $0.isHandingOver = false }
        open(isTakingBack: true)
        lock.endReading()
        // The file may be another one by now.
        for slot in tier.connections { slot.close() }
    }

    // MARK: One process, or two

    /// Closes every connection and opens them in another way. Readers wait for it.
    private func reopen(_ access: DiskAccess) throws(DatabaseError) {
        var failure: DatabaseError?
        exchange(tier.connections[...], access) {
            connection?.close()
            connection = nil
            tier.access = access
            do throws(DatabaseError) {
                connection = try openAgain(isShared: access != .exclusive)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        // The log was removed with the last connection.
        watch.forget()
        watch.remember()
    }

    /// Closes the readers' connections, from the first to the last, calls `body`, and opens those
    /// that must be open. Each stays locked meanwhile.
    private func exchange(
        _ slots: ArraySlice<ReaderSlot>, _ access: DiskAccess, _ body: () -> Void
    ) {
        guard let slot = slots.first else { return body() }
        slot.connection.withLock { connection in
            connection?.close()
            connection = nil
            exchange(slots.dropFirst(), access, body)
            // Without one, its reads find nothing.
            if access == .kept { connection = try? ReaderConnection(of: tier) }
        }
    }

    private func openAgain(isShared: Bool) throws(DatabaseError) -> WriterConnection {
        let database = try Database(
            path: files.database, create: false, busyMilliseconds: options.busyMilliseconds,
            isShared: isShared)
        guard case .ready = try Schema.prepare(database, migrates: false) else {
            throw DatabaseError(code: SQLITE_CORRUPT, message: "it is not what it was")
        }
        if options.maximumPages > 0 {
            try database.execute("PRAGMA max_page_count=\(options.maximumPages)")
        }
        return try WriterConnection(database)
    }

    /// Has the database for itself if the former writer has ended.
    private func becomeSole() throws(DatabaseError) {
        tier.catchUp(memory)
        sweepMemory()
        // The log that has them is about to go. Otherwise it is tried again.
        guard keepToldBans() else { return }
        do throws(DatabaseError) {
            try reopen(.exclusive)
        } catch {
            // Another program is looking at it.
            guard error.reason == .locked else { throw error }
            return try reopen(.shared)
        }
        files.removeSharedMemory()
        try transaction { connection throws(DatabaseError) in try connection.removeSharing() }
        // Before there is no log any more: what was removed because of it.
        perform(tier.queue.takeAll())
        guard connection != nil else { return }
        tier.endSharing()
        try restartLog(truncating: true)
        let bodies = borrowed
        borrowed = []
        for body in bodies { tier.release(body: body) }
        tier.onEvent(.sharing(false))
    }

    /// How often it is looked whether the other process has ended, in nanoseconds. What has changed
    /// there is carried out then at the latest.
    private static let sharingInterval: Int64 = 500_000_000

    /// What is due while two processes use the database.
    func lookAround() {
        guard connection != nil, tier.isBeside else { return }
        let now = Clock.monotonicNanoseconds()
        guard now >= sharingAt else { return }
        sharingAt = now + Self.sharingInterval
        tier.catchUp(memory)
        sweepMemory()
        guard !isAway, filesExist(), !lock.hasReaders else { return }
        do throws(DatabaseError) {
            try becomeSole()
        } catch {
            fail(error)
        }
    }

    /// Carries out what has changed since the database was last handed over, and so may still be in
    /// it, before its index is read. Returns `false` if that is not possible while the others run.
    func readChanges(isShared: Bool) -> Bool {
        guard tier.openChanges(isShared: isShared) else { return false }
        tier.catchUp(memory)
        sweepMemory()
        return true
    }
}

/// What a disk tier knows of the processes that use the folder with it.
struct DiskSharing {
    /// `nil` while there are no others.
    var log: ChangeLog?
    /// Whether the database is being handed over, or was, and has not been taken back.
    var isHandingOver = false
    /// The position in it up to which all changes are in the database, or on their way to it, since
    /// that was handed over.
    var settled: UInt64 = 0
    /// Whether others have told of bans that are not in the journal.
    var hasToldBans = false
}

extension DiskTier {
    /// Begins to hand the database over: from now on nothing is stored in it. See
    /// `CacheStore.handOverDisk`.
    func handOver(
        keepsLock: Bool, _ memory: MemoryTier?,
        _ completion: @escaping @Sendable (DiskHandover) -> Void
    ) {
        guard isRunning else { return completion(.nothing) }
        let limit = Int64(options.closeMilliseconds) * 1_000_000
        storesUntil.store(Clock.monotonicNanoseconds() + limit, ordering: .relaxed)
        // Whatever else its state is, the writer decides.
        guard index.phase != .ready || beginSharing(memory) else {
            storesUntil.store(.max, ordering: .relaxed)
            return completion(.nothing)
        }
        let request = HandoverRequest.handOver(keepsLock: keepsLock, completion)
        if !queue.request(request) { request.giveUp() }
    }

    func takeBack(_ completion: @escaping @Sendable (Bool) -> Void) {
        guard isRunning else { return completion(false) }
        index.isTakingBack = true
        let request = HandoverRequest.takeBack(completion)
        if !queue.request(request) { request.giveUp() }
    }

    // MARK: Changes of keys

    private func setBeside(_ isBeside: Bool) {
        if isBeside {
            attention.bitwiseOr(Self.beside, ordering: .sequentiallyConsistent)
        } else {
            attention.bitwiseAnd(~Self.beside, ordering: .sequentiallyConsistent)
        }
    }

    /// From now on changes are logged, and the database stays as it is. Returns `false` if there
    /// can be no log: then the database cannot be handed over.
    func beginSharing(_ memory: MemoryTier?) -> Bool {
        sharing.withLock { sharing in
            if let log = sharing.log {
                // What has changed elsewhere until now still reaches the database by our rows.
                if index.phase == .ready {
                    carryOutNews(&sharing, memory)
                    sharing.settled = log.position
                }
            } else {
                sharing = DiskSharing(log: .create(files.changes, process: number))
            }
            guard sharing.log != nil else { return false }
            sharing.isHandingOver = true
            setBeside(true)
            index.handOver()
            return true
        }
    }

    /// The database has all changes that preceded its hand-over.
    func settleChanges() {
        sharing.withLock { $0.log?.settle($0.settled) }
    }

    /// Finds the log of those who have, or had, the database before, with all that is not in the
    /// database as news. Returns `false` if there must be one and cannot.
    func openChanges(isShared: Bool) -> Bool {
        sharing.withLock { sharing in
            let isBeside = isShared || sharing.isHandingOver
            setBeside(isBeside)
            if sharing.log == nil {
                sharing.log = .open(files.changes, process: number, repairs: isShared)
            }
            sharing.log?.rewind()
            guard sharing.log == nil else { return true }
            guard isBeside else {
                // One that cannot be read: nobody knows what has changed.
                if files.hasChanges { index.forgetAll() }
                return true
            }
            // Somebody has removed it.
            sharing.log = .create(files.changes, process: number)
            sharing.log?.appendEverything()
            sharing.log?.rewind()
            return sharing.log != nil
        }
    }

    /// There are no others any more, unless there will soon be one.
    func endSharing() {
        sharing.withLock { sharing in
            guard !sharing.isHandingOver, !sharing.hasToldBans else { return }
            setBeside(false)
            sharing = DiskSharing()
            unlink(files.changes)
        }
    }

    /// Carries out what other processes have changed.
    func catchUp(_ memory: MemoryTier?) {
        sharing.withLock { carryOutNews(&$0, memory) }
    }

    private func carryOutNews(_ sharing: inout DiskSharing, _ memory: MemoryTier?) {
        guard let log = sharing.log, log.hasNews else { return }
        let news = log.news()
        guard case .keys(let keys, let banned) = news else {
            memory?.removeAll()
            purge()
            memory?.removeAll()
            return
        }
        if !banned.isEmpty {
            sharing.hasToldBans = true
            carryOut(banned, memory)
        }
        for key in keys {
            let hash = CacheKey(bytes: key).hash
            key.withUnsafeBytes { bytes in
                let view = CacheKeyView(bytes: bytes, hash: hash)
                guard let memory else { return remove(index.remove(key: bytes)) }
                memory.withShard(hash) { shard, dropped in
                    shard.invalidate(hash, bytes, except: nil, dropped: &dropped)
                    var work = LevelWork()
                    remove(view, &work)
                    return work
                }.perform()
            }
        }
    }

    /// Puts bans in force that another process has: for all that is here.
    private func carryOut(_ banned: [Ban], _ memory: MemoryTier?) {
        let phase = index.phase
        // Otherwise it is known when the index has been read (`DiskWriter.open`).
        let knowsRows = phase == .ready || phase == .handedOver && !index.isTakingBack
        for ban in banned {
            let serial = bans.register(
                [(ban.pattern, ban.isSoft)], through: index.lastID, now: ban.mark.time
            ) { attention.bitwiseOr(Self.purging, ordering: .sequentiallyConsistent) }
            memory?.note(serial)
            bans.settle(serial, [ban.pattern], through: knowsRows ? index.lastID : nil)
        }
    }

    /// Tells another process that uses the database of bans.
    func tell(_ banned: [Ban]) {
        guard attention.load(ordering: .sequentiallyConsistent) & Self.beside != 0 else { return }
        sharing.withLock { sharing in for ban in banned { sharing.log?.append(ban) } }
    }

    /// Logs that a key's responses are outdated, if another process uses the database; `nil` stands
    /// for all keys. Call it before the request that changed them is answered.
    func tell(_ key: UnsafeRawBufferPointer?) {
        guard attention.load(ordering: .sequentiallyConsistent) & Self.beside != 0 else { return }
        let key = key.map { [UInt8]($0) }
        sharing.withLock { sharing in
            if let key { sharing.log?.append(key) } else { sharing.log?.appendEverything() }
        }
    }

    /// The same for a response that replaces one that was handed over: it will not be written
    /// itself. Under the lock of its key.
    func tellOfReplacement(of response: CachedResponse, _ work: inout LevelWork) {
        guard isBeside, index.phase == .handedOver,
            index.mayHold(response.key)
        else { return }
        work.add { [self] in tell(response.key) }
    }
}
