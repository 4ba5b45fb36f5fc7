import CLinux

/// Files that either exist in full or not at all, even after a power loss. When these functions
/// return, the contents and the name are on the disk.
package enum DurableFile {
    /// Writes a file, replacing any existing file of that name atomically. Readers see either the
    /// old contents or the new.
    ///
    /// - Parameters:
    ///   - mode: the new file's permissions, before the process's umask is applied.
    ///   - temporaryPath: where the file is written before it is renamed; must be in the same
    ///     folder. If `nil`, a name that no other process chooses is used. Anything already at a
    ///     given path is removed: the caller must ensure that no other process writes there.
    /// - Throws: if any step fails. The old file is then still in place or, if only syncing the
    ///   folder failed, the new one is, but it may not survive a power loss.
    package static func replace(
        _ path: String, by bytes: [UInt8], mode: mode_t, temporaryPath: String? = nil
    ) throws(FileError) {
        if let temporaryPath { unlink(temporaryPath) }
        let unfinished = temporaryPath ?? UnfinishedFile.newPath(for: path)
        try make(unfinished, of: bytes, mode: mode, isSynced: true)
        guard rename(unfinished, path) == 0 else {
            let error = FileError(.rename, path)
            unlink(unfinished)
            throw error
        }
        try Folder.sync(Folder.of(path))
    }

    /// Creates a file with these contents at a path where nothing exists, not even a dangling link.
    ///
    /// - Parameter mode: the file's permissions, before the process's umask is applied.
    /// - Throws: also if something already exists at the path, which is left untouched. On failure
    ///   no new file is left behind.
    package static func create(
        _ path: String, of bytes: [UInt8], mode: mode_t
    ) throws(FileError) {
        try make(path, of: bytes, mode: mode, isSynced: true)
        do throws(FileError) {
            try Folder.sync(Folder.of(path))
        } catch {
            unlink(path)
            throw error
        }
    }

    /// Creates a file, or leaves none behind on failure.
    static func make(
        _ path: String, of bytes: [UInt8], mode: mode_t, isSynced: Bool
    ) throws(FileError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = try open(path, flags, mode)
        defer { close(descriptor) }
        do throws(FileError) {
            try write(bytes, to: descriptor, path)
            if isSynced { try sync(descriptor, path) }
        } catch {
            unlink(path)
            throw error
        }
    }

    /// Opens a file; the caller owns the descriptor.
    static func open(
        _ path: String, _ flags: Int32, _ mode: mode_t = 0
    ) throws(FileError) -> Int32 {
        while true {
            let descriptor = open_with_mode(path, flags, mode)
            if descriptor >= 0 { return descriptor }
            guard __errno_location().pointee == EINTR else { throw FileError(.open, path) }
        }
    }

    /// Writes all bytes, in as many calls as the system needs.
    private static func write(
        _ bytes: [UInt8], to descriptor: Int32, _ path: String
    ) throws(FileError) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                CLinux.write(
                    descriptor, $0.baseAddress.map { $0 + written }, $0.count - written)
            }
            if count < 0, __errno_location().pointee == EINTR { continue }
            guard count >= 0 else { throw FileError(.write, path) }
            guard count > 0 else { throw FileError(.write, path, EIO) }
            written += count
        }
    }

    static func sync(_ descriptor: Int32, _ path: String) throws(FileError) {
        while fsync(descriptor) != 0 {
            guard __errno_location().pointee == EINTR else { throw FileError(.sync, path) }
        }
    }
}

/// Folders, which hold the names of files.
package enum Folder {
    /// The folder that contains a file.
    package static func of(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Flushes the names in a folder to the disk.
    package static func sync(_ path: String) throws(FileError) {
        let descriptor = try DurableFile.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(descriptor) }
        do throws(FileError) {
            try DurableFile.sync(descriptor, path)
        } catch {
            // Some file systems do not support syncing a folder.
            guard error.code == EINVAL else { throw error }
        }
    }
}
