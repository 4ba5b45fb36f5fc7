import EventLoop
import Locking
import Synchronization

/// Resumes the tasks of a turn of the loop together, at the end of the turn.
///
/// A thread of the concurrency library that is woken for one task has often finished its part
/// before the loop gets to the next task, and goes back to sleep: many sleeps and wake-ups, each
/// with a system call. If tasks are resumed together, they find the thread awake.
final class WakeBatch {
    /// The maximum number of tasks that wait, so that the first one does not wait for long.
    static let most = 64

    private unowned let loop: EventLoop
    private let queue: WakeQueue
    private var waiters: [Waiter] = []

    init(of loop: EventLoop, in queue: WakeQueue) {
        self.loop = loop
        self.queue = queue
    }

    func add(_ waiter: Waiter) {
        if waiters.isEmpty { loop.afterTurn { [self] in wake() } }
        waiters.append(waiter)
        if waiters.count >= Self.most { wake() }
    }

    /// Resumes the waiting tasks.
    func wake() {
        queue.append(waiters)
        waiters.removeAll(keepingCapacity: true)
        while queue.wakeNext() {}
    }
}

/// Tasks due to be resumed, by the loop or by one of them that is already running.
///
/// The system may run a woken thread in place of the loop that woke it. So each resumed task
/// resumes the next one before it continues: its thread then finds more work when it has finished,
/// and need not sleep until the loop runs again. The loop resumes every task that no other has
/// taken from the queue. A task that was taken waits for the one that took it.
final class WakeQueue: Sendable {
    private struct State {
        var waiters: [Waiter] = []
        /// The index of the first task that has not been resumed.
        var next = 0
    }

    private let state = Locked(State())
    /// The number of tasks: mostly zero, which can be read without the lock.
    private let count = Atomic(0)

    /// Appends tasks.
    func append(_ waiters: [Waiter]) {
        guard !waiters.isEmpty else { return }
        state.withLock { state in
            state.waiters.append(contentsOf: waiters)
            count.add(waiters.count, ordering: .relaxed)
        }
    }

    /// Resumes the task that has waited longest.
    ///
    /// - Returns: `false` if there is none.
    @discardableResult
    func wakeNext() -> Bool {
        guard count.load(ordering: .relaxed) > 0, let waiter = takeNext() else { return false }
        waiter.resume()
        return true
    }

    private func takeNext() -> Waiter? {
        state.withLock { state in
            guard state.next < state.waiters.count else { return nil }
            let waiter = state.waiters[state.next]
            state.next += 1
            if state.next == state.waiters.count {
                state.waiters.removeAll(keepingCapacity: true)
                state.next = 0
            }
            count.subtract(1, ordering: .relaxed)
            return waiter
        }
    }
}
