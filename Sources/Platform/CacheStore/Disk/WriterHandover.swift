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
/// Meanwhile each of them writes down which keys are invalidated there (`change`), and the other
/// one looks for that every few milliseconds.
extension DiskWriter {
    // MARK: Handing over

    func carryOut(_ request: HandoverRequest) {
        switch request {
        case .handOver(let keepsLock, let completion):
            if !isAway { handOver() }
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
        tier.isBeside.store(true, ordering: .sequentiallyConsistent)
        // Again, for a database that was being opened when this was requested.
        tier.index.handOver()
        perform(tier.queue.handOver())
        defer { tier.storesUntil.store(.max, ordering: .relaxed) }
        var reading: [Int64]?
        // A database that turns out to be damaged is replaced, and that one handed over.
        for _ in 0..<2 where reading == nil && connection != nil {
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
            // It was off when it should have been handed over.
            isAway = false
            return open()
        }
        do throws(DatabaseFiles.FolderError) {
            try lock.take()
            try lock.beginWriting()
        } catch {
            return
        }
        do throws(DatabaseError) {
            try writeDown()
        } catch {
            // Nothing else knows what has changed here.
            tier.index.forgetAll()
        }
        isAway = false
        connection?.close()
        connection = nil
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
        seenVersion = -1
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
        try readChanges()
        do throws(DatabaseError) {
            try reopen(.exclusive)
        } catch {
            // Another program is looking at it.
            guard error.reason == .locked else { throw error }
            return try reopen(.shared)
        }
        files.removeSharedMemory()
        try transaction { connection throws(DatabaseError) in try connection.removeSharing() }
        tier.isBeside.store(false, ordering: .relaxed)
        try restartLog(truncating: true)
        lastChange = 0
        let bodies = borrowed
        borrowed = []
        for body in bodies { tier.release(body: body) }
        tier.onEvent(.sharing(false))
    }

    // MARK: What the other one has changed

    /// How often changes are looked for, and whether the other process has ended, in nanoseconds.
    private static let changesInterval: Int64 = 20_000_000
    private static let aloneInterval: Int64 = 500_000_000

    /// What is due while two processes use the database.
    func lookAround() {
        guard connection != nil, tier.isBeside.load(ordering: .relaxed) else { return }
        let now = Clock.monotonicNanoseconds()
        guard now >= changesAt else { return }
        changesAt = now + Self.changesInterval
        do throws(DatabaseError) {
            if isAway {
                try writeDown()
                try readChanges()
            } else {
                guard filesExist() else { return }
                try readChanges()
                guard now >= aloneAt else { return }
                aloneAt = now + Self.aloneInterval
                if !lock.hasReaders { try becomeSole() }
            }
        } catch {
            // What was handed over is no longer ours to judge.
            if !isAway { fail(error) }
        }
    }

    private func readChanges() throws(DatabaseError) {
        guard let connection else { return }
        let version = try connection.versionOfOthers()
        guard version != seenVersion else { return }
        let changes = try connection.changes(after: lastChange, notBy: tier.number)
        seenVersion = version
        lastChange = changes.lastNumber
        carryOut(changes.keys)
    }

    /// Does what has been done to these keys elsewhere; `nil` stands for all of them.
    func carryOut(_ changes: [[UInt8]?]) {
        for change in changes {
            guard let key = change else {
                memory?.removeAll()
                tier.purge()
                memory?.removeAll()
                continue
            }
            let hash = CacheKey(bytes: key).hash
            key.withUnsafeBytes { bytes in
                let view = CacheKeyView(bytes: bytes, hash: hash)
                guard let memory else { return tier.remove(tier.index.remove(key: bytes)) }
                memory.withShard(hash) { shard, dropped in
                    shard.invalidate(hash, bytes, except: nil, dropped: &dropped)
                    var work = LevelWork()
                    tier.remove(view, &work)
                    return work
                }.perform()
            }
        }
    }

    // MARK: What has changed here

    /// The maximum number of keys that wait to be written down; more stand for all keys.
    private static let unwrittenLimit = 4096

    /// Carries out what concerns the next writer.
    func tell(_ operations: [DiskOperation]) {
        var removals: [Removal] = []
        for operation in operations {
            switch operation {
            case .changed(let key): unwritten.append(key)
            // It had left the index before the database was handed over, and was late.
            case .remove(let late): removals += late
            default: rows.discard([operation])
            }
        }
        if unwritten.count > Self.unwrittenLimit { unwritten = [nil] }
        do throws(DatabaseError) {
            try writeDown(removals)
        } catch {
            connection?.abandonTransaction()
        }
    }

    private func writeDown(_ removals: [Removal] = []) throws(DatabaseError) {
        guard !unwritten.isEmpty || !removals.isEmpty else { return }
        try transaction { connection throws(DatabaseError) in
            for removal in removals {
                try connection.remove(entry: removal.id)
                guard case .drop(let body) = removal.body else { continue }
                try connection.insert(garbage: body...body)
            }
            for key in unwritten { try connection.insert(change: key, by: tier.number) }
        }
        unwritten = []
    }
}

extension DiskTier {
    /// Begins to hand the database over: from now on nothing is stored in it. See
    /// `CacheStore.handOverDisk`.
    func handOver(keepsLock: Bool, _ completion: @escaping @Sendable (DiskHandover) -> Void) {
        guard isRunning else { return completion(.nothing) }
        let limit = Int64(options.closeMilliseconds) * 1_000_000
        storesUntil.store(Clock.monotonicNanoseconds() + limit, ordering: .relaxed)
        // Before the index: a key that changes from then on is written down.
        isBeside.store(true, ordering: .sequentiallyConsistent)
        index.handOver()
        let request = HandoverRequest.handOver(keepsLock: keepsLock, completion)
        if !queue.request(request) { request.giveUp() }
    }

    func takeBack(_ completion: @escaping @Sendable (Bool) -> Void) {
        guard isRunning else { return completion(false) }
        index.isTakingBack = true
        let request = HandoverRequest.takeBack(completion)
        if !queue.request(request) { request.giveUp() }
    }

    /// Writes down for another process that uses the database, if there is one, that a key's
    /// responses are outdated.
    func tell(_ key: UnsafeRawBufferPointer) {
        guard isBeside.load(ordering: .sequentiallyConsistent) else { return }
        _ = queue.append(.changed([UInt8](key)))
    }

    func tellOfPurge() {
        guard isBeside.load(ordering: .sequentiallyConsistent) else { return }
        _ = queue.append(.changed(nil))
    }

    /// The same for a response that replaces one that was handed over: it will not be written
    /// itself. Under the lock of its key.
    func tellOfReplacement(of response: CachedResponse, _ work: inout LevelWork) {
        guard isBeside.load(ordering: .relaxed), index.phase == .handedOver,
            index.mayHold(response.key)
        else { return }
        work.add { [self] in tell(response.key) }
    }
}
