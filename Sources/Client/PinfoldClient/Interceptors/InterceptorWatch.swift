import Clocks
import Locking

/// Ends those of a session's tasks whose time is over while their interceptors run.
///
/// One sleeping task looks after all of them: a sleep leaves its timer behind when it is cancelled,
/// so that one for each request would cost much more than the interceptors.
final class InterceptorWatch: Sendable {
    private struct State {
        var tasks: [TaskIdentifier: TaskHandle] = [:]
        /// The next look and when it is due, or `nil` if there is none. Another one that was due
        /// later has been given up.
        var next: (number: UInt64, due: Int64)?
        var lastNumber: UInt64 = 0
    }

    private let resourceTimeout: Duration
    private let state = Locked(State())

    init(_ resourceTimeout: Duration) { self.resourceTimeout = resourceTimeout }

    /// Begins to watch a task.
    func begin(_ task: TaskHandle) {
        state.withLock { $0.tasks[task.identifier] = task }
        schedule(after: Self.wait(timeLeft(task), isSuspended: false))
    }

    /// Stops watching a task. Returns `false` if it was not watched any more.
    @discardableResult
    func end(_ task: TaskHandle) -> Bool {
        state.withLock { $0.tasks.removeValue(forKey: task.identifier) } != nil
    }

    private func timeLeft(_ task: TaskHandle) -> Duration { resourceTimeout - task.elapsed }

    /// Returns when a task is looked at again, in milliseconds. The time of a suspended one stands
    /// still until it is resumed, which nobody says.
    static func wait(_ timeLeft: Duration, isSuspended: Bool) -> Int64 {
        isSuspended ? 1000 : min(max(timeLeft.wholeMilliseconds, 10), 1000)
    }

    private func schedule(after wait: Int64) {
        let due = Clock.monotonicMilliseconds() + wait
        let number = state.withLock { state -> UInt64? in
            if let next = state.next, next.due <= due { return nil }
            state.lastNumber += 1
            state.next = (state.lastNumber, due)
            return state.lastNumber
        }
        guard let number else { return }
        // Not on behalf of the task that happens to be the first.
        Task.detached { [self] in
            try? await Task.sleep(for: .milliseconds(wait))
            look(number)
        }
    }

    private func look(_ number: UInt64) {
        let tasks = state.withLock { state -> [TaskHandle] in
            guard state.next?.number == number else { return [] }
            state.next = nil
            return Array(state.tasks.values)
        }
        var wait: Int64?
        for task in tasks {
            let left = timeLeft(task)
            if left > .zero {
                let own = Self.wait(left, isSuspended: task.state == .suspended)
                wait = min(wait ?? own, own)
            } else if end(task) {
                task.cancel(.tookLonger(than: resourceTimeout, task.request))
            }
        }
        if let wait { schedule(after: wait) }
    }
}
