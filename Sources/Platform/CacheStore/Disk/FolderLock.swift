import CLinux
import Files

/// The locks by which processes agree on who may do what with the store's folder. All of them end
/// with the process, however that ends.
///
/// - **The lock** itself, flock(2) on `cache.sqlite.lock`: whoever has it may write the database,
///   set it aside and remove it. It belongs to an open file description, so that it passes to
///   another process together with a descriptor, without being free in between.
/// - **Writing**, a lock on one byte of that file: held while the database is open for writing. Of
///   two processes that have the lock, because one has passed it to the other, only one writes.
/// - **Reading**, a shared lock on another byte: held by a process that has handed the database
///   over and still reads from it. While there is one, the database is opened for several
///   processes, its layout is not changed, and what that process reads is not removed.
/// - **Following**, a lock on a third byte: held by the process that writes, as long as it looks
///   into the log of changes before each lookup, and keeps what others have purged. Earlier
///   versions do not, and do not hold it.
struct FolderLock {
    private let path: String
    /// The descriptor with the lock; -1 without it.
    private var descriptor: Int32 = -1
    /// A descriptor of its own for the other two, which belong to a file description as well.
    private var claims: Int32 = -1
    /// The lock that was inherited, until it is used.
    private var inherited: Int32

    private static let readingByte: off_t = 0
    private static let writingByte: off_t = 1
    private static let followingByte: off_t = 2

    /// - Parameter inherited: a descriptor with the lock; -1 to take it.
    init(path: String, inherited: Int32 = -1) {
        self.path = path
        self.inherited = inherited
    }

    var isHeld: Bool { descriptor >= 0 }

    /// Takes the lock, unless it is held and its file is still there: otherwise another process
    /// could take the folder.
    mutating func take() throws(DatabaseFiles.FolderError) {
        if inherited >= 0 {
            descriptor = inherited
            inherited = -1
            _ = fcntl_int(descriptor, F_SETFD, FD_CLOEXEC)
        }
        if isHeld {
            if isCurrent { return }
            closeAll()
        }
        let opened = try open()
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
            let code = __errno_location().pointee
            close(opened)
            throw DatabaseFiles.FolderError(
                reason: code == EWOULDBLOCK ? .locked : .inputOutput,
                detail: code == EWOULDBLOCK
                    ? "\(path) is held by another process"
                    : "\(path): \(String(cString: strerror(code)))")
        }
        descriptor = opened
    }

    private func open() throws(DatabaseFiles.FolderError) -> Int32 {
        let opened = uninterrupted {
            open_with_mode(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        }
        guard opened < 0 else { return opened }
        let code = -opened
        let reason: DiskOffReason =
            switch code {
            case EROFS: .readOnly
            case ENOSPC, EDQUOT: .full
            default: .folder
            }
        throw DatabaseFiles.FolderError(
            reason: reason, detail: "\(path): \(String(cString: strerror(code)))")
    }

    /// Whether the lock file is still the one that was opened.
    private var isCurrent: Bool {
        var ours = stat()
        var there = stat()
        return fstat(descriptor, &ours) == 0 && stat(path, &there) == 0
            && ours.st_dev == there.st_dev && ours.st_ino == there.st_ino
    }

    /// Claims the right to write.
    mutating func beginWriting() throws(DatabaseFiles.FolderError) {
        if claims < 0 { claims = try open() }
        if lock_byte(claims, Int16(F_WRLCK), Self.writingByte) == 0 { return }
        let code = __errno_location().pointee
        // A file system without such locks has no processes that succeed each other.
        if code == EAGAIN || code == EACCES {
            throw DatabaseFiles.FolderError(
                reason: .locked, detail: "another process still writes the database")
        }
    }

    func endWriting() { _ = lock_byte(claims, Int16(F_UNLCK), Self.writingByte) }

    /// Says that this process follows the log of changes. If that cannot be said, nobody purges
    /// through it.
    func beginFollowing() { _ = lock_byte(claims, Int16(F_WRLCK), Self.followingByte) }

    func endFollowing() { _ = lock_byte(claims, Int16(F_UNLCK), Self.followingByte) }

    /// Whether another process follows the log of changes of a folder.
    /// - Parameter path: of the lock file.
    static func isFollowed(_ path: String) -> Bool {
        let descriptor = uninterrupted { open_with_mode(path, O_RDWR | O_CLOEXEC, 0) }
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return byte_is_locked(descriptor, followingByte) == 1
    }

    /// Says that this process reads; `false` if that is not possible.
    func beginReading() -> Bool { lock_byte(claims, Int16(F_RDLCK), Self.readingByte) == 0 }

    func endReading() { _ = lock_byte(claims, Int16(F_UNLCK), Self.readingByte) }

    /// Whether another process reads that has handed the database over.
    var hasReaders: Bool { claims >= 0 && byte_is_locked(claims, Self.readingByte) == 1 }

    /// A descriptor with the lock for another process; `nil` if there is none.
    func duplicate() -> Int32? {
        guard isHeld else { return nil }
        let copy = fcntl_int(descriptor, F_DUPFD_CLOEXEC, 0)
        return copy >= 0 ? copy : nil
    }

    /// Gives up the lock, and nothing else.
    mutating func release() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    /// Closes a descriptor that was inherited for nothing.
    static func discard(_ inherited: Int32) { close(inherited) }

    /// Gives up everything.
    mutating func closeAll() {
        release()
        if claims >= 0 { close(claims) }
        claims = -1
    }
}
