import Locking

/// A question to a hook, and the tasks that wait for its answer.
final class SharedQuestion: Sendable {
    private struct State {
        var answer: ChallengeDisposition?
        var waiters: [UInt64: CheckedContinuation<ChallengeDisposition?, Never>] = [:]
        var nextWaiter: UInt64 = 0
        var work: Task<Void, Never>?
        var isAbandoned = false
    }

    private let state = Locked(State())

    /// Asks, in a task of its own: whoever waits may give up without the others losing the answer.
    ///
    /// - Parameter ask: Gets the answer, and tells it to ``answered(_:)``.
    func begin(_ ask: @escaping @Sendable () async -> Void) {
        let work = Task { await ask() }
        let isAbandoned = state.withLock { state in
            state.work = work
            return state.isAbandoned
        }
        if isAbandoned { work.cancel() }
    }

    /// Nobody waits any longer.
    func abandon() {
        let work = state.withLock { state in
            state.isAbandoned = true
            return state.work
        }
        work?.cancel()
    }

    func answered(_ answer: ChallengeDisposition) {
        let waiters = state.withLock { state in
            state.answer = answer
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume(returning: answer) }
    }

    /// The answer; nil: the task was cancelled before it came.
    func answer() async -> ChallengeDisposition? {
        let number = state.withLock { state in
            defer { state.nextWaiter += 1 }
            return state.nextWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (answer, isOver) = state.withLock { state in
                    // Cancelled later, the task finds the continuation; before, it is seen here.
                    if state.answer == nil, !Task.isCancelled {
                        state.waiters[number] = continuation
                        return (nil as ChallengeDisposition?, false)
                    }
                    return (Task.isCancelled ? nil : state.answer, true)
                }
                if isOver { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
            waiter?.resume(returning: nil)
        }
    }
}
