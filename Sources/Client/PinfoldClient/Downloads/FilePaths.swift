import CLinux
import Files

/// Operations on paths and the files at them.
enum FilePaths {
    /// Returns the absolute path. A relative path is resolved against the current folder.
    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/") else { return path }
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        guard getcwd(&buffer, buffer.count) != nil else { return path }
        let end = buffer.firstIndex(of: 0) ?? buffer.endIndex
        let folder = String(
            decoding: buffer[..<end].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return folder == "/" ? "/\(path)" : "\(folder)/\(path)"
    }

    /// Returns a canonical path: that of the folder without symbolic links, `.` and `..`, followed
    /// by the file name. The file need not exist. If its folder does not exist, the path is
    /// returned unchanged.
    static func resolved(_ path: String) -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        guard realpath(folder(of: path), &buffer) != nil else { return path }
        let end = buffer.firstIndex(of: 0) ?? buffer.endIndex
        let folder = String(
            decoding: buffer[..<end].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return folder == "/" ? "/\(name(of: path))" : "\(folder)/\(name(of: path))"
    }

    /// Returns the folder of an absolute path.
    static func folder(of path: String) -> String { Folder.of(path) }

    /// Returns the last component of a path.
    static func name(of path: String) -> String {
        String(path.split(separator: "/").last ?? "")
    }

    /// Flushes a folder's entries to disk.
    static func sync(folder: String) throws(DownloadError.Reason) {
        do throws(FileError) {
            try Folder.sync(folder)
        } catch {
            throw FileOperationError.of(error)
        }
    }

    /// Checks a destination before anything is written.
    ///
    /// - Parameters:
    ///   - path: The absolute path of the destination.
    ///   - folder: The folder of the partial file, or `nil` if it is the same.
    static func check(
        destination path: String, replaces: Bool, partialIn folder: String?
    ) throws(DownloadError.Reason) {
        guard !name(of: path).isEmpty, !path.hasSuffix("/"), !path.utf8.contains(0) else {
            throw .destinationInvalid(path, expected: "the path of a file")
        }
        var status = stat()
        if stat(path, &status) == 0 {
            switch Int32(status.st_mode) & S_IFMT {
            case S_IFREG: break
            case S_IFDIR:
                throw .destinationInvalid(path, expected: "the path of a file, not a directory")
            default:
                throw .destinationInvalid(path, expected: "a regular file, or none")
            }
            guard replaces else { throw .destinationExists(path) }
        }
        var ownStatus = stat()
        let own = Self.folder(of: path)
        guard stat(own, &ownStatus) == 0 else { throw FileOperationError.last(.open, own) }
        guard let folder else { return }
        guard stat(folder, &status) == 0 else { throw FileOperationError.last(.open, folder) }
        guard status.st_dev == ownStatus.st_dev else {
            throw .destinationInvalid(
                path,
                expected: "a path on the file system of the partial file's directory \(folder)")
        }
    }

    /// Renames a file atomically.
    static func move(
        _ path: String, to destination: String, replaces: Bool
    ) throws(DownloadError.Reason) {
        if replaces {
            guard rename(path, destination) == 0 else {
                throw FileOperationError.last(.move, destination)
            }
            return
        }
        // A hard link fails if the name exists; a rename would replace the file.
        if link(path, destination) == 0 {
            unlink(path)
            return
        }
        switch __errno_location().pointee {
        case EEXIST: throw .destinationExists(destination)
        case EPERM, EOPNOTSUPP: try claim(path, destination)
        default: throw FileOperationError.last(.move, destination)
        }
    }

    /// The same for file systems without hard links, such as FAT: an empty file reserves the name.
    private static func claim(
        _ path: String, _ destination: String
    ) throws(DownloadError.Reason) {
        let descriptor = open_with_mode(destination, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else {
            guard __errno_location().pointee != EEXIST else {
                throw .destinationExists(destination)
            }
            throw FileOperationError.last(.move, destination)
        }
        close(descriptor)
        guard rename(path, destination) == 0 else {
            throw FileOperationError.last(.move, destination)
        }
    }

    /// Identifies the current boot of the machine; empty if the system does not provide it.
    static let boot: String = {
        let bytes = contents(of: "/proc/sys/kernel/random/boot_id", most: 64) ?? []
        return String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
    }()

    /// Returns the content of a file, or `nil` if it cannot be read or is too long.
    static func contents(of path: String, most: Int) -> [UInt8]? {
        do throws(FileError) {
            let bytes = try OpenFile(path, followsLinks: false).contents(most: most)
            return bytes.count <= most ? bytes : nil
        } catch {
            return nil
        }
    }
}

extension FileOperationError {
    /// Converts the error of a file operation.
    static func of(_ error: FileError) -> DownloadError.Reason {
        let operation: Operation =
            switch error.operation {
            case .open: .open
            case .read: .read
            case .write: .write
            case .sync: .sync
            case .rename: .move
            }
        return last(operation, error.path, error.code)
    }
}
