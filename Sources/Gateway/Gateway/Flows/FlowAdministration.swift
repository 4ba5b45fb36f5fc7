import Clocks
import HTTPCore
import PinfoldEngine
import PinfoldMetrics

/// What operators see of the exchanges of a running gateway.
package final class FlowAdministration: Sendable {
    let ring: FlowRing
    private let labels: RouteLabels
    private let watchWorkers: @Sendable () -> Void

    /// - Parameter watchWorkers: has all workers report every exchange.
    package init(
        ring: FlowRing, labels: RouteLabels, watchWorkers: @escaping @Sendable () -> Void
    ) {
        self.ring = ring
        self.labels = labels
        self.watchWorkers = watchWorkers
    }

    /// Somebody looks: every exchange is held for a while.
    func watch() {
        if ring.watch(at: Clock.monotonicMilliseconds()) { watchWorkers() }
    }

    /// The names by which exchanges are labelled.
    var names: FlowNames {
        FlowNames(listeners: labels.listenerSnapshot, hosts: labels.snapshot)
    }
}

/// The names of listeners and host entries.
struct FlowNames: Sendable {
    var listeners: LabelTable
    var hosts: LabelTable
}
