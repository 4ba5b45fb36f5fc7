import Trust

// `--intercept` over the entries of a file: what they say of the hosts stays in force, so that no
// option takes pinsets away from them.
extension CommandLineOverlay {
    private static let option = "--intercept"

    func applyInterception(to root: inout ConfigNode, validation: Validation) {
        var hosts: [ConfigNode]
        switch root["hosts"]?.content {
        case .sequence(let present)?: hosts = present
        case .null?, nil: hosts = []
        // Not a list: left as it is, for the checks to report.
        case .scalar?, .mapping?: return
        }
        for text in intercept { hosts = Self.intercepting(text, hosts, validation) }
        let origin = root["hosts"]?.origin ?? .option(Self.option)
        root.set("hosts", to: ConfigNode(origin: origin, content: .sequence(hosts)))
        let section = root["interception"]
        guard section?["certificate"] == nil, section?["key"] == nil else { return }
        let authority = validation.environment.defaultAuthority
        for (key, file) in [("certificate", authority.certificate), ("key", authority.key)] {
            Self.set(["interception", key], to: Self.scalar(file, Self.option), in: &root)
        }
    }

    /// The entries with all hosts of a pattern intercepted: entries for these hosts alone say so
    /// themselves, of others a copy comes before them, and those that no entry has get one of their
    /// own at the end. Where an entry has some of the hosts, but neither pattern has the other,
    /// what is meant cannot be said by patterns: that is an error.
    private static func intercepting(
        _ text: String, _ hosts: [ConfigNode], _ validation: Validation
    ) -> [ConfigNode] {
        let written = scalar(text, option)
        var result: [ConfigNode] = []
        // One that is none is left for the checks to report.
        guard let wanted = try? HostPattern(text) else {
            return hosts + [mapping(option, [:]).intercepting([written])]
        }
        for (index, entry) in hosts.enumerated() {
            guard case .sequence(let patterns)? = entry["match"]?.content else {
                result.append(entry)
                continue
            }
            let within = patterns.filter { $0.pattern.map(wanted.covers) ?? false }
            let rest = patterns.filter { !($0.pattern.map(wanted.covers) ?? false) }
            for case let other? in rest.map(\.pattern)
            where other.overlaps(wanted) && !other.covers(wanted) {
                validation.report(
                    .option(option), "",
                    "\(quoted(text)) overlaps \(quoted("\(other)")) of "
                        + "hosts[\(index)], and neither contains the other",
                    expected: "intercept: true in that entry, or a pattern within it")
            }
            let isBeyond = rest.contains { $0.pattern?.covers(wanted) ?? false }
            if rest.isEmpty, !within.isEmpty {
                result.append(entry.intercepting(within))
            } else if isBeyond || !within.isEmpty {
                let part = entry.without("name")
                result.append(part.intercepting(isBeyond ? within + [written] : within))
                result.append(entry.matching(rest))
            } else {
                result.append(entry)
            }
            // No host of the pattern gets further.
            if isBeyond || within.contains(where: { $0.pattern?.covers(wanted) ?? false }) {
                return result + hosts[(index + 1)...]
            }
        }
        return result + [mapping(option, [:]).intercepting([written])]
    }
}

extension HostPattern {
    /// Whether some host at some port is matched by both.
    fileprivate func overlaps(_ other: HostPattern) -> Bool {
        sharesNames(with: other) && (port == nil || other.port == nil || port == other.port)
    }

    /// Whether it matches all that another one does.
    fileprivate func covers(_ other: HostPattern) -> Bool {
        var coverage = PatternCoverage<Void>()
        coverage.insert(self, owner: ())
        return coverage.owner(covering: other) != nil
    }
}

extension ConfigNode {
    /// The host pattern that it is.
    fileprivate var pattern: HostPattern? {
        guard case .scalar(let text, _) = content else { return nil }
        return try? HostPattern(text)
    }

    /// An entry of `hosts` for these patterns.
    fileprivate func matching(_ patterns: [ConfigNode]) -> ConfigNode {
        var entry = self
        let origin = entry["match"]?.origin ?? origin
        entry.set("match", to: ConfigNode(origin: origin, content: .sequence(patterns)))
        return entry
    }

    /// An entry of `hosts` for these patterns, whose tunnels are intercepted.
    fileprivate func intercepting(_ patterns: [ConfigNode]) -> ConfigNode {
        var entry = matching(patterns)
        entry.set("intercept", to: CommandLineOverlay.scalar("true", "--intercept"))
        return entry
    }

    /// A mapping without a key.
    fileprivate func without(_ key: String) -> ConfigNode {
        guard case .mapping(let entries) = content else { return self }
        return ConfigNode(origin: origin, content: .mapping(entries.filter { $0.key != key }))
    }
}
