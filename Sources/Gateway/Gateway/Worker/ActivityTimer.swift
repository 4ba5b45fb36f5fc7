import Activity
import EventLoop
import Logging
import PinfoldEngine

/// Runs the activity indicator's timer on one worker's loop.
final class ActivityTimer: EventHandler {
    private let worker: Worker

    init(worker: Worker) { self.worker = worker }

    /// Called when there was activity.
    func observe() { worker.shared.activity.observe { perform($0) } }

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
