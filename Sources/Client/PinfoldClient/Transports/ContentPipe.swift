import Locking

/// Passes the content of a request from the loop to a transport's task.
final class ContentPipe: Sendable {
    /// The number of unread bytes above which the loop pauses.
    static let fullBytes = 256 << 10
    /// The number of unread bytes below which it continues.
    static let drainedBytes = 64 << 10

    private struct State {
        var parts: [[UInt8]] = []
        var taken = 0
        var bytes = 0
        /// Whether it has ended, or was cut off.
        var end: Result<Void, CancellationError>?
        var waiter: CheckedContinuation<Void, Never>?
        /// Whether the loop waits until there is room.
        var isFull = false
    }

    private let state = Locked(State())
    private let drained: @Sendable () -> Void

    /// - Parameter drained: Tells the loop that there is room again.
    init(drained: @escaping @Sendable () -> Void) { self.drained = drained }

    /// Adds a part, which is not empty.
    func push(_ part: [UInt8]) {
        let waiter = state.withLock { state in
            guard state.end == nil else { return nil as CheckedContinuation<Void, Never>? }
            state.parts.append(part)
            state.bytes += part.count
            return state.waiter.take()
        }
        waiter?.resume()
    }

    /// Whether the loop need not wait until there is room. If it has to, it is told when there is.
    func takesMore() -> Bool {
        state.withLock { state in
            state.isFull = state.end == nil && state.bytes >= Self.fullBytes
            return !state.isFull
        }
    }

    /// Ends the content.
    func finish() { end(.success(())) }

    /// Cuts it off: nobody sends any more.
    func cut() { end(.failure(CancellationError())) }

    private func end(_ end: Result<Void, CancellationError>) {
        let waiter = state.withLock { state in
            state.end = state.end ?? end
            return state.waiter.take()
        }
        waiter?.resume()
    }

    /// Returns the next part, or `nil` at the end.
    func next() async throws -> [UInt8]? {
        while true {
            try Task.checkCancellation()
            let (part, isOver, hasRoom) = try take()
            if hasRoom { drained() }
            if part != nil || isOver { return part }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isReady = state.withLock { state in
                        precondition(state.waiter == nil, "content is read by two tasks")
                        let isReady = state.end != nil || state.taken < state.parts.count
                        if !isReady { state.waiter = continuation }
                        return isReady
                    }
                    if isReady { continuation.resume() }
                }
            } onCancel: {
                cut()
            }
        }
    }

    private func take() throws -> (part: [UInt8]?, isOver: Bool, hasRoom: Bool) {
        let taken = state.withLock { state -> Result<([UInt8]?, Bool, Bool), CancellationError> in
            guard state.taken < state.parts.count else {
                if case .failure(let error) = state.end { return .failure(error) }
                return .success((nil, state.end != nil, false))
            }
            let part = state.parts[state.taken]
            state.parts[state.taken] = []
            state.taken += 1
            if state.taken == state.parts.count {
                state.parts.removeAll(keepingCapacity: true)
                state.taken = 0
            }
            state.bytes -= part.count
            let hasRoom = state.isFull && state.bytes <= Self.drainedBytes
            if hasRoom { state.isFull = false }
            return .success((part, false, hasRoom))
        }
        let (part, isOver, hasRoom) = try taken.get()
        return (part, isOver, hasRoom)
    }
}
