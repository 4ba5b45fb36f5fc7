import CSQLite

/// The writing connection with its statements, which insert and remove rows. Used only by the
/// writer thread.
final class WriterConnection: WritableRows {
    private let database: Database
    private let begin: Statement
    private let commit: Statement
    private let rollback: Statement
    private let insertEntry: Statement
    private let insertContent: Statement
    private let insertChunk: Statement
    private let insertTrust: Statement
    private let insertIncomplete: Statement
    private let insertGarbage: Statement
    private let deleteEntry: Statement
    private let deleteContent: Statement
    private let deleteIncomplete: Statement
    private let deleteGarbage: Statement
    private let deleteContents: Statement
    private let deleteChunks: Statement
    private let deleteAllEntries: Statement
    private let setAccessed: Statement
    private let setStale: Statement
    private let selectFacts: Statement
    private let selectRecord: Statement
    private let pageCount: Statement
    private let freeCount: Statement
    /// What is left of the page to which content is added.
    private var fill: PageFill

    /// How many rows that are no longer visible are removed at a time.
    static let garbageContents = 128
    static let garbageChunks = 32

    /// `database` must have been prepared by `Schema`.
    init(_ database: Database) throws(DatabaseError) {
        self.database = database
        database.watchLog()
        begin = try database.prepare("BEGIN IMMEDIATE")
        commit = try database.prepare("COMMIT")
        rollback = try database.prepare("ROLLBACK")
        insertEntry = try database.prepare("INSERT INTO entry VALUES(?,?,?,?,?,?,?,?)")
        insertContent = try database.prepare("INSERT INTO content VALUES(?,?,?,?)")
        insertChunk = try database.prepare("INSERT INTO chunk VALUES(?,?,?)")
        insertTrust = try database.prepare("INSERT OR REPLACE INTO trust VALUES(?,?)")
        insertIncomplete = try database.prepare("INSERT OR IGNORE INTO incomplete VALUES(?)")
        insertGarbage = try database.prepare("INSERT OR REPLACE INTO garbage VALUES(?,?)")
        deleteEntry = try database.prepare("DELETE FROM entry WHERE id=?")
        deleteContent = try database.prepare("DELETE FROM content WHERE id BETWEEN ? AND ?")
        deleteIncomplete = try database.prepare("DELETE FROM incomplete WHERE id=?")
        deleteGarbage = try database.prepare("DELETE FROM garbage WHERE first=?")
        deleteContents = try database.prepare(
            """
            DELETE FROM content WHERE id IN (SELECT id FROM content WHERE id BETWEEN ? AND ?
            LIMIT \(Self.garbageContents))
            """)
        deleteChunks = try database.prepare(
            """
            DELETE FROM chunk WHERE id IN (SELECT id FROM chunk WHERE id BETWEEN ? AND ?
            LIMIT \(Self.garbageChunks))
            """)
        deleteAllEntries = try database.prepare("DELETE FROM entry")
        setAccessed = try database.prepare(
            "UPDATE entry SET accessed=max(accessed,?), hits=hits+? WHERE id=?")
        setStale = try database.prepare("UPDATE entry SET stale=? WHERE id=?")
        selectFacts = try database.prepare(
            "SELECT id, host, tags FROM entry WHERE id>? AND id<=? ORDER BY id LIMIT ?")
        selectRecord = try database.prepare("SELECT record FROM content WHERE id=?")
        pageCount = try database.prepare("PRAGMA page_count")
        freeCount = try database.prepare("PRAGMA freelist_count")
        fill = PageFill(lastID: try database.integer("SELECT max(id) FROM content") ?? 0)
    }

    func close() { database.close() }

    // MARK: Transactions

    func beginTransaction() throws(DatabaseError) { try begin.run() }

    func commitTransaction() throws(DatabaseError) { try commit.run() }

    /// After a failure: whatever the transaction's state, there is none afterwards.
    func abandonTransaction() {
        fill.forget()
        guard !database.isIdle else { return }
        do { try rollback.run() } catch { return }
    }

    // MARK: Rows in

    func insert(
        _ entry: IndexSlot, varyNames: [UInt8], body: Int64, _ facts: RowFacts
    ) throws(DatabaseError) {
        insertEntry.bind(1, entry.id)
        insertEntry.bind(2, Int64(entry.accessed))
        insertEntry.bind(3, body)
        insertEntry.bind(4, copying: IndexRow.facts(entry, varyNames: varyNames))
        insertEntry.bind(5, facts.staleSince)
        insertEntry.bind(6, facts.hits)
        insertEntry.bind(7, facts.host)
        insertEntry.bind(8, copying: facts.tags)
        try insertEntry.run()
    }

    /// Divides the body where the last page ends.
    func insert(content id: Int64, record: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer)
        throws(DatabaseError)
    {
        let first = EntryRecord.contentID(id)
        let part = fill.bytesInFirst(record: record.count, body: body.count, id: first)
        try insert(
            row: first, record, UnsafeRawBufferPointer(rebasing: body[..<part]))
        guard part < body.count else { return }
        try insert(
            row: first + 1, UnsafeRawBufferPointer(start: nil, count: 0),
            UnsafeRawBufferPointer(rebasing: body[part...]))
    }

    private func insert(
        row id: Int64, _ record: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer
    ) throws(DatabaseError) {
        // Only until a row has begun a page.
        let before = fill.left == nil ? try usedPages() : 0
        insertContent.bind(1, id)
        insertContent.bind(2, EntryRecord.sum(id: id, record: record, body: body))
        insertContent.bind(3, record)
        insertContent.bind(4, body)
        try insertContent.run()
        let cell = RowSize.cell(blobs: [record.count, body.count], id: id)
        fill.inserted(
            id, cell, newPages: fill.left == nil ? try usedPages() - before : nil)
    }

    private func usedPages() throws(DatabaseError) -> Int64 {
        let pages = try pages()
        return pages.count - pages.free
    }

    func insert(trust policy: UInt64, _ text: String) throws(DatabaseError) {
        insertTrust.bind(1, Int64(bitPattern: policy))
        insertTrust.bind(2, text: text)
        try insertTrust.run()
    }

    func insert(chunk index: Int, of body: Int64, data: UnsafeRawBufferPointer)
        throws(DatabaseError)
    {
        let id = EntryRecord.chunkID(body: body, index: index)
        insertChunk.bind(1, id)
        insertChunk.bind(2, EntryRecord.sum(chunk: id, data: data))
        insertChunk.bind(3, data)
        try insertChunk.run()
    }

    func insert(incomplete body: Int64) throws(DatabaseError) {
        insertIncomplete.bind(1, body)
        try insertIncomplete.run()
    }

    func complete(body: Int64) throws(DatabaseError) {
        deleteIncomplete.bind(1, body)
        try deleteIncomplete.run()
    }

    /// Narrow rows and records of entries in the order of their ids, as far as they are wanted.
    /// - Parameters:
    ///   - id: the one before the first.
    ///   - last: the last that may be visited.
    ///   - limit: how many at most.
    ///   - isWanted: whether the record of a row is read: it is passed a hash of the host, `nil` if
    ///     that is unknown, and those of the tags (`RowFacts`).
    /// - Returns: the last id; `nil` if there are no more.
    func visitRecords(
        after id: Int64, through last: Int64, limit: Int,
        where isWanted: (_ host: Int64?, _ tags: UnsafeRawBufferPointer) -> Bool,
        _ body: (Int64, UnsafeRawBufferPointer) -> Void
    ) throws(DatabaseError) -> Int64? {
        selectFacts.bind(1, id)
        selectFacts.bind(2, last)
        selectFacts.bind(3, Int64(limit))
        defer { selectFacts.reset() }
        var wanted: [Int64] = []
        var (count, place) = (0, id)
        while try selectFacts.step() {
            count += 1
            place = selectFacts.integer(0)
            let host = selectFacts.isNull(1) ? nil : selectFacts.integer(1)
            if isWanted(host, selectFacts.bytes(2)) { wanted.append(place) }
        }
        for id in wanted {
            selectRecord.bind(1, EntryRecord.contentID(id))
            defer { selectRecord.reset() }
            if try selectRecord.step() { body(id, selectRecord.bytes(0)) }
        }
        return count < limit ? nil : place
    }

    func setAccessed(_ id: Int64, _ seconds: UInt32, hits: UInt32) throws(DatabaseError) {
        setAccessed.bind(1, Int64(seconds))
        setAccessed.bind(2, Int64(hits))
        setAccessed.bind(3, id)
        try setAccessed.run()
    }

    func setStale(_ id: Int64, since time: Int64) throws(DatabaseError) {
        setStale.bind(1, time)
        setStale.bind(2, id)
        try setStale.run()
    }

    // MARK: Rows out

    func remove(entry id: Int64) throws(DatabaseError) {
        deleteEntry.bind(1, id)
        try deleteEntry.run()
        let first = EntryRecord.contentID(id)
        deleteContent.bind(1, first)
        deleteContent.bind(2, first + 1)
        try deleteContent.run()
        fill.removed(first + 1)
    }

    func removeAllEntries() throws(DatabaseError) { try deleteAllEntries.run() }

    func insert(garbage range: ClosedRange<Int64>) throws(DatabaseError) {
        insertGarbage.bind(1, range.lowerBound)
        insertGarbage.bind(2, range.upperBound)
        try insertGarbage.run()
    }

    func removeChunks(of bodies: ClosedRange<Int64>) throws(DatabaseError) -> Bool {
        deleteChunks.bind(1, EntryRecord.chunkID(body: bodies.lowerBound, index: 0))
        deleteChunks.bind(2, EntryRecord.chunkID(body: bodies.upperBound + 1, index: 0) - 1)
        try deleteChunks.run()
        return database.changes < Self.garbageChunks
    }

    func removeSome(of range: ClosedRange<Int64>) throws(DatabaseError) -> Bool {
        let last = EntryRecord.contentID(range.upperBound) + 1
        deleteContents.bind(1, EntryRecord.contentID(range.lowerBound))
        deleteContents.bind(2, last)
        try deleteContents.run()
        fill.removed(last)
        if database.changes > 0 { return true }
        guard try removeChunks(of: range) else { return true }
        deleteGarbage.bind(1, range.lowerBound)
        try deleteGarbage.run()
        return false
    }

    // MARK: Another process

    /// Writes down which bodies are read here, and the largest id that was ever used.
    func insert(reading bodies: [Int64], lastID: Int64) throws(DatabaseError) {
        for body in bodies {
            try database.execute("INSERT OR IGNORE INTO reading VALUES(\(body))")
        }
        try database.execute("UPDATE setting SET value=\(lastID) WHERE name='id'")
    }

    /// Forgets what was written down by another process.
    func removeSharing() throws(DatabaseError) {
        try database.execute("DELETE FROM reading")
    }

    // MARK: The files

    /// The number of pages of the file, and of those that are free; within a transaction, as it has
    /// left them so far.
    func pages() throws(DatabaseError) -> (count: Int64, free: Int64) {
        func read(_ statement: Statement) throws(DatabaseError) -> Int64 {
            defer { statement.reset() }
            return try statement.step() ? statement.integer(0) : 0
        }
        return (try read(pageCount), try read(freeCount))
    }

    /// Returns free pages to the file system, at most `pages`.
    func shrink(pages: Int) throws(DatabaseError) {
        try database.execute("PRAGMA incremental_vacuum(\(pages))")
    }

    /// Bytes of the log that hold frames, copied or not.
    var logBytes: Int64 { Int64(database.logFrames) * Int64(Schema.pageBytes + 24) }

    /// Copies the log into the database and restarts it; see `Database.restartLog`.
    func restartLog(truncating: Bool) throws(DatabaseError) -> Bool {
        try database.restartLog(truncating: truncating)
    }
}
