import CLinux

/// A named thread that runs one function.
package struct WorkerThread: ~Copyable {
    private final class Start {
        let name: String
        let body: @Sendable () -> Void
        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    private let thread: pthread_t

    /// Starts the thread. `name` is what ps(1) and gdb show, cut to 15 bytes.
    package init(name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) {
        var thread = pthread_t()
        let start = Unmanaged.passRetained(Start(name: name, body: body))
        let code = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                _ = pthread_setname_np(pthread_self(), String(start.name.prefix(15)))
                start.body()
                return nil
            }, start.toOpaque())
        guard code == 0 else {
            start.release()
            throw Errno(code: code)
        }
        self.thread = thread
    }

    /// Waits until the function has returned.
    package consuming func join() {
        _ = pthread_join(thread, nil)
    }
}
