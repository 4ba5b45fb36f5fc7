import Synchronization

/// The reachability of one configured host, shared by all workers and read by the scrape.
///
/// Evidence that confirms the state, which is nearly all of it, costs one relaxed load; only a
/// transition writes. Transitions are decided by compare-and-swap, so that each one is reported to
/// exactly one caller.
package final class HostReachability: Sendable {
    private let current: Atomic<UInt8>
    private let entered: InlineAtomicCounters

    /// The host as the configuration names it; it becomes a label value.
    package let host: String

    /// A host about which nothing is known.
    package init(host: String) {
        self.host = host
        current = Atomic(ReachabilityState.unknown.rawValue)
        entered = InlineAtomicCounters()
    }

    /// The state now.
    package var state: ReachabilityState {
        ReachabilityState(rawValue: current.load(ordering: .relaxed)) ?? .unknown
    }

    /// How often `state` was entered from another one.
    package func transitions(to state: ReachabilityState) -> UInt64 {
        entered.value(of: state)
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

/// One counter per reachability state.
private struct InlineAtomicCounters: ~Copyable, Sendable {
    private let unknown = Atomic<UInt64>(0)
    private let notReachable = Atomic<UInt64>(0)
    private let reachable = Atomic<UInt64>(0)

    func value(of state: ReachabilityState) -> UInt64 {
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
