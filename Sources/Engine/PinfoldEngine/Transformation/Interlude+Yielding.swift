import CLinux
import Clocks
import Documents
import Synchronization

extension Interlude {
    /// Microseconds that a thread works before it yields. Otherwise the kernel preempts it only at
    /// its next clock tick, up to 4 ms later, whatever the priority of the threads that wait: event
    /// loops, and the programs that they talk to.
    private static let stretch: Int64 = 300

    private final class Stretch: Sendable {
        let began = Atomic(Clock.monotonicMicroseconds())
    }

    /// Yields at the end of each stretch; for one thread.
    static func yielding() -> Interlude {
        let current = Stretch()
        return Interlude {
            let now = Clock.monotonicMicroseconds()
            guard now - current.began.load(ordering: .relaxed) >= stretch else { return }
            sched_yield()
            current.began.store(Clock.monotonicMicroseconds(), ordering: .relaxed)
        }
    }
}
