import CLinux
import Clocks
import Files

/// Reads the files that a configuration names.
enum ConfigurationFiles {
    /// The maximum size of a file that a configuration names (certificates, pins, tokens), in
    /// bytes.
    static let maximumBytes = 16 << 20

    /// Why a file could not be read, as a message for the user.
    struct ReadError: Error, Equatable {
        var text: String
        /// Whether others could write the file.
        var isOfOwnership = false
    }

    /// Reads a regular file. Anything else (a pipe, a device, a folder) is rejected at once:
    /// reading it could block forever, and with it the handling of signals.
    /// - Parameters:
    ///   - path: An absolute path, or one relative to the working folder.
    ///   - limit: The maximum size in bytes.
    static func read(_ path: String, limit: Int = maximumBytes) throws(ReadError) -> [UInt8] {
        try readOnce(path, limit: limit).content
    }

    /// Like `read`, for a file that only its owner should be able to read or write. If others can,
    /// `exposure` is a warning.
    /// - Parameter isForGroup: Whether its group may read it, too.
    static func readSecret(
        _ path: String, isForGroup: Bool = false
    ) throws(ReadError) -> (content: [UInt8], exposure: String?) {
        let (content, version) = try readOnce(path, limit: maximumBytes)
        if version.permissions & (isForGroup ? 0o037 : 0o077) == 0 { return (content, nil) }
        let mode = String(version.permissions, radix: 8)
        return (
            content,
            "is accessible to users other than its owner\(isForGroup ? " and group" : "") "
                + "(mode 0\(mode)); protect it with chmod \(isForGroup ? 640 : 600)"
        )
    }

    /// How long a file must be unchanged before its content counts as complete, since editors
    /// truncate a file before they write it.
    static let quietMilliseconds: Int64 = 150
    /// How many times a changing file is read again.
    static let attempts = 14

    /// The attributes that show whether a file has changed.
    struct Version: Equatable {
        var device: UInt
        var inode: UInt
        var size: Int
        /// The modification time, to the nanosecond. It can be set to any value.
        var seconds: Int
        var nanoseconds: Int
        /// The permission bits.
        var permissions: mode_t

        init(_ status: stat) {
            device = UInt(status.st_dev)
            inode = UInt(status.st_ino)
            size = Int(status.st_size)
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
            permissions = status.st_mode & 0o7777
        }

        func isSameFile(_ other: Version) -> Bool {
            device == other.device && inode == other.inode
        }

        /// Whether the last change is long enough ago.
        var isOld: Bool { isOld(atMilliseconds: Clock.wallMilliseconds()) }

        /// Like `isOld`, at a time in milliseconds since 1970.
        func isOld(atMilliseconds now: Int64) -> Bool {
            let latest = Int(now - ConfigurationFiles.quietMilliseconds)
            return (seconds, nanoseconds) <= (latest / 1000, latest % 1000 * 1_000_000)
        }
    }

    /// - Parameter problem: Why an open file must not be used, if it must not.
    static func readOnce(
        _ path: String, limit: Int, problem: (borrowing OpenFile) -> String? = { _ in nil }
    ) throws(ReadError) -> (content: [UInt8], version: Version) {
        guard !path.utf8.contains(0) else { throw ReadError(text: "has a NUL in its path") }
        let other: ReadError
        do throws(FileError) {
            let file = try OpenFile(path)
            if let kind = otherKind(file.kind) {
                other = ReadError(text: "is \(kind), not a regular file")
            } else if let problem = problem(file) {
                other = ReadError(text: problem, isOfOwnership: true)
            } else {
                let content = try file.contents(most: limit)
                if content.count <= limit { return (content, Version(file.status)) }
                other = ReadError(text: "is longer than \(limit) bytes")
            }
        } catch {
            throw ReadError(text: "cannot be read: \(error.reason)")
        }
        throw other
    }

    /// The type of a file that is not a regular file, or `nil` if it is one.
    static func otherKind(_ format: Int32) -> String? {
        switch format {
        case S_IFREG: nil
        case S_IFDIR: "a directory"
        case S_IFIFO: "a pipe"
        case S_IFSOCK: "a socket"
        case S_IFCHR, S_IFBLK: "a device"
        default: "something else"
        }
    }

    static func sleep(_ milliseconds: Int64) {
        var time = timespec(
            tv_sec: Int(milliseconds / 1000), tv_nsec: Int(milliseconds % 1000) * 1_000_000)
        nanosleep(&time, nil)
    }

    /// Makes a path absolute; relative paths are relative to `folder`. Removes `.` and repeated
    /// slashes, but keeps `..`, because after a symbolic link it is not the folder that the text
    /// suggests.
    static func absolute(_ path: String, in folder: String) -> String {
        let joined = path.hasPrefix("/") ? path : folder + "/" + path
        let parts = joined.split(separator: "/").filter { $0 != "." }
        return "/" + parts.joined(separator: "/")
    }
}
