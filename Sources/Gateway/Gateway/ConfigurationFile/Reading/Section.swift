/// A mapping whose keys have been checked: duplicates, unknown keys and keys that do not work yet
/// are reported when it is made.
struct Section {
    private let values: [String: ConfigNode]
    let field: Field

    init(_ field: Field, entries: [ConfigNode.Entry], keys: [String], later: [String]) {
        self.field = field
        let distinct = Section.distinct(entries, in: field)
        var values: [String: ConfigNode] = [:]
        for entry in distinct {
            if keys.contains(entry.key) {
                values[entry.key] = entry.value
                continue
            }
            let path = Section.path(field.path, entry.key)
            if later.contains(entry.key) {
                field.validation.report(
                    entry.keyOrigin, path, "not yet supported", expected: "no such key")
                continue
            }
            let known = keys + later
            let nearest = NearestKey.nearest(to: entry.key, among: known)
            let hint = nearest.map { " (did you mean \(quoted($0))?)" } ?? ""
            field.validation.report(
                entry.keyOrigin, path, "unknown key\(hint)",
                expected: "one of \(known.joined(separator: ", "))")
        }
        self.values = values
    }

    /// The entries whose key stands for the first time; the others are reported.
    static func distinct(_ entries: [ConfigNode.Entry], in field: Field) -> [ConfigNode.Entry] {
        var first: [String: ConfigurationError.Origin] = [:]
        return entries.filter { entry in
            guard let earlier = first[entry.key] else {
                first[entry.key] = entry.keyOrigin
                return true
            }
            var place = ""
            if case .file(_, let line) = earlier { place = " (first on line \(line))" }
            field.validation.report(
                entry.keyOrigin, path(field.path, entry.key), "duplicate key\(place)",
                expected: "each key once")
            return false
        }
    }

    /// The value of a key, or nil when the key is missing.
    subscript(key: String) -> Field? {
        values[key].map {
            Field(
                node: $0, path: Section.path(field.path, key), validation: field.validation)
        }
    }

    /// The value of a key that must be there.
    func required(_ key: String, expected: String) -> Field? {
        if let value = self[key] { return value }
        field.validation.report(
            field.node.origin, Section.path(field.path, key), "is missing", expected: expected)
        return nil
    }

    /// The path of a key below another path. Keys that are no plain name are quoted.
    static func path(_ parent: String, _ key: String) -> String {
        let isName = !key.isEmpty && key.unicodeScalars.allSatisfy { isNameScalar($0) }
        let shown = isName && key.utf8.count <= 80 ? key : quoted(key)
        return parent.isEmpty ? shown : "\(parent).\(shown)"
    }
}

/// Letters, digits, `.`, `_` and `-` of ASCII.
func isNameScalar(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "a"..."z", "A"..."Z", "0"..."9", ".", "_", "-": true
    default: false
    }
}

/// Bytes of a listener's or pinset's name.
let maximumNameBytes = 64

/// Whether a text can be a name in logs and metric labels.
func isName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= maximumNameBytes
        && text.unicodeScalars.allSatisfy { isNameScalar($0) }
}
