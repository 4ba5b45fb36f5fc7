import CLinux

/// A thread of the store's own.
struct StoreThread: @unchecked Sendable {
    private let handle: pthread_t

    private final class Body {
        let name: String
        let niceness: Int32
        let run: @Sendable () -> Void
        init(_ name: String, _ niceness: Int32, _ run: @escaping @Sendable () -> Void) {
            self.name = name
            self.niceness = niceness
            self.run = run
        }
    }

    /// Starts a thread that takes no signals, so that the process's signal handling stays with
    /// the threads that expect it. nil if the system refuses.
    ///
    /// - Parameter niceness: how much it stands back for the process's other threads, 0...19.
    static func start(
        _ name: String, niceness: Int32 = 0, _ run: @escaping @Sendable () -> Void
    ) -> StoreThread? {
        let body = Unmanaged.passRetained(Body(name, niceness, run))
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
                if body.niceness > 0 { _ = lower_own_priority(body.niceness) }
                body.run()
                return nil
            }, body.toOpaque())
        guard status == 0 else {
            body.release()
            return nil
        }
        return StoreThread(handle: handle)
    }

    /// Whether this is the calling thread.
    var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }

    /// Waits for the thread's end.
    func join() { pthread_join(handle, nil) }

    /// Lets the thread end by itself.
    func detach() { pthread_detach(handle) }
}
