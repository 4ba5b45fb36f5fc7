/// A value of a configuration, with its origin.
///
/// The checks work on these nodes, independently of YAML and of the command line. Options become
/// nodes too, with the option as their origin.
package struct ConfigNode: Sendable {
    /// The shape of the value.
    package enum Content: Sendable {
        /// An empty value, `~` or `null`.
        case null
        /// A scalar. It is plain if it has no quotes, so that `true` may be a boolean.
        case scalar(String, isPlain: Bool)
        case sequence([ConfigNode])
        /// The entries in the order written, including duplicate keys.
        case mapping([Entry])

        /// The name of the shape in errors.
        var name: String {
            switch self {
            case .null: "nothing"
            case .scalar: "a single value"
            case .sequence: "a list"
            case .mapping: "a mapping"
            }
        }
    }

    /// A key and its value.
    package struct Entry: Sendable {
        package var key: String
        package var keyOrigin: ConfigurationError.Origin
        package var value: ConfigNode
    }

    package var origin: ConfigurationError.Origin
    package var content: Content
    /// A scalar as written, if it has variables; `content` has their values.
    package var written: WrittenScalar?

    /// The value of a key, the first if there are several.
    subscript(key: String) -> ConfigNode? {
        guard case .mapping(let entries) = content else { return nil }
        return entries.first { $0.key == key }?.value
    }

    /// Replaces the value of a key, or adds it. A null node becomes a mapping; any other node that
    /// is not a mapping is left for the checks to report.
    mutating func set(_ key: String, to value: ConfigNode) {
        switch content {
        case .mapping(var entries):
            if let index = entries.firstIndex(where: { $0.key == key }) {
                entries[index].value = value
            } else {
                entries.append(Entry(key: key, keyOrigin: value.origin, value: value))
            }
            content = .mapping(entries)
        case .null:
            content = .mapping([Entry(key: key, keyOrigin: value.origin, value: value)])
        case .scalar, .sequence:
            break
        }
    }

    /// This mapping without a key.
    func without(_ key: String) -> ConfigNode {
        guard case .mapping(let entries) = content else { return self }
        return ConfigNode(origin: origin, content: .mapping(entries.filter { $0.key != key }))
    }

    /// Adds values to the end of a list; a missing or null list becomes one.
    mutating func append(_ values: [ConfigNode]) {
        switch content {
        case .sequence(let present): content = .sequence(present + values)
        case .null: content = .sequence(values)
        case .scalar, .mapping: break
        }
    }
}
