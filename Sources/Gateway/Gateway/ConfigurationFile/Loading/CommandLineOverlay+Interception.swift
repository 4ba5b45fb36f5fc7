import Trust

// `--intercept` on top of a file's entries. The entries' other settings stay in force, so that the
// option cannot remove pinsets from hosts.
extension CommandLineOverlay {
    private static let option = "--intercept"

    func applyInterception(to root: inout ConfigNode, validation: ConfigurationValidation) {
        var hosts: [ConfigNode]
        switch root["hosts"]?.content {
        case .sequence(let present)?: hosts = present
        case .null?, nil: hosts = []
        // Not a list: unchanged, so that the checks report it.
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

    /// The entries with all hosts of a pattern intercepted. Entries for such hosts only are
    /// changed; other entries that match some of these hosts are preceded by a changed copy; and
    /// hosts without an entry get a new one at the end. If an entry's pattern overlaps the given
    /// one and neither contains the other, patterns cannot express the result: that is an error.
    private static func intercepting(
        _ text: String, _ hosts: [ConfigNode], _ validation: ConfigurationValidation
    ) -> [ConfigNode] {
        let written = scalar(text, option)
        var result: [ConfigNode] = []
        // An invalid pattern is left for the checks to report.
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
            // No host of the pattern reaches later entries.
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

    /// Whether it matches everything that another pattern matches.
    fileprivate func covers(_ other: HostPattern) -> Bool {
        var coverage = PatternCoverage<Void>()
        coverage.insert(self, owner: ())
        return coverage.owner(covering: other) != nil
    }
}

extension ConfigNode {
    /// The node as a host pattern.
    fileprivate var pattern: HostPattern? {
        guard case .scalar(let text, _) = content else { return nil }
        return isEverything ? .everything : try? HostPattern(text)
    }

    /// This entry of `hosts` with other patterns.
    fileprivate func matching(_ patterns: [ConfigNode]) -> ConfigNode {
        var entry = self
        let origin = entry["match"]?.origin ?? origin
        entry.set("match", to: ConfigNode(origin: origin, content: .sequence(patterns)))
        return entry
    }

    /// This entry of `hosts` with other patterns, intercepted.
    fileprivate func intercepting(_ patterns: [ConfigNode]) -> ConfigNode {
        var entry = matching(patterns)
        entry.set("intercept", to: CommandLineOverlay.scalar("true", "--intercept"))
        return entry
    }
}
