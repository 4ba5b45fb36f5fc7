import Locking

/// A call of a hook, and the tasks that wait for its answer.
final class SharedPrompt<Answer: Sendable>: Sendable {
    private struct State {
        var answer: Answer?
        var waiters: [UInt64: CheckedContinuation<Answer?, Never>] = [:]
        var nextWaiter: UInt64 = 0
        var work: Task<Void, Never>?
        var isAbandoned = false
    }

    private let state = Locked(State())

    /// Calls the hook in a separate task, so that a waiting task can give up without affecting the
    /// others.
    ///
    /// - Parameter ask: Gets the answer, and passes it to ``answered(_:)``.
    func begin(_ ask: @escaping @Sendable () async -> Void) {
        let work = Task { await ask() }
        let isAbandoned = state.withLock { state in
            state.work = work
            return state.isAbandoned
        }
        if isAbandoned { work.cancel() }
    }

    /// Cancels the call, because no task waits for it any more.
    func abandon() {
        let work = state.withLock { state in
            state.isAbandoned = true
            return state.work
        }
        work?.cancel()
    }

    func answered(_ answer: Answer) {
        let waiters = state.withLock { state in
            state.answer = answer
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume(returning: answer) }
    }

    /// Returns the answer, or `nil` if the task was cancelled first.
    func answer() async -> Answer? {
        let number = state.withLock { state in
            defer { state.nextWaiter += 1 }
            return state.nextWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (answer, isOver) = state.withLock { state in
                    // If the task is cancelled later, the handler finds the continuation; if
                    // before, it is noticed here.
                    if state.answer == nil, !Task.isCancelled {
                        state.waiters[number] = continuation
                        return (nil as Answer?, false)
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
