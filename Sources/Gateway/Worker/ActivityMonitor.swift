import Activity
import EventLoop
import Synchronization

/// Counts the exchanges in flight over all workers, and wakes the activity indicator when its
/// state could change: only when the count leaves or reaches zero, and only in the states that
/// listen. A busy gateway so pays one atomic addition per exchange.
package final class ActivityMonitor: Sendable {
    private let inFlight = Atomic<Int>(0)
    /// The state's raw value, for workers to see whether it listens.
    private let state = Atomic<UInt8>(ActivityState.notActive.rawValue)
    private let indicator: Mutex<ActivityIndicator>
    /// Tells the worker that runs the indicator's timer.
    private let notify = Mutex<(@Sendable () -> Void)?>(nil)

    package init(delays: ActivityDelays) {
        indicator = Mutex(ActivityIndicator(delays: delays))
    }

    /// Sets whom to tell of a change.
    package func onChange(_ notify: @escaping @Sendable () -> Void) {
        self.notify.withLock { $0 = notify }
    }

    /// An exchange began.
    func begin() {
        let before = inFlight.add(1, ordering: .relaxed).oldValue
        guard before == 0 else { return }
        let state = ActivityState(rawValue: state.load(ordering: .relaxed))
        if state == .notActive || state == .delayingEnd { tell() }
    }

    /// An exchange ended.
    func end() {
        let after = inFlight.subtract(1, ordering: .relaxed).newValue
        guard after == 0 else { return }
        if state.load(ordering: .relaxed) == ActivityState.active.rawValue { tell() }
    }

    private func tell() { notify.withLock { $0 }?() }

    /// Lets the indicator see the count; the answer is what to do with its timer.
    func observe() -> ActivityActions {
        apply { [count = inFlight.load(ordering: .relaxed)] in $0.observe(count: count) }
    }

    /// The indicator's timer ran out.
    func timerFired() -> ActivityActions {
        let count = inFlight.load(ordering: .relaxed)
        return apply {
            _ = $0.observe(count: count)
            return $0.timerFired()
        }
    }

    private func apply(
        _ change: (inout ActivityIndicator) -> ActivityActions
    ) -> ActivityActions {
        indicator.withLock { indicator in
            let actions = change(&indicator)
            state.store(indicator.state.rawValue, ordering: .relaxed)
            return actions
        }
    }

    /// The indicator as it is now, for metrics.
    package var snapshot: ActivityIndicator { indicator.withLock { $0 } }
}

/// Runs the activity indicator's timer on one worker's loop.
final class ActivityTimer: EventHandler {
    private unowned let worker: Worker

    init(worker: Worker) { self.worker = worker }

    /// The count left or reached zero.
    func observe() { perform(worker.shared.activity.observe()) }

    override func deadlineReached() { perform(worker.shared.activity.timerFired()) }

    private func perform(_ actions: ActivityActions) {
        switch actions.timer {
        case .none: break
        case .start(let milliseconds): worker.loop.setDeadline(self, after: milliseconds)
        case .cancel: worker.loop.setDeadline(self, after: nil)
        }
        if let visible = actions.visibilityChanged {
            worker.shared.logger.debug("activity", metadata: ["active": "\(visible)"])
        }
    }
}
