import Locking

/// Publishes the changes of a value in order: first to a handler, then to sequences.
package final class ChangeFeed<Value: Sendable>: Sendable {
    private struct State {
        var handler: (@Sendable (Value) -> Void)?
        /// The value that was published last.
        var published: Value
        var continuations: [Int: AsyncStream<Value>.Continuation] = [:]
        var next = 0
        var isFinished = false
        /// The number of changes that wait for their turn.
        var waiting = 0
        /// The latest of the changes for which there is no room, which takes the place of the
        /// others.
        var latest: Change?
    }

    private struct Change {
        let value: Value
        let isWanted: @Sendable () -> Bool
    }

    /// The maximum number of changes that wait for their turn.
    private static var waitingChanges: Int { 1024 }
    /// The maximum number of buffered values per sequence; beyond that, the oldest are dropped.
    private static var waitingValues: Int { 64 }

    private let state: Locked<State>
    private let queue: CallbackQueue

    /// Creates a feed.
    ///
    /// - Parameters:
    ///   - value: The current value.
    ///   - execution: Where the handler runs.
    package init(_ value: Value, _ execution: CallbackExecution) {
        state = Locked(State(published: value))
        queue = CallbackQueue(execution)
    }

    /// Called with each change.
    package var handler: (@Sendable (Value) -> Void)? {
        get { state.withLock { $0.handler } }
        set { state.withLock { $0.handler = newValue } }
    }

    /// Publishes a change, after all earlier ones. If the handler is too slow for all of them, the
    /// latest replaces those before it.
    ///
    /// - Parameter isWanted: Called when it is the change's turn. If it returns `false`, the change
    ///   is not published.
    package func publish(_ value: Value, if isWanted: @escaping @Sendable () -> Bool = { true }) {
        let change = Change(value: value, isWanted: isWanted)
        let hasRoom = state.withLock { state in
            guard state.waiting < Self.waitingChanges else {
                state.latest = change
                return false
            }
            state.waiting += 1
            return true
        }
        if hasRoom { run(change) }
    }

    private func run(_ change: Change) {
        queue.run { [weak self, state] in
            Self.publish(change, state)
            let next = state.withLock { state in
                if state.latest == nil { state.waiting -= 1 }
                return state.latest.take()
            }
            if let next { self?.run(next) }
        }
    }

    private static func publish(_ change: Change, _ state: Locked<State>) {
        guard change.isWanted() else { return }
        let value = change.value
        state.withLock { $0.handler }?(value)
        let continuations = state.withLock { state in
            state.published = value
            return Array(state.continuations.values)
        }
        for continuation in continuations { continuation.yield(value) }
    }

    /// Ends all sequences.
    package func finish() {
        queue.run { [state] in
            let continuations = state.withLock { state in
                state.isFinished = true
                return Array(state.continuations.values)
            }
            for continuation in continuations { continuation.finish() }
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
            continuation.yield(state.published)
            if state.isFinished {
                continuation.finish()
            } else {
                state.continuations[state.next] = continuation
            }
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            withExtendedLifetime(owner) { self?.forget(number) }
        }
        return stream
    }

    private func forget(_ number: Int) {
        _ = state.withLock { $0.continuations.removeValue(forKey: number) }
    }
}

/// Runs a closure when its last reference is released, wherever that is.
package final class ReleaseAction: Sendable {
    private let atEnd: @Sendable () -> Void

    package init(atEnd: @escaping @Sendable () -> Void) { self.atEnd = atEnd }

    deinit { atEnd() }
}
