import Activity
import Locking
import Synchronization

/// Counts the exchanges in flight over all workers, and feeds the activity indicator.
///
/// The indicator's timer runs on one worker. The others notify it of a change through its mailbox,
/// at most once per turn of their loop and only in states in which it matters. For a busy gateway
/// this costs one atomic addition at either end of an exchange.
package final class ActivityMonitor: Sendable {
    private let inFlight = Atomic<Int>(0)
    /// The state's raw value, from which workers see whether it needs to be notified.
    private let state = Atomic<UInt8>(ActivityState.notActive.rawValue)
    private let indicator: Locked<ActivityTracker>

    /// By default it shows every change at once.
    package init(
        delays: ActivityDelays = ActivityDelays(
            activationMilliseconds: 0, completionMilliseconds: 0)
    ) {
        indicator = Locked(ActivityTracker(delays: delays))
    }

    /// An exchange began.
    package func begin() { inFlight.add(1, ordering: .relaxed) }

    /// An exchange ended.
    package func end() { inFlight.subtract(1, ordering: .relaxed) }

    /// Whether the indicator must be notified after exchanges have begun or ended.
    package var needsUpdate: Bool {
        switch ActivityState(rawValue: state.load(ordering: .relaxed)) {
        case .notActive, .delayingEnd: true
        case .active: inFlight.load(ordering: .relaxed) == 0
        case .delayingStart, nil: false
        }
    }

    /// Updates the indicator: there was activity, and this is what is left of it.
    package func observe(_ perform: (ActivityActions) -> Void) {
        let count = inFlight.load(ordering: .relaxed)
        if count == 0 { perform(apply { $0.observe(count: 1) }) }
        perform(apply { $0.observe(count: count) })
    }

    /// The indicator's timer fired.
    package func timerFired() -> ActivityActions {
        let count = inFlight.load(ordering: .relaxed)
        return apply {
            _ = $0.observe(count: count)
            return $0.timerFired()
        }
    }

    private func apply(_ change: (inout ActivityTracker) -> ActivityActions) -> ActivityActions {
        indicator.withLock { indicator in
            let actions = change(&indicator)
            state.store(indicator.state.rawValue, ordering: .relaxed)
            return actions
        }
    }

    /// The indicator's current state, for metrics.
    package var snapshot: ActivityTracker { indicator.withLock { $0 } }
}
