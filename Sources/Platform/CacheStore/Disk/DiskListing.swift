import CachePolicy

/// The rows of the database, for those who look into the cache: read by a connection of its own, in
/// short transactions, so that the write-ahead log is not held back.
extension DiskTier {
    // MARK: Whether there is anything to read

    /// Whether there can be rows: not without a disk.
    /// - Throws: if what is there cannot be read now.
    func hasRows() throws(CacheListingError) -> Bool {
        switch index.phase {
        case .ready: return true
        case .off(.disabled): return false
        case .opening: throw .diskOpening
        case .handedOver: throw .handedOver
        case .off(.closed): throw .closed
        case .off(let reason): throw .diskOff(reason)
        }
    }

    /// Why there are no rows to read, where there should be.
    var absence: CacheListingError {
        do throws(CacheListingError) {
            _ = try hasRows()
        } catch {
            return error
        }
        // It was closed a moment ago, and is open again.
        return .diskOpening
    }

    /// Another number after the database was closed, or began to pass to another process; different
    /// for each process.
    var generation: UInt64 {
        UInt64(bitPattern: number) &+ UInt64(truncatingIfNeeded: queue.closings)
    }

    /// Calls `body`, and makes sure that it has seen one and the same database all the time.
    func withOneDatabase<Result>(
        _ body: (_ hasRows: Bool, _ generation: UInt64) throws(CacheListingError) -> Result
    ) throws(CacheListingError) -> Result {
        let (before, hadRows) = (generation, try hasRows())
        let result = try body(hadRows, before)
        try confirm(before)
        return result
    }

    /// Throws if the database is not the same any longer, or cannot be read.
    func confirm(_ generation: UInt64) throws(CacheListingError) {
        _ = try hasRows()
        guard generation == self.generation else { throw .outdated }
    }

    /// Has the writer find out what a reader's failure means for the tier. A lock held for a moment
    /// is no reason to turn it off: that is for the writer to discover.
    func report(_ failure: DatabaseError) {
        if failure.reason != .locked { _ = queue.append(.fault(failure)) }
    }

    // MARK: Rows

    /// Rows after an id, in the order of their ids.
    func rows(after id: Int64, limit: Int) throws(CacheListingError) -> [EntryRow] {
        try reading { connection throws(DatabaseError) in
            try connection.rows(after: id, limit: limit)
        }
    }

    /// The rows of a key, and of others with the same hash.
    func rows(of key: CacheKey) throws(CacheListingError) -> [EntryRow] {
        guard let ids = key.bytes.withUnsafeBytes({ index.ids($0) }) else { throw absence }
        var rows: [EntryRow] = []
        for id in ids {
            rows += try reading { connection throws(DatabaseError) in
                try connection.rows(after: id - 1, limit: 1).filter { $0.id == id }
            }
        }
        return rows
    }

    /// The rows that are read in one transaction.
    private static let step = 256

    /// Calls `body` with the id, the key and the head of all rows that may be those.
    func visitRecords(
        where candidates: RowCandidates,
        _ body: (Int64, UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Void
    ) throws(CacheListingError) {
        var place: Int64? = 0
        while let from = place {
            var found: [(Int64, [UInt8])] = []
            place = try reading { connection throws(DatabaseError) in
                try connection.visitRecords(
                    after: from, limit: Self.step, where: candidates
                ) { found.append(($0, [UInt8]($1))) }
            }
            for (id, record) in found {
                record.withUnsafeBytes { record in
                    if let text = EntryRecord.text(record) { body(id, text.key, text.head) }
                }
            }
        }
    }

    private func reading<Result: Sendable>(
        _ body: (ReaderConnection) throws(DatabaseError) -> Result
    ) throws(CacheListingError) -> Result {
        let result: Result?
        do throws(DatabaseError) {
            result = try listing.withRows(of: self, body)
        } catch {
            report(error)
            throw .readFailed(detail: error.message)
        }
        guard let result else { throw absence }
        return result
    }

    /// Keeps what the fingerprint of a policy means with the entries.
    func write(trust policy: UInt64, _ text: String) { _ = queue.append(.trust(policy, text)) }
}

extension DiskIndex {
    /// The rows of a key, and of others with the same hash; `nil` if none can be read.
    func ids(_ key: UnsafeRawBufferPointer) -> [Int64]? {
        state.withLock { state in
            guard state.phase != .off(.disabled) else { return [] }
            guard state.isReadable else { return nil }
            var ids: [Int64] = []
            var slot = state.table.first(XXHash64.hash(key, seed: state.seed))
            while slot >= 0 {
                ids.append(state.table[slot].id)
                slot = state.table.next(slot)
            }
            return ids
        }
    }

    /// Whether an entry has a row that can be read.
    func hasRow(_ token: IndexToken) -> Bool {
        guard token != .none else { return false }
        return state.withLock { state in
            state.isReadable && state.table.isLive(token)
                && state.table[token.slot].flags.contains(.committed)
        }
    }

    /// Uses that are not in a row yet.
    func hits(of id: Int64) -> UInt32 { state.withLock { $0.hits[id] ?? 0 } }
}

extension ReaderConnection {
    func rows(after id: Int64, limit: Int) throws(DatabaseError) -> [EntryRow] {
        let page = try page()
        page.bind(1, id)
        page.bind(2, Int64(limit))
        defer { page.reset() }
        var rows: [EntryRow] = []
        while try page.step() {
            rows.append(
                EntryRow(
                    id: page.integer(0), accessed: page.integer(1), staleSince: page.integer(2),
                    hits: page.integer(3), record: [UInt8](page.bytes(4))))
        }
        return rows
    }

    /// See `WriterConnection.visitRecords`.
    func visitRecords(
        after id: Int64, limit: Int, where candidates: RowCandidates,
        _ body: (Int64, UnsafeRawBufferPointer) -> Void
    ) throws(DatabaseError) -> Int64? {
        let (facts, record) = try records()
        facts.bind(1, id)
        facts.bind(2, Int64(limit))
        defer { facts.reset() }
        var (count, last) = (0, id)
        while try facts.step() {
            count += 1
            last = facts.integer(0)
            let host = facts.isNull(1) ? nil : facts.integer(1)
            guard candidates.mayBe(host: host, tags: facts.bytes(2)) else { continue }
            record.bind(1, EntryRecord.contentID(last))
            defer { record.reset() }
            if try record.step() { body(last, record.bytes(0)) }
        }
        return count < limit ? nil : last
    }
}
