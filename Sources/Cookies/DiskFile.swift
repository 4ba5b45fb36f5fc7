import CLinux

/// Files that are read and replaced as a whole.
enum DiskFile {
    /// The bytes of a file; nil: there is none.
    static func contents(of path: String, most: Int) throws(CookieFileError) -> [UInt8]? {
        let descriptor = open_with_mode(path, O_RDONLY | O_CLOEXEC, 0)
        guard descriptor >= 0 else {
            let error = lastError(path)
            if error.problem == .system(ENOENT) { return nil }
            throw error
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = CLinux.read(descriptor, &chunk, chunk.count)
            if count < 0, __errno_location().pointee == EINTR { continue }
            guard count >= 0 else { throw lastError(path) }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= most else {
                throw CookieFileError(path: path, problem: .tooLarge)
            }
        }
    }

    /// Has these bytes in a file, for its owner alone. They are on the disk before they get its
    /// name, and the name is on the disk when this returns.
    static func replace(_ path: String, by bytes: [UInt8]) throws(CookieFileError) {
        let unfinished =
            "\(path).\(String(UInt64.random(in: 0...UInt64.max), radix: 16)).unfinished"
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = open_with_mode(unfinished, flags, 0o600)
        guard descriptor >= 0 else { throw lastError(path) }
        do throws(CookieFileError) {
            defer { close(descriptor) }
            try write(bytes, to: descriptor, path)
            guard fsync(descriptor) == 0 else { throw lastError(path) }
            guard rename(unfinished, path) == 0 else { throw lastError(path) }
        } catch {
            unlink(unfinished)
            throw error
        }
        try sync(folderOf: path)
    }

    private static func write(
        _ bytes: [UInt8], to descriptor: Int32, _ path: String
    ) throws(CookieFileError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                CLinux.write(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0, __errno_location().pointee == EINTR { continue }
            guard count > 0 else { throw lastError(path) }
            rest = rest.dropFirst(count)
        }
    }

    private static func sync(folderOf path: String) throws(CookieFileError) {
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let descriptor = open_with_mode(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw lastError(path) }
        defer { close(descriptor) }
        // Some file systems know no such thing as a folder's sync.
        guard fsync(descriptor) == 0 || __errno_location().pointee == EINVAL else {
            throw lastError(path)
        }
    }

    private static func lastError(_ path: String) -> CookieFileError {
        CookieFileError(path: path, problem: .system(__errno_location().pointee))
    }
}
