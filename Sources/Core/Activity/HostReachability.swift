import Synchronization

/// The reachability of one host, shared by all workers and read by the scrape.
///
/// Evidence that confirms the state, which is nearly all of it, costs one relaxed load; only a
/// transition writes. Transitions are decided by compare-and-swap, so that each one is reported to
/// exactly one caller.
package final class HostReachability: Sendable {
    private let current: Atomic<UInt8>
    private let counts: ReachabilityCounts

    /// The host's name, with the port where the configuration names that.
    package let host: String

    /// A host about which nothing is known.
    ///
    /// - Parameter counts: where it is counted, with others, as long as there is this object.
    package init(host: String, countedBy counts: ReachabilityCounts) {
        self.host = host
        self.counts = counts
        current = Atomic(ReachabilityState.unknown.rawValue)
        counts.enter(.unknown)
    }

    deinit { counts.leave(state) }

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
                counts.leave(state)
                counts.enter(next)
                return ReachabilityChange(from: state, to: next, event: event)
            }
            state = ReachabilityState(rawValue: original) ?? .unknown
        }
    }
}

/// How many hosts are in each state of reachability, and how often one has entered it from another
/// state and that was told.
package final class ReachabilityCounts: Sendable {
    private let unknown = Count()
    private let notReachable = Count()
    private let reachable = Count()

    private final class Count: Sendable {
        /// Of two threads that change one host's state, the later may be counted first: it is less
        /// than 0 for a moment then.
        let hosts = Atomic<Int>(0)
        let transitions = Atomic<UInt64>(0)
    }

    /// None so far.
    package init() {}

    private func count(of state: ReachabilityState) -> Count {
        switch state {
        case .unknown: unknown
        case .notReachable: notReachable
        case .reachable: reachable
        }
    }

    /// How many hosts are in a state now.
    package func hosts(in state: ReachabilityState) -> Int {
        max(0, count(of: state).hosts.load(ordering: .relaxed))
    }

    /// How many transitions to a state were told.
    package func transitions(to state: ReachabilityState) -> UInt64 {
        count(of: state).transitions.load(ordering: .relaxed)
    }

    /// A transition is told.
    package func tell(_ change: ReachabilityChange) {
        count(of: change.to).transitions.wrappingAdd(1, ordering: .relaxed)
    }

    fileprivate func enter(_ state: ReachabilityState) {
        count(of: state).hosts.wrappingAdd(1, ordering: .relaxed)
    }

    fileprivate func leave(_ state: ReachabilityState) {
        count(of: state).hosts.wrappingSubtract(1, ordering: .relaxed)
    }
}
