import EventLoop

/// Wakes the tasks of a loop's turn together, at its end.
///
/// A thread of the concurrency library that is woken for one task has often done its part before
/// the loop comes to the next, and sleeps again: many sleeps and wakes, each with a system call.
/// Those that are woken together find the thread awake.
final class WakeBatch {
    /// Tasks that wait at most until they are woken: the first of them is not to wait for long.
    static let most = 64

    private unowned let loop: EventLoop
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(of loop: EventLoop) { self.loop = loop }

    func add(_ waiter: CheckedContinuation<Void, Never>) {
        if waiters.isEmpty { loop.afterTurn { [self] in wake() } }
        waiters.append(waiter)
        if waiters.count >= Self.most { wake() }
    }

    /// Wakes those there are.
    func wake() {
        for waiter in waiters { waiter.resume() }
        waiters.removeAll(keepingCapacity: true)
    }
}
