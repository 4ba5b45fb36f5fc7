import CLinux

/// The signals that control the process. They are blocked in every thread and received only by the
/// main thread, one after the other: no code ever runs inside a handler.
struct SignalSet {
    /// A received signal.
    enum Taken: Equatable {
        case terminate
        case interrupt
        case reload
        case reopenLogs
        case upgrade
        /// None arrived in time.
        case none
    }

    private var set = sigset_t()

    /// Blocks the signals, and SIGPIPE, in this thread and those it starts.
    init() {
        sigemptyset(&set)
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2] { sigaddset(&set, signal) }
        // SIGPIPE stays blocked for good: writing to a closed socket is an error, not the end.
        var blocked = set
        sigaddset(&blocked, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &blocked, nil)
    }

    /// Restores the default action of SIGTERM and SIGINT, which ends the process.
    func restoreDefaults() {
        var ending = sigset_t()
        sigemptyset(&ending)
        sigaddset(&ending, SIGTERM)
        sigaddset(&ending, SIGINT)
        pthread_sigmask(SIG_UNBLOCK, &ending, nil)
    }

    /// Whether a signal waits that ends the process.
    var isToEnd: Bool {
        var pending = sigset_t()
        return sigpending(&pending) == 0
            && (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1)
    }

    /// Waits for the next signal, with a time limit, or without one if `nil`.
    func wait(milliseconds: Int? = nil) -> Taken {
        var set = set
        let number: Int32
        if let milliseconds {
            var time = timespec(
                tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
            number = sigtimedwait(&set, nil, &time)
        } else {
            number = sigwaitinfo(&set, nil)
        }
        switch number {
        case SIGTERM: return .terminate
        case SIGINT: return .interrupt
        case SIGHUP: return .reload
        case SIGUSR1: return .reopenLogs
        case SIGUSR2: return .upgrade
        default: return .none
        }
    }
}
