import CLinux
import DurableFiles

/// Files that are made whole or not at all, and never in the place of others.
struct NewFiles {
    /// Readable by its owner alone.
    static let secret: mode_t = 0o600
    /// Readable by everybody, as far as the process's mask lets it be.
    static let open: mode_t = 0o644

    private var made: [String] = []

    /// Makes the folder that a file is to be in, and its parents, for their owner alone.
    static func makeFolder(of path: String) throws(FileFailure) {
        var folder = path.hasPrefix("/") ? "/" : ""
        for part in path.split(separator: "/").dropLast() {
            folder += part + "/"
            if mkdir(folder, 0o700) != 0, !exists(folder) { throw FileFailure(folder) }
        }
    }

    /// Makes a file with this content and stores it durably.
    ///
    /// - Throws: for a path at which there is something already.
    mutating func write(_ bytes: [UInt8], to path: String, mode: mode_t) throws(FileFailure) {
        do throws(FileError) {
            try DurableFile.create(path, of: bytes, mode: mode)
        } catch {
            throw FileFailure(error.path, error.code)
        }
        made.append(path)
    }

    /// Gives a file another name beside the one that it has.
    ///
    /// - Throws: for a name at which there is something already.
    mutating func link(_ path: String, to other: String) throws(FileFailure) {
        guard CLinux.link(path, other) == 0 else { throw FileFailure(other) }
        made.append(other)
    }

    /// Removes what has been made.
    func remove() { for path in made { unlink(path) } }

    /// Puts a file in the place of another one, at once.
    static func replace(_ path: String, with other: String) throws(FileFailure) {
        guard rename(other, path) == 0 else { throw FileFailure(path) }
        // It is done, and stays so, also where the folder cannot be synced.
        try? Folder.sync(Folder.of(path))
    }

    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }
}

/// A system call on a file failed.
struct FileFailure: Error, CustomStringConvertible {
    let description: String

    /// - Parameter code: the error number; that of the call that was just made.
    init(_ path: String, _ code: Int32 = __errno_location().pointee) {
        let reason =
            code == EEXIST
            ? "exists already and is not overwritten"
            : strerror(code).map { String(cString: $0) } ?? "error \(code)"
        description = "\(path): \(reason)"
    }
}
