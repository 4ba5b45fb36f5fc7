import CLinux
import Clocks

/// Whether the database's files are still those that were opened, and as long as they were: an
/// unlinked file goes on working until it is closed, and takes everything with it then.
struct FileWatch {
    /// What has become of the files.
    enum Change: Equatable, CustomStringConvertible {
        case databaseGone
        /// Another file is in its place.
        case databaseReplaced
        case databaseTruncated
        case logGone
        case logTruncated

        var description: String {
            switch self {
            case .databaseGone: "the database's file is gone"
            case .databaseReplaced: "another file is in the place of the database"
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
    private var nextLook: Int64 = 0
    private static let interval: Int64 = 1_000_000_000

    init(_ files: DatabaseFiles) { self.files = files }

    /// A second has passed since it last was: time to look at the lock's file.
    mutating func isDue() -> Bool {
        let now = Clock.monotonicNanoseconds()
        guard now >= nextLook else { return false }
        nextLook = now + Self.interval
        return true
    }

    /// Notes the files' lengths after the writer itself has copied or truncated the log, which is
    /// all that may shorten them. A file that is another one stays another one.
    mutating func remember() {
        database = Self.next(files.database, after: database)
        log = Self.next(files.log, after: log)
    }

    private static func next(_ path: String, after seen: Seen?) -> Seen? {
        guard let seen else { return Seen(path) }
        guard let now = Seen(path), now.isSame(seen) else { return seen }
        return now
    }

    /// Notes that the log has at least so many bytes.
    mutating func logHolds(_ bytes: Int64) {
        if let log, log.bytes < bytes { self.log?.bytes = bytes }
    }

    /// Nothing is open.
    mutating func forget() {
        database = nil
        log = nil
    }

    /// What differs from what was noted; nil: nothing, or nothing was noted.
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
