import CLinux

/// A file that gets its name only when it is whole and on the disk: until then it has a name that
/// no other process chooses. So a loss of power, too, leaves the file of before or this one.
struct UnfinishedFile {
    /// How the names of files end that were not written to their end.
    static let suffix = ".unfinished"

    /// Where it belongs.
    let path: String
    /// Where it is until then.
    let unfinishedPath: String

    /// Writes a file that is not on the disk yet. Its folder is there.
    ///
    /// It is this process's own, whatever is found in its place.
    init(_ bytes: [UInt8], for path: String) throws(ReportFolderError) {
        self.path = path
        unfinishedPath = "\(path).\(Self.digits(UInt64.random(in: 0...UInt64.max)))\(Self.suffix)"
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = open_with_mode(unfinishedPath, flags, 0o644)
        guard descriptor >= 0 else { throw ReportFolderError(unfinishedPath) }
        defer { close(descriptor) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                CLinux.write(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0, __errno_location().pointee == EINTR { continue }
            guard count > 0 else {
                let error = ReportFolderError(unfinishedPath)
                discard()
                throw error
            }
            rest = rest.dropFirst(count)
        }
    }

    /// A file that an earlier process did not finish.
    init(found unfinishedPath: String, for path: String) {
        (self.path, self.unfinishedPath) = (path, unfinishedPath)
    }

    /// The name of the file that one with this name was to be; nil: it is none.
    static func finishedName(of name: String) -> String? {
        guard name.hasSuffix(suffix) else { return nil }
        let rest = name.dropLast(suffix.count)
        guard let dot = rest.lastIndex(of: ".") else { return nil }
        let digits = rest[rest.index(after: dot)...]
        guard digits.utf8.count == 16, UInt64(digits, radix: 16) != nil else { return nil }
        return String(rest[..<dot])
    }

    /// Gives it its name: it is on the disk then, and so is its name.
    func finish() throws(ReportFolderError) {
        try Self.sync(unfinishedPath, O_RDONLY | O_NOFOLLOW)
        try rename()
        try Self.sync(folder: Self.folder(of: path))
    }

    /// Gives it its name where it is on the disk; the name is after the next ``sync(folder:)``.
    func rename() throws(ReportFolderError) {
        guard CLinux.rename(unfinishedPath, path) == 0 else { throw ReportFolderError(path) }
    }

    func discard() { unlink(unfinishedPath) }

    /// Has the names of a folder's files on the disk.
    static func sync(folder: String) throws(ReportFolderError) {
        try sync(folder, O_RDONLY | O_DIRECTORY)
    }

    /// The folder of a file.
    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func sync(_ path: String, _ flags: Int32) throws(ReportFolderError) {
        let descriptor = open_with_mode(path, flags | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw ReportFolderError(path) }
        defer { close(descriptor) }
        // Some file systems know no such thing as a folder's sync.
        guard fsync(descriptor) == 0 || __errno_location().pointee == EINVAL else {
            throw ReportFolderError(path)
        }
    }

    private static func digits(_ number: UInt64) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }
}
