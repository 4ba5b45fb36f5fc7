import Metrics
import Synchronization

/// The route labels of the process: they come from configurations, keep their index over reloads,
/// and are capped.
package final class RouteLabels: Sendable {
    private let table = Mutex(LabelTable())

    package init() {}

    /// The label's index, a new one if there is room.
    package func index(_ label: String) -> Int { table.withLock { $0.index(for: label) } }

    /// The table as it is now.
    package var snapshot: LabelTable { table.withLock { $0 } }
}
