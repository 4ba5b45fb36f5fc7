import EventLoop
import Locking
import Synchronization

/// Wakes the tasks of a loop's turn together, at its end.
///
/// A thread of the concurrency library that is woken for one task has often done its part before
/// the loop comes to the next, and sleeps again: many sleeps and wakes, each with a system call.
/// Those that are woken together find the thread awake.
final class WakeBatch {
    /// Tasks that wait at most until they are woken: the first of them is not to wait for long.
    static let most = 64

    private unowned let loop: EventLoop
    private let line: WakeLine
    private var waiters: [Waiter] = []

    init(of loop: EventLoop, in line: WakeLine) {
        self.loop = loop
        self.line = line
    }

    func add(_ waiter: Waiter) {
        if waiters.isEmpty { loop.afterTurn { [self] in wake() } }
        waiters.append(waiter)
        if waiters.count >= Self.most { wake() }
    }

    /// Wakes those there are.
    func wake() {
        line.append(waiters)
        waiters.removeAll(keepingCapacity: true)
        while line.wakeNext() {}
    }
}

/// Tasks due to be woken, by the loop or by any of them that is already awake.
///
/// The system may let a thread that was woken run in place of the loop that woke it. So each woken
/// task wakes the next before it goes on: its thread then finds more work when it is done, and need
/// not sleep until the loop runs again. The loop itself wakes every task that no other has taken
/// out of the line; one that was taken out waits for whoever took it.
final class WakeLine: Sendable {
    private struct State {
        var waiters: [Waiter] = []
        /// The index of the first that has not been woken.
        var next = 0
    }

    private let state = Locked(State())
    /// How many there are: mostly none, which is seen without taking the lock.
    private let count = Atomic(0)

    /// Adds tasks behind those that are there.
    func append(_ waiters: [Waiter]) {
        guard !waiters.isEmpty else { return }
        state.withLock { state in
            state.waiters.append(contentsOf: waiters)
            count.add(waiters.count, ordering: .relaxed)
        }
    }

    /// Wakes the task that has waited longest.
    ///
    /// - Returns: false if there is none.
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
