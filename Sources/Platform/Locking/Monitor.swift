import CLinux

/// State under a lock, with a condition to wait for.
public final class Monitor<State>: @unchecked Sendable {
    private let locked: Locked<State>
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    /// Protects a state to which no other reference is kept.
    public init(_ initial: sending State) {
        locked = Locked(initial)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // Deadlines must not move when somebody sets the clock.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
    }

    /// Runs `body` with the lock held.
    public func withLock<Result>(
        _ body: (inout sending State) -> sending Result
    ) -> sending Result {
        locked.withLock(body)
    }

    /// Runs `body` with the lock held, repeatedly, until it returns a result. In between it waits
    /// for a `signal`, or at most until the deadline that `body` requested.
    public func wait<Result>(_ body: (inout State) -> Waiting<Result>) -> Result {
        locked.storage.lock()
        defer { locked.storage.unlock() }
        while true {
            switch body(&locked.storage.value.pointee) {
            case .done(let result):
                return result
            case .signal:
                pthread_cond_wait(condition, locked.storage.mutex)
            case .until(let deadline):
                var time = timespec(
                    tv_sec: Int(deadline / 1_000_000_000),
                    tv_nsec: Int(deadline % 1_000_000_000))
                pthread_cond_timedwait(condition, locked.storage.mutex, &time)
            }
        }
    }

    /// Wakes one waiting thread.
    public func signal() { pthread_cond_signal(condition) }

    /// Wakes every waiting thread.
    public func broadcast() { pthread_cond_broadcast(condition) }
}

/// What a waiting thread does next.
public enum Waiting<Result> {
    /// Stop waiting, with this result.
    case done(Result)
    /// Wait for a signal.
    case signal
    /// Wait for a signal, at most until this moment (nanoseconds of the monotonic clock).
    case until(Int64)
}
