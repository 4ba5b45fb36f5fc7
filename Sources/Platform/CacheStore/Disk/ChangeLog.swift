import CLinux
import Files

/// Which keys have been invalidated by the processes that use the store's folder at the same time:
/// a file, `cache.sqlite.changes`, to which each appends and from which each reads what the others
/// have appended. It is there only while there are several, and for whoever comes after them.
///
/// What one has appended, the others find from then on: it is neither queued nor cached, and it
/// stays when the process is killed.
///
///     header   what kind of file it is · start · base · end      (four numbers of 64 bits)
///     records  the process's number · bytes of the key · the key; or, with the highest bit of the
///              number of bytes set, a ban as in a `PurgeJournal`
///
/// Positions count the bytes of all records so far. Those before `start` are in the database. Those
/// before `base` are gone: for whoever has not read them, everything has changed. `end` is written
/// last. Records are read and written under a lock on a byte of the file, which ends with the
/// process; whether there are any needs no lock.
///
/// Its users serialize their access.
final class ChangeLog {
    /// What the others have changed.
    enum News: Equatable {
        /// These keys, and what these bans are about.
        case keys([[UInt8]], bans: [Ban] = [])
        /// More than is known, or all of it.
        case everything
    }

    private struct Header {
        var kind = ChangeLog.kind
        var start: UInt64 = 0
        var base: UInt64 = 0
        var end: UInt64 = 0
    }

    /// "PFCHG" and the version.
    private static let kind: UInt64 = 0x5046_4348_4700_0001
    private static let headerBytes = MemoryLayout<Header>.size
    private static let recordHeaderBytes = 12
    /// The records kept, in bytes.
    static let limit: UInt64 = 16 << 20

    private let descriptor: Int32
    /// Distinguishes what this process appends.
    private let process: UInt64
    /// Up to where everything is known here.
    private(set) var position: UInt64
    /// Before this position, news are also what this process has appended.
    private var allUntil: UInt64 = 0

    private init(_ descriptor: Int32, process: Int64, position: UInt64) {
        self.descriptor = descriptor
        self.process = UInt64(bitPattern: process)
        self.position = position
    }

    deinit { close(descriptor) }

    /// Begins one, in place of any other; `nil` if that is not possible.
    static func create(_ path: String, process: Int64) -> ChangeLog? {
        unlink(path)
        let flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let descriptor = uninterrupted { open_with_mode(path, flags, 0o600) }
        guard descriptor >= 0 else { return nil }
        let log = ChangeLog(descriptor, process: process, position: 0)
        if log.write(header: Header()) { return log }
        unlink(path)
        return nil
    }

    /// Opens the one that is there, with all that is not in the database yet as news; `nil` if
    /// there is none that can be read.
    ///
    /// - Parameter repairs: whether a file that is not a log becomes one, for those who have it
    ///   open: in which everything has changed.
    static func open(_ path: String, process: Int64, repairs: Bool = false) -> ChangeLog? {
        let descriptor = uninterrupted {
            open_with_mode(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0)
        }
        guard descriptor >= 0 else { return nil }
        let log = ChangeLog(descriptor, process: process, position: 0)
        if repairs, log.header() == nil {
            log.withLock { log.forget(log.damaged) }
            log.position = 0
        }
        guard let header = log.header() else { return nil }
        log.position = header.start
        return log
    }

    // MARK: What has changed here

    /// Appends a key. If there is no room for it, everything has changed.
    func append(_ key: [UInt8]) { append(key, mark: 0) }

    /// Appends a ban. Who does not know such records takes it for one that everything has changed.
    func append(_ ban: Ban) { append(PurgeJournal.content(of: ban), mark: Self.banMark) }

    private static let banMark: UInt32 = 1 << 31

    private func append(_ key: [UInt8], mark: UInt32) {
        withLock {
            guard var header = header() else { return forget(damaged) }
            let bytes = UInt64(Self.recordHeaderBytes + key.count)
            guard header.end - header.base + bytes <= Self.limit else { return forget(header) }
            var record = [UInt8]()
            record.reserveCapacity(Int(bytes))
            withUnsafeBytes(of: process) { record += $0 }
            withUnsafeBytes(of: UInt32(key.count) | mark) { record += $0 }
            record += key
            guard write(record, at: offset(of: header.end, header)) else { return forget(header) }
            let isCurrent = position == header.end
            header.end += bytes
            guard write(header: header) else { return forget(header) }
            if isCurrent { position = header.end }
        }
    }

    /// Everything has changed.
    func appendEverything() {
        withLock { forget(header() ?? damaged) }
    }

    /// What is assumed of a file that somebody else has written to.
    private var damaged: Header { Header(start: position, base: position, end: position) }

    /// Drops all records. Needs no space.
    private func forget(_ header: Header) {
        let isCurrent = position == header.end
        let end = header.end + 1
        _ = write(header: Header(start: header.start, base: end, end: end))
        if isCurrent { position = end }
    }

    /// A descriptor by which what was appended can be synchronized, without the log; the caller
    /// closes it. `nil` if there is none.
    func duplicate() -> Int32? {
        let copy = fcntl_int(descriptor, F_DUPFD_CLOEXEC, 0)
        return copy >= 0 ? copy : nil
    }

    // MARK: What has changed elsewhere

    /// Whether anything was appended that is not known here. One system call.
    var hasNews: Bool {
        var end: UInt64 = 0
        let count = uninterrupted { pread(descriptor, &end, 8, off_t(Self.headerBytes - 8)) }
        return count != 8 || end != position
    }

    /// What the others have appended since the last time.
    func news() -> News {
        withLock {
            guard let header = header() else {
                forget(damaged)
                return .everything
            }
            defer { position = header.end }
            guard position >= header.base, position <= header.end,
                let records = read(Int(header.end - position), at: offset(of: position, header))
            else { return .everything }
            return keys(of: records, from: position)
        }
    }

    private func keys(of records: [UInt8], from start: UInt64) -> News {
        var keys: [[UInt8]] = []
        var bans: [Ban] = []
        var place = start
        var rest = records[...]
        while !rest.isEmpty {
            guard rest.count >= Self.recordHeaderBytes else { return .everything }
            let (author, length) = rest.withUnsafeBytes { bytes in
                (
                    bytes.loadUnaligned(as: UInt64.self),
                    bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
                )
            }
            let count = Int(length & ~Self.banMark)
            rest = rest.dropFirst(Self.recordHeaderBytes)
            guard rest.count >= count else { return .everything }
            if author != process || place < allUntil {
                let content = Array(rest.prefix(count))
                if length & Self.banMark == 0 {
                    keys.append(content)
                } else {
                    guard let ban = content.withUnsafeBytes({ PurgeJournal.ban($0) }) else {
                        return .everything
                    }
                    bans.append(ban)
                }
            }
            rest = rest.dropFirst(count)
            place += UInt64(Self.recordHeaderBytes + count)
        }
        return .keys(keys, bans: bans)
    }

    // MARK: What is in the database

    /// Up to this position all changes are in the database.
    func settle(_ position: UInt64) {
        withLock {
            guard var header = header() else { return }
            header.start = position
            _ = write(header: header)
        }
    }

    /// All that is not in the database is news again, also what was appended here.
    func rewind() {
        guard let header = header() else { return }
        position = header.start
        allUntil = header.end
    }

    // MARK: The file

    /// Runs `body` while no other process reads or writes records.
    private func withLock<Result>(_ body: () -> Result) -> Result {
        // A file system without such locks has no processes that succeed each other.
        _ = uninterrupted { wait_for_byte(descriptor, Int16(F_WRLCK), 0) }
        defer { _ = lock_byte(descriptor, Int16(F_UNLCK), 0) }
        return body()
    }

    private func offset(of position: UInt64, _ header: Header) -> Int {
        Self.headerBytes + Int(position - header.base)
    }

    private func header() -> Header? {
        var header = Header()
        let count = uninterrupted { pread(descriptor, &header, Self.headerBytes, 0) }
        guard count == Self.headerBytes, header.kind == Self.kind, header.base <= header.end,
            header.end - header.base <= Self.limit
        else { return nil }
        return header
    }

    private func write(header: Header) -> Bool {
        withUnsafeBytes(of: header) { bytes in
            uninterrupted { pwrite(descriptor, bytes.baseAddress, bytes.count, 0) } == bytes.count
        }
    }

    private func write(_ bytes: [UInt8], at offset: Int) -> Bool {
        uninterrupted { pwrite(descriptor, bytes, bytes.count, off_t(offset)) } == bytes.count
    }

    private func read(_ count: Int, at offset: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let done = uninterrupted { pread(descriptor, &bytes, count, off_t(offset)) }
        return done == count ? bytes : nil
    }
}
