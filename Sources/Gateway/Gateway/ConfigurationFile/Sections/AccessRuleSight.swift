import PinfoldConfiguration
import Trust

/// Checks whether the gateway can see what a rule of `access.rules` is about, and whether anything
/// can be all that the rule asks for.
extension SnapshotReader {
    /// A rule about paths, or about methods other than CONNECT, needs requests that the gateway can
    /// read.
    func checkSight(of element: Field, _ rule: AccessRule, _ snapshot: ConfigurationSnapshot) {
        let isAboutMethods = !rule.methods.isEmpty && !rule.methods.contains("CONNECT")
        guard !rule.paths.isEmpty || isAboutMethods,
            let place = element.key(rule.paths.isEmpty ? "methods" : "paths")
        else { return }
        let ways = ways(to: rule, snapshot)
        guard ways.isEmpty || ways.contains(where: \.isSeen) else {
            let problem =
                "applies to no request: the gateway cannot read requests to these hosts, which "
                + "are only tunnelled"
            guard !rule.paths.isEmpty else { return place.warn(problem) }
            return place.fail(
                problem, expected: "intercept: true in their entry of hosts, or no paths")
        }
        // What a rule allows is narrowed by this, not widened.
        if case .allow = rule.action { return }
        // Of hosts that are intercepted, no tunnel is relayed in which a rule may deny something.
        if ways.contains(where: \.relaysUnread) {
            place.warn(
                "does not apply to tunnels, which the gateway cannot read unless they are "
                    + "intercepted; write intercept: true, or a rule with methods: [CONNECT]")
        }
    }

    /// The ways to the hosts that a rule may apply to.
    private func ways(to rule: AccessRule, _ snapshot: ConfigurationSnapshot) -> [RuleWays] {
        let entries = snapshot.hosts.entries
        let patterns = rule.hosts.isEmpty ? [.everything] : rule.hosts
        let concerned = entries.indices.filter { index in
            entries[index].match.contains { mine in
                patterns.contains { $0.sharesNames(with: mine) }
            }
        }
        var coverage = PatternCoverage<Int>()
        for (index, entry) in entries.enumerated() {
            for pattern in entry.match { coverage.insert(pattern, owner: index) }
        }
        let hasOthers = patterns.contains { coverage.owner(covering: $0) == nil }
        return concerned.map { RuleWays(snapshot, $0) }
            + (hasOthers ? [RuleWays(snapshot, nil)] : [])
    }

    /// Warns of conditions that nothing fulfils together.
    func warnOfContradiction(
        _ element: Field, _ rule: AccessRule, _ snapshot: ConfigurationSnapshot
    ) {
        let isForTunnels = rule.methods == ["CONNECT"]
        if isForTunnels, !rule.paths.isEmpty {
            element.key("paths")?.warn("never applies: CONNECT has no path")
        }
        let listeners = snapshot.listeners.filter {
            rule.listeners.isEmpty || rule.listeners.contains($0.name)
        }
        if isForTunnels {
            if !listeners.isEmpty, !listeners.contains(where: \.kind.isForward) {
                element.key("methods")?.warn(
                    "never applies: only a forward, socks5 or transparent listener opens "
                        + "tunnels")
            } else if !rule.ports.isEmpty,
                !rule.ports.contains(where: snapshot.access.connectPorts.contains)
            {
                element.key("ports")?.warn(
                    "never applies: access.connectPorts refuses CONNECT to these ports")
            }
        }
        let lists = snapshot.access.lists.filter { rule.lists.contains($0.name) }
        if !lists.isEmpty, lists.count == rule.lists.count,
            lists.allSatisfy({ $0.domains.nameCount + $0.domains.networkCount == 0 })
        {
            element.key("lists")?.warn("applies to nothing at present: the lists are empty")
        }
    }
}
