import EventLoop
import Locking

/// What a WebSocket sends, on its way to the loop: whole frames, in their order.
///
/// Who sends a message takes a turn first, which is given in the order of asking, one at a time and
/// only while less than the limit waits here. So no more waits than the limit and one message.
/// Frames of the protocol's own need no turn: there is one close frame, and of pongs the last.
final class WebSocketOutput: ContentFeed {
    private typealias Turn = WaitingTasks<Void>.Continuation
    private typealias Deliver = @Sendable (ContentPart) -> Void

    private struct State {
        /// Whole frames.
        var units = FIFO<[UInt8]>()
        var bytes = 0
        /// Goes out before the next unit.
        var pong: [UInt8]?
        var demand: Deliver?
        /// Whose turn it is; nil: nobody's.
        var turn: UInt64?
        var waiting = WaitingTasks<Void>()
        /// Nothing follows on what waits.
        var isFinished = false
        /// The connection is closed behind it.
        var endsConnection = false
        var isClosed = false
    }

    /// Small frames are handed over together, up to this size.
    private static let partBytes = 64 << 10

    private let state = Locked(State())
    private let limit: Int

    /// - Parameter limit: Bytes that wait at most before a turn is given.
    init(limit: Int) { self.limit = max(1, limit) }

    // MARK: From tasks

    /// Waits until a message may be appended; ``append(_:endingTurn:)`` or ``passTurn(_:)``
    /// follows.
    ///
    /// - Parameter number: One that no other waiting task has.
    /// - Throws: ``ClientError/Reason/cancelled`` for a task that is cancelled, and
    ///   ``ClientError/Reason/connectionLost`` where nothing more is sent.
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

    /// Gives a turn up; nothing happens where it has ended.
    func passTurn(_ number: UInt64) {
        let next = state.withLock { state -> Turn? in
            guard state.turn == number else { return nil }
            state.turn = nil
            return nextTurn(&state)
        }
        next?.resume(returning: .success(()))
    }

    /// Appends whole frames.
    ///
    /// - Parameter turn: That in which it is done, and which ends; nil: none is needed.
    func append(_ frames: [UInt8], endingTurn turn: UInt64? = nil) {
        give { state in
            state.units.append(frames)
            state.bytes += frames.count
            if let turn, state.turn == turn { state.turn = nil }
        }
    }

    /// Sends a pong, in place of one that still waits (RFC 6455 section 5.5.3).
    func setPong(_ frame: [UInt8]) { give { $0.pong = frame } }

    /// What has been appended is the last.
    ///
    /// - Parameter closing: The connection is closed behind it; else it stays as it is.
    func finish(closing: Bool) {
        give { state in
            state.isFinished = true
            state.endsConnection = closing
        }
        let waiting = state.withLock { $0.waiting.removeAll() }
        for task in waiting { task.resume(returning: .failure(Self.closed)) }
    }

    static let closed = ClientError(.connectionLost, "the WebSocket is closed")

    /// Changes what waits, and hands over what the loop has asked for.
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

    /// Whose turn it is now.
    private func nextTurn(_ state: inout State) -> Turn? {
        guard state.turn == nil, state.bytes < limit, !state.isFinished,
            let next = state.waiting.popFirst()
        else { return nil }
        state.turn = next.number
        return next.continuation
    }

    // MARK: From the loop

    /// The next part that is to be written; nil: there is none yet.
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
