import CLinux
import Files

/// Checks whether files and directories can be created and written, without creating any. Each
/// problem is a clause whose subject is a path: the one in question, or one above or below it.
enum PathAccess {
    /// Why a file cannot be opened for appending or created, or `nil` if it can.
    static func problemAppending(to path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let code = __errno_location().pointee
            guard code == ENOENT else {
                return "\(quoted(path: path)) cannot be written: \(text(code))"
            }
            return problem(inFolder: Folder.of(path))
        }
        if Int32(status.st_mode) & S_IFMT == S_IFDIR {
            return "\(quoted(path: path)) is a directory"
        }
        return access(path, W_OK) == 0
            ? nil : "\(quoted(path: path)) cannot be written: \(text(__errno_location().pointee))"
    }

    /// Why a folder cannot be written, or created with the folders above it, or `nil` if it can.
    static func problemMaking(folder path: String) -> String? {
        var status = stat()
        if stat(path, &status) == 0 { return problem(inFolder: path) }
        let code = __errno_location().pointee
        guard code == ENOENT, path != "/" else {
            return "\(quoted(path: path)) cannot be created: \(text(code))"
        }
        return problemMaking(folder: Folder.of(path))
    }

    /// Why one of these files, which are created if missing, cannot be written in a folder, or
    /// `nil` if they all can.
    static func problemMaking(files: [String], inFolder folder: String) -> String? {
        for file in files {
            var status = stat()
            let path = folder + "/" + file
            guard stat(path, &status) == 0 else { continue }
            guard Int32(status.st_mode) & S_IFMT == S_IFREG else {
                return "\(quoted(path: path)) is not a file"
            }
            guard access(path, R_OK | W_OK) == 0 else {
                return
                    "\(quoted(path: path)) cannot be written: \(text(__errno_location().pointee))"
            }
        }
        return nil
    }

    /// The size of a file system in bytes.
    struct Room: Equatable {
        var total: Int
        /// The space available to users other than root, plus the space that the cache's files in
        /// the folder already occupy.
        var free: Int
    }

    /// The room in the file system where a folder is or would be created, or `nil` if unknown.
    static func room(inFolder path: String) -> Room? {
        var figures = statvfs()
        if statvfs(path, &figures) == 0 {
            let unit = Int(clamping: figures.f_frsize)
            func bytes(_ blocks: fsblkcnt_t) -> Int {
                let (bytes, overflows) = Int(clamping: blocks).multipliedReportingOverflow(by: unit)
                return overflows ? .max : bytes
            }
            let free = bytes(figures.f_bavail).addingReportingOverflow(taken(inFolder: path))
            return Room(
                total: bytes(figures.f_blocks), free: free.overflow ? .max : free.partialValue)
        }
        guard __errno_location().pointee == ENOENT, path != "/" else { return nil }
        return room(inFolder: Folder.of(path))
    }

    /// The disk space of the cache's files in a folder, in bytes.
    private static func taken(inFolder folder: String) -> Int {
        ["cache.sqlite", "cache.sqlite-wal"].reduce(0) { sum, file in
            var status = stat()
            guard stat(folder + "/" + file, &status) == 0 else { return sum }
            return sum + Int(status.st_blocks) * 512
        }
    }

    /// Why nothing can be created in a folder, or who else could; `nil` if only those can who may.
    static func problemCreating(in folder: String) -> String? {
        if let problem = problem(inFolder: folder) { return problem }
        var status = stat()
        guard stat(folder, &status) == 0, status.st_mode & 0o002 != 0 else { return nil }
        return "\(quoted(path: folder)) can be written by everyone: others could listen there "
            + "first, and get what is meant for the gateway; name a folder that only its user can "
            + "write"
    }

    private static func problem(inFolder folder: String) -> String? {
        var status = stat()
        guard stat(folder, &status) == 0 else {
            let code = __errno_location().pointee
            return code == ENOENT
                ? "\(quoted(path: folder)) does not exist"
                : "\(quoted(path: folder)) cannot be read: \(text(code))"
        }
        guard Int32(status.st_mode) & S_IFMT == S_IFDIR else {
            return "\(quoted(path: folder)) is not a directory"
        }
        return access(folder, W_OK | X_OK) == 0
            ? nil : "\(quoted(path: folder)) cannot be written: \(text(__errno_location().pointee))"
    }

    private static func text(_ code: Int32) -> String {
        strerror(code).map { String(cString: $0) } ?? "error \(code)"
    }
}
