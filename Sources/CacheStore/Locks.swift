import CLinux

/// State under a lock. On pthread's mutex rather than `Synchronization.Mutex`, which
/// ThreadSanitizer does not see into and so reports every access under it as a race.
///
/// Lock and state lie in one allocation, so that an uncontended access touches one place.
final class Locked<State>: @unchecked Sendable {
    private let memory: UnsafeMutableRawPointer
    fileprivate let mutex: UnsafeMutablePointer<pthread_mutex_t>
    fileprivate let state: UnsafeMutablePointer<State>

    init(_ initial: State) {
        let offset =
            (MemoryLayout<pthread_mutex_t>.size + MemoryLayout<State>.alignment - 1)
            & ~(MemoryLayout<State>.alignment - 1)
        memory = .allocate(byteCount: offset + MemoryLayout<State>.size, alignment: 64)
        mutex = memory.bindMemory(to: pthread_mutex_t.self, capacity: 1)
        state = (memory + offset).bindMemory(to: State.self, capacity: 1)
        state.initialize(to: initial)
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        state.deinitialize(count: 1)
        memory.deallocate()
    }

    /// Runs `body` with the lock held.
    @inline(__always)
    func withLock<Result, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&state.pointee)
    }
}

/// State under a lock, with a condition to wait for.
final class Monitor<State>: @unchecked Sendable {
    private let locked: Locked<State>
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init(_ initial: State) {
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
    func withLock<Result>(_ body: (inout State) -> Result) -> Result { locked.withLock(body) }

    /// Runs `body` with the lock held, again and again, until it returns a result. In between it
    /// waits for a `signal`, or at most until the deadline that `body` asked for.
    func wait<Result>(_ body: (inout State) -> Waiting<Result>) -> Result {
        pthread_mutex_lock(locked.mutex)
        defer { pthread_mutex_unlock(locked.mutex) }
        while true {
            switch body(&locked.state.pointee) {
            case .done(let result):
                return result
            case .signal:
                pthread_cond_wait(condition, locked.mutex)
            case .until(let deadline):
                var time = timespec(
                    tv_sec: Int(deadline / 1_000_000_000),
                    tv_nsec: Int(deadline % 1_000_000_000))
                pthread_cond_timedwait(condition, locked.mutex, &time)
            }
        }
    }

    /// Wakes one waiting thread.
    func signal() { pthread_cond_signal(condition) }

    /// Wakes every waiting thread.
    func broadcast() { pthread_cond_broadcast(condition) }
}

/// What a waiting thread does next.
enum Waiting<Result> {
    case done(Result)
    /// Wait for a signal.
    case signal
    /// Wait for a signal, at most until this moment (nanoseconds of the monotonic clock).
    case until(Int64)
}

/// Opened once; others wait for it.
final class Latch: Sendable {
    private let monitor = Monitor(false)

    func open() {
        monitor.withLock { $0 = true }
        monitor.broadcast()
    }

    /// Waits until it is open, at most so long.
    func wait(milliseconds: Int) {
        let deadline = StoreClock.monotonic() + Int64(milliseconds) * 1_000_000
        monitor.wait { isOpen in
            isOpen || StoreClock.monotonic() >= deadline ? .done(()) : .until(deadline)
        }
    }
}
