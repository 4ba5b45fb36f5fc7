import CLinux

/// Why a file or folder could not be used.
package struct ReportFolderError: Error, Sendable, Equatable, CustomStringConvertible {
    package var path: String
    /// The errno; 0: it is no regular file.
    package var code: Int32

    init(_ path: String, _ code: Int32 = __errno_location().pointee) {
        self.path = path
        self.code = code
    }

    package var description: String {
        "\(path): \(code == 0 ? "is no regular file" : String(cString: strerror(code)))"
    }
}

/// The files of one folder. A file is there whole or not at all, also after a crash.
struct ReportFolder {
    let path: String
    /// The folder's descriptor, locked: no other process uses the folder.
    private let descriptor: Int32

    /// Takes the folder for this process.
    ///
    /// - Parameter makes: it is made if it is not there.
    /// - Throws: where it cannot be made or written, and where another process has it.
    init(path: String, makes: Bool = true) throws(ReportFolderError) {
        self.path = path
        if makes { try Self.make(path) }
        let descriptor = open_with_mode(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw ReportFolderError(path) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, access(path, W_OK | X_OK) == 0 else {
            let error = ReportFolderError(path)
            close(descriptor)
            throw error
        }
        self.descriptor = descriptor
    }

    /// Lets go of the folder.
    func end() { close(descriptor) }

    private static func make(_ path: String) throws(ReportFolderError) {
        var end = path.utf8.startIndex
        while end < path.utf8.endIndex {
            end =
                path.utf8[path.utf8.index(after: end)...].firstIndex(of: UInt8(ascii: "/"))
                ?? path.utf8.endIndex
            let part = String(path[..<end])
            if mkdir(part, 0o700) != 0, __errno_location().pointee != EEXIST {
                throw ReportFolderError(part)
            }
        }
    }

    /// The names of the files, in order.
    func names() throws(ReportFolderError) -> [String] {
        guard let list = opendir(path) else { throw ReportFolderError(path) }
        defer { closedir(list) }
        var names: [String] = []
        while let entry = readdir(list) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// A file's bytes, one more than `most` where there are more; nil: there is none.
    func contents(_ name: String, most: Int) throws(ReportFolderError) -> [UInt8]? {
        try Self.contents(of: "\(path)/\(name)", most: most)
    }

    /// The bytes of the file at a path, likewise. Nothing that is no regular file is read, nor
    /// waited for.
    static func contents(
        of path: String, most: Int = ReportFile.maximumBytes
    ) throws(ReportFolderError) -> [UInt8]? {
        let flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC
        let descriptor = open_with_mode(path, flags, 0)
        guard descriptor >= 0 else {
            switch __errno_location().pointee {
            case ENOENT, ENOTDIR: return nil
            case ELOOP: throw ReportFolderError(path, 0)
            case let code: throw ReportFolderError(path, code)
            }
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw ReportFolderError(path) }
        guard Int32(status.st_mode) & S_IFMT == S_IFREG else { throw ReportFolderError(path, 0) }
        var bytes = [UInt8](repeating: 0, count: min(most, Int(status.st_size)) + 1)
        var filled = 0
        while filled < bytes.count {
            let count = bytes.withUnsafeMutableBytes {
                let rest = UnsafeMutableRawBufferPointer(rebasing: $0[filled...])
                return CLinux.read(descriptor, rest.baseAddress, rest.count)
            }
            if count < 0, __errno_location().pointee == EINTR { continue }
            guard count >= 0 else { throw ReportFolderError(path) }
            if count == 0 { break }
            filled += count
        }
        return Array(bytes[..<filled])
    }

    /// Writes a file, and gives it its name only when it is whole.
    ///
    /// - Parameter syncs: it is on the disk then; false: after the next ``sync()``.
    func write(
        _ bytes: [UInt8], to name: String, syncs: Bool = true
    ) throws(ReportFolderError) {
        try Self.write(bytes, to: "\(path)/\(name)", syncs: syncs)
        if syncs { _ = fsync(descriptor) }
    }

    /// Has all that was written on the disk.
    func sync() { _ = syncfs(descriptor) }

    /// Writes the file at a path, whose folder is made if it is not there.
    ///
    /// The file that becomes it is this process's own, whatever is found in its place.
    static func write(
        _ bytes: [UInt8], to path: String, syncs: Bool = true
    ) throws(ReportFolderError) {
        if let slash = path.lastIndex(of: "/") { try make(String(path[..<slash])) }
        let unfinished = "\(path).\(getpid())\(ReportFile.unfinishedSuffix)"
        unlink(unfinished)
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = open_with_mode(unfinished, flags, 0o644)
        guard descriptor >= 0 else { throw ReportFolderError(unfinished) }
        do throws(ReportFolderError) {
            defer { close(descriptor) }
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    CLinux.write(descriptor, $0.baseAddress, $0.count)
                }
                if count < 0, __errno_location().pointee == EINTR { continue }
                guard count > 0 else { throw ReportFolderError(unfinished) }
                rest = rest.dropFirst(count)
            }
            if syncs, fsync(descriptor) != 0 { throw ReportFolderError(unfinished) }
            if rename(unfinished, path) != 0 { throw ReportFolderError(path) }
        } catch {
            unlink(unfinished)
            throw error
        }
    }

    func remove(_ name: String) { unlink("\(path)/\(name)") }
}
