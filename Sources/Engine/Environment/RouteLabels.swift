import Locking
import PinfoldConfiguration
import PinfoldMetrics

/// The names that metrics and the access log tell exchanges by: of listeners, host entries and
/// pinsets. They come from configurations, and keep their index over reloads (`LabelTable`).
package final class RouteLabels: Sendable {
    /// The host entry of exchanges that were not found to be for any host.
    package static let noHost = LabelIndex(slot: 1, use: 0)
    /// That of hosts that no entry matches.
    package static let defaultHost = LabelIndex(slot: 2, use: 0)

    private let hosts = Locked(LabelTable(permanent: ["none", "default"]))
    private let listeners = Locked(LabelTable())
    private let pinsets = Locked(LabelTable())

    package init() {}

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

    /// A configuration is in force: its names have series, and no others.
    package func putInForce(_ configuration: ConfigurationSnapshot) {
        hosts.withLock { $0.putInForce(configuration.hosts.entries.map(\.label)) }
        listeners.withLock { $0.putInForce(configuration.listeners.map(\.name)) }
        pinsets.withLock { $0.putInForce(configuration.pinsets.map(\.pinset.name)) }
    }

    /// The name of a host entry by its index.
    package func name(host: LabelIndex) -> String { hosts.withLock { $0[host] } }

    /// The pinsets' names as they are now.
    package var pinsetSnapshot: LabelTable { pinsets.withLock { $0 } }

    /// The host entries' names as they are now.
    package var snapshot: LabelTable { hosts.withLock { $0 } }

    /// The listeners' names as they are now.
    package var listenerSnapshot: LabelTable { listeners.withLock { $0 } }
}
