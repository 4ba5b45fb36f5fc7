import PinfoldConfiguration

/// Adds a policy's document to the local one: its elements follow the local ones, and its single
/// values take their place, to be compared with them afterwards.
struct PolicyMerge {
    let validation: ConfigurationValidation
    /// How many elements of lists are local, by the lists' paths.
    private(set) var localCounts: [String: Int] = [:]

    init(validation: ConfigurationValidation) { self.validation = validation }

    /// - Parameters:
    ///   - policy: a document that ``PolicyTree`` has found nothing in.
    ///   - root: the local document.
    mutating func add(_ policy: ConfigNode, to root: inout ConfigNode) {
        if let hosts = policy["hosts"] {
            root.set("hosts", to: joined(root["hosts"], hosts, "hosts"))
        }
        if let pinsets = policy["pinsets"] {
            var entries: [ConfigNode.Entry] = []
            if case .mapping(let own)? = root["pinsets"]?.content { entries = own }
            switch pinsets.content {
            case .null: break
            case .mapping(let added):
                var all = root["pinsets"] ?? pinsets
                all.content = .mapping(entries + added)
                root.set("pinsets", to: all)
            case .scalar, .sequence:
                validation.report(
                    pinsets.origin, "pinsets", "is \(pinsets.content.name)",
                    expected: "a mapping of names to pinsets")
            }
        }
        guard let access = policy["access"] else { return }
        guard case .mapping(let entries) = access.content else {
            if case .null = access.content { return }
            validation.report(
                access.origin, "access", "is \(access.content.name)", expected: "a mapping")
            return
        }
        var merged = root["access"] ?? ConfigNode(origin: access.origin, content: .null)
        for entry in entries {
            switch entry.key {
            case "rules":
                merged.set(
                    "rules", to: joined(merged["rules"], entry.value, "access.rules"))
            case "destinations":
                switch entry.value.content {
                case .null, .mapping: break
                case .scalar, .sequence:
                    validation.report(
                        entry.value.origin, "access.destinations",
                        "is \(entry.value.content.name)", expected: "a mapping with deny")
                }
                guard let deny = entry.value["deny"] else { continue }
                var destinations =
                    merged["destinations"]
                    ?? ConfigNode(origin: entry.value.origin, content: .null)
                destinations.set(
                    "deny", to: joined(destinations["deny"], deny, "access.destinations.deny"))
                merged.set("destinations", to: destinations)
            default:
                merged.set(entry.key, to: entry.value)
            }
        }
        root.set("access", to: merged)
    }

    /// A list of both documents' elements.
    private mutating func joined(
        _ own: ConfigNode?, _ added: ConfigNode, _ path: String
    ) -> ConfigNode {
        var elements: [ConfigNode] = []
        if case .sequence(let local)? = own?.content { elements = local }
        localCounts[path] = elements.count
        switch added.content {
        case .null: return own ?? added
        case .sequence(let more):
            var list = own ?? added
            list.content = .sequence(elements + more)
            return list
        case .scalar, .mapping:
            validation.report(
                added.origin, path, "is \(added.content.name)", expected: "a list")
            return own ?? added
        }
    }

    /// A key's path as it is in the policy alone: elements of lists are counted from its own first.
    func ownPath(_ path: String) -> String {
        for (list, count) in localCounts where path.hasPrefix(list + "[") {
            let rest = path.dropFirst(list.count + 1)
            guard let number = Int(rest.prefix { $0 != "]" }), number >= count else { continue }
            return "\(list)[\(number - count)" + rest.drop { $0 != "]" }
        }
        return path
    }
}
