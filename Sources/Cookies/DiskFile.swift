import CLinux

/// Files that are read as a whole.
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

    private static func lastError(_ path: String) -> CookieFileError {
        CookieFileError(path: path, problem: .system(__errno_location().pointee))
    }
}
