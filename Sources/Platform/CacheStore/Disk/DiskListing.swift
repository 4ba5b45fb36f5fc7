import CachePolicy

/// The rows of the database, for those who look into the cache: read by a connection of its own, in
/// short transactions, so that the write-ahead log is not held back.
extension DiskTier {
    /// Rows after an id, in the order of their ids; none if they cannot be read.
    func rows(after id: Int64, limit: Int) -> [EntryRow] {
        reading { connection throws(DatabaseError) in
            try connection.rows(after: id, limit: limit)
        } ?? []
    }

    /// The rows of a key, and of others with the same hash.
    func rows(of key: CacheKey) -> [EntryRow] {
        let ids = key.bytes.withUnsafeBytes { index.ids($0) }
        return ids.compactMap { id in
            reading { connection throws(DatabaseError) in
                try connection.rows(after: id - 1, limit: 1).first { $0.id == id }
            } ?? nil
        }
    }

    /// The rows that are read in one transaction.
    private static let step = 256

    /// Calls `body` with the id, the key and the head of all rows that may be those.
    func visitRecords(
        where candidates: RowCandidates,
        _ body: (Int64, UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Void
    ) {
        var place: Int64? = 0
        while let from = place {
            var found: [(Int64, [UInt8])] = []
            let next = reading { connection throws(DatabaseError) in
                try connection.visitRecords(
                    after: from, limit: Self.step, where: candidates
                ) { found.append(($0, [UInt8]($1))) }
            }
            for (id, record) in found {
                record.withUnsafeBytes { record in
                    if let text = EntryRecord.text(record) { body(id, text.key, text.head) }
                }
            }
            place = next ?? nil
        }
    }

    private func reading<Result: Sendable>(
        _ body: (ReaderConnection) throws(DatabaseError) -> Result
    ) -> Result? {
        (try? listing.withRows(of: self, body)) ?? nil
    }

    /// Keeps what the fingerprint of a policy means with the entries.
    func write(trust policy: UInt64, _ text: String) { _ = queue.append(.trust(policy, text)) }
}

extension DiskIndex {
    /// The rows of a key, and of others with the same hash.
    func ids(_ key: UnsafeRawBufferPointer) -> [Int64] {
        state.withLock { state in
            guard state.isReadable else { return [] }
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
