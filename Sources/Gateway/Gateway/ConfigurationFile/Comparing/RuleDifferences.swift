import PinfoldConfiguration

/// What differs in `access.rules`: rules by their names, and their order where both of two rules
/// may match.
struct RuleDifferences {
    let old: [AccessRule]
    let new: [AccessRule]

    private static let section = "access.rules"

    var all: [ConfigurationDifference] {
        var found: [ConfigurationDifference] = []
        for (index, rule) in new.enumerated() {
            guard let former = old.first(where: { $0.name == rule.name }) else {
                found.append(
                    ConfigurationDifference(
                        section: Self.section, subjects: [rule.name], kind: .added,
                        note: "it is the rule \(index + 1) of \(new.count): \(Self.text(rule))"))
                continue
            }
            var comparison = NodeComparison(Self.section)
            comparison.compare(Self.node(former), Self.node(rule))
            var details = comparison.details
            if details.isEmpty, !former.isSame(as: rule) { details = [.ofFiles] }
            if !details.isEmpty {
                found.append(
                    ConfigurationDifference(
                        section: Self.section, subjects: [rule.name], details: details))
            }
        }
        for (index, rule) in old.enumerated() where !new.contains(where: { $0.name == rule.name }) {
            found.append(
                ConfigurationDifference(
                    section: Self.section, subjects: [rule.name], kind: .removed,
                    note: "it was the rule \(index + 1) of \(old.count): \(Self.text(rule))"))
        }
        return found + reordered
    }

    /// Rules that are tried in another order, although both may match the same request.
    private var reordered: [ConfigurationDifference] {
        let positions = Dictionary(
            old.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { one, _ in one })
        let kept = new.compactMap { rule in positions[rule.name].map { (rule: rule, was: $0) } }
        var found: [ConfigurationDifference] = []
        for (index, later) in kept.enumerated() {
            let passed = kept[..<index].filter {
                $0.was > later.was && !$0.rule.excludes(later.rule)
            }
            guard !passed.isEmpty else { continue }
            let names = ConfigurationDifference.Detail.listed(passed.map(\.rule.name))
            found.append(
                ConfigurationDifference(
                    section: Self.section, subjects: [later.rule.name], kind: .reordered,
                    note: "it is tried after \(names), which may match the same requests"))
        }
        return found
    }

    private static func node(_ rule: AccessRule) -> ConfigNode {
        NodeComparison.node(AccessRule.table, rule).without("name")
    }

    /// The rule in a line: its conditions and what it does.
    private static func text(_ rule: AccessRule) -> String {
        guard case .mapping(let entries) = node(rule).content else { return "" }
        return entries.map { entry in
            let place = MaskedPlace().below(entry.key)
            return "\(entry.key) \(NodeComparison.text(entry.value, at: place))"
        }.joined(separator: ", ")
    }
}
