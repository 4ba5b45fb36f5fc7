import EventLoop
import Locking

/// The output of a WebSocket on its way to the loop: complete frames in order.
///
/// To send a message, a task first waits for its turn. Turns are given one at a time, in the order
/// of the calls, and only while fewer bytes than the limit are waiting. So at most the limit and
/// one message are buffered. The protocol's own frames need no turn: there is only one close frame,
/// and only the last pong is kept.
final class WebSocketOutput: ContentFeed {
    private typealias Turn = WaitingTasks<Void>.Continuation
    private typealias Deliver = @Sendable (ContentPart) -> Void

    private struct State {
        /// Complete frames.
        var units = FIFO<[UInt8]>()
        var bytes = 0
        /// Sent before the next unit.
        var pong: [UInt8]?
        var demand: Deliver?
        /// The number of the task whose turn it is, or `nil` if there is none.
        var turn: UInt64?
        var waiting = WaitingTasks<Void>()
        /// Whether nothing follows the waiting frames.
        var isFinished = false
        /// Whether the connection is closed after them.
        var endsConnection = false
        var isClosed = false
    }

    /// Small frames are combined up to this number of bytes.
    private static let partBytes = 64 << 10

    private let state = Locked(State())
    private let limit: Int

    /// - Parameter limit: The number of waiting bytes from which no turn is given.
    init(limit: Int) { self.limit = max(1, limit) }

    // MARK: Used by tasks

    /// Waits until a message may be appended. ``append(_:endingTurn:)`` or ``passTurn(_:)`` must
    /// follow.
    ///
    /// - Parameter number: A number that no other waiting task has.
    /// - Throws: ``ClientError/Reason/cancelled`` if the task is cancelled, or
    ///   ``ClientError/Reason/connectionLost`` if nothing more can be sent.
    func turn(_ number: UInt64) async throws(ClientError) {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: Turn) in
                let result = state.withLock { state -> Result<Void, ClientError>? in
                    if Task.isCancelled { return .failure(.cancelled()) }
                    if state.isFinished || state.isClosed { return .failure(Self.closed) }
                    if state.turn == nil, state.waiting.isEmpty, state.bytes < limit {
                        state.turn = number
                        return .success(())
                    }
                    state.waiting.append(number, continuation)
                    return nil
                }
                if let result { continuation.resume(returning: result) }
            }
        } onCancel: {
            let waiting = state.withLock { $0.waiting.remove(number) }
            waiting?.resume(returning: .failure(.cancelled()))
        }
        try result.get()
    }

    /// Gives up a turn. Has no effect if it has ended.
    func passTurn(_ number: UInt64) {
        let next = state.withLock { state -> Turn? in
            guard state.turn == number else { return nil }
            state.turn = nil
            return nextTurn(&state)
        }
        next?.resume(returning: .success(()))
    }

    /// Appends complete frames.
    ///
    /// - Parameter turn: The turn in which this is done, and which it ends, or `nil` if none is
    ///   needed.
    func append(_ frames: [UInt8], endingTurn turn: UInt64? = nil) {
        give { state in
            state.units.append(frames)
            state.bytes += frames.count
            if let turn, state.turn == turn { state.turn = nil }
        }
    }

    /// Sends a pong, replacing one that is still waiting (RFC 6455 section 5.5.3).
    func setPong(_ frame: [UInt8]) { give { $0.pong = frame } }

    /// Marks the end of the output.
    ///
    /// - Parameter closing: Whether the connection is closed after it; otherwise it stays open.
    func finish(closing: Bool) {
        give { state in
            state.isFinished = true
            state.endsConnection = closing
        }
        let waiting = state.withLock { $0.waiting.removeAll() }
        for task in waiting { task.resume(returning: .failure(Self.closed)) }
    }

    static let closed = ClientError(.connectionLost, "the WebSocket is closed")

    /// Modifies the state, and delivers the part that the loop has requested, if there is one.
    private func give(_ change: (inout State) -> Void) {
        let (handing, next) = state.withLock { state in
            if !state.isClosed, !state.isFinished { change(&state) }
            var handing: (Deliver, ContentPart)?
            if let demand = state.demand, let part = takePart(&state) {
                state.demand = nil
                handing = (demand, part)
            }
            return (handing, nextTurn(&state))
        }
        if let (deliver, part) = handing { deliver(part) }
        next?.resume(returning: .success(()))
    }

    /// Gives the next turn.
    private func nextTurn(_ state: inout State) -> Turn? {
        guard state.turn == nil, state.bytes < limit, !state.isFinished,
            let next = state.waiting.popFirst()
        else { return nil }
        state.turn = next.number
        return next.continuation
    }

    // MARK: Used by the loop

    /// Takes the next part to be written, or returns `nil` if there is none yet.
    private func takePart(_ state: inout State) -> ContentPart? {
        var part = state.pong.take() ?? []
        while part.count < Self.partBytes, let unit = state.units.popFirst() {
            state.bytes -= unit.count
            if part.isEmpty { part = unit } else { part += unit }
        }
        if !part.isEmpty { return .bytes(part) }
        return state.endsConnection ? .end : nil
    }

    func next(_ deliver: @escaping @Sendable (ContentPart) -> Void) {
        let (part, next) = state.withLock { state in
            guard !state.isClosed else {
                return (nil as ContentPart?, nil as Turn?)
            }
            let part = takePart(&state)
            if part == nil { state.demand = deliver }
            return (part, nextTurn(&state))
        }
        if let part { deliver(part) }
        next?.resume(returning: .success(()))
    }

    func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            state.units = FIFO()
            (state.bytes, state.pong, state.demand) = (0, nil, nil)
            return state.waiting.removeAll()
        }
        for task in waiting { task.resume(returning: .failure(Self.closed)) }
    }
}
