import CLinux

/// A file that gets its name only when it is whole and on the disk: until then it has a name that
/// no other process chooses. So a loss of power, too, leaves the file of before or this one.
///
/// For files that are finished together, or later; one that is written at once is the business of
/// ``DurableFile/replace(_:by:mode:temporaryPath:)``.
package struct UnfinishedFile: Sendable {
    /// How the names of files end that were not written to their end.
    package static let suffix = ".unfinished"

    /// Where it belongs.
    package let path: String
    /// Where it is until then.
    package let unfinishedPath: String

    /// Writes a file that is not on the disk yet. Its folder is there.
    ///
    /// It is this process's own, whatever is found in its place.
    ///
    /// - Parameter mode: of the file, as far as the process's mask lets it be.
    package init(_ bytes: [UInt8], for path: String, mode: mode_t) throws(FileError) {
        self.path = path
        unfinishedPath = Self.newPath(for: path)
        try DurableFile.make(unfinishedPath, of: bytes, mode: mode, isSynced: false)
    }

    /// A file that an earlier process did not finish.
    package init(found unfinishedPath: String, for path: String) {
        (self.path, self.unfinishedPath) = (path, unfinishedPath)
    }

    /// The name of the file that one with this name was to be; nil: it is none.
    package static func finishedName(of name: String) -> String? {
        guard name.hasSuffix(suffix) else { return nil }
        let rest = name.dropLast(suffix.count)
        guard let dot = rest.lastIndex(of: ".") else { return nil }
        let digits = rest[rest.index(after: dot)...]
        guard digits.utf8.count == 16, UInt64(digits, radix: 16) != nil else { return nil }
        return String(rest[..<dot])
    }

    /// A path that no other process chooses, beside the one that the file is to have.
    static func newPath(for path: String) -> String {
        let digits = String(UInt64.random(in: 0...UInt64.max), radix: 16)
        let zeros = String(repeating: "0", count: 16 - digits.utf8.count)
        return "\(path).\(zeros)\(digits)\(suffix)"
    }

    /// Gives it its name: it is on the disk then, and so is its name.
    package func finish() throws(FileError) {
        try sync()
        try rename()
        try Folder.sync(Folder.of(path))
    }

    /// Gives it its name where it is on the disk; the name is after the next ``Folder/sync(_:)``.
    package func rename() throws(FileError) {
        guard CLinux.rename(unfinishedPath, path) == 0 else { throw FileError(.rename, path) }
    }

    package func discard() { unlink(unfinishedPath) }

    private func sync() throws(FileError) {
        let flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC
        let descriptor = try DurableFile.open(unfinishedPath, flags)
        defer { close(descriptor) }
        try DurableFile.sync(descriptor, unfinishedPath)
    }
}
