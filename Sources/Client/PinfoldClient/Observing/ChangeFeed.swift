import Locking

/// Tells of changes of a value, in their order: first a handler, then those who follow it as a
/// sequence.
final class ChangeFeed<Value: Sendable>: Sendable {
    private struct State {
        var handler: (@Sendable (Value) -> Void)?
        /// The value of which everybody has been told.
        var told: Value
        var followers: [Int: AsyncStream<Value>.Continuation] = [:]
        var next = 0
        var isFinished = false
    }

    /// Values that wait for one follower; of more the oldest are dropped.
    private static var waitingValues: Int { 64 }

    private let state: Locked<State>
    private let line: CallbackLine

    /// - Parameters:
    ///   - value: The present one.
    ///   - execution: Where the handler runs.
    init(_ value: Value, _ execution: CallbackExecution) {
        state = Locked(State(told: value))
        line = CallbackLine(execution)
    }

    /// Called with each change.
    var handler: (@Sendable (Value) -> Void)? {
        get { state.withLock { $0.handler } }
        set { state.withLock { $0.handler = newValue } }
    }

    /// Tells of a change, after those told of before.
    ///
    /// - Parameter isWanted: Asked when its turn has come; false: nobody is told.
    func tell(_ value: Value, if isWanted: @escaping @Sendable () -> Bool = { true }) {
        line.run { [state] in
            guard isWanted() else { return }
            state.withLock { $0.handler }?(value)
            let followers = state.withLock { state in
                state.told = value
                return Array(state.followers.values)
            }
            for follower in followers { follower.yield(value) }
        }
    }

    /// Nothing more is told.
    func finish() {
        line.run { [state] in
            let followers = state.withLock { state in
                state.isFinished = true
                return Array(state.followers.values)
            }
            for follower in followers { follower.finish() }
        }
    }

    /// The value told last, and the changes from then on.
    ///
    /// - Parameter owner: Kept while somebody follows.
    func updates(of owner: any AnyObject & Sendable) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Value.self, bufferingPolicy: .bufferingNewest(Self.waitingValues))
        let number = state.withLock { state in
            state.next += 1
            continuation.yield(state.told)
            if state.isFinished {
                continuation.finish()
            } else {
                state.followers[state.next] = continuation
            }
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            withExtendedLifetime(owner) { self?.forget(number) }
        }
        return stream
    }

    private func forget(_ number: Int) {
        _ = state.withLock { $0.followers.removeValue(forKey: number) }
    }
}

/// Does something when nobody holds it any more, wherever it was on its way to.
final class Tie: Sendable {
    private let atEnd: @Sendable () -> Void

    init(atEnd: @escaping @Sendable () -> Void) { self.atEnd = atEnd }

    deinit { atEnd() }
}
