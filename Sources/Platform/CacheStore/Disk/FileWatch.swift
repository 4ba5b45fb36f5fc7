import CLinux
import Clocks

/// Checks whether the database's files are still those that were opened, and at least as long as
/// they were: an unlinked file continues to work until it is closed, and then takes everything with
/// it.
struct FileWatch {
    /// What happened to the files.
    enum Change: Equatable, CustomStringConvertible {
        case databaseGone
        /// A different file is in its place.
        case databaseReplaced
        case databaseTruncated
        case logGone
        case logTruncated

        var description: String {
            switch self {
            case .databaseGone: "the database's file is gone"
            case .databaseReplaced: "the database's file was replaced by another"
            case .databaseTruncated: "the database's file was truncated"
            case .logGone: "the write-ahead log is gone"
            case .logTruncated: "the write-ahead log was truncated"
            }
        }
    }

    /// A file's identity and length.
    private struct Seen {
        let device: UInt64
        let inode: UInt64
        var bytes: Int64

        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            device = UInt64(status.st_dev)
            inode = UInt64(status.st_ino)
            bytes = Int64(status.st_size)
        }

        func isSame(_ other: Seen) -> Bool { device == other.device && inode == other.inode }
    }

    private let files: DatabaseFiles
    private var database: Seen?
    private var log: Seen?
    private var nextCheck: Int64 = 0
    private static let interval: Int64 = 1_000_000_000

    init(_ files: DatabaseFiles) { self.files = files }

    /// Whether a second has passed since this last returned `true`: time to check the lock file.
    mutating func isDue() -> Bool {
        let now = Clock.monotonicNanoseconds()
        guard now >= nextCheck else { return false }
        nextCheck = now + Self.interval
        return true
    }

    /// Records the files' lengths after the writer itself has copied or truncated the log, which is
    /// the only thing that may shorten them. A replaced file remains a replaced file.
    mutating func remember() {
        database = Self.next(files.database, after: database)
        log = Self.next(files.log, after: log)
    }

    private static func next(_ path: String, after seen: Seen?) -> Seen? {
        guard let seen else { return Seen(path) }
        guard let now = Seen(path), now.isSame(seen) else { return seen }
        return now
    }

    /// Records that the log has at least this many bytes.
    mutating func logHolds(_ bytes: Int64) {
        if let log, log.bytes < bytes { self.log?.bytes = bytes }
    }

    /// Called when nothing is open.
    mutating func forget() {
        database = nil
        log = nil
    }

    /// What differs from what was recorded; `nil` if nothing does, or nothing was recorded.
    func change() -> Change? {
        guard let database else { return nil }
        guard let now = Seen(files.database) else { return .databaseGone }
        guard now.isSame(database) else { return .databaseReplaced }
        if now.bytes < database.bytes { return .databaseTruncated }
        guard let log else { return nil }
        guard let logNow = Seen(files.log), logNow.isSame(log) else { return .logGone }
        return logNow.bytes < log.bytes ? .logTruncated : nil
    }
}
