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

    private let parents = Locked(CounterTable<ParentEvent>())
    private let parentFailures = Locked(CounterTable<ParentFailureReason>())
    /// What is known about the parents in force, by name.
    private let standings = Locked<[String: ParentStanding]>([:])

    package init() {}

    /// What is known about parents: another proxy under the same name begins anew. The
    /// configuration need not come into force.
    /// - Parameter now: of the monotonic clock, in milliseconds.
    func standings(_ configured: [ParentConfiguration], at now: Int64) -> [ParentStanding] {
        guard !configured.isEmpty else { return [] }
        let names = configured.map(\.name)
        let counts = parents.withLock { $0.counts(for: names) }
        let failures = parentFailures.withLock { $0.counts(for: names) }
        let standings = standings.withLock { $0 }
        return configured.enumerated().map { index, parent in
            if let known = standings[parent.name], known.parent == parent { return known }
            return ParentStanding(parent, counts[index], failures[index], at: now)
        }
    }

    /// The parents in force with their counts, in alphabetical order.
    package var countedParents:
        [(
            name: String, isDown: Bool, counts: EventCounts<ParentEvent>,
            failures: EventCounts<ParentFailureReason>
        )]
    {
        let failures = Dictionary(
            parentFailures.withLock { $0.inForce }.map { ($0.name, $0.counts) },
            uniquingKeysWith: { first, _ in first })
        let standings = standings.withLock { $0 }
        return parents.withLock { $0.inForce }.compactMap { name, counts in
            guard let failures = failures[name] else { return nil }
            return (name, standings[name]?.isDown ?? false, counts, failures)
        }
    }

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

    /// A policy has come into force: only its names and pins have series, and only its parents a
    /// state.
    package func activate(_ policy: PolicySnapshot) {
        activate(policy.configuration)
        let inForce = policy.parents.compactMap(\.standing)
        standings.withLock {
            $0 = Dictionary(
                inForce.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        }
    }

    /// The same for the names alone.
    func activate(_ configuration: ConfigurationSnapshot) {
        hosts.withLock { $0.activate(configuration.hosts.entries.map(\.label)) }
        listeners.withLock { $0.activate(configuration.listeners.map(\.name)) }
        pinsets.withLock { $0.activate(configuration.pinsets.map(\.pinset.name)) }
        rules.withLock { $0.activate(configuration.access.rules.map(\.name)) }
        groups.withLock { $0.activate(GroupCounters.names(for: configuration)) }
        let parentNames = configuration.parents.map(\.name)
        parents.withLock { $0.activate(parentNames) }
        parentFailures.withLock { $0.activate(parentNames) }
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
