import Clocks
import Locking

/// A few threads for work that would block an event loop, served first come, first served.
package final class ThreadPool: Sendable {
    private struct State {
        var waiting: [@Sendable () -> Void] = []
        var next = 0
        var isClosed = false
        var threads: [Thread] = []
        /// The threads that have not ended.
        var living = 0
        var idle = 0
        var count: Int { waiting.count - next }
    }

    private let monitor = Monitor(State())
    private let name: String
    private let maximumThreads: Int
    private let niceness: Int32
    private let limit: Int

    /// Threads are started when there is work for them.
    ///
    /// - Parameters:
    ///   - name: what ps(1) shows, cut to 15 bytes.
    ///   - threads: the maximum number of threads.
    ///   - niceness: by how much they yield to the process's other threads, 0...19.
    ///   - limit: the maximum number of waiting pieces of work.
    package init(name: String, threads: Int, niceness: Int32, limit: Int) {
        precondition(threads > 0 && limit > 0)
        self.name = name
        maximumThreads = threads
        self.niceness = niceness
        self.limit = limit
    }

    /// The number of waiting pieces of work.
    package var pending: Int { monitor.withLock { $0.count } }

    /// Runs `work` on one of the threads at some point. Returns `false`, without running it, if too
    /// much work is waiting, the pool is closed, or the system cannot provide a thread.
    package func run(_ work: @escaping @Sendable () -> Void) -> Bool {
        let isTaken = monitor.withLock { state in
            guard !state.isClosed, state.count < limit else { return false }
            if state.idle <= state.count, state.threads.count < maximumThreads {
                guard start(&state) || !state.threads.isEmpty else { return false }
            }
            state.waiting.append(work)
            return true
        }
        if isTaken { monitor.signal() }
        return isTaken
    }

    private func start(_ state: inout State) -> Bool {
        let started = try? Thread(name: name, niceness: niceness) { [self] in
            while let work = take() { work() }
            monitor.withLock { $0.living -= 1 }
            monitor.broadcast()
        }
        guard let started else { return false }
        state.threads.append(started)
        state.living += 1
        return true
    }

    /// Waits for work; `nil` if the pool is closed.
    private func take() -> (@Sendable () -> Void)? {
        var isIdle = false
        return monitor.wait { state in
            if isIdle { state.idle -= 1 }
            guard !state.isClosed else { return .done(nil) }
            guard state.count > 0 else {
                isIdle = true
                state.idle += 1
                return .signal
            }
            let work = state.waiting[state.next]
            state.waiting[state.next] = {}
            state.next += 1
            if state.next == state.waiting.count {
                state.waiting.removeAll()
                state.next = 0
            } else if state.next >= 1024, state.next * 2 > state.waiting.count {
                state.waiting.removeFirst(state.next)
                state.next = 0
            }
            return .done(work)
        }
    }

    /// Ends: what waits is not done any more, what is being done is waited for.
    package func close() {
        for thread in end() { thread.join() }
    }

    /// The same, but waits for so long at most: what reads a file on a network share may hang, and
    /// a thread that does is left to itself.
    package func close(withinMilliseconds milliseconds: Int64) {
        let threads = end()
        let deadline = Clock.monotonicNanoseconds() + milliseconds * 1_000_000
        let haveEnded: Bool = monitor.wait { state in
            if state.living == 0 { return .done(true) }
            return Clock.monotonicNanoseconds() >= deadline ? .done(false) : .until(deadline)
        }
        for thread in threads { haveEnded ? thread.join() : thread.detach() }
    }

    /// Has the threads end, and returns them.
    private func end() -> [Thread] {
        let threads = monitor.withLock { state in
            state.isClosed = true
            state.waiting = []
            state.next = 0
            defer { state.threads = [] }
            return state.threads
        }
        monitor.broadcast()
        return threads
    }
}
