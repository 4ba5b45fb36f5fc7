import CLinux

/// Identifies the state of some files by their stat(2) results.
package struct FileVersions: Hashable, Sendable {
    /// Empty for a missing file.
    private let states: [[Int64]]

    package init(of paths: [String]) {
        states = paths.map { path in
            var status = stat()
            guard stat(path, &status) == 0 else { return [] }
            return [
                Int64(bitPattern: UInt64(status.st_dev)), Int64(bitPattern: UInt64(status.st_ino)),
                Int64(status.st_size), Int64(status.st_mtim.tv_sec), Int64(status.st_mtim.tv_nsec),
                Int64(status.st_ctim.tv_sec), Int64(status.st_ctim.tv_nsec),
            ]
        }
    }
}
