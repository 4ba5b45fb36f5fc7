import CLinux
import PinfoldTLS

/// Identifies the state of the system's trust anchors: a reload adopts an update of them even if
/// the configuration is the same.
package struct SystemRootsVersion: Hashable, Sendable {
    /// Of the file and of the folders.
    private let files: FileVersions

    package init() {
        let (file, folders) = Self.places
        files = FileVersions(of: [file] + folders)
    }

    /// Where they are.
    package static var places: (file: String, folders: [String]) {
        let paths = TrustRoots.systemLocations.map { location in
            getenv(location.variable).map { String(cString: $0) } ?? location.standard
        }
        return (paths[0], paths[1].split(separator: ":").map(String.init))
    }
}
