import PinfoldConfiguration

/// Compares values as they are printed with every default filled in: whatever can be configured is
/// printed, so that nothing is forgotten, and what is written in another way is no difference.
struct NodeComparison {
    typealias Detail = ConfigurationDifference.Detail

    /// The section, for what values mean.
    let section: String
    private(set) var details: [Detail] = []

    init(_ section: String) { self.section = section }

    /// The keys of a mapping as they are printed.
    static func node<Values>(_ table: KeyTable<Values>, _ values: Values) -> ConfigNode {
        var yaml = YAMLText()
        yaml.lines(0, table, values)
        return (try? YAMLDocument.parse(Array(yaml.text.utf8), name: ""))
            ?? ConfigNode(origin: .builtIn, content: .scalar(yaml.text, isPlain: false))
    }

    /// Notes where two values differ; `nil` is a value that is not set.
    mutating func compare(_ old: ConfigNode?, _ new: ConfigNode?, _ key: String = "") {
        switch (old?.content, new?.content) {
        case (.mapping(let one)?, .mapping(let other)?):
            var names = one.map(\.key)
            names += other.map(\.key).filter { !names.contains($0) }
            for name in names {
                compare(old?[name], new?[name], key.isEmpty ? name : "\(key).\(name)")
            }
        case (.sequence(let one)?, .sequence(let other)?): compare(lists: one, other, key)
        case (.null?, .mapping?), (.mapping?, .null?), (nil, .mapping?), (.mapping?, nil):
            // The whole of it is new, or gone.
            add(key, old.map(Self.text), new.map(Self.text))
        default: add(key, old.map(Self.text), new.map(Self.text))
        }
    }

    private mutating func add(_ key: String, _ old: String?, _ new: String?) {
        guard old != new else { return }
        details.append(
            Detail(
                key: key, before: old, after: new,
                meaning: ValueMeanings.text(section, key, new)))
    }

    // MARK: Lists

    private mutating func compare(lists old: [ConfigNode], _ new: [ConfigNode], _ key: String) {
        if let one = Self.named(old), let other = Self.named(new), !one.isEmpty || !other.isEmpty {
            return compare(named: one, other, key)
        }
        compare(texts: old.map(Self.text), new.map(Self.text), key)
    }

    /// Compares lists of texts.
    mutating func compare(texts old: [String], _ new: [String], _ key: String) {
        guard old != new else { return }
        let (former, present) = (Set(old), Set(new))
        let added = new.filter { !former.contains($0) }
        let removed = old.filter { !present.contains($0) }
        let isOrdered = !Self.unordered.contains(String(key.split(separator: ".").last ?? ""))
        let kept = (old.filter(present.contains), new.filter(former.contains))
        if isOrdered, kept.0 != kept.1 {
            details.append(Detail(key: key, before: Self.list(old), after: Self.list(new)))
        } else if !added.isEmpty || !removed.isEmpty {
            details.append(Detail(key: key, added: added, removed: removed))
        }
    }

    /// Compares lists of mappings, whose first keys tell which is which.
    private mutating func compare(
        named old: [(name: String, node: ConfigNode)], _ new: [(name: String, node: ConfigNode)],
        _ key: String
    ) {
        compare(texts: old.map(\.name), new.map(\.name), key)
        for (name, node) in new {
            guard let former = old.first(where: { $0.name == name }) else { continue }
            compare(former.node, node, "\(key)[\(name)]")
        }
    }

    private static func named(_ list: [ConfigNode]) -> [(name: String, node: ConfigNode)]? {
        var result: [(name: String, node: ConfigNode)] = []
        var names: Set<String> = []
        for node in list {
            guard case .mapping(let entries) = node.content, let first = entries.first else {
                return nil
            }
            let name = text(first.value)
            guard names.insert(name).inserted else { return nil }
            result.append((name, node))
        }
        return result
    }

    /// Lists whose order has no effect.
    private static let unordered: Set<String> = [
        "match", "clients", "connectPorts", "allow", "deny", "noProxy", "listeners", "users",
        "groups", "hosts", "lists", "ports", "methods", "times", "pinsets", "pins", "roots",
        "crls", "bypassFields", "fields", "from", "trustedProxies", "authentication",
        "clientSubjects", "serverFirst", "anchors", "files",
    ]

    // MARK: Texts

    static func text(_ node: ConfigNode) -> String {
        switch node.content {
        case .null: "nothing"
        case .scalar(let text, _): text
        case .sequence(let nodes): list(nodes.map(text))
        case .mapping(let entries):
            entries.isEmpty
                ? "nothing"
                : "{ \(entries.map { "\($0.key): \(text($0.value))" }.joined(separator: ", ")) }"
        }
    }

    private static func list(_ texts: [String]) -> String {
        texts.isEmpty ? "nothing" : "[\(Detail.listed(texts))]"
    }
}

/// What some values mean, for whoever reads what has changed.
enum ValueMeanings {
    static func text(_ section: String, _ key: String, _ value: String?) -> String? {
        guard let value else { return nil }
        return meanings["\(section).\(key)=\(value)"]
    }

    private static let meanings: [String: String] = [
        "pinsets.enforce=true": "a server without a pinned key is refused",
        "pinsets.enforce=false": "a server without a pinned key is only reported",
        "pinsets.afterExpiry=report": "once it has expired, it only reports",
        "pinsets.afterExpiry=refuse": "once it has expired, it refuses every server",
        "pinsets.allowInvalidCertificates=true": "chains need not be valid",
        "hosts.upgrade=https": "requests in clear text are sent as verified TLS",
        "hosts.upgrade=none": "requests in clear text are no longer sent as verified TLS",
        "hosts.tunnel=pass": "tunnels are relayed unread, past the pins",
        "hosts.tunnel=inspect": "the server of a tunnel is verified first",
        "hosts.tunnel=refuse": "tunnels are refused",
        "hosts.tunnel=auto": "tunnels are refused if the entry has pinsets, else relayed unread",
        "hosts.clearText=allow": "clear text is sent, past the pins",
        "hosts.clearText=refuse": "requests in clear text are refused",
        "hosts.intercept=always": "tunnels end in the gateway, which serves the requests in them",
        "access.hosts=listed": "only hosts that an entry of hosts names may be requested",
        "access.hosts=any": "hosts without an entry may be requested, too",
        "access.default=deny": "a request that no rule allows is refused",
        "access.default=allow": "a request that no rule denies is served",
    ]
}
