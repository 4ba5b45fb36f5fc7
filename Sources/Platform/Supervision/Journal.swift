import CLinux

/// The system's journal as the reader of a stream (systemd-journald(8)).
package enum Journal {
    /// Whether a descriptor is the stream that the journal reads. Whoever redirected it since then
    /// left the variable as it was.
    package static func reads(_ descriptor: Int32) -> Bool {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return false }
        return names(
            environmentVariable("JOURNAL_STREAM"), device: UInt64(status.st_dev),
            inode: UInt64(status.st_ino))
    }

    /// Whether JOURNAL_STREAM, the journal's stream as `device:inode`, is this file.
    static func names(_ variable: String?, device: UInt64, inode: UInt64) -> Bool {
        guard let parts = variable?.split(separator: ":", omittingEmptySubsequences: false),
            parts.count == 2
        else { return false }
        return UInt64(parts[0]) == device && UInt64(parts[1]) == inode
    }
}
