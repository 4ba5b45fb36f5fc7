import CLinux
import HTTPCore

/// Why a Unix socket could not be opened.
public enum UnixSocketError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The path has more bytes than an address has room for.
    case pathTooLong
    /// There is something else at the path, which stays.
    case notASocket
    /// Another process listens there.
    case inUse
    /// Whether a process listens there cannot be found out.
    case unclear(Errno)
    /// The socket cannot be created in its folder.
    case folder(Errno)
    /// The socket cannot be given to its owner.
    case owner(Errno)
    case failed(Errno)

    public var description: String {
        switch self {
        case .pathTooLong:
            "the path is longer than the \(UnixSocketPath.maximumBytes) bytes that a Unix socket's "
                + "may have"
        case .notASocket: "there is a file of another kind, which is not replaced"
        case .inUse: "another process listens there"
        case .unclear(let error): "cannot find out whether another process listens there: \(error)"
        case .folder(let error) where error.code == ENOENT: "its folder does not exist"
        case .folder(let error): "it cannot be created in its folder: \(error)"
        case .owner(let error): "it cannot be given to its owner: \(error)"
        case .failed(let error): "\(error)"
        }
    }
}

/// The process at the other end of a Unix socket, as of when it connected (SO_PEERCRED).
public struct PeerProcess: Equatable, Sendable, CustomStringConvertible {
    public var pid: Int32
    public var user: UInt32
    public var group: UInt32

    public var description: String { "pid=\(pid) uid=\(user) gid=\(group)" }
}

/// Unix sockets, by their paths.
public enum UnixSockets {
    /// Which file a socket's path led to when it was opened.
    public struct Identity: Equatable, Sendable {
        var device: UInt64
        var inode: UInt64
    }

    private static let type =
        Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    /// How long another process that is opening a socket in the same folder is waited for.
    private static let lockAttempts = 100

    /// A listening socket. One that a process has left behind is replaced.
    ///
    /// The folder is locked meanwhile: of two processes that find the same one left behind, one
    /// replaces it, and the other then finds it in use.
    public static func listen(
        at socket: UnixSocketPath, backlog: Int32 = 4096
    ) throws(UnixSocketError) -> (descriptor: Int32, identity: Identity) {
        let path = socket.path
        guard path.utf8.count <= UnixSocketPath.maximumBytes else { throw .pathTooLong }
        let folder = lockFolder(of: path)
        defer { if let folder { Descriptors.close(folder) } }
        try removeStale(path)
        let descriptor = CLinux.socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { throw .failed(Errno.last) }
        do throws(UnixSocketError) {
            // The file gets its permissions from the socket: at no moment has it others' as well.
            guard fchmod(descriptor, mode_t(socket.mode)) == 0 else { throw .failed(Errno.last) }
            guard withAddress(path, { bind(descriptor, $0, $1) }) == 0 else {
                let error = Errno.last
                switch error.code {
                case EADDRINUSE: throw .inUse
                case ENOENT, EACCES, ENOTDIR, EROFS, ELOOP: throw .folder(error)
                default: throw .failed(error)
                }
            }
            if let owner = socket.owner, !give(path, to: owner) {
                let error = Errno.last
                unlink(path)
                throw .owner(error)
            }
            // The process's umask may have taken some away.
            guard chmod(path, mode_t(socket.mode)) == 0, let identity = identity(of: path),
                CLinux.listen(descriptor, backlog) == 0
            else {
                let error = Errno.last
                unlink(path)
                throw .failed(error)
            }
            return (descriptor, identity)
        } catch {
            Descriptors.close(descriptor)
            throw error
        }
    }

    /// Removes a socket's file, unless its path leads to another by now: a successor's.
    ///
    /// - Parameter unlessInUse: whether it stays, too, if somebody listens there.
    public static func remove(
        _ path: String, ifStill identity: Identity, unlessInUse: Bool = false
    ) {
        let folder = lockFolder(of: path)
        defer { if let folder { Descriptors.close(folder) } }
        guard self.identity(of: path) == identity else { return }
        if unlessInUse {
            try? removeStale(path)
        } else {
            unlink(path)
        }
    }

    /// Gives a socket's file other permissions and another owner, if its path still leads to it.
    /// The permissions stay if the owner does: they are not meant for that one.
    public static func setAccess(of socket: UnixSocketPath, ifStill identity: Identity) {
        guard self.identity(of: socket.path) == identity else { return }
        if let owner = socket.owner, !give(socket.path, to: owner) { return }
        chmod(socket.path, mode_t(socket.mode))
    }

    private static func give(_ path: String, to owner: UnixSocketPath.Owner) -> Bool {
        // The largest number leaves the group as it is (chown(2)).
        lchown(path, owner.user, owner.group ?? .max) == 0
    }

    /// Another descriptor of a socket.
    public static func duplicate(_ descriptor: Int32) throws(UnixSocketError) -> Int32 {
        let copy = fcntl_int(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw .failed(Errno.last) }
        return copy
    }

    /// The process at the other end; `nil` if unknown.
    public static func peer(of descriptor: Int32) -> PeerProcess? {
        var ids: (pid: Int32, user: UInt32, group: UInt32) = (0, 0, 0)
        var length = socklen_t(MemoryLayout.size(ofValue: ids))
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &ids, &length) == 0 else {
            return nil
        }
        return PeerProcess(pid: ids.pid, user: ids.user, group: ids.group)
    }

    /// The path that a socket is bound to, or `@` and its abstract name; empty if it has none.
    static func path(of descriptor: Int32) -> String {
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &length)
            }
        }
        let start = MemoryLayout<sa_family_t>.size
        guard result == 0, Int(length) > start else { return "" }
        return withUnsafeBytes(of: address.sun_path) { name in
            let name = name.prefix(Int(length) - start)
            let isAbstract = name.first == 0
            let bytes = isAbstract ? name.dropFirst() : name.prefix { $0 != 0 }
            return (isAbstract ? "@" : "") + String(decoding: bytes, as: UTF8.self)
        }
    }

    /// A connection to a socket, whose calls wait. For programs with nothing else to do.
    public static func connect(to path: String) throws(UnixSocketError) -> Int32 {
        guard path.utf8.count <= UnixSocketPath.maximumBytes else { throw .pathTooLong }
        let descriptor = CLinux.socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .failed(Errno.last) }
        guard withAddress(path, { CLinux.connect(descriptor, $0, $1) }) == 0 else {
            let error = Errno.last
            Descriptors.close(descriptor)
            throw .failed(error)
        }
        return descriptor
    }

    /// A connection to a socket, whose calls do not wait. The kernel makes it at once or not at
    /// all: EAGAIN says that as many wait to be accepted as its queue takes (unix(7)).
    public static func connectAtOnce(to path: String) throws(Errno) -> Int32 {
        guard path.utf8.count <= UnixSocketPath.maximumBytes else {
            throw Errno(code: ENAMETOOLONG)
        }
        let descriptor = CLinux.socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { throw Errno.last }
        while withAddress(path, { CLinux.connect(descriptor, $0, $1) }) != 0 {
            let error = Errno.last
            if error == .interrupted { continue }
            Descriptors.close(descriptor)
            throw error
        }
        return descriptor
    }

    // MARK: Parts

    /// Removes a socket at which no process listens.
    private static func removeStale(_ path: String) throws(UnixSocketError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            let error = Errno.last
            if error.code == ENOENT { return }
            throw .folder(error)
        }
        guard Int32(status.st_mode) & S_IFMT == S_IFSOCK else { throw .notASocket }
        let probe = CLinux.socket(AF_UNIX, type, 0)
        guard probe >= 0 else { throw .failed(Errno.last) }
        defer { Descriptors.close(probe) }
        guard withAddress(path, { CLinux.connect(probe, $0, $1) }) != 0 else { throw .inUse }
        let error = Errno.last
        switch error.code {
        case ECONNREFUSED:
            if unlink(path) != 0, Errno.last.code != ENOENT { throw .folder(Errno.last) }
        case ENOENT: break
        // Its queue is full, or it is of another type: it has a listener.
        case EAGAIN, EPROTOTYPE: throw .inUse
        default: throw .unclear(error)
        }
    }

    /// The file of a socket; `nil` if there is none at the path.
    public static func identity(of path: String) -> Identity? {
        var status = stat()
        guard lstat(path, &status) == 0, Int32(status.st_mode) & S_IFMT == S_IFSOCK else {
            return nil
        }
        return Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    }

    /// Whether a path leads to a socket, if to anything that can be looked at.
    public static func isSocket(at path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && Int32(status.st_mode) & S_IFMT == S_IFSOCK
    }

    /// A descriptor that holds the lock; `nil` if there is none to be had, in a folder that may not
    /// be read, for example.
    private static func lockFolder(of path: String) -> Int32? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
        let folder = parts.joined(separator: "/")
        let descriptor = open_with_mode(
            folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        for _ in 0..<lockAttempts {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
            guard Errno.last.code == EWOULDBLOCK || Errno.last.code == EINTR else { break }
            usleep(10_000)
        }
        Descriptors.close(descriptor)
        return nil
    }

    private static func withAddress(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
