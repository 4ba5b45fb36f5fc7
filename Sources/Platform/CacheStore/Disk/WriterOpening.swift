import CSQLite

/// Opens the database for the writer: layout, leftovers, index.
struct WriterOpening {
    let options: CacheStoreOptions
    let files: DatabaseFiles
    let onEvent: @Sendable (StoreEvent) -> Void
    /// Whether another process still reads from the database.
    var isShared = false

    /// An open database.
    struct Opened {
        let connection: WriterConnection
        let contents: DiskIndex.Contents
        let garbage: [ClosedRange<Int64>]
        /// What the fingerprints of policies mean.
        let trust: [(UInt64, String)]
    }

    enum OpenError: Error {
        case off(DiskOffReason, String)
        /// Another process still reads it, and it would have to be replaced or migrated.
        case inUse(String)
        /// The file is damaged, or newer than this release (`word` says which); it may be set
        /// aside.
        case unusable(word: String, String)
    }

    /// The folder must exist and the lock must be held.
    func open() throws(OpenError) -> Opened {
        let database: Database
        files.makeDatabase()
        do {
            database = try Database(
                path: files.database, create: true, busyMilliseconds: options.busyMilliseconds,
                isShared: isShared)
        } catch {
            throw openError(error)
        }
        do {
            switch try Schema.prepare(database, migrates: !isShared) {
            case .foreign:
                database.close()
                throw OpenError.off(
                    .foreign, "\(files.database) belongs to another application")
            case .older(let version):
                database.close()
                throw OpenError.inUse("layout \(version) is older than ours, and still read")
            case .newer(let version):
                database.close()
                guard !isShared else {
                    throw OpenError.inUse("layout \(version) is newer than ours, and still read")
                }
                throw OpenError.unusable(word: "newer", "layout \(version) is newer than ours")
            case .ready(let from):
                if let from { onEvent(.migrated(from: from, to: Schema.steps.count)) }
            }
            if !isShared { files.removeSharedMemory() }
            if options.maximumPages > 0 {
                try database.execute("PRAGMA max_page_count=\(options.maximumPages)")
            }
            if !isShared { try database.execute("DELETE FROM reading") }
            try collectIncomplete(database)
            let connection = try WriterConnection(database)
            var contents = try Self.contents(database)
            contents.borrowed = try Self.ids(database, "SELECT body FROM reading")
            contents.doomed = try Self.ids(database, "SELECT id FROM incomplete")
            let garbage = try Self.garbage(database)
            return Opened(
                connection: connection, contents: contents, garbage: garbage,
                trust: try Self.trust(database))
        } catch let error as OpenError {
            throw error
        } catch let error as DatabaseError {
            database.close()
            throw openError(error)
        } catch {
            database.close()
            throw .off(.other, "\(error)")
        }
    }

    private func openError(_ error: DatabaseError) -> OpenError {
        // A statement that does not compile: the tables do not match their version.
        error.isDamage || error.primary == SQLITE_ERROR
            ? .unusable(word: "corrupt", error.message) : .off(error.reason, error.message)
    }

    /// Collects bodies that were being received when the last process ended.
    private func collectIncomplete(_ database: Database) throws(DatabaseError) {
        let count = Int(
            try database.integer("SELECT count(*) FROM incomplete WHERE \(Self.isUnread)") ?? 0)
        guard count > 0 else { return }
        try database.execute(
            """
            BEGIN IMMEDIATE;
            INSERT OR REPLACE INTO garbage SELECT id, id FROM incomplete WHERE \(Self.isUnread);
            DELETE FROM incomplete WHERE \(Self.isUnread);
            COMMIT
            """)
        onEvent(.removedIncomplete(entries: count))
    }

    private static let isUnread = "id NOT IN (SELECT body FROM reading)"

    private static func ids(
        _ database: Database, _ sql: String
    ) throws(DatabaseError) -> [Int64] {
        let rows = try database.prepare(sql)
        defer { rows.reset() }
        var ids: [Int64] = []
        while try rows.step() { ids.append(rows.integer(0)) }
        return ids
    }

    private static func trust(_ database: Database) throws(DatabaseError) -> [(UInt64, String)] {
        let rows = try database.prepare("SELECT policy, name FROM trust")
        defer { rows.reset() }
        var trust: [(UInt64, String)] = []
        while try rows.step() { trust.append((UInt64(bitPattern: rows.integer(0)), rows.text(1))) }
        return trust
    }

    private static func garbage(
        _ database: Database
    ) throws(DatabaseError) -> [ClosedRange<Int64>] {
        let rows = try database.prepare("SELECT first, last FROM garbage")
        defer { rows.reset() }
        var garbage: [ClosedRange<Int64>] = []
        while try rows.step() {
            let first = rows.integer(0)
            garbage.append(first...max(first, rows.integer(1)))
        }
        return garbage
    }

    /// Reads the narrow rows into an index.
    static func contents(_ database: Database) throws(DatabaseError) -> DiskIndex.Contents {
        let seed = try database.integer("SELECT value FROM setting WHERE name='seed'")
        guard let seed else {
            throw DatabaseError(code: SQLITE_CORRUPT, message: "the setting seed is missing")
        }
        var lastID: Int64 = 0
        // Chunks are keyed by the id of the entry they were received for, which may be gone.
        for query in [
            "SELECT max(id) FROM entry", "SELECT max(id) >> 1 FROM content",
            "SELECT max(last) FROM garbage", "SELECT value FROM setting WHERE name='id'",
            "SELECT max(id) >> \(Schema.chunkBits) FROM chunk",
        ] {
            lastID = max(lastID, try database.integer(query) ?? 0)
        }
        guard lastID < IndexSlot.largestID else {
            throw DatabaseError(code: SQLITE_CORRUPT, message: "a row's id is too large")
        }
        let reader = IndexReader()
        try reader.read(database)
        let (table, bodies) = reader.take()
        return DiskIndex.Contents(
            seed: UInt64(bitPattern: seed), table: table, bodies: bodies, lastID: lastID)
    }
}
