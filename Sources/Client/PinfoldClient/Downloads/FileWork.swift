import Locking
import Threads

extension ThreadPool {
    /// Performs work that may wait for the disk on one of the threads, while the task is suspended.
    /// If the pool is closed, the work is done on the caller's thread, so that what was begun is
    /// completed and its files are closed.
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

    /// - Parameter value: The result, or `nil` if the work will not be done.
    func end(_ value: Value?) {
        let waiter = state.withLock { state in
            if let value { state.value = value }
            return state.waiter.take()
        }
        waiter?.resume()
    }
}

/// Travels with the work while it is queued. If the work is dropped without being done, it resumes
/// the waiting task.
private final class PooledTicket<Value: Sendable>: Sendable {
    let job: PooledJob<Value>

    init(_ job: PooledJob<Value>) { self.job = job }

    deinit { job.end(nil) }
}
