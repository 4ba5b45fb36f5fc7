import CLinux
import Synchronization

/// A named thread that runs one function, and that is joined or detached exactly once, no matter
/// who asks and how often. It is detached when the last reference to it goes away.
///
/// It handles none of the signals sent to the process: those are left to the threads that wait for
/// them. Signals raised by its own faults are not blocked, so that crash reporters see them.
package final class Thread: Sendable {
    /// The system refused to start a thread.
    package struct StartError: Error, Equatable, Sendable, CustomStringConvertible {
        /// The errno.
        package let code: Int32
        package var description: String {
            "cannot start a thread: \(String(cString: strerror(code))) (errno \(code))"
        }
    }

    private final class Start: Sendable {
        let name: [CChar]
        let niceness: Int32
        let body: @Sendable () -> Void
        init(_ name: String, _ niceness: Int32, _ body: @escaping @Sendable () -> Void) {
            self.name = name.utf8.prefix(15).map { CChar(bitPattern: $0) } + [0]
            self.niceness = niceness
            self.body = body
        }
    }

    private let handle: pthread_t
    /// Whether it has been joined or detached: its handle may belong to another thread by now.
    private let isReleased = Atomic(false)

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - name: what ps(1) and gdb show, cut to 15 bytes.
    ///   - niceness: by how much it yields to the process's other threads, 0...19.
    ///   - body: what it runs; the thread ends with it.
    package init(
        name: String, niceness: Int32 = 0, _ body: @escaping @Sendable () -> Void
    ) throws(StartError) {
        precondition((0...19).contains(niceness))
        let start = Unmanaged.passRetained(Start(name, niceness, body))
        // Blocked before the thread starts, so that it can never receive one.
        var blocked = Self.processSignals()
        var before = sigset_t()
        pthread_sigmask(SIG_BLOCK, &blocked, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        var handle = pthread_t()
        let code = pthread_create(
            &handle, nil,
            { argument in
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                pthread_setname_np(pthread_self(), start.name)
                if start.niceness > 0 { _ = lower_own_priority(start.niceness) }
                start.body()
                return nil
            }, start.toOpaque())
        guard code == 0 else {
            start.release()
            throw StartError(code: code)
        }
        self.handle = handle
    }

    deinit { detach() }

    /// Whether this is the calling thread.
    package var isCurrent: Bool {
        !isReleased.load(ordering: .relaxed) && pthread_equal(handle, pthread_self()) != 0
    }

    /// Waits until the function has returned. If called on the thread itself, which cannot wait for
    /// its own end, the thread is detached. If it was already joined or detached, returns at once.
    package func join() {
        let isOwn = isCurrent
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        if isOwn {
            pthread_detach(handle)
        } else {
            pthread_join(handle, nil)
        }
    }

    /// Lets the thread end by itself.
    package func detach() {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        pthread_detach(handle)
    }

    /// Every signal except those that a fault raises in the faulting thread.
    private static func processSignals() -> sigset_t {
        var set = sigset_t()
        sigfillset(&set)
        for fault in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS] {
            sigdelset(&set, fault)
        }
        return set
    }
}
