import PinfoldConfiguration

/// Compares values as they are printed with every default filled in: whatever can be configured is
/// printed, so that nothing is forgotten, and what is written in another way is no difference.
///
/// Others than those who may read the configuration read what differs, in logs of builds for
/// example: `***` is in place of what may be a secret, as where the configuration is shown.
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
    mutating func compare(_ old: ConfigNode?, _ new: ConfigNode?) {
        compare(old, new, "", MaskedPlace())
    }

    private mutating func compare(
        _ old: ConfigNode?, _ new: ConfigNode?, _ key: String, _ place: MaskedPlace
    ) {
        switch (old?.content, new?.content) {
        case (.mapping(let one)?, .mapping(let other)?):
            var names = one.map(\.key)
            names += other.map(\.key).filter { !names.contains($0) }
            for name in names {
                compare(
                    old?[name], new?[name], key.isEmpty ? name : "\(key).\(name)",
                    place.below(name))
            }
        case (.sequence(let one)?, .sequence(let other)?): compare(lists: one, other, key, place)
        default: add(key, old.map { Text($0, place) }, new.map { Text($0, place) })
        }
    }

    private mutating func add(_ key: String, _ old: Text?, _ new: Text?) {
        guard old != new else { return }
        let isHidden = old?.shown == new?.shown
        details.append(
            Detail(
                key: key, before: old?.shown,
                after: new.map { isHidden ? "\($0.shown) (another)" : $0.shown },
                meaning: ValueMeanings.text(section, key, new?.shown)))
    }

    // MARK: Lists

    private mutating func compare(
        lists old: [ConfigNode], _ new: [ConfigNode], _ key: String, _ place: MaskedPlace
    ) {
        let place = place.element
        if let one = Self.named(old), let other = Self.named(new), !one.isEmpty || !other.isEmpty {
            return compare(named: one, other, key, place)
        }
        compare(old.map { Text($0, place) }, new.map { Text($0, place) }, key)
    }

    /// Compares lists of texts that are no secrets.
    mutating func compare(texts old: [String], _ new: [String], _ key: String) {
        compare(old.map { Text(value: $0, shown: $0) }, new.map { Text(value: $0, shown: $0) }, key)
    }

    private mutating func compare(_ old: [Text], _ new: [Text], _ key: String) {
        guard old != new else { return }
        let (former, present) = (Set(old), Set(new))
        let added = new.filter { !former.contains($0) }.map(\.shown)
        let removed = old.filter { !present.contains($0) }.map(\.shown)
        let isOrdered = !Self.unordered.contains(String(key.split(separator: ".").last ?? ""))
        let kept = (old.filter(present.contains), new.filter(former.contains))
        if isOrdered, kept.0 != kept.1 {
            add(key, Text(list: old), Text(list: new))
        } else if !added.isEmpty || !removed.isEmpty {
            details.append(Detail(key: key, added: added, removed: removed))
        }
    }

    /// Compares lists of mappings, whose first keys tell which is which.
    private mutating func compare(
        named old: [(name: String, node: ConfigNode)], _ new: [(name: String, node: ConfigNode)],
        _ key: String, _ place: MaskedPlace
    ) {
        func texts(_ list: [(name: String, node: ConfigNode)]) -> [Text] {
            list.map { Text(value: $0.name, shown: Self.name(of: $0.node, place)) }
        }
        compare(texts(old), texts(new), key)
        for (name, node) in new {
            guard let former = old.first(where: { $0.name == name }) else { continue }
            compare(former.node, node, "\(key)[\(Self.name(of: node, place))]", place)
        }
    }

    /// The value of a mapping's first key.
    private static func name(of node: ConfigNode, _ place: MaskedPlace) -> String {
        guard case .mapping(let entries) = node.content, let first = entries.first else {
            return ""
        }
        return Text(first.value, place.below(first.key)).shown
    }

    private static func named(_ list: [ConfigNode]) -> [(name: String, node: ConfigNode)]? {
        var result: [(name: String, node: ConfigNode)] = []
        var names: Set<String> = []
        for node in list {
            guard case .mapping(let entries) = node.content, let first = entries.first else {
                return nil
            }
            let name = Text(first.value, MaskedPlace()).value
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

    /// A value in a line, as it is and as people may see it.
    private struct Text: Hashable {
        let value: String
        let shown: String

        init(value: String, shown: String) { (self.value, self.shown) = (value, shown) }

        init(_ node: ConfigNode, _ place: MaskedPlace) {
            switch node.content {
            case .null: self.init(value: "nothing", shown: "nothing")
            case .scalar(let text, let isPlain):
                self.init(value: text, shown: place.shown(text, isPlain: isPlain))
            case .sequence(let nodes): self.init(list: nodes.map { Text($0, place.element) })
            case .mapping(let entries):
                let texts = entries.map { (key: $0.key, text: Text($0.value, place.below($0.key))) }
                self.init(
                    value: Self.mapping(texts.map { "\($0.key): \($0.text.value)" }),
                    shown: Self.mapping(texts.map { "\($0.key): \($0.text.shown)" }))
            }
        }

        init(list: [Text]) {
            self.init(
                value: list.isEmpty ? "nothing" : "[\(list.map(\.value).joined(separator: ", "))]",
                shown: list.isEmpty ? "nothing" : "[\(Detail.listed(list.map(\.shown)))]")
        }

        private static func mapping(_ entries: [String]) -> String {
            entries.isEmpty ? "nothing" : "{ \(entries.joined(separator: ", ")) }"
        }
    }

    /// A value in a line, with `***` in place of what may be a secret.
    ///
    /// - Parameter place: that of the value, from the section on.
    static func text(_ node: ConfigNode, at place: MaskedPlace = MaskedPlace()) -> String {
        Text(node, place).shown
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
