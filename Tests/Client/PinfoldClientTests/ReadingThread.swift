import Locking
import Threads

/// Runs tasks on a separate thread, so that data is read in time, however many other tests wait on
/// the threads that all tasks share.
final class ReadingThread: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var isClosed = false
    }

    private let state = Monitor(State())
    private let thread = Locked<Thread?>(nil)

    init() throws {
        let started = try Thread(name: "test-reader") { [self] in run() }
        thread.withLock { $0 = started }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
        state.signal()
    }

    private func run() {
        while true {
            let jobs: [UnownedJob]? = state.wait { state in
                guard state.jobs.isEmpty else {
                    defer { state.jobs = [] }
                    return .done(state.jobs)
                }
                return state.isClosed ? .done(nil) : .signal
            }
            guard let jobs else { return }
            for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
    }

    /// Ends the thread. Must be called after the tasks on it have ended.
    func close() {
        state.withLock { $0.isClosed = true }
        state.signal()
        thread.withLock { $0 }?.join()
    }
}
