import CLinux

/// A file that is reread when it has changed: by identity, size and times, with one stat(2) per
/// check.
struct WatchedFile {
    private struct Signature: Equatable {
        var device: UInt64
        var inode: UInt64
        var size: Int64
        var modified: timespec
        var changed: timespec

        static func == (left: Signature, right: Signature) -> Bool {
            left.device == right.device && left.inode == right.inode && left.size == right.size
                && left.modified.tv_sec == right.modified.tv_sec
                && left.modified.tv_nsec == right.modified.tv_nsec
                && left.changed.tv_sec == right.changed.tv_sec
                && left.changed.tv_nsec == right.changed.tv_nsec
        }
    }

    private let path: String
    private var signature: Signature?

    /// A file that has not been checked yet; a missing one is not an error.
    init(path: String) {
        self.path = path
    }

    /// Whether the file has changed since the last check (at first, compared to a missing one).
    mutating func hasChanged() -> Bool {
        var status = stat()
        var current: Signature?
        if stat(path, &status) == 0 {
            current = Signature(
                device: UInt64(status.st_dev), inode: UInt64(status.st_ino),
                size: Int64(status.st_size), modified: status.st_mtim, changed: status.st_ctim)
        }
        guard current != signature else { return false }
        signature = current
        return true
    }

    /// The file's bytes up to a limit plus one (so that the reader sees that there are more); empty
    /// if it cannot be read.
    func read(maximumBytes: Int) -> [UInt8] {
        guard let file = fopen(path, "re") else { return [] }
        defer { fclose(file) }
        return [UInt8](unsafeUninitializedCapacity: maximumBytes + 1) { buffer, count in
            count = fread(buffer.baseAddress, 1, maximumBytes + 1, file)
        }
    }
}
