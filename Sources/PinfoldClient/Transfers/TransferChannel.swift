import HTTPTypes
import Locking

/// A response's head as it came, and how it came.
struct ReceivedHead: Sendable {
    var response: HTTPResponse
    var metrics: TransferTimes
}

/// What the loop learns of a response, on its way to whoever waits for it: the loop puts in, one
/// task takes out.
///
/// It holds so much content at most that was not taken out yet; then the server is read no further.
final class TransferChannel: Sendable {
    /// Bytes that wait to be read; above it the loop pauses.
    static let fullBytes = 256 << 10
    /// Below it the loop goes on.
    static let drainedBytes = 64 << 10

    private struct State {
        var head: ReceivedHead?
        var headWasTaken = false
        var parts: [[UInt8]] = []
        var taken = 0
        var bytes = 0
        var end: Result<TransferTimes, ClientError>?
        var waiter: CheckedContinuation<Void, Never>?
        /// The loop was told to pause, and waits to be told that there is room.
        var isPaused = false

        var hasParts: Bool { taken < parts.count }
        mutating func takeWaiter() -> CheckedContinuation<Void, Never>? { waiter.take() }
    }

    private let state = Locked(State())
    let number: UInt64
    private let runtime: ClientRuntime
    /// Told of each move of content; nil: nobody looks.
    private let progress: TransferProgress?

    init(_ number: UInt64, on runtime: ClientRuntime, progress: TransferProgress?) {
        self.number = number
        self.runtime = runtime
        self.progress = progress
    }

    // MARK: From the loop

    /// What a turn has brought. False: the reader is behind; ``RuntimeMessage/taken(transfer:)``
    /// follows.
    func push(_ head: ReceivedHead?, _ parts: [[UInt8]]) -> Bool {
        let count = parts.reduce(0) { $0 + $1.count }
        let (waiter, hasRoom) = state.withLock { state in
            // Nothing comes behind a gap, and the progress may be another request's by now.
            guard state.end == nil else { return (state.takeWaiter(), true) }
            if let head { state.head = head }
            state.parts += parts
            state.bytes += count
            state.isPaused = state.bytes >= Self.fullBytes
            if let head { progress?.expectsReceived(head.response) }
            if count > 0 { progress?.received(count) }
            return (state.takeWaiter(), !state.isPaused)
        }
        waiter?.resume()
        return hasRoom
    }

    /// The response is complete.
    func finish(_ times: TransferTimes) { end(.success(times)) }

    /// The transfer has failed.
    func fail(_ error: ClientError) { end(.failure(error)) }

    /// So many bytes of the request's content are on their way.
    func sent(_ count: Int) {
        state.withLock { state in if state.end == nil { progress?.sent(count) } }
    }

    /// Whoever reads has as much as may wait.
    var isFull: Bool { state.withLock { $0.isPaused } }

    private func end(_ result: Result<TransferTimes, ClientError>) {
        let waiter = state.withLock { state in
            // What has ended stays as it ended.
            if state.end == nil { state.end = result }
            return state.takeWaiter()
        }
        waiter?.resume()
    }

    // MARK: To the task

    /// The head of the response.
    func head() async throws(ClientError) -> ReceivedHead {
        while true {
            try endIfCancelled()
            let result = state.withLock { state -> Result<ReceivedHead, ClientError>? in
                if let head = state.head { return .success(head) }
                switch state.end {
                case .failure(let error): return .failure(error)
                case .success:
                    return .failure(ClientError(.badResponse, "the response has no head"))
                case nil: return nil
                }
            }
            if let result { return try result.get() }
            await news()
        }
    }

    /// The next part of the content; nil at the end.
    func part() async throws(ClientError) -> [UInt8]? {
        while true {
            try endIfCancelled()
            let (result, wakes) = state.withLock { state in Self.takePart(from: &state) }
            if wakes { runtime.post(.taken(transfer: number)) }
            if let result { return try result.get() }
            await news()
        }
    }

    /// Whatever there is to read.
    private func endIfCancelled() throws(ClientError) {
        guard Task.isCancelled else { return }
        cancel()
        throw .cancelled()
    }

    /// Nil: there is nothing yet. `wakes`: the loop is to be told that there is room.
    private static func takePart(
        from state: inout State
    ) -> (Result<[UInt8]?, ClientError>?, wakes: Bool) {
        guard state.hasParts else {
            switch state.end {
            case .success: return (.success(nil), false)
            case .failure(let error): return (.failure(error), false)
            case nil: return (nil, false)
            }
        }
        let part = state.parts[state.taken]
        state.parts[state.taken] = []
        state.taken += 1
        state.bytes -= part.count
        if state.taken == state.parts.count {
            state.parts.removeAll(keepingCapacity: true)
            state.taken = 0
        }
        let wakes = state.isPaused && state.bytes <= drainedBytes
        if wakes { state.isPaused = false }
        return (.success(part), wakes)
    }

    /// How long the response took, once it has ended well.
    var times: TransferTimes? {
        state.withLock { state in
            if case .success(let times) = state.end { times } else { state.head?.metrics }
        }
    }

    /// Why the transfer has failed; nil: it has not.
    var failure: ClientError? {
        state.withLock { state in
            if case .failure(let error) = state.end { error } else { nil }
        }
    }

    /// Nobody waits for the response any more.
    func cancel() {
        let (waiter, isOver) = state.withLock { state in
            let isOver = state.end != nil
            if !isOver {
                state.end = .failure(.cancelled())
                state.parts = []
                state.taken = 0
                state.bytes = 0
                state.isPaused = false
            }
            return (state.takeWaiter(), isOver)
        }
        waiter?.resume()
        if !isOver { runtime.post(.cancel(transfer: number)) }
    }

    /// Waits until the loop has put something in, or the task is cancelled.
    private func news() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    // One task reads; a second one would wait for ever.
                    precondition(state.waiter == nil, "a response is read by two tasks")
                    let isThere =
                        state.end != nil || state.hasParts
                        || state.head != nil && !state.headWasTaken
                    if state.head != nil { state.headWasTaken = true }
                    if !isThere { state.waiter = continuation }
                    return isThere
                }
                if isThere { continuation.resume() }
            }
        } onCancel: {
            cancel()
        }
    }
}
