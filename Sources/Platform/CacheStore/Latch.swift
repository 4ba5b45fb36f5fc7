import Clocks
import Locking

/// Is opened once, and stays open; threads can wait for that.
package final class Latch: Sendable {
    private let monitor = Monitor(false)

    package init() {}

    package func open() {
        monitor.withLock { $0 = true }
        monitor.broadcast()
    }

    /// Waits until it is open, with a time limit.
    package func wait(milliseconds: Int) {
        let deadline = Clock.monotonicNanoseconds() + Int64(milliseconds) * 1_000_000
        monitor.wait { isOpen in
            isOpen || Clock.monotonicNanoseconds() >= deadline ? .done(()) : .until(deadline)
        }
    }
}
