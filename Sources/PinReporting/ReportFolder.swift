import CLinux

/// Why a file or folder could not be used.
package struct ReportFolderError: Error, Sendable, Equatable, CustomStringConvertible {
    package var path: String
    package var code: Int32

    init(_ path: String, _ code: Int32 = __errno_location().pointee) {
        self.path = path
        self.code = code
    }

    package var description: String { "\(path): \(String(cString: strerror(code)))" }
}

/// The files of one folder. A file is there whole or not at all, also after a crash.
struct ReportFolder {
    let path: String
    /// The folder's descriptor, locked: no other process uses the folder.
    private let descriptor: Int32

    /// Makes the folder if it is not there, and takes it for this process.
    ///
    /// - Throws: where it cannot be made or written, and where another process has it.
    init(path: String) throws(ReportFolderError) {
        self.path = path
        try Self.make(path)
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

    /// A file's bytes, one more than `most` where there are more; nil: it cannot be read.
    func read(_ name: String, most: Int) -> [UInt8]? {
        Self.contents(of: "\(path)/\(name)", most: most)
    }

    static func contents(of path: String, most: Int = ReportFile.maximumBytes) -> [UInt8]? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        return [UInt8](unsafeUninitializedCapacity: most + 1) { buffer, count in
            count = fread(buffer.baseAddress, 1, most + 1, file)
        }
    }

    /// Writes a file, to the disk, and gives it its name only then.
    func write(_ bytes: [UInt8], to name: String) throws(ReportFolderError) {
        try Self.write(bytes, to: "\(path)/\(name)")
        _ = fsync(descriptor)
    }

    /// Writes the file at a path, whose folder is made if it is not there.
    static func write(_ bytes: [UInt8], to path: String) throws(ReportFolderError) {
        if let slash = path.lastIndex(of: "/") { try make(String(path[..<slash])) }
        let unfinished = path + ReportFile.unfinishedSuffix
        guard let file = fopen(unfinished, "we") else { throw ReportFolderError(unfinished) }
        let isWritten =
            fwrite(bytes, 1, bytes.count, file) == bytes.count && fflush(file) == 0
            && fsync(fileno(file)) == 0
        var code = __errno_location().pointee
        let isClosed = fclose(file) == 0
        if isWritten, isClosed, rename(unfinished, path) == 0 { return }
        if isWritten { code = __errno_location().pointee }
        unlink(unfinished)
        throw ReportFolderError(unfinished, code)
    }

    func remove(_ name: String) { unlink("\(path)/\(name)") }
}
