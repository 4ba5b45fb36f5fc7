import CLinux
import CSQLite
import Files
import HTTPCore
import PinObservation

/// The file in which observed servers are kept: an SQLite database with a row of JSON for each.
///
/// All of it belongs to the thread that opened it.
package final class ObservationFile {
    /// The format's version (`PRAGMA user_version`).
    private static let version: Int64 = 1

    private let database: ObservationDatabase
    private let path: String
    /// SQLite's number for the state that this process has seen last; its own commits do not change
    /// it.
    private var seen: Int64 = -1
    /// The hosts of which this process knows the row in that state: it has read or written it since
    /// another process has last written anything.
    private var current: Set<ObservedName> = []

    /// Opens the file, and creates it and its folder if they are missing.
    package init(creating path: String) throws(ObservationFileError) {
        self.path = path
        do throws(FileError) {
            try Folder.make(Folder.of(path))
        } catch {
            throw .unusable(path: path, detail: error.reason)
        }
        // SQLite would let everybody read it.
        let descriptor = uninterrupted {
            open_with_mode(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        }
        guard descriptor >= 0 else {
            throw .unusable(path: path, detail: String(cString: strerror(-descriptor)))
        }
        close(descriptor)
        database = try ObservationDatabase(path, mode: SQLITE_OPEN_READWRITE)
        try database.execute("PRAGMA journal_mode = DELETE")
        // One that is made now, or was made by a process that ended at once, is empty.
        if try database.integer("PRAGMA user_version") == 0,
            try database.integer("SELECT count(*) FROM sqlite_schema") == 0
        {
            try database.execute(
                """
                BEGIN IMMEDIATE;
                CREATE TABLE IF NOT EXISTS observed (
                    host TEXT NOT NULL, port INTEGER NOT NULL, client TEXT, last INTEGER NOT NULL,
                    record TEXT NOT NULL, PRIMARY KEY (host, port));
                PRAGMA user_version = \(Self.version);
                COMMIT
                """)
        }
        try check()
    }

    /// Opens an existing file to read it.
    package init(reading path: String) throws(ObservationFileError) {
        self.path = path
        guard access(path, F_OK) == 0 else { throw .missing(path: path) }
        // A process that was killed may have left a journal, which only who may write can undo.
        let isWritable = access(path, W_OK) == 0 && access(Folder.of(path), W_OK) == 0
        database = try ObservationDatabase(
            path, mode: isWritable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY)
        try check()
    }

    private func check() throws(ObservationFileError) {
        let found = try database.integer("PRAGMA user_version") ?? 0
        guard found <= Self.version else { throw .newer(path: path, version: found) }
        guard found == Self.version else {
            throw .damaged(path: path, detail: "it is not a file of observed servers")
        }
        var problem: String?
        try database.run("PRAGMA quick_check(1)", []) {
            problem = ObservationDatabase.text($0, 0)
        }
        guard problem == "ok" else {
            throw .damaged(path: path, detail: problem ?? "it cannot be checked")
        }
    }

    /// Renames a damaged file, in place of one that was set aside before, and its journal with it.
    ///
    /// - Returns: its new name.
    package static func setAside(_ path: String) throws(ObservationFileError) -> String {
        let aside = path + ".damaged"
        unlink(path + "-journal")
        guard rename(path, aside) == 0 else {
            throw .unusable(
                path: path, detail: String(cString: strerror(__errno_location().pointee)))
        }
        return aside
    }

    // MARK: Rows

    /// All hosts, the one seen longest ago first, and how many rows could not be read.
    package func hosts() throws(ObservationFileError) -> (
        entries: [ObservationTable.Entry], unreadable: Int
    ) {
        var entries: [ObservationTable.Entry] = []
        var unreadable = 0
        // Before the rows: what is committed in between is then not taken as seen.
        seen = try dataVersion()
        try database.run("SELECT record, client FROM observed ORDER BY last", []) { row in
            if let entry = Self.entry(row) { entries.append(entry) } else { unreadable += 1 }
        }
        current = Set(entries.map(\.host.name))
        return (entries, unreadable)
    }

    private static func entry(_ row: OpaquePointer) -> ObservationTable.Entry? {
        guard let text = ObservationDatabase.text(row, 0),
            let host = ObservedHost(json: Array(text.utf8))
        else { return nil }
        return ObservationTable.Entry(
            host: host, client: ObservationDatabase.text(row, 1).flatMap { IPNetwork($0) })
    }

    private func dataVersion() throws(ObservationFileError) -> Int64 {
        try database.integer("PRAGMA data_version") ?? 0
    }

    /// Changes rows in one transaction, with other processes locked out.
    ///
    /// - Parameters:
    ///   - changed: the hosts to write.
    ///   - gone: the hosts to remove.
    ///   - merge: called for each changed host whose row another process may have written, with
    ///     what that has recorded of it; returns what to write.
    package func write(
        _ changed: [ObservationTable.Entry], removing gone: [ObservedName],
        merging merge: (ObservationTable.Entry) -> ObservationTable.Entry
    ) throws(ObservationFileError) {
        try database.execute("BEGIN IMMEDIATE")
        do throws(ObservationFileError) {
            // From here on, nobody else commits.
            let version = try dataVersion()
            if version != seen { current = [] }
            for entry in changed {
                var entry = entry
                let name = entry.host.name
                if !current.contains(name), let other = try read(name) { entry = merge(other) }
                try put(entry)
                current.insert(name)
            }
            for name in gone {
                try database.run(
                    "DELETE FROM observed WHERE host = ? AND port = ?",
                    [.text(name.host), .integer(Int64(name.port))])
                current.remove(name)
            }
            try database.execute("COMMIT")
            seen = version
        } catch {
            current = []
            try? database.execute("ROLLBACK")
            throw error
        }
    }

    private func read(
        _ name: ObservedName
    ) throws(ObservationFileError) -> ObservationTable.Entry? {
        var found: ObservationTable.Entry?
        try database.run(
            "SELECT record, client FROM observed WHERE host = ? AND port = ?",
            [.text(name.host), .integer(Int64(name.port))]
        ) { found = Self.entry($0) }
        return found
    }

    private func put(_ entry: ObservationTable.Entry) throws(ObservationFileError) {
        try database.run(
            "INSERT OR REPLACE INTO observed VALUES (?, ?, ?, ?, ?)",
            [
                .text(entry.host.name.host), .integer(Int64(entry.host.name.port)),
                .text(entry.client.map { "\($0)" }), .integer(entry.host.lastSeen),
                .text(entry.host.json.text),
            ])
    }
}
