import Locking
import PinfoldConfiguration
import PinfoldMetrics
import Trust

/// The names of listeners, host entries and pinsets in metrics and the access log, and the counts
/// of pins, rules and groups. All names come from configurations, and keep their indexes and counts
/// over reloads (`LabelTable`, `CounterTable`).
package final class RouteLabels: Sendable {
    /// The label of exchanges that are not for any host.
    package static let noHost = LabelIndex(slot: 1, use: 0)
    /// The label of hosts that no entry matches.
    package static let defaultHost = LabelIndex(slot: 2, use: 0)

    private let hosts = Locked(LabelTable(permanent: ["none", "default"]))
    private let listeners = Locked(LabelTable())
    private let pinsets = Locked(LabelTable())
    /// By the pinset's name, and the pin as it is reported; the empty pin stands for those without
    /// counts of their own.
    private let pins = Locked<[String: CounterTable<PinEvent>]>([:])
    private let rules = Locked(CounterTable<RuleEvent>())
    /// The names of rules with a rate.
    private let ratedRules = Locked<Set<String>>([])
    private let groups = Locked(CounterTable<GroupEvent>())

    package init() {}

    /// The counts of a pinset's pins, by the index in evaluations (`PinMatches`): the pins with
    /// their own counts, followed by those of all others. A pin keeps its counts over reloads,
    /// wherever in the list it is.
    package func pinCounts(pinset: String, pins texts: [String]) -> [EventCounts<PinEvent>] {
        pins.withLock { pins in
            let padding = [String](
                repeating: "", count: PinMatches.distinguishedPins + 1 - texts.count)
            return pins[pinset, default: CounterTable()].counts(for: texts + padding)
        }
    }

    /// The counts of rules.
    package func ruleCounts(_ names: [String]) -> [EventCounts<RuleEvent>] {
        rules.withLock { $0.counts(for: names) }
    }

    /// The counts of groups.
    func groupCounts(_ names: [String]) -> [EventCounts<GroupEvent>] {
        groups.withLock { $0.counts(for: names) }
    }

    /// The counts of the rules in force, in alphabetical order.
    package var countedRules: [(name: String, counts: EventCounts<RuleEvent>, hasRate: Bool)] {
        let rated = ratedRules.withLock { $0 }
        return rules.withLock { $0.inForce }.map { ($0.name, $0.counts, rated.contains($0.name)) }
    }

    /// The counts of the groups in force, in alphabetical order.
    package var countedGroups: [(name: String, counts: EventCounts<GroupEvent>)] {
        groups.withLock { $0.inForce }
    }

    /// How often the pins of a pinset have matched, by the text of the pins that have their own
    /// counts.
    package func pinMatches(pinset: String) -> [String: UInt64] {
        let counted = pins.withLock { $0[pinset]?.inForce ?? [] }
        return Dictionary(uniqueKeysWithValues: counted.map { ($0.name, $0.counts[.matched]) })
    }

    /// The indexes of the names of a configuration's host entries.
    package func hostIndexes(_ labels: [String]) -> [LabelIndex] {
        hosts.withLock { $0.indexes(for: labels) }
    }

    /// The indexes of the names of a configuration's listeners.
    package func listenerIndexes(_ names: [String]) -> [LabelIndex] {
        listeners.withLock { $0.indexes(for: names) }
    }

    /// The indexes of the names of a configuration's pinsets.
    package func pinsetIndexes(_ names: [String]) -> [LabelIndex] {
        pinsets.withLock { $0.indexes(for: names) }
    }

    /// A configuration has come into force: only its names and pins have series.
    package func activate(_ configuration: ConfigurationSnapshot) {
        hosts.withLock { $0.activate(configuration.hosts.entries.map(\.label)) }
        listeners.withLock { $0.activate(configuration.listeners.map(\.name)) }
        pinsets.withLock { $0.activate(configuration.pinsets.map(\.pinset.name)) }
        rules.withLock { $0.activate(configuration.access.rules.map(\.name)) }
        groups.withLock { $0.activate(GroupCounters.names(for: configuration)) }
        let rated = configuration.access.rules.filter { $0.rate != nil }.map(\.name)
        ratedRules.withLock { $0 = Set(rated) }
        let distinguished = Dictionary(
            configuration.pinsets.map { ($0.pinset.name, Set($0.pinset.distinguishedPins)) },
            uniquingKeysWith: { $0.union($1) })
        pins.withLock { pins in
            pins = pins.filter { distinguished[$0.key] != nil }
            for (name, texts) in distinguished { pins[name]?.activate(texts + [""]) }
        }
    }

    /// The name of a host entry by its index.
    package func name(host: LabelIndex) -> String { hosts.withLock { $0[host] } }

    /// The current names of pinsets.
    package var pinsetSnapshot: LabelTable { pinsets.withLock { $0 } }

    /// The current names of host entries.
    package var snapshot: LabelTable { hosts.withLock { $0 } }

    /// The current names of listeners.
    package var listenerSnapshot: LabelTable { listeners.withLock { $0 } }
}
