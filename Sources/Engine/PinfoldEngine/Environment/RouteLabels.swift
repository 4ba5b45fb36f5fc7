import Locking
import PinfoldConfiguration
import PinfoldMetrics
import Trust

/// The names of listeners, host entries and pinsets in metrics and the access log. They come from
/// configurations, and keep their indexes over reloads (`LabelTable`).
package final class RouteLabels: Sendable {
    /// The label of exchanges that are not for any host.
    package static let noHost = LabelIndex(slot: 1, use: 0)
    /// The label of hosts that no entry matches.
    package static let defaultHost = LabelIndex(slot: 2, use: 0)

    private let hosts = Locked(LabelTable(permanent: ["none", "default"]))
    private let listeners = Locked(LabelTable())
    private let pinsets = Locked(LabelTable())
    /// By the pinset's name and the pin as it is reported; the empty pin stands for those without a
    /// counter of their own.
    private let pins = Locked<[String: [String: PinCounter]]>([:])

    package init() {}

    /// The counters for matches of a pinset's pins, by the index in evaluations (`PinMatches`): the
    /// pins with their own counters, followed by one for all others. A pin keeps its counter over
    /// reloads, wherever in the list it is.
    package func pinCounters(pinset: String, pins texts: [String]) -> [PinCounter] {
        pins.withLock { pins in
            let padding = [String](
                repeating: "", count: PinMatches.distinguishedPins + 1 - texts.count)
            return (texts + padding).map { text in
                if let known = pins[pinset]?[text] { return known }
                let made = PinCounter()
                pins[pinset, default: [:]][text] = made
                return made
            }
        }
    }

    /// How often the pins of a pinset have matched, by the text of the pins that have their own
    /// counters.
    package func pinMatches(pinset: String) -> [String: UInt64] {
        pins.withLock { $0[pinset]?.mapValues(\.value) ?? [:] }
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
        let distinguished = Dictionary(
            configuration.pinsets.map { ($0.pinset.name, Set($0.pinset.distinguishedPins)) },
            uniquingKeysWith: { $0.union($1) })
        pins.withLock { pins in
            pins = pins.filter { distinguished[$0.key] != nil }
            for (name, texts) in distinguished {
                pins[name] = pins[name]?.filter { $0.key.isEmpty || texts.contains($0.key) }
            }
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
