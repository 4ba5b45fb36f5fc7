import HTTPCore
import PinfoldConfiguration
import Trust

/// Checks of `access.rules` that involve other parts of the configuration.
extension SnapshotReader {
    /// Reports rules that name what does not exist or cannot be seen, and warns of rules that never
    /// apply.
    func checkAccessRules(_ field: Field?, _ snapshot: ConfigurationSnapshot) {
        let rules = snapshot.access.rules
        // With errors in the list, rules and fields do not correspond.
        guard let elements = field?.key("rules")?.elements, elements.count == rules.count else {
            return
        }
        for (index, (element, rule)) in zip(elements, rules).enumerated() {
            check("listeners", of: element, among: snapshot.listeners.map(\.name), "listener")
            checkWhoAsks(element, rule, snapshot)
            warnOfUnknownUsers(element, rule, snapshot)
            checkInterception(element, rule, snapshot)
            check("lists", of: element, among: snapshot.access.lists.map(\.name), "list")
            checkSight(of: element, rule, snapshot)
            warnOfIdleRule(element, rule, snapshot)
            warnOfContradiction(element, rule, snapshot)
            let earlier = rules[..<index].firstIndex { earlier in
                earlier.action != .report && earlier.covers(rule)
            }
            guard let earlier else { continue }
            let line = elements[earlier].node.origin.line.map { ", line \($0)" } ?? ""
            element.warn(
                "never applies: the earlier rule \(rules[earlier].name)\(line) matches all of its "
                    + "requests; put this rule before that one")
        }
        warnOfIdleDefault(field, snapshot)
    }

    /// Reports names in a condition of a rule that nothing has.
    private func check(
        _ key: String, of element: Field, among names: [String], _ what: String,
        orAs mayBe: (String) -> Bool = { _ in false }
    ) {
        for field in element.key(key)?.elements ?? [] {
            guard case .scalar(let name, _) = field.node.content, !names.contains(name),
                !mayBe(name)
            else {
                continue
            }
            let hint = validation.hint(for: name, among: names)
            field.fail(
                "there is no \(what) \(quoted(name))\(hint)",
                expected: names.isEmpty
                    ? "the name of a \(what), of which there is none"
                    : "one of \(names.joined(separator: ", "))")
        }
    }

    /// Users and groups of a rule must exist, and a listener must ask for them.
    private func checkWhoAsks(
        _ element: Field, _ rule: AccessRule, _ snapshot: ConfigurationSnapshot
    ) {
        guard !rule.users.isEmpty || !rule.groups.isEmpty else { return }
        let authentication = snapshot.authentication
        check(
            "users", of: element, among: authentication.userNames, "user",
            orAs: authentication.mayName(user:))
        check(
            "groups", of: element, among: authentication.groupNames, "group",
            orAs: authentication.mayName(group:))
        let asks = snapshot.listeners.contains { listener in
            !listener.authentication.isEmpty
                && (rule.listeners.isEmpty || rule.listeners.contains(listener.name))
        }
        if !asks {
            (element.key("users") ?? element.key("groups"))?.warn(
                "never applies: no listener asks its clients who they are (authentication)")
        }
    }

    private func warnOfIdleRule(
        _ element: Field, _ rule: AccessRule, _ snapshot: ConfigurationSnapshot
    ) {
        let served = snapshot.access.clients
        let isServed = rule.clients.contains { network in
            served.contains {
                $0.contains(client: network.address) || network.contains(client: $0.address)
            }
        }
        if !rule.clients.isEmpty, !isServed {
            element.key("clients")?.warn(
                "never applies: access.clients serves none of these clients")
        }
        guard snapshot.access.hosts == .listed, !rule.hosts.isEmpty,
            snapshot.listeners.allSatisfy(\.kind.isForward)
        else { return }
        let listed = snapshot.hosts.entries.flatMap(\.match).filter { $0 != .everything }
        let isListed = rule.hosts.contains { host in
            listed.contains { $0.sharesNames(with: host) }
        }
        if !isListed {
            element.key("hosts")?.warn(
                "never applies: no entry of hosts names these hosts, and access.hosts is listed")
        }
    }

    private func warnOfIdleDefault(_ field: Field?, _ snapshot: ConfigurationSnapshot) {
        guard snapshot.access.byDefault == .deny,
            !snapshot.access.rules.contains(where: { $0.action == .allow })
        else { return }
        field?.key("default")?.warn(
            "refuses every request: no rule allows any; add a rule with action: allow")
    }
}
