import Locking

/// Publishes the changes of a value in order: first to a handler, then to sequences.
package final class ChangeFeed<Value: Sendable>: Sendable {
    private struct State {
        var handler: (@Sendable (Value) -> Void)?
        /// The value that was published last.
        var told: Value
        var followers: [Int: AsyncStream<Value>.Continuation] = [:]
        var next = 0
        var isFinished = false
    }

    /// The maximum number of buffered values per sequence; beyond that, the oldest are dropped.
    private static var waitingValues: Int { 64 }

    private let state: Locked<State>
    private let line: CallbackLine

    /// Creates a feed.
    ///
    /// - Parameters:
    ///   - value: The current value.
    ///   - execution: Where the handler runs.
    package init(_ value: Value, _ execution: CallbackExecution) {
        state = Locked(State(told: value))
        line = CallbackLine(execution)
    }

    /// Called with each change.
    package var handler: (@Sendable (Value) -> Void)? {
        get { state.withLock { $0.handler } }
        set { state.withLock { $0.handler = newValue } }
    }

    /// Publishes a change, after all earlier ones.
    ///
    /// - Parameter isWanted: Called when it is the change's turn. If it returns `false`, the change
    ///   is not published.
    package func tell(_ value: Value, if isWanted: @escaping @Sendable () -> Bool = { true }) {
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

    /// Ends all sequences.
    package func finish() {
        line.run { [state] in
            let followers = state.withLock { state in
                state.isFinished = true
                return Array(state.followers.values)
            }
            for follower in followers { follower.finish() }
        }
    }

    /// Returns the current value and all changes from now on.
    ///
    /// - Parameter owner: Kept alive by the sequence.
    package func updates(of owner: any AnyObject & Sendable) -> AsyncStream<Value> {
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

/// Runs a closure when its last reference is released, wherever that is.
package final class Tie: Sendable {
    private let atEnd: @Sendable () -> Void

    package init(atEnd: @escaping @Sendable () -> Void) { self.atEnd = atEnd }

    deinit { atEnd() }
}
