import CLinux

/// A file that gets its final name only once it is complete and on the disk; until then it has a
/// name that no other process chooses. Even a power loss leaves either the previous file or this
/// one.
///
/// Use it for files that are finished together or later; to write a file in one step, use
/// ``DurableFile/replace(_:by:mode:temporaryPath:)``.
package struct UnfinishedFile: Sendable {
    /// The suffix of files that were not completed.
    package static let suffix = ".unfinished"

    /// The file's final path.
    package let path: String
    /// The file's path until then.
    package let unfinishedPath: String

    /// Writes the contents, without syncing them to the disk. The folder must exist.
    ///
    /// Anything already at the unfinished path is replaced.
    ///
    /// - Parameter mode: the file's permissions, before the process's umask is applied.
    package init(_ bytes: [UInt8], for path: String, mode: mode_t) throws(FileError) {
        self.path = path
        unfinishedPath = Self.newPath(for: path)
        try DurableFile.make(unfinishedPath, of: bytes, mode: mode, isSynced: false)
    }

    /// An unfinished file left behind by an earlier process.
    package init(found unfinishedPath: String, for path: String) {
        (self.path, self.unfinishedPath) = (path, unfinishedPath)
    }

    /// The final name of the file with this unfinished name, or `nil` if it is not an unfinished
    /// name.
    package static func finishedName(of name: String) -> String? {
        guard name.hasSuffix(suffix) else { return nil }
        let rest = name.dropLast(suffix.count)
        guard let dot = rest.lastIndex(of: ".") else { return nil }
        let digits = rest[rest.index(after: dot)...]
        guard digits.utf8.count == 16, UInt64(digits, radix: 16) != nil else { return nil }
        return String(rest[..<dot])
    }

    /// A path next to the final one that no other process chooses.
    package static func newPath(for path: String) -> String {
        // A number of 16 digits, without leading zeros.
        let digits = String(UInt64.random(in: 1 << 60 ... .max), radix: 16)
        return "\(path).\(digits)\(suffix)"
    }

    /// Renames the file to its final path; when this returns, both contents and name are on the
    /// disk.
    package func finish() throws(FileError) {
        try sync()
        try rename()
        try Folder.sync(Folder.of(path))
    }

    /// Syncs the contents and renames the file; the name is durable after the next
    /// ``Folder/sync(_:)``.
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
