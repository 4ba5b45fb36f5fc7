import HTTPCore
import PinfoldConfiguration
import Trust

/// What differs for hosts: which entry applies to them, and what that says. Hosts are told apart as
/// far as patterns of either configuration do, and the entry of each is found as for a request, so
/// that an order, or a way of writing, that makes no difference is none.
struct HostDifferences {
    typealias Detail = ConfigurationDifference.Detail

    let old: ConfigurationSnapshot
    let new: ConfigurationSnapshot
    /// What differs in `tls`, which entries inherit.
    let inherited: [Detail]

    /// Two entries that apply to the same hosts before and after.
    private struct Pair: Hashable {
        let old: Int?
        let new: Int?
        /// Whether such hosts may be requested, as far as they must be named for that.
        let wasListed: Bool
        let isListed: Bool
    }

    var all: [ConfigurationDifference] {
        var order: [Pair] = []
        var patterns: [Pair: [HostPattern]] = [:]
        for (pair, pattern) in classes {
            if patterns[pair] == nil { order.append(pair) }
            if !(patterns[pair]?.contains(pattern) ?? false) {
                patterns[pair, default: []].append(pattern)
            }
        }
        var found: [ConfigurationDifference] = []
        for pair in order {
            let details = details(pair)
            guard !details.isEmpty else { continue }
            for (kind, matched) in kinds(pair, patterns[pair] ?? []) {
                add(
                    ConfigurationDifference(
                        section: "hosts", subjects: matched, kind: kind,
                        note: note(kind, pair), details: details), to: &found)
            }
        }
        return found
    }

    /// Adds a difference, to another one if that differs in nothing but its hosts.
    private func add(
        _ difference: ConfigurationDifference, to found: inout [ConfigurationDifference]
    ) {
        let same = found.firstIndex { other in
            var other = other
            other.subjects = difference.subjects
            return other == difference
        }
        if let same {
            let subjects = found[same].subjects
            found[same].subjects += difference.subjects.filter { !subjects.contains($0) }
        } else {
            found.append(difference)
        }
    }

    // MARK: Hosts

    /// Every kind of host that patterns tell apart, with the entries that apply to it.
    private var classes: [(Pair, HostPattern)] {
        let written = (old.hosts.entries + new.hosts.entries).flatMap(\.match)
        var seen: Set<HostPattern> = []
        let patterns = written.filter { $0 != .everything && seen.insert($0).inserted }
        let label = Self.unusedLabel(patterns)
        let ports = Set(patterns.compactMap(\.port)).sorted()
        var result: [(Pair, HostPattern)] = []
        for pattern in patterns {
            for host in pattern.examples(label: label) {
                let port = pattern.port ?? 0
                let pair = pair(host, port)
                result.append((pair, pattern))
                guard pattern.port == nil else { continue }
                // The ports at which other entries apply belong to the patterns that name them,
                // unless only their meeting makes a difference.
                for port in ports where self.pair(host, port) != pair {
                    guard let met = try? HostPattern("\(pattern):\(port)") else { continue }
                    result.append((self.pair(host, port), met))
                }
            }
        }
        return result + [(pair("\(label).\(label)", 0), .everything)]
    }

    /// A label that is in no pattern.
    private static func unusedLabel(_ patterns: [HostPattern]) -> String {
        let labels = Set(patterns.flatMap { "\($0)".split(separator: ".").map(String.init) })
        var label = "other"
        while labels.contains(where: { $0.hasPrefix(label) }) { label += "x" }
        return label
    }

    private func pair(_ host: String, _ port: UInt16) -> Pair {
        func isListed(_ configuration: ConfigurationSnapshot) -> Bool {
            configuration.access.hosts == .any
                || configuration.hosts.lists(host: host.utf8.span, port: port)
        }
        return Pair(
            old: old.hostEntry(host: host.utf8.span, port: port),
            new: new.hostEntry(host: host.utf8.span, port: port), wasListed: isListed(old),
            isListed: isListed(new))
    }

    // MARK: What differs for them

    /// What became of the patterns that two entries apply to.
    private func kinds(
        _ pair: Pair, _ patterns: [HostPattern]
    ) -> [(ConfigurationDifference.Kind, [String])] {
        func match(_ configuration: ConfigurationSnapshot, _ index: Int?) -> [HostPattern] {
            index.map { configuration.hosts.entries[$0].match } ?? [.everything]
        }
        let (former, present) = (match(old, pair.old), match(new, pair.new))
        if former.contains(where: present.contains) {
            return [(.changed, Self.texts(patterns))]
        }
        let were = Set(old.hosts.entries.flatMap(\.match))
        let are = Set(new.hosts.entries.flatMap(\.match))
        let added = patterns.filter { !were.contains($0) && are.contains($0) }
        let removed = patterns.filter { were.contains($0) && !are.contains($0) }
        let rest = patterns.filter { !added.contains($0) && !removed.contains($0) }
        let kinds: [(ConfigurationDifference.Kind, [HostPattern])] = [
            (.added, added), (.removed, removed), (.reordered, rest),
        ]
        return kinds.filter { !$0.1.isEmpty }.map { ($0.0, Self.texts($0.1)) }
    }

    private static func texts(_ patterns: [HostPattern]) -> [String] {
        patterns.map { $0 == .everything ? "hosts without an entry" : "\($0)" }
    }

    private func note(_ kind: ConfigurationDifference.Kind, _ pair: Pair) -> String? {
        let (former, present) = (Self.text(pair.old, old), Self.text(pair.new, new))
        return switch kind {
        case .added: "\(former) applied before"
        case .removed: "\(present) applies now"
        case .reordered: "\(present) applies, and no longer \(former)"
        case .changed: nil
        }
    }

    private static func text(_ index: Int?, _ configuration: ConfigurationSnapshot) -> String {
        index.map { "hosts[\($0)] (\(configuration.hosts.entries[$0].label))" } ?? "no entry"
    }

    private func details(_ pair: Pair) -> [Detail] {
        let former = pair.old.map { old.hosts.entries[$0] } ?? HostEntry(tls: old.tls)
        let present = pair.new.map { new.hosts.entries[$0] } ?? HostEntry(tls: new.tls)
        var comparison = NodeComparison("hosts")
        let isSame = Self.isSame(former, present)
        if !isSame || Self.pinsets(former, old) != Self.pinsets(present, new) {
            comparison.compare(Self.node(former, old), Self.node(present, new))
        }
        var details = comparison.details.filter { detail in
            !inherited.contains { shared in
                detail.key == "tls.\(shared.key)" && detail.before == shared.before
                    && detail.after == shared.after && detail.added == shared.added
                    && detail.removed == shared.removed
            }
        }
        if details.isEmpty, inherited.isEmpty, !isSame,
            !Self.isSame(former, present, \.inOneOrder)
        {
            details.append(.ofFiles)
        }
        let labels = (Self.label(pair.old, old), Self.label(pair.new, new))
        if labels.0 != labels.1 {
            details.append(
                Detail(
                    key: "name", before: labels.0, after: labels.1, meaning: "in metrics and logs"))
        }
        if pair.wasListed != pair.isListed, old.access.hosts == new.access.hosts {
            details.append(
                Detail(
                    key: "access", before: Self.listed(pair.wasListed),
                    after: Self.listed(pair.isListed), meaning: "access.hosts is listed"))
        }
        return details
    }

    private static func listed(_ isListed: Bool) -> String {
        isListed ? "requested" : "refused as not listed"
    }

    private static func label(_ index: Int?, _ configuration: ConfigurationSnapshot) -> String {
        index.map { configuration.hosts.entries[$0].label } ?? "default"
    }

    private static func node(
        _ entry: HostEntry, _ configuration: ConfigurationSnapshot
    ) -> ConfigNode {
        NodeComparison.node(
            HostEntry.table(pinsets: configuration.pinsets.map(\.pinset.name)), entry
        ).without("match").without("name")
    }

    private static func pinsets(
        _ entry: HostEntry, _ configuration: ConfigurationSnapshot
    ) -> [String] {
        entry.pinsets.map { configuration.pinsets[$0].pinset.name }
    }

    /// Whether entries say the same, whatever pinsets they have, which are compared by name.
    ///
    /// - Parameter form: what of both to compare.
    private static func isSame(
        _ one: HostEntry, _ other: HostEntry, _ form: (HostEntry) -> HostEntry = { $0 }
    ) -> Bool {
        var (one, other) = (form(one), form(other))
        (one.match, one.name, one.pinsets) = ([], nil, [])
        (other.match, other.name, other.pinsets) = ([], nil, [])
        return one == other
    }
}

extension ConfigurationDifference.Detail {
    /// Nothing that is printed differs.
    static let ofFiles = Self(
        key: "the content of a file, or the value of a variable", before: "other",
        after: "what it is now")
}
