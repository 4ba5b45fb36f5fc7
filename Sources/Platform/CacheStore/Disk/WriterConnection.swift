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
        insertEntry = try database.prepare("INSERT INTO entry VALUES(?,?,?,?)")
        insertContent = try database.prepare("INSERT INTO content VALUES(?,?,?,?)")
        insertChunk = try database.prepare("INSERT INTO chunk VALUES(?,?,?)")
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
        setAccessed = try database.prepare("UPDATE entry SET accessed=? WHERE id=?")
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

    func insert(_ entry: IndexSlot, varyNames: [UInt8], body: Int64) throws(DatabaseError) {
        insertEntry.bind(1, entry.id)
        insertEntry.bind(2, Int64(entry.accessed))
        insertEntry.bind(3, body)
        insertEntry.bind(4, copying: IndexRow.facts(entry, varyNames: varyNames))
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

    func setAccessed(_ id: Int64, _ seconds: UInt32) throws(DatabaseError) {
        setAccessed.bind(1, Int64(seconds))
        setAccessed.bind(2, id)
        try setAccessed.run()
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
