import CLinux
import Clocks
import Files

/// The database's files in the store's folder. Who may change them is decided by `FolderLock`.
struct DatabaseFiles {
    let folder: String
    var database: String { folder + "/cache.sqlite" }
    var log: String { database + "-wal" }
    var lock: String { folder + "/cache.sqlite.lock" }
    /// See `ChangeLog`.
    var changes: String { folder + "/cache.sqlite.changes" }
    /// See `PurgeJournal`.
    var purges: String { database + ".purges" }
    var hasChanges: Bool { access(changes, F_OK) == 0 }
    private static let suffixes = ["", "-wal", "-shm"]
    /// The number of databases set aside that are kept, newest first; they are as large as the
    /// cache was.
    static let setAsideLimit = 2

    /// Why the folder cannot be used.
    struct FolderError: Error {
        let reason: DiskOffReason
        let detail: String
    }

    /// Creates the folder and its parents.
    func makeFolder() throws(FolderError) {
        do throws(FileError) {
            try Folder.make(folder)
        } catch {
            throw FolderError(
                reason: error.code == EROFS ? .readOnly : .folder, detail: "\(error)")
        }
    }

    /// Creates an empty database file, accessible only to its owner: SQLite would make it readable
    /// for everyone, and uses the same mode for its log. Opening it will show whether this worked.
    func makeDatabase() {
        let descriptor = open_with_mode(database, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor >= 0 { close(descriptor) }
    }

    /// Renames the database and its other files to `cache.sqlite.WORD-SECONDS`. Returns the new
    /// path, or `nil` if it cannot be renamed.
    func setAside(_ word: String) -> String? {
        let base = "\(database).\(word)-\(Clock.wallSeconds())"
        var target = base
        var number = 1
        while access(target, F_OK) == 0 {
            number += 1
            target = "\(base)-\(number)"
        }
        guard rename(database, target) == 0 else { return nil }
        for suffix in Self.suffixes.dropFirst() {
            // A file that does not exist need not be renamed.
            _ = rename(database + suffix, target + suffix)
        }
        thinOut()
        return target
    }

    /// Removes the write-ahead log's index that an earlier version of the program may have left in
    /// a file. The database is open, so nobody else is using it.
    func removeSharedMemory() { unlink(database + "-shm") }

    /// Removes the database and its other files. Returns `false` if it is still there.
    func remove() -> Bool {
        for suffix in Self.suffixes.reversed() { unlink(database + suffix) }
        return access(database, F_OK) != 0
    }

    /// Removes all databases that were set aside, except the newest.
    private func thinOut() {
        guard let directory = opendir(folder) else { return }
        defer { closedir(directory) }
        var found: [(name: String, time: Int)] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasPrefix("cache.sqlite.corrupt-") || name.hasPrefix("cache.sqlite.newer-"),
                !name.hasSuffix("-wal"), !name.hasSuffix("-shm")
            else { continue }
            var status = stat()
            guard stat(folder + "/" + name, &status) == 0 else { continue }
            found.append(
                (name, Int(status.st_ctim.tv_sec) * 1_000_000_000 + status.st_ctim.tv_nsec))
        }
        for (name, _) in found.sorted(by: { $0.time > $1.time }).dropFirst(Self.setAsideLimit) {
            for suffix in Self.suffixes { unlink(folder + "/" + name + suffix) }
        }
    }
}

extension CacheStoreOptions {
    /// The path of the database.
    var databasePath: String { DatabaseFiles(folder: folder).database }
}
