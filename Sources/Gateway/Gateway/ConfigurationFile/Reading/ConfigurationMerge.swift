/// Puts the document of an included file on top of those before it: mappings are merged key by
/// key, lists are appended, and nothing else is written twice.
struct ConfigurationMerge {
    let validation: ConfigurationValidation

    func add(_ node: ConfigNode, to root: inout ConfigNode) {
        // Included files include no others.
        if case .mapping(let entries) = node.content {
            for entry in entries where entry.key == SourceFiles.key {
                validation.report(
                    entry.keyOrigin, entry.key, "is in an included file",
                    expected: "it only in the file that is named on the command line")
            }
        }
        merge(node.without(SourceFiles.key), into: &root, path: "")
    }

    private func merge(_ node: ConfigNode, into base: inout ConfigNode, path: String) {
        switch (base.content, node.content) {
        case (_, .null): break
        case (.null, _): base = node
        case (.sequence(let first), .sequence(let more)): base.content = .sequence(first + more)
        case (.mapping(var entries), .mapping(let added)):
            merge(added, into: &entries, path: path)
            base.content = .mapping(entries)
        case (.scalar, _), (.sequence, _), (.mapping, _):
            validation.report(
                node.origin, path, "is written twice, first in \(base.origin.place(key: ""))",
                expected: "it once, in one of the files")
        }
    }

    private func merge(
        _ added: [ConfigNode.Entry], into entries: inout [ConfigNode.Entry], path: String
    ) {
        var places: [String: Int] = [:]
        for (index, entry) in entries.enumerated() where places[entry.key] == nil {
            places[entry.key] = index
        }
        var seen: Set<String> = []
        for entry in added {
            // A key that a file has twice is reported like any other.
            guard seen.insert(entry.key).inserted, let index = places[entry.key] else {
                entries.append(entry)
                continue
            }
            let keyPath = Section.path(path, entry.key)
            if case .null = entries[index].value.content {
                entries[index] = entry
            } else {
                merge(entry.value, into: &entries[index].value, path: keyPath)
            }
        }
    }
}
