/// A mapping with checked keys: the initializer reports duplicate keys, unknown keys and keys that
/// are not yet supported.
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
                    entry.keyOrigin, path, "not yet supported", expected: "the key to be absent")
                continue
            }
            let known = keys + later
            let hint = field.validation.hint(for: entry.key, among: known)
            field.validation.report(
                entry.keyOrigin, path, "unknown key\(hint)",
                expected: "one of \(known.joined(separator: ", "))")
        }
        self.values = values
    }

    /// The first entry of each key. Further entries with the same key are reported.
    static func distinct(_ entries: [ConfigNode.Entry], in field: Field) -> [ConfigNode.Entry] {
        var first: [String: ConfigurationError.Origin] = [:]
        return entries.filter { entry in
            guard let earlier = first[entry.key] else {
                first[entry.key] = entry.keyOrigin
                return true
            }
            var place = ""
            if case .file(let name, let line) = earlier {
                let isHere = entry.keyOrigin.file == name
                place = " (first \(isHere ? "on line \(line)" : "in \(name):\(line)"))"
            }
            field.validation.report(
                entry.keyOrigin, path(field.path, entry.key), "duplicate key\(place)",
                expected: "each key once")
            return false
        }
    }

    /// The value of a key, or `nil` if the key is missing.
    subscript(key: String) -> Field? {
        values[key].map {
            Field(
                node: $0, path: Section.path(field.path, key), validation: field.validation)
        }
    }

    /// The value of a required key. If it is missing, an error is reported.
    func required(_ key: String, expected: String) -> Field? {
        if let value = self[key] { return value }
        field.validation.report(
            field.node.origin, Section.path(field.path, key), "is missing", expected: expected)
        return nil
    }

    /// The path of a key below another path. Keys that are not plain names are quoted.
    static func path(_ parent: String, _ key: String) -> String {
        let isName = !key.isEmpty && key.unicodeScalars.allSatisfy { isNameScalar($0) }
        let shown = isName && key.utf8.count <= 80 ? key : quoted(key)
        return parent.isEmpty ? shown : "\(parent).\(shown)"
    }
}

/// Whether a character is an ASCII letter or digit, or `.`, `_` or `-`.
func isNameScalar(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "a"..."z", "A"..."Z", "0"..."9", ".", "_", "-": true
    default: false
    }
}

/// The maximum length of the name of a listener or pinset, in bytes.
let maximumNameBytes = 64

/// Whether a text can be a name in logs and metric labels.
func isName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= maximumNameBytes
        && text.unicodeScalars.allSatisfy { isNameScalar($0) }
}
