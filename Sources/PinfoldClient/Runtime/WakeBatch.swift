import EventLoop
import Locking

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
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(of loop: EventLoop, in line: WakeLine = WakeLine()) {
        self.loop = loop
        self.line = line
    }

    func add(_ waiter: CheckedContinuation<Void, Never>) {
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

/// Tasks that are to be woken now: by the loop, and by each of them that is awake already.
///
/// The system may let a thread that was woken run in place of the loop that woke it. Whoever is
/// awake therefore wakes the next task before it goes on, so that there is one when it is done, and
/// its thread need not sleep until the loop runs again. The loop depends on nobody in this: whom no
/// other task has woken it wakes itself.
final class WakeLine: Sendable {
    private struct State {
        var waiters: [CheckedContinuation<Void, Never>] = []
        /// The first one that was not woken.
        var next = 0
    }

    private let state = Locked(State())

    /// Adds tasks behind those that are there.
    func append(_ waiters: [CheckedContinuation<Void, Never>]) {
        state.withLock { $0.waiters.append(contentsOf: waiters) }
    }

    /// Wakes the task that has waited longest.
    ///
    /// - Returns: false: there is none.
    @discardableResult
    func wakeNext() -> Bool {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.next < state.waiters.count else { return nil }
            defer {
                state.next += 1
                if state.next == state.waiters.count {
                    state.waiters.removeAll(keepingCapacity: true)
                    state.next = 0
                }
            }
            return state.waiters[state.next]
        }
        waiter?.resume()
        return waiter != nil
    }
}
