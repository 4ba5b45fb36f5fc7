import CLinux
import Files

/// The folders in which something changes when a configuration's inputs do, with the names in
/// question.
///
/// A path leads over as many folders as it has symbolic links: a volume of Kubernetes is a folder
/// with links to `..data/name`, and `..data` is a link that is replaced when all files are. Folders
/// on the way that are no links are not watched, only the one that the path ends in: what happens
/// to those above is found by looking at the files from time to time.
struct InputPlaces {
    /// As many links as Linux follows.
    private static let maximumLinks = 40

    private(set) var names: [String: Set<String>] = [:]
    private var patterns: [String: Set<String>] = [:]

    init(of inputs: ConfigurationInputs) {
        for path in inputs.states.keys { _ = walk(path) }
        for pattern in inputs.matches.keys {
            _ = walk(pattern.base + "/.")
            for (folder, names) in pattern.searched(most: SourceFiles.maximumFiles) {
                let place = ConfigurationFiles.absolute(folder, in: "/")
                // A link to the folder is on the way, too.
                patterns[walk(place + "/."), default: []].insert(names)
            }
        }
    }

    var folders: Set<String> { Set(names.keys).union(patterns.keys) }

    /// Whether an event may be about the inputs.
    func concern(_ event: FolderEvents.Event) -> Bool {
        switch event {
        case .folder, .lost: true
        case .name(let name, let folder):
            names[folder]?.contains(name) ?? false
                || patterns[folder]?.contains { PathPattern.matches(name, $0) } ?? false
        }
    }

    /// Adds the places of a path and of its links. Returns the last folder that exists.
    private mutating func walk(_ path: String) -> String {
        var folder = "/"
        var rest = Array(path.split(separator: "/").reversed())
        var links = 0
        while let name = rest.popLast() {
            if name == "." { continue }
            if name == ".." {
                folder = Folder.of(folder)
                continue
            }
            let here = folder == "/" ? "/\(name)" : "\(folder)/\(name)"
            var status = stat()
            guard lstat(here, &status) == 0 else {
                names[folder, default: []].insert(String(name))
                return folder
            }
            switch Int32(status.st_mode) & S_IFMT {
            case S_IFLNK:
                names[folder, default: []].insert(String(name))
                links += 1
                guard links <= Self.maximumLinks, let target = Self.target(of: here) else {
                    return folder
                }
                if target.hasPrefix("/") { folder = "/" }
                rest += target.split(separator: "/").reversed()
            case S_IFDIR: folder = here
            default:
                names[folder, default: []].insert(String(name))
                return folder
            }
        }
        return folder
    }

    private static func target(of link: String) -> String? {
        let size = Int(PATH_MAX)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { buffer in
            guard let bytes = buffer.baseAddress else { return nil }
            let count = readlink(link, bytes, size)
            guard count > 0 else { return nil }
            return String(
                decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
        }
    }
}
