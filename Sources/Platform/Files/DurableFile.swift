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
            let code = writeAll(bytes[...], to: descriptor)
            guard code == 0 else { throw FileError(.write, path, code) }
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
        let descriptor = uninterrupted { open_with_mode(path, flags, mode) }
        guard descriptor >= 0 else { throw FileError(.open, path, -descriptor) }
        return descriptor
    }

    static func sync(_ descriptor: Int32, _ path: String) throws(FileError) {
        let result = uninterrupted { fsync(descriptor) }
        guard result == 0 else { throw FileError(.sync, path, -result) }
    }
}

/// Folders, which hold the names of files.
package enum Folder {
    /// The folder that contains a file.
    package static func of(_ path: String) -> String {
        // A slash counts even if a combining mark follows it.
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Creates a folder and those above it, if missing, accessible to their owner only. Whatever
    /// already has such a name is left as it is, even if it is not a folder.
    package static func make(_ path: String) throws(FileError) {
        var end = path.utf8.startIndex
        while end < path.utf8.endIndex {
            end =
                path.utf8[path.utf8.index(after: end)...].firstIndex(of: UInt8(ascii: "/"))
                ?? path.utf8.endIndex
            let part = String(path[..<end])
            guard mkdir(part, 0o700) != 0 else {
                // Write permission there does not imply read permission.
                try? sync(of(part))
                continue
            }
            let code = __errno_location().pointee
            // One that is not writable, or is on a read-only file system, may exist.
            var status = stat()
            guard code == EEXIST || stat(part, &status) == 0 else {
                throw FileError(.open, part, code)
            }
        }
    }

    /// Opens a folder, for example to lock it; the caller owns the descriptor.
    package static func open(_ path: String) throws(FileError) -> Int32 {
        try DurableFile.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    }

    /// Flushes the names in a folder to the disk.
    package static func sync(_ path: String) throws(FileError) {
        let descriptor = try open(path)
        defer { close(descriptor) }
        do throws(FileError) {
            try DurableFile.sync(descriptor, path)
        } catch {
            // Some file systems do not support syncing a folder.
            guard error.code == EINVAL else { throw error }
        }
    }
}
