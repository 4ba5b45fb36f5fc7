import Locking
import Threads

extension ThreadPool {
    /// Does work that may wait for the disk on one of the threads, and suspends the task meanwhile.
    /// Where the pool is closed, it is done on the caller's thread: what was begun comes to its
    /// end, its files are closed.
    func perform<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
        let job = PooledJob<Value>()
        await Waiter.wait { waiter in
            job.begin(waiter)
            let ticket = PooledTicket(job)
            _ = run { ticket.job.end(work()) }
        }
        return job.value ?? work()
    }
}

/// A result that a task waits for.
private final class PooledJob<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiter: Waiter?
    }

    private let state = Locked(State())

    var value: Value? { state.withLock { $0.value } }

    func begin(_ waiter: Waiter) { state.withLock { $0.waiter = waiter } }

    /// - Parameter value: nil: the work will not be done.
    func end(_ value: Value?) {
        let waiter = state.withLock { state in
            if let value { state.value = value }
            return state.waiter.take()
        }
        waiter?.resume()
    }
}

/// Is with the work while that waits: where the work is let go of undone, nobody waits any more.
private final class PooledTicket<Value: Sendable>: Sendable {
    let job: PooledJob<Value>

    init(_ job: PooledJob<Value>) { self.job = job }

    deinit { job.end(nil) }
}
