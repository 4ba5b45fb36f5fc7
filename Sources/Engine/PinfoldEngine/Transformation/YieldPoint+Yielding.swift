import CLinux
import Clocks
import Documents
import Synchronization

extension YieldPoint {
    /// Microseconds that a thread works before it lets others go on. Left to itself the kernel
    /// takes the processor away only at its clock's next tick, up to 4 ms later, whatever the
    /// priority of who waits: event loops, and the programs that they talk to.
    private static let stretch: Int64 = 300

    private final class Stretch: Sendable {
        let began = Atomic(Clock.monotonicMicroseconds())
    }

    /// Lets others go on at the end of each stretch; for one thread.
    static func yielding() -> YieldPoint {
        let current = Stretch()
        return YieldPoint {
            let now = Clock.monotonicMicroseconds()
            guard now - current.began.load(ordering: .relaxed) >= stretch else { return }
            sched_yield()
            current.began.store(Clock.monotonicMicroseconds(), ordering: .relaxed)
        }
    }
}
