import CLinux
import TLS

/// Tells one state of the system's trust anchors from another: an update of them is taken up by a
/// reload, even if the configuration is the same.
package struct SystemRootsVersion: Hashable, Sendable {
    /// What stat(2) says of the file and of the folder.
    private let states: [[Int64]]

    package init() {
        states = TrustRoots.systemLocations.map { location in
            let path = getenv(location.variable).map { String(cString: $0) } ?? location.standard
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
