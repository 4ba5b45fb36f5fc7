import Synchronization

/// The reachability of one host, shared by all workers and read when metrics are scraped.
///
/// Evidence that confirms the state, which is nearly all of it, costs one relaxed load; only a
/// transition writes. Transitions are decided by compare-and-swap, so that each one is reported to
/// exactly one caller.
package final class HostReachability: Sendable {
    private let current: Atomic<UInt8>
    private let counts: ReachabilityCounts

    /// The host's name, with the port if the configuration names one.
    package let host: String

    /// Creates a host about which nothing is known.
    ///
    /// - Parameter counts: where it is counted, together with others, as long as this object
    ///   exists.
    package init(host: String, countedBy counts: ReachabilityCounts) {
        self.host = host
        self.counts = counts
        current = Atomic(ReachabilityState.unknown.rawValue)
        counts.enter(.unknown)
    }

    deinit { counts.leave(state) }

    /// The current state.
    package var state: ReachabilityState {
        ReachabilityState(rawValue: current.load(ordering: .relaxed)) ?? .unknown
    }

    /// Processes a piece of evidence; returns the transition, if it caused one.
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

/// How many hosts are in each state of reachability, and how many reported transitions have entered
/// each state.
package final class ReachabilityCounts: Sendable {
    private let unknown = Count()
    private let notReachable = Count()
    private let reachable = Count()

    private final class Count: Sendable {
        /// If two threads change one host's state, the later change may be counted first: the
        /// number is then briefly below 0.
        let hosts = Atomic<Int>(0)
        let transitions = Atomic<UInt64>(0)
    }

    /// Creates counts of zero.
    package init() {}

    private func count(of state: ReachabilityState) -> Count {
        switch state {
        case .unknown: unknown
        case .notReachable: notReachable
        case .reachable: reachable
        }
    }

    /// The number of hosts currently in a state.
    package func hosts(in state: ReachabilityState) -> Int {
        max(0, count(of: state).hosts.load(ordering: .relaxed))
    }

    /// How many transitions to a state were reported.
    package func transitions(to state: ReachabilityState) -> UInt64 {
        count(of: state).transitions.load(ordering: .relaxed)
    }

    /// Counts a transition as reported.
    package func countTransition(_ change: ReachabilityChange) {
        count(of: change.to).transitions.wrappingAdd(1, ordering: .relaxed)
    }

    fileprivate func enter(_ state: ReachabilityState) {
        count(of: state).hosts.wrappingAdd(1, ordering: .relaxed)
    }

    fileprivate func leave(_ state: ReachabilityState) {
        count(of: state).hosts.wrappingSubtract(1, ordering: .relaxed)
    }
}
