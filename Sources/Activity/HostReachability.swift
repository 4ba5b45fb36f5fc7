import Synchronization

/// The reachability of one host, shared by all workers and read by the scrape.
///
/// Evidence that confirms the state, which is nearly all of it, costs one relaxed load; only a
/// transition writes. Transitions are decided by compare-and-swap, so that each one is reported to
/// exactly one caller.
package final class HostReachability: Sendable {
    private let current: Atomic<UInt8>
    private let entered: ReachabilityTransitions

    /// The host's name, with the port where the configuration names that.
    package let host: String
    /// The name of the entry that it belongs to.
    package let entry: String

    /// A host about which nothing is known.
    ///
    /// - Parameter transitions: where its transitions are counted, with those of others.
    package init(
        host: String, entry: String, transitions: ReachabilityTransitions
    ) {
        self.host = host
        self.entry = entry
        current = Atomic(ReachabilityState.unknown.rawValue)
        entered = transitions
    }

    /// The state now.
    package var state: ReachabilityState {
        ReachabilityState(rawValue: current.load(ordering: .relaxed)) ?? .unknown
    }

    /// Takes a piece of evidence; returns the transition if it made one.
    package func note(_ event: ReachabilityEvent) -> ReachabilityChange? {
        var state = self.state
        while true {
            let next = state.next(after: event)
            guard next != state else { return nil }
            let (exchanged, original) = current.compareExchange(
                expected: state.rawValue, desired: next.rawValue, ordering: .relaxed)
            if exchanged {
                entered.increment(next)
                return ReachabilityChange(from: state, to: next, event: event)
            }
            state = ReachabilityState(rawValue: original) ?? .unknown
        }
    }
}

/// How often hosts have entered each state of reachability from another one.
package final class ReachabilityTransitions: Sendable {
    private let unknown = Atomic<UInt64>(0)
    private let notReachable = Atomic<UInt64>(0)
    private let reachable = Atomic<UInt64>(0)

    /// None so far.
    package init() {}

    /// How often a state was entered.
    package func count(to state: ReachabilityState) -> UInt64 {
        switch state {
        case .unknown: unknown.load(ordering: .relaxed)
        case .notReachable: notReachable.load(ordering: .relaxed)
        case .reachable: reachable.load(ordering: .relaxed)
        }
    }

    func increment(_ state: ReachabilityState) {
        switch state {
        case .unknown: unknown.wrappingAdd(1, ordering: .relaxed)
        case .notReachable: notReachable.wrappingAdd(1, ordering: .relaxed)
        case .reachable: reachable.wrappingAdd(1, ordering: .relaxed)
        }
    }
}
