import CSQLite

/// The database's layout. All rows of a response are keyed by its entry's id:
///
///     setting      the seed of the key hashes
///     entry        one narrow row per complete response: what the index in memory is read from
///     content      the response itself: key, vary key, head, times and a small body, one checksum
///     chunk        a large body in pieces; id = body id * 2^20 + number of the piece
///     incomplete   bodies being received, still read, or between two entries: removed at start
///     garbage      ranges of ids whose content and chunks are removed gradually
///
/// An entry is visible once its `entry` row is committed, which is written last.
enum Schema {
    /// "PFLD": distinguishes our file from another application's.
    static let applicationID: Int64 = 0x5046_4C44
    /// Measured with 16 KiB bodies: 4 KiB pages cost 45% more to write, 16 KiB pages 60% more to
    /// delete and 6% more space.
    static let pageBytes = 8192
    /// The maximum number of pieces of one body (2^20).
    static let chunkBits: Int64 = 20

    /// Step i brings version i to version i + 1. Steps are only ever added.
    static let steps: [String] = [
        """
        CREATE TABLE setting(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE entry(
            id INTEGER PRIMARY KEY, key_hash INTEGER NOT NULL, vary_hash INTEGER NOT NULL,
            bytes INTEGER NOT NULL, body INTEGER NOT NULL, accessed INTEGER NOT NULL);
        CREATE TABLE content(
            id INTEGER PRIMARY KEY, sum INTEGER NOT NULL, record BLOB NOT NULL, body BLOB);
        CREATE TABLE chunk(id INTEGER PRIMARY KEY, sum INTEGER NOT NULL, data BLOB NOT NULL);
        CREATE TABLE incomplete(id INTEGER PRIMARY KEY);
        CREATE TABLE garbage(first INTEGER PRIMARY KEY, last INTEGER NOT NULL);
        INSERT INTO setting VALUES('seed', random());
        """,
        // The names that an entry nominates by Vary are in its narrow row. Older entries lack them:
        // start over.
        """
        DROP TABLE entry; DROP TABLE content; DROP TABLE chunk;
        DELETE FROM incomplete; DELETE FROM garbage;
        CREATE TABLE entry(
            id INTEGER PRIMARY KEY, key_hash INTEGER NOT NULL, vary_hash INTEGER NOT NULL,
            bytes INTEGER NOT NULL, body INTEGER NOT NULL, accessed INTEGER NOT NULL,
            vary_names BLOB NOT NULL);
        CREATE TABLE content(
            id INTEGER PRIMARY KEY, sum INTEGER NOT NULL, record BLOB NOT NULL, body BLOB);
        CREATE TABLE chunk(id INTEGER PRIMARY KEY, sum INTEGER NOT NULL, data BLOB NOT NULL);
        """,
    ]

    /// What was found at the path.
    enum Finding: Equatable {
        /// Our database, now at the newest version; `migratedFrom` is its version if that was
        /// older.
        case ready(migratedFrom: Int?)
        /// Another application's database.
        case foreign
        /// Written by a newer release than this one.
        case newer(Int)
    }

    /// Settings of a writing connection, followed by the layout itself, brought up to date.
    static func prepare(
        _ database: Database, steps: [String] = Schema.steps
    ) throws(DatabaseError) -> Finding {
        // These two take effect only in a file that is still empty.
        try database.execute("PRAGMA page_size=\(pageBytes); PRAGMA auto_vacuum=INCREMENTAL")
        let tables = try database.integer("SELECT count(*) FROM sqlite_master") ?? 0
        let version = Int(try database.integer("PRAGMA user_version") ?? 0)
        let application = try database.integer("PRAGMA application_id") ?? 0
        if tables > 0, application != applicationID { return .foreign }
        if version > steps.count { return .newer(version) }
        // WAL: readers do not wait for the writer, and a killed process leaves whole transactions.
        // NORMAL: a power failure may lose the last transactions but damages nothing.
        let mode = try database.text("PRAGMA journal_mode=WAL")
        guard mode == "wal" else {
            throw DatabaseError(code: SQLITE_CANTOPEN, message: "no write-ahead log possible here")
        }
        try database.execute(
            """
            PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0; PRAGMA secure_delete=OFF;
            PRAGMA cache_size=-4096; PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0
            """)
        for step in version..<steps.count {
            try database.execute(
                """
                BEGIN IMMEDIATE; \(steps[step]);
                PRAGMA application_id=\(applicationID); PRAGMA user_version=\(step + 1); COMMIT
                """)
        }
        return .ready(migratedFrom: version > 0 && version < steps.count ? version : nil)
    }

    /// Bytes of the pages that an entry occupies: its rows and the pages they overflow to.
    static func footprint(recordBytes: Int, inlineBytes: Int, chunked: UInt64, chunkBytes: Int)
        -> Int64
    {
        // Its narrow row takes some 56 bytes.
        var bytes = Int64(rowBytes(recordBytes + inlineBytes)) + 56
        if chunked > 0 {
            let whole = chunked / UInt64(chunkBytes)
            let rest = Int(chunked % UInt64(chunkBytes))
            bytes += Int64(whole) * Int64(rowBytes(chunkBytes))
            if rest > 0 { bytes += Int64(rowBytes(rest)) }
        }
        return bytes
    }

    /// A row's share of its b-tree page, and its overflow pages (SQLite file format, section 1.6).
    private static func rowBytes(_ payloadBytes: Int) -> Int {
        let payload = payloadBytes + 24
        let largestLocal = pageBytes - 35
        if payload <= largestLocal { return share(payload) }
        let smallestLocal = ((pageBytes - 12) * 32 / 255) - 23
        var local = smallestLocal + (payload - smallestLocal) % (pageBytes - 4)
        if local > largestLocal { local = smallestLocal }
        let overflow = (payload - local + pageBytes - 5) / (pageBytes - 4)
        return share(local) + overflow * pageBytes
    }

    private static func share(_ localBytes: Int) -> Int {
        pageBytes / max(1, (pageBytes - 32) / (localBytes + 16))
    }
}
