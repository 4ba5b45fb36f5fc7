import CLinux
import PinfoldTLS

/// Identifies the state of the system's trust anchors: a reload adopts an update of them even if
/// the configuration is the same.
package struct SystemRootsVersion: Hashable, Sendable {
    /// Of the file and of the folder.
    private let files: FileVersions

    package init() { files = FileVersions(of: Self.paths) }

    /// Where they are: a file, and folders separated by colons.
    package static var paths: [String] {
        TrustRoots.systemLocations.map { location in
            getenv(location.variable).map { String(cString: $0) } ?? location.standard
        }
    }
}
