import Clocks
import Locking

/// Opened once; threads can wait for that.
final class Latch: Sendable {
    private let monitor = Monitor(false)

    func open() {
        monitor.withLock { $0 = true }
        monitor.broadcast()
    }

    /// Waits until it is open, with a time limit.
    func wait(milliseconds: Int) {
        let deadline = Clock.monotonicNanoseconds() + Int64(milliseconds) * 1_000_000
        monitor.wait { isOpen in
            isOpen || Clock.monotonicNanoseconds() >= deadline ? .done(()) : .until(deadline)
        }
    }
}
