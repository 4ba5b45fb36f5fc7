import PinfoldConfiguration
import Trust

/// Checks the tree of a policy before any of it is read: it may have the keys of ``PolicyKey`` and
/// no others, and name neither variables nor files. What is refused here never reaches what reads
/// configurations, which opens the files that they name.
struct PolicyTree {
    let validation: ConfigurationValidation

    private static let keys = Set(PolicyKey.allCases.map(\.rawValue))
    /// Every path above a key.
    private static let paths: Set<String> = {
        var paths: Set<String> = [""]
        for key in keys {
            let parts = key.split(separator: ".")
            for count in 1..<parts.count {
                paths.insert(parts.prefix(count).joined(separator: "."))
            }
        }
        return paths
    }()

    func check(_ root: ConfigNode) {
        if case .mapping = root.content {
        } else {
            // An empty one is more likely to be a mistake than meant.
            let problem =
                if case .null = root.content { "has no keys" } else { "is \(root.content.name)" }
            return validation.report(
                root.origin, "", problem, expected: "a mapping with hosts, pinsets or access, or {}"
            )
        }
        check(Field(node: root, path: "", validation: validation), at: "")
    }

    /// - Parameter place: the path without names of pinsets and indexes of elements.
    private func check(_ field: Field, at place: String) {
        if Self.keys.contains(place) { return checkValue(field, of: PolicyKey(rawValue: place)) }
        switch field.node.content {
        case .null: break
        case .scalar: checkScalars(field)
        case .sequence: for element in field.elements ?? [] { check(element, at: place) }
        case .mapping(let entries):
            for entry in Section.distinct(entries, in: field) {
                checkVariable(entry.key, entry.keyOrigin, Section.path(field.path, entry.key))
                let name = place == "pinsets" ? "NAME" : entry.key
                let inner = place.isEmpty ? name : "\(place).\(name)"
                guard Self.keys.contains(inner) || Self.paths.contains(inner) else {
                    refuse(entry, in: field, at: place)
                    continue
                }
                let value = Field(
                    node: entry.value, path: Section.path(field.path, entry.key),
                    validation: validation)
                check(value, at: inner)
            }
        }
    }

    private func refuse(_ entry: ConfigNode.Entry, in field: Field, at place: String) {
        let start = place.isEmpty ? "" : place + "."
        var known: [String] = []
        for key in PolicyKey.allCases where key.rawValue.hasPrefix(start) {
            let rest = key.rawValue.dropFirst(start.count)
            let name = String(rest.prefix { $0 != "." })
            if !known.contains(name) { known.append(name) }
        }
        validation.report(
            entry.keyOrigin, Section.path(field.path, entry.key), "may not be in a policy",
            expected: "one of \(known.joined(separator: ", "))")
    }

    private func checkValue(_ field: Field, of key: PolicyKey?) {
        checkScalars(field)
        guard key == .pinsetPins else { return }
        for element in field.elements ?? [field] {
            guard case .scalar(let text, _) = element.node.content,
                case .file? = try? Pin.parse(text)
            else { continue }
            element.fail(
                "\(quoted(text)) is a file, and a policy names none",
                expected: "sha256/BASE64, or a certificate's fingerprint in hex")
        }
    }

    /// Reports what looks like a variable, wherever it is.
    private func checkScalars(_ field: Field) {
        switch field.node.content {
        case .null: break
        case .scalar(let text, _): checkVariable(text, field.node.origin, field.path)
        case .sequence: for element in field.elements ?? [] { checkScalars(element) }
        case .mapping(let entries):
            for entry in entries {
                checkVariable(entry.key, entry.keyOrigin, field.path)
                checkScalars(
                    Field(
                        node: entry.value, path: Section.path(field.path, entry.key),
                        validation: validation))
            }
        }
    }

    private func checkVariable(
        _ text: String, _ origin: ConfigurationError.Origin, _ path: String
    ) {
        guard text.contains("${") else { return }
        validation.report(
            origin, path, "\(quoted(text)) names a variable, and a policy has none",
            expected: "the value itself")
    }
}
