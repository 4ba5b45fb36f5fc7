import CLinux
import Files

/// Why a file or folder could not be used.
package struct ReportFolderError: Error, Sendable, Equatable, CustomStringConvertible {
    package var path: String
    /// The errno, or 0 if it is not a regular file.
    package var code: Int32

    init(_ path: String, _ code: Int32 = __errno_location().pointee) {
        self.path = path
        self.code = code
    }

    /// Runs an operation on a file, and converts its error into this type.
    static func converting<Value>(
        _ work: () throws(FileError) -> Value
    ) throws(ReportFolderError) -> Value {
        do throws(FileError) {
            return try work()
        } catch {
            throw ReportFolderError(error.path, error.code)
        }
    }

    /// Whether another process has the folder.
    var isInUse: Bool { code == EWOULDBLOCK }

    package var description: String {
        if isInUse { return "\(path): another process uses it" }
        return "\(path): \(code == 0 ? "is not a regular file" : String(cString: strerror(code)))"
    }
}

/// The files of one folder. A file either exists in full or not at all, even after a power loss.
struct ReportFolder {
    /// The mode of its files: others may read them, if the folder lets them.
    static let mode: mode_t = 0o644

    let path: String
    /// The folder's descriptor, locked: no other process uses the folder.
    private let descriptor: Int32

    /// Locks the folder for this process.
    ///
    /// - Parameter makes: whether to create it if missing.
    /// - Throws: if it cannot be created or written, or if another process has it.
    init(path: String, makes: Bool = true) throws(ReportFolderError) {
        self.path = path
        let descriptor = try ReportFolderError.converting { () throws(FileError) in
            if makes { try Folder.make(path) }
            return try Folder.open(path)
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, access(path, W_OK | X_OK) == 0 else {
            let error = ReportFolderError(path)
            close(descriptor)
            throw error
        }
        self.descriptor = descriptor
    }

    /// Unlocks the folder.
    func end() { close(descriptor) }

    /// The names of the files, in order.
    func names() throws(ReportFolderError) -> [String] { try Self.names(in: path) }

    static func names(in path: String) throws(ReportFolderError) -> [String] {
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

    /// A file's bytes, one more than `most` if there are more, or `nil` if it does not exist.
    func contents(_ name: String, most: Int) throws(ReportFolderError) -> [UInt8]? {
        try Self.contents(of: "\(path)/\(name)", most: most)
    }

    /// The bytes of the file at a path, likewise. Anything but a regular file is neither read nor
    /// waited for.
    static func contents(
        of path: String, most: Int = ReportFile.maximumBytes
    ) throws(ReportFolderError) -> [UInt8]? {
        do throws(FileError) {
            let file = try OpenFile(path, followsLinks: false)
            if file.kind == S_IFREG { return try file.contents(most: most) }
        } catch {
            switch error.code {
            case ENOENT, ENOTDIR: return nil
            case ELOOP: break
            default: throw ReportFolderError(path, error.code)
            }
        }
        throw ReportFolderError(path, 0)
    }

    /// Writes a file durably.
    func write(_ bytes: [UInt8], to name: String) throws(ReportFolderError) {
        try Self.write(bytes, to: "\(path)/\(name)")
    }

    /// Writes a file that gets its name from ``finish(_:)``.
    func begin(_ bytes: [UInt8], for name: String) throws(ReportFolderError) -> UnfinishedFile {
        try ReportFolderError.converting { () throws(FileError) in
            try UnfinishedFile(bytes, for: "\(path)/\(name)", mode: Self.mode)
        }
    }

    /// Gives files their names, durably.
    func finish(_ files: [UnfinishedFile]) throws(ReportFolderError) {
        guard !files.isEmpty else { return }
        guard syncfs(descriptor) == 0 else { throw ReportFolderError(path) }
        try ReportFolderError.converting { () throws(FileError) in
            for file in files { try file.rename() }
            try Folder.sync(path)
        }
    }

    /// Gives a file that an earlier process did not finish its name.
    func finish(_ unfinished: String, as name: String) throws(ReportFolderError) {
        let file = UnfinishedFile(found: "\(path)/\(unfinished)", for: "\(path)/\(name)")
        try ReportFolderError.converting { () throws(FileError) in try file.finish() }
    }

    /// Writes the file at a path durably, creating its folder if missing.
    static func write(_ bytes: [UInt8], to path: String) throws(ReportFolderError) {
        try ReportFolderError.converting { () throws(FileError) in
            try Folder.make(Folder.of(path))
            try DurableFile.replace(path, by: bytes, mode: mode)
        }
    }

    func remove(_ name: String) { unlink("\(path)/\(name)") }
}
