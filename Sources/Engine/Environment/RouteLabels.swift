import Locking
import PinfoldMetrics

/// The names that metrics and the access log tell exchanges by: of listeners, host entries and
/// pinsets. They come from configurations, keep their index over reloads, and are capped.
package final class RouteLabels: Sendable {
    /// The index of the host entry of exchanges that were not found to be for any host.
    package static let noHost = 0

    private let hosts = Locked(LabelTable(["none"]))
    private let listeners = Locked(LabelTable())
    private let pairs = Locked(LabelTable(capacity: ExchangeLabels.capacity))
    private let pinsets = Locked(LabelTable())

    package init() {}

    /// The index of a host entry's name, a new one if there is room.
    package func index(_ label: String) -> Int { hosts.withLock { $0.index(for: label) } }

    /// The index of a listener's name, a new one if there is room.
    package func listenerIndex(_ name: String) -> Int { listeners.withLock { $0.index(for: name) } }

    /// The index of the series of a listener's exchanges with a host entry.
    package func pairIndex(listener: Int, host: Int) -> Int {
        let listener = listeners.withLock { $0[listener] }
        let host = name(host: host)
        return pairs.withLock {
            $0.index(for: ExchangeLabels.pair(listener: listener, host: host))
        }
    }

    /// The index of a pinset's label.
    package func pinsetIndex(_ label: String) -> Int { pinsets.withLock { $0.index(for: label) } }

    /// The name of a host entry by its index.
    package func name(host: Int) -> String { hosts.withLock { $0[host] } }

    /// The pinsets' labels as they are now.
    package var pinsetSnapshot: LabelTable { pinsets.withLock { $0 } }

    /// The host entries' names as they are now.
    package var snapshot: LabelTable { hosts.withLock { $0 } }

    /// The listeners' names as they are now.
    package var listenerSnapshot: LabelTable { listeners.withLock { $0 } }

    /// The pairs that have had an exchange.
    package var pairSnapshot: LabelTable { pairs.withLock { $0 } }
}
