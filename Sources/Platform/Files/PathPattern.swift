import CLinux

/// Why it cannot be said which paths match a pattern.
package enum PathPatternError: Error, Equatable {
    /// A folder cannot be read.
    case unreadable(FileError)
    /// More paths match than are wanted.
    case tooMany
}

/// A path in which `*`, `?` and `[…]` stand for characters of a name (glob(7)). A name that
/// begins with a dot is matched only by a pattern that begins with one.
package struct PathPattern: Sendable, Hashable {
    /// An absolute path, whose characters mean themselves.
    package let folder: String
    /// Relative to the folder, or absolute.
    package let text: String

    package init(_ text: String, in folder: String) { (self.text, self.folder) = (text, folder) }

    /// Whether it can match any other path than its text.
    package var isPattern: Bool { Self.isPattern(text) }

    private static func isPattern(_ text: some StringProtocol) -> Bool {
        text.utf8.contains { byte in
            byte == UInt8(ascii: "*") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "[")
        }
    }

    /// Whether it matches a name, the pattern being one without a slash.
    package static func matches(_ name: String, _ pattern: String) -> Bool {
        fnmatch(pattern, name, FNM_PERIOD | FNM_NOESCAPE) == 0
    }

    /// The absolute path of a match.
    package func path(of match: String) -> String {
        match.utf8.first == UInt8(ascii: "/") ? match : folder + "/" + match
    }

    /// The existing paths that match, written like the pattern, in the order of their bytes. A
    /// folder that is missing has none; one that cannot be read is an error.
    ///
    /// - Parameter most: The maximum number of paths, and of folders on the way to them.
    package func matches(most: Int) throws(PathPatternError) -> [String] {
        var found = [text.utf8.first == UInt8(ascii: "/") ? "/" : ""]
        let names = text.split(separator: "/")
        for (index, name) in names.enumerated() {
            var next: [String] = []
            for parent in found {
                let prefix = parent.isEmpty || parent == "/" ? parent : parent + "/"
                if Self.isPattern(name) {
                    let inside = path(of: parent.isEmpty ? "." : parent)
                    for entry in try Self.entries(ofFolder: inside)
                    where Self.matches(entry, String(name)) {
                        next.append(prefix + entry)
                    }
                } else if index < names.count - 1 || exists(prefix + name) {
                    next.append(prefix + name)
                }
                guard next.count <= most else { throw .tooMany }
            }
            found = next
        }
        return found.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// The folders that are searched for names, each with the pattern for them.
    ///
    /// - Parameter most: The maximum number of folders.
    package func searched(most: Int) -> [(folder: String, names: String)] {
        let names = text.split(separator: "/")
        return names.indices.filter { Self.isPattern(names[$0]) }.flatMap { index in
            let above = names[..<index].joined(separator: "/")
            let root = text.utf8.first == UInt8(ascii: "/") ? "/" : ""
            let parents =
                index == 0
                ? [root]
                : (try? PathPattern(root + above, in: folder).matches(most: most)) ?? []
            return parents.map { (path(of: $0.isEmpty ? "." : $0), String(names[index])) }
        }
    }

    /// The absolute path of the folder before the first name that is a pattern. It may be missing.
    package var base: String {
        let names = text.split(separator: "/").prefix { !Self.isPattern($0) }
        let root = text.utf8.first == UInt8(ascii: "/") ? "/" : ""
        return path(of: root + names.joined(separator: "/"))
    }

    private func exists(_ match: String) -> Bool {
        var status = stat()
        return lstat(path(of: match), &status) == 0
    }

    /// The names in a folder, without `.` and `..`; none if it is no folder.
    private static func entries(ofFolder path: String) throws(PathPatternError) -> [String] {
        guard let list = opendir(path) else {
            let error = FileError(.open, path)
            if error.code == ENOENT || error.code == ENOTDIR { return [] }
            throw .unreadable(error)
        }
        defer { closedir(list) }
        var names: [String] = []
        while let entry = readdir(list) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }
}
