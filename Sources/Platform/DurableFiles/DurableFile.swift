import CLinux

/// Files that are there whole or not at all, also after a loss of power. When these functions
/// return, bytes and name are on the disk.
package enum DurableFile {
    /// Has bytes in a file, in place of the one that has its name, if there is one. Readers see the
    /// one or the other.
    ///
    /// - Parameters:
    ///   - mode: of the new file, as far as the process's mask lets it be.
    ///   - temporaryPath: where it is until it is whole, in the same folder; nil: under a name that
    ///     no other process chooses. What is at a path that is given is removed: the caller sees to
    ///     it that no other process writes there.
    /// - Throws: where it could not be done. The old file is there then, or, if it was the folder
    ///   that could not be synced, the new one, which may not outlast a loss of power.
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

    /// Makes a file of bytes where there is nothing, not even a link that leads nowhere.
    ///
    /// - Parameter mode: of the file, as far as the process's mask lets it be.
    /// - Throws: also for a path at which there is something already, which stays as it is. There
    ///   is no file then that was not there before.
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

    /// Makes a file, or leaves none.
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

    /// Opens a file; the descriptor is the caller's.
    static func open(
        _ path: String, _ flags: Int32, _ mode: mode_t = 0
    ) throws(FileError) -> Int32 {
        while true {
            let descriptor = open_with_mode(path, flags, mode)
            if descriptor >= 0 { return descriptor }
            guard __errno_location().pointee == EINTR else { throw FileError(.open, path) }
        }
    }

    /// Writes all, in as many steps as the system takes.
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

/// Folders: what has the names of files.
package enum Folder {
    /// The folder of a file.
    package static func of(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Has the names of a folder's files on the disk.
    package static func sync(_ path: String) throws(FileError) {
        let descriptor = try DurableFile.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(descriptor) }
        do throws(FileError) {
            try DurableFile.sync(descriptor, path)
        } catch {
            // Some file systems know no such thing as a folder's sync.
            guard error.code == EINVAL else { throw error }
        }
    }
}
