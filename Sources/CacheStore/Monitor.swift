import CLinux

/// A lock with a condition: state that threads wait for. Everything else in the store uses
/// `Mutex`, which cannot be waited on.
///
/// The state lives behind a pointer because a waiting thread gives up the lock in the middle of
/// its access, which a property access could not express.
final class Monitor<State>: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let state = UnsafeMutablePointer<State>.allocate(capacity: 1)

    init(_ initial: State) {
        state.initialize(to: initial)
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // Deadlines must not move when somebody sets the clock.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        state.deinitialize(count: 1)
        state.deallocate()
        condition.deallocate()
        mutex.deallocate()
    }

    /// Runs `body` with the lock held.
    func withLock<Result>(_ body: (inout State) -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body(&state.pointee)
    }

    /// Runs `body` with the lock held, again and again, until it returns a result. In between it
    /// waits for a `signal`, or at most until the deadline that `body` asked for.
    func wait<Result>(_ body: (inout State) -> Waiting<Result>) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            switch body(&state.pointee) {
            case .done(let result):
                return result
            case .signal:
                pthread_cond_wait(condition, mutex)
            case .until(let deadline):
                var time = timespec(
                    tv_sec: Int(deadline / 1_000_000_000),
                    tv_nsec: Int(deadline % 1_000_000_000))
                pthread_cond_timedwait(condition, mutex, &time)
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

/// The clocks of the store's own threads.
enum StoreClock {
    /// Nanoseconds of the monotonic clock.
    static func monotonic() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }

    /// Seconds since 1970, to the tick of the kernel's clock: for last-used times.
    static func seconds() -> UInt32 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME_COARSE, &time)
        return UInt32(truncatingIfNeeded: time.tv_sec)
    }
}

/// A thread of the store's own.
struct StoreThread: @unchecked Sendable {
    private let handle: pthread_t

    private final class Body {
        let name: String
        let run: @Sendable () -> Void
        init(_ name: String, _ run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    /// Starts a thread that takes no signals, so that the process's signal handling stays with
    /// the threads that expect it. nil if the system refuses.
    static func start(_ name: String, _ run: @escaping @Sendable () -> Void) -> StoreThread? {
        let body = Unmanaged.passRetained(Body(name, run))
        var all = sigset_t()
        var previous = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
        var handle = pthread_t()
        let status = pthread_create(
            &handle, nil,
            { argument in
                guard let argument else { return nil }
                let body = Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                pthread_setname_np(pthread_self(), body.name)
                body.run()
                return nil
            }, body.toOpaque())
        guard status == 0 else {
            body.release()
            return nil
        }
        return StoreThread(handle: handle)
    }

    /// Waits for the thread's end.
    func join() { pthread_join(handle, nil) }

    /// Lets the thread end by itself.
    func detach() { pthread_detach(handle) }
}
