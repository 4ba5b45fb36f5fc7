import PinfoldConfiguration

/// What a configuration lets pass, in a few lines for people.
package struct AccessSummary {
    private let snapshot: ConfigurationSnapshot

    package init(of snapshot: ConfigurationSnapshot) { self.snapshot = snapshot }

    /// What is reached without its server being verified, and who may have what.
    package var lines: [String] {
        [unverified] + rules + ListOverlaps(of: snapshot.access).lines
    }

    /// A warning if some hosts are pinned while all others are reached unverified; `nil` otherwise.
    package var warning: String? {
        guard hasForward, !snapshot.pinsets.isEmpty,
            snapshot.hosts.entries.contains(where: {
                !$0.pinsets.isEmpty
            }), snapshot.access.hosts == .any, isOpen(nil), snapshot.hosts.everyOther == nil
        else { return nil }
        return
            "pinsets protect the hosts of their entries only: hosts without an entry are reached "
            + "unverified; write access: { hosts: listed } to refuse them, or an entry with match: "
            + "[\"**\"] to inspect, intercept or refuse them"
    }

    private var hasForward: Bool { snapshot.listeners.contains(where: \.kind.isForward) }

    /// The ways in which the hosts of an entry are reached unverified.
    private func ways(_ index: Int?) -> [String] {
        let ways = RuleWays(snapshot, index)
        return [ways.unverifiedTunnels].compactMap { $0 }
            + ways.unverifiedByRules.map { "tunnels by rule \($0)" }
            + (ways.servesClearText ? ["clear text"] : [])
    }

    private func isOpen(_ index: Int?) -> Bool { !ways(index).isEmpty }

    private var unverified: String {
        let entries = snapshot.hosts.entries.indices
        guard hasForward else { return "Reached unverified: nothing, there is no forward listener" }
        var open = entries.filter(isOpen).map { index in
            "\(snapshot.hosts.entries[index].label) (\(ways(index).joined(separator: ", ")))"
        }
        var note = ""
        switch snapshot.access.hosts {
        case .listed:
            if snapshot.hosts.everyOther != nil {
                note = "; \"**\" lists nothing: hosts that only it matches are refused"
                if let index = snapshot.hosts.everyOther,
                    snapshot.hosts.entries[index].match == [.everything]
                {
                    open = entries.filter { isOpen($0) && $0 != index }.map { index in
                        "\(snapshot.hosts.entries[index].label) "
                            + "(\(ways(index).joined(separator: ", ")))"
                    }
                }
            }
        case .any:
            if snapshot.hosts.everyOther == nil, isOpen(nil) {
                open.append("hosts without an entry (\(ways(nil).joined(separator: ", ")))")
            }
        }
        return
            "Reached unverified: \(open.isEmpty ? "nothing" : open.joined(separator: ", "))\(note)"
    }

    // MARK: Rules

    private var rules: [String] {
        let access = snapshot.access
        guard !access.rules.isEmpty || access.byDefault == .deny else { return [] }
        let rows =
            access.rules.map { rule in
                (Self.action(rule), rule.name, Self.conditions(rule))
            } + [(access.byDefault.rawValue, "", "everything else")]
        let actions = rows.map(\.0.count).max() ?? 0
        let names = rows.map(\.1.count).max() ?? 0
        return ["Rules, the first that matches decides:"]
            + rows.map { action, name, conditions in
                "  \(Self.padded(action, actions))  \(Self.padded(name, names))  \(conditions)"
            }
    }

    private static func padded(_ text: String, _ count: Int) -> String {
        text + String(repeating: " ", count: count - text.count)
    }

    private static func action(_ rule: AccessRule) -> String {
        guard case .deny(let denial) = rule.action, denial.status != 403 else {
            return rule.action.name
        }
        return "\(rule.action.name) (\(denial.status))"
    }

    private static func conditions(_ rule: AccessRule) -> String {
        func part(_ name: String, _ values: [some CustomStringConvertible]) -> String? {
            guard !values.isEmpty else { return nil }
            let shown = values.prefix(5).map(\.description).joined(separator: ", ")
            let more = values.count > 5 ? " and \(values.count - 5) more" : ""
            return "\(name) \(shown)\(more)"
        }
        let parts = [
            part("listeners", rule.listeners),
            part("clients", rule.clients.map(\.clientDescription)),
            part("users", rule.users), part("groups", rule.groups),
            part("hosts", rule.hosts), part("lists", rule.lists), part("ports", rule.ports),
            part("methods", rule.methods), part("paths", rule.paths), part("times", rule.times),
        ].compactMap { $0 }
        let conditions = parts.isEmpty ? "every request" : parts.joined(separator: "; ")
        let settings = [
            rule.tunnels.tunnel.map { "tunnel \($0.rawValue)" },
            rule.tunnels.intercept.map { "intercept \($0.rawValue)" },
            rule.rate.map { "rate \($0.summary)" }, part("by", rule.parents.map(\.text)),
        ]
        return ([conditions] + settings.compactMap { $0 }).joined(separator: "; ")
    }
}
