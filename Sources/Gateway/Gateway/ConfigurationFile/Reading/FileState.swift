import CLinux

/// What shows whether a file has changed: which it is, its size and times.
package struct FileState: Sendable, Hashable {
    /// Empty for a missing file.
    private let figures: [Int64]

    /// - Parameter path: An absolute path. Links are followed.
    init(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            figures = []
            return
        }
        figures = [
            Int64(bitPattern: UInt64(status.st_dev)), Int64(bitPattern: UInt64(status.st_ino)),
            Int64(status.st_size), Int64(status.st_mtim.tv_sec), Int64(status.st_mtim.tv_nsec),
            Int64(status.st_ctim.tv_sec), Int64(status.st_ctim.tv_nsec),
        ]
    }
}
