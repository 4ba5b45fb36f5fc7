import CLinux
import Files

/// Reads and replaces files as a whole.
enum DiskFile {
    /// What is at a path, after following symbolic links.
    private enum Kind {
        case file
        /// A device such as `/dev/null`: reads as empty and accepts any data.
        case characterDevice
    }

    /// Returns the content of a file, or `nil` if it does not exist or is a character device.
    static func contents(of path: String, most: Int) throws(CookieFileError) -> [UInt8]? {
        let file: OpenFile
        do throws(FileError) {
            file = try OpenFile(path)
        } catch {
            // Sockets and devices without a driver cannot be opened.
            let reason: CookieFileError.Reason
            switch error.code {
            case ENOENT: return nil
            case ENXIO: reason = .kind("a socket or a missing device")
            case let code: reason = .system(code)
            }
            throw CookieFileError(path: path, reason: reason)
        }
        guard try kind(file.kind, path) == .file else { return nil }
        let bytes: [UInt8]
        do throws(FileError) {
            bytes = try file.contents(most: most)
        } catch {
            throw CookieFileError(path: path, reason: .system(error.code))
        }
        guard bytes.count <= most else { throw CookieFileError(path: path, reason: .tooLarge) }
        return bytes
    }

    /// Replaces the content of a file atomically: even after a power failure it has either the old
    /// or the new content. If the path is a symbolic link, the file that it points to is replaced.
    /// A character device is written to. Anything else is left as it is.
    static func replace(
        _ path: String, by bytes: [UInt8], mode: mode_t
    ) throws(CookieFileError) {
        var status = stat()
        if stat(path, &status) == 0 {
            guard try kind(Int32(status.st_mode) & S_IFMT, path) == .file else {
                return try write(bytes, toDevice: path)
            }
        } else if __errno_location().pointee != ENOENT {
            throw lastError(path)
        }
        let target = try target(of: path)
        do throws(FileError) {
            try DurableFile.replace(target, by: bytes, mode: mode)
        } catch {
            throw CookieFileError(path: path, reason: .system(error.code))
        }
    }

    private static func kind(
        _ format: Int32, _ path: String
    ) throws(CookieFileError) -> Kind {
        let reason: CookieFileError.Reason
        switch format {
        case S_IFREG: return .file
        case S_IFCHR: return .characterDevice
        case S_IFDIR: reason = .system(EISDIR)
        case S_IFIFO: reason = .kind("a pipe")
        case S_IFSOCK: reason = .kind("a socket")
        default: reason = .kind("a device")
        }
        throw CookieFileError(path: path, reason: reason)
    }

    private static func write(
        _ bytes: [UInt8], toDevice path: String
    ) throws(CookieFileError) {
        let flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
        let descriptor = open_with_mode(path, flags, 0)
        guard descriptor >= 0 else { throw lastError(path) }
        defer { close(descriptor) }
        let code = writeAll(bytes[...], to: descriptor)
        guard code == 0 else { throw CookieFileError(path: path, reason: .system(code)) }
    }

    /// Resolves symbolic links in the last component of a path. Their target need not exist.
    private static func target(of path: String) throws(CookieFileError) -> String {
        var path = path
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        // The system follows as many.
        for _ in 0..<40 {
            let count = readlink(path, &buffer, buffer.count)
            guard count > 0 else { return path }
            let bytes = buffer[..<count].map { UInt8(bitPattern: $0) }
            guard let link = String(validating: bytes, as: UTF8.self) else {
                throw CookieFileError(path: path, reason: .system(EILSEQ))
            }
            path = link.hasPrefix("/") ? link : "\(Folder.of(path))/\(link)"
        }
        throw CookieFileError(path: path, reason: .system(ELOOP))
    }

    private static func lastError(_ path: String) -> CookieFileError {
        CookieFileError(path: path, reason: .system(__errno_location().pointee))
    }
}
