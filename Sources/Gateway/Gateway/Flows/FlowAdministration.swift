import Clocks
import HTTPCore
import PinfoldEngine
import PinfoldMetrics

/// What operators see of the exchanges of a running gateway.
package final class FlowAdministration: Sendable {
    let ring: FlowRing
    private let labels: RouteLabels
    private let readLeftOut: @Sendable () -> UInt64
    private let watchWorkers: @Sendable () -> Void

    /// - Parameters:
    ///   - leftOut: how many exchanges ended while somebody looked, and are not held because there
    ///     were too many.
    ///   - watchWorkers: has all workers report exchanges that were served, too.
    package init(
        ring: FlowRing, labels: RouteLabels, leftOut: @escaping @Sendable () -> UInt64,
        watchWorkers: @escaping @Sendable () -> Void
    ) {
        self.ring = ring
        self.labels = labels
        readLeftOut = leftOut
        self.watchWorkers = watchWorkers
    }

    /// How many exchanges ended while somebody looked, and are not held: there were too many.
    var leftOut: UInt64 { readLeftOut() }

    /// Somebody looks: what is served is held, too, for a while.
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
