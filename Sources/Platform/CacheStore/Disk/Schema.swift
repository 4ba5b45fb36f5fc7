import CSQLite

/// The database's layout. All rows of a response are keyed by its entry's id:
///
///     setting      the seed of the key hashes
///     entry        one narrow row per complete response: what the index in memory is read from
///     content      the response itself: key, vary key, head, times and a small body, or its
///                  beginning, with a checksum; id = entry's id * 2. Where a page of the database
///                  ends, the body continues in the row with the next id, with a checksum, too
///     chunk        a large body in pieces; id = body id * 2^20 + number of the piece
///     incomplete   bodies being received, still read, or between two entries: removed at start
///     garbage      ranges of ids whose content and chunks are removed gradually
///     reading      bodies that a process still reads that has handed the database over
///     trust        how origins were verified, by the fingerprint in the entries' records
///
/// An entry is visible once its `entry` row is committed, which is written last.
enum Schema {
    /// "PFLD": distinguishes our file from another application's.
    static let applicationID: Int64 = 0x5046_4C44
    /// Measured with 16 KiB bodies: 4 KiB pages cost 45% more to write, 16 KiB pages 60% more to
    /// delete. What bodies of other sizes would waste of a page is avoided by `PageFill`.
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
        // Narrower rows, of which millions are read in a second (`IndexRow`), and responses in two
        // rows. The ids differ: start over.
        """
        DROP TABLE entry; DROP TABLE content; DROP TABLE chunk;
        DELETE FROM incomplete; DELETE FROM garbage;
        CREATE TABLE entry(
            id INTEGER PRIMARY KEY, accessed INTEGER NOT NULL, body INTEGER NOT NULL,
            facts BLOB NOT NULL);
        CREATE TABLE content(
            id INTEGER PRIMARY KEY, sum INTEGER NOT NULL, record BLOB NOT NULL, body BLOB);
        CREATE TABLE chunk(id INTEGER PRIMARY KEY, sum INTEGER NOT NULL, data BLOB NOT NULL);
        """,
        // For two processes of which one succeeds the other. Nothing else changes. The setting `id`
        // is the largest id that was ever used: what the other process knows by it stays distinct.
        """
        CREATE TABLE reading(body INTEGER PRIMARY KEY);
        INSERT INTO setting VALUES('id', 0);
        """,
        // What purges and lists need of each entry: since when a soft purge has made it stale, how
        // often it was used, and hashes of its host and its tags (`RowFacts`), which are unknown of
        // older rows. How the origins of entries were verified, by the fingerprint of the policy.
        """
        ALTER TABLE entry ADD COLUMN stale INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE entry ADD COLUMN hits INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE entry ADD COLUMN host INTEGER;
        ALTER TABLE entry ADD COLUMN tags BLOB;
        CREATE TABLE trust(policy INTEGER PRIMARY KEY, name TEXT NOT NULL);
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
        /// It would have to be migrated, and must not be changed.
        case older(Int)
    }

    /// Settings of a writing connection, followed by the layout itself, brought up to date.
    /// - Parameter migrates: `false` if another process reads the tables as they are.
    static func prepare(
        _ database: Database, steps: [String] = Schema.steps, migrates: Bool = true
    ) throws(DatabaseError) -> Finding {
        // These two take effect only in a file that is still empty.
        try database.execute("PRAGMA page_size=\(pageBytes); PRAGMA auto_vacuum=INCREMENTAL")
        let tables = try database.integer("SELECT count(*) FROM sqlite_master") ?? 0
        let version = Int(try database.integer("PRAGMA user_version") ?? 0)
        let application = try database.integer("PRAGMA application_id") ?? 0
        if tables > 0, application != applicationID { return .foreign }
        if version > steps.count { return .newer(version) }
        if version > 0, version < steps.count, !migrates { return .older(version) }
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
        func bytes(_ cell: RowSize.Cell, isShared: Bool) -> Int64 {
            // Rows that are not divided leave the rest of a page free.
            let own = isShared ? pageBytes / max(1, RowSize.page / cell.bytes) : cell.bytes
            return Int64(own + cell.overflowPages * pageBytes)
        }
        // Its narrow row takes some 41 bytes.
        let content = RowSize.cell(blobs: [recordBytes, inlineBytes], id: typicalID)
        var total = bytes(content, isShared: inlineBytes < 2 * PageFill.smallestPart) + 41
        if chunked > 0 {
            let whole = chunked / UInt64(chunkBytes)
            let rest = Int(chunked % UInt64(chunkBytes))
            let chunkID = typicalID << chunkBits
            let cell = RowSize.cell(blobs: [chunkBytes], id: chunkID)
            total += Int64(whole) * bytes(cell, isShared: false)
            if rest > 0 {
                total += bytes(RowSize.cell(blobs: [rest], id: chunkID), isShared: false)
            }
        }
        return total
    }

    /// An id whose length is that of most.
    private static let typicalID: Int64 = 1 << 22
}
