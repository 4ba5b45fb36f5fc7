import CLinux
import Files

/// Creates files completely or not at all, and never overwrites existing ones.
struct NewFiles {
    /// Readable by its owner only.
    static let secret: mode_t = 0o600
    /// Readable by everybody, subject to the process's umask.
    static let open: mode_t = 0o644

    private var made: [String] = []

    /// Creates the folder for a file, and the folders above it, accessible to their owner only.
    static func makeFolder(of path: String) throws(NewFileError) {
        do throws(FileError) {
            try Folder.make(Folder.of(path))
        } catch {
            throw NewFileError(error.path, error.code)
        }
    }

    /// Creates a file with this content and stores it durably.
    ///
    /// - Throws: If the path already exists, or the file cannot be written.
    mutating func write(_ bytes: [UInt8], to path: String, mode: mode_t) throws(NewFileError) {
        do throws(FileError) {
            try DurableFile.create(path, of: bytes, mode: mode)
        } catch {
            throw NewFileError(error.path, error.code)
        }
        made.append(path)
    }

    /// Gives a file an additional name.
    ///
    /// - Throws: If the new name already exists, or the link cannot be created.
    mutating func link(_ path: String, to other: String) throws(NewFileError) {
        guard CLinux.link(path, other) == 0 else { throw NewFileError(other) }
        made.append(other)
    }

    /// Removes the files that were created.
    func remove() { for path in made { unlink(path) } }

    /// Atomically replaces a file with another one.
    static func replace(_ path: String, with other: String) throws(NewFileError) {
        guard rename(other, path) == 0 else { throw NewFileError(path) }
        // The rename has succeeded even if the folder cannot be synced.
        try? Folder.sync(Folder.of(path))
    }

    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }
}

/// A system call on a file failed.
struct NewFileError: Error, CustomStringConvertible {
    let description: String

    /// - Parameter code: The error number, by default that of the last system call.
    init(_ path: String, _ code: Int32 = __errno_location().pointee) {
        let reason =
            code == EEXIST
            ? "already exists and is not overwritten"
            : strerror(code).map { String(cString: $0) } ?? "error \(code)"
        description = "\(path): \(reason)"
    }
}
