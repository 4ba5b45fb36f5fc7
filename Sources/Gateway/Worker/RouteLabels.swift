import Locking
import Metrics

/// The route and pinset labels of the process: they come from configurations, keep their index over
/// reloads, and are capped.
package final class RouteLabels: Sendable {
    private let table = Locked(LabelTable())
    private let pinsets = Locked(LabelTable())

    package init() {}

    /// The label's index, a new one if there is room.
    package func index(_ label: String) -> Int { table.withLock { $0.index(for: label) } }

    /// The index of a pinset's label.
    func pinsetIndex(_ label: String) -> Int { pinsets.withLock { $0.index(for: label) } }

    /// The pinsets' labels as they are now.
    package var pinsetSnapshot: LabelTable { pinsets.withLock { $0 } }

    /// The routes' labels as they are now.
    package var snapshot: LabelTable { table.withLock { $0 } }
}
