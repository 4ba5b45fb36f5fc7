import Activity
import Locking
import Synchronization

/// Counts the exchanges in flight over all workers, and feeds the activity indicator.
///
/// The indicator's timer runs on one worker. The others tell it of a change through its mailbox,
/// at most once per turn of their loop and only in the states that listen; a busy gateway pays one
/// atomic addition at either end of an exchange.
package final class ActivityMonitor: Sendable {
    private let inFlight = Atomic<Int>(0)
    /// The state's raw value, for workers to see whether it listens.
    private let state = Atomic<UInt8>(ActivityState.notActive.rawValue)
    private let indicator: Locked<ActivityIndicator>

    package init(delays: ActivityDelays) {
        indicator = Locked(ActivityIndicator(delays: delays))
    }

    /// An exchange began.
    package func begin() { inFlight.add(1, ordering: .relaxed) }

    /// An exchange ended.
    package func end() { inFlight.subtract(1, ordering: .relaxed) }

    /// Whether the indicator must be told, after exchanges have begun or ended.
    package var needsUpdate: Bool {
        switch ActivityState(rawValue: state.load(ordering: .relaxed)) {
        case .notActive, .delayingEnd: true
        case .active: inFlight.load(ordering: .relaxed) == 0
        case .delayingStart, nil: false
        }
    }

    /// Lets the indicator see that there was activity, and what is left of it.
    package func observe(_ perform: (ActivityActions) -> Void) {
        let count = inFlight.load(ordering: .relaxed)
        if count == 0 { perform(apply { $0.observe(count: 1) }) }
        perform(apply { $0.observe(count: count) })
    }

    /// The indicator's timer ran out.
    package func timerFired() -> ActivityActions {
        let count = inFlight.load(ordering: .relaxed)
        return apply {
            _ = $0.observe(count: count)
            return $0.timerFired()
        }
    }

    private func apply(_ change: (inout ActivityIndicator) -> ActivityActions) -> ActivityActions {
        indicator.withLock { indicator in
            let actions = change(&indicator)
            state.store(indicator.state.rawValue, ordering: .relaxed)
            return actions
        }
    }

    /// The indicator as it is now, for metrics.
    package var snapshot: ActivityIndicator { indicator.withLock { $0 } }
}
