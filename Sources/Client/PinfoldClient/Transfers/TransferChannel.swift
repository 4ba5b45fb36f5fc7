import HTTPTypes
import Locking

/// A response's head as it came, and how it came.
struct ReceivedHead: Sendable {
    var response: HTTPResponse
    /// The status code; `HTTPResponse.Status` would have to parse it from its text.
    let status: Int
    /// Which of its fields the task must act on.
    let marks: FieldMarks
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
        var end: Result<Void, ClientError>?
        /// Once it has ended, well or not.
        var times: TransferTimes?
        /// Nothing is handed out.
        var isSuspended = false
        var waiter: Waiter?
        /// The loop was told to pause, and waits to be told that there is room.
        var isPaused = false
        /// Something was taken out since the loop last looked.
        var isRead = false

        var hasParts: Bool { taken < parts.count }
        /// There is something to read, be it the end.
        var hasNews: Bool {
            !isSuspended && (end != nil || hasParts || head != nil && !headWasTaken)
        }
        /// It has not failed, and there is something to read, or will be.
        var isWholeOrOpen: Bool {
            switch end {
            case nil: true
            case .success: hasParts
            case .failure: false
            }
        }
        mutating func add(_ head: ReceivedHead?, _ parts: [[UInt8]]) {
            if let head { self.head = head }
            if self.parts.isEmpty { self.parts = parts } else { self.parts += parts }
            for part in parts { bytes += part.count }
            isPaused = bytes >= TransferChannel.fullBytes
        }

        mutating func takeWaiter() -> Waiter? { waiter.take() }
    }

    private let state = Locked(State())
    let number: UInt64
    private let runtime: ClientRuntime
    /// Told of each move of content; nil: nobody looks.
    private let progress: TransferProgress.Part?

    init(_ number: UInt64, on runtime: ClientRuntime, progress: TransferProgress.Part?) {
        self.number = number
        self.runtime = runtime
        self.progress = progress
    }

    // MARK: From the loop

    /// What a turn has brought. False: the reader is behind; ``RuntimeMessage/taken(transfer:)``
    /// follows.
    ///
    /// - Parameter wakes: Wakes whoever reads; nil: that is done at once.
    func push(
        _ head: ReceivedHead?, _ parts: [[UInt8]], wakes: WakeBatch? = nil
    ) -> Bool {
        show(head, parts)
        let (waiter, hasRoom) = state.withLock { state in
            // Nothing comes behind a gap.
            guard state.end == nil else { return (nil as Waiter?, true) }
            state.add(head, parts)
            return (state.isSuspended ? nil : state.takeWaiter(), !state.isPaused)
        }
        Self.wake(waiter, by: wakes)
        return hasRoom
    }

    private static func wake(_ waiter: Waiter?, by wakes: WakeBatch?) {
        guard let waiter else { return }
        if let wakes { wakes.add(waiter) } else { waiter.resume() }
    }

    /// The response is complete with what a turn has brought: whoever reads is woken once.
    func finish(
        _ times: TransferTimes, _ head: ReceivedHead? = nil, _ parts: [[UInt8]] = [],
        wakes: WakeBatch? = nil
    ) {
        end(.success(()), times, head, parts, wakes)
    }

    /// The transfer has failed, behind what a turn has brought.
    func fail(
        _ error: ClientError, _ times: TransferTimes = TransferTimes(),
        _ head: ReceivedHead? = nil, _ parts: [[UInt8]] = [], wakes: WakeBatch? = nil
    ) {
        end(.failure(error), times, head, parts, wakes)
    }

    /// Moves the progress, before anybody can read what it tells of.
    private func show(_ head: ReceivedHead?, _ parts: [[UInt8]]) {
        guard let progress, head != nil || !parts.isEmpty, state.withLock({ $0.end == nil }) else {
            return
        }
        if let head { progress.expectsReceived(head.response) }
        let count = parts.reduce(0) { $0 + $1.count }
        if count > 0 { progress.received(count) }
    }

    /// So many bytes of the request's content are on their way.
    func sent(_ count: Int) {
        if state.withLock({ $0.end == nil }) { progress?.sent(count) }
    }

    /// Whether something was taken out since this was last asked.
    func takeReadingMark() -> Bool {
        state.withLock { state in
            defer { state.isRead = false }
            return state.isRead
        }
    }

    /// Whoever reads has as much as may wait.
    var isFull: Bool { state.withLock { $0.isPaused } }

    private func end(
        _ result: Result<Void, ClientError>, _ times: TransferTimes, _ head: ReceivedHead?,
        _ parts: [[UInt8]], _ wakes: WakeBatch?
    ) {
        show(head, parts)
        let waiter = state.withLock { state in
            // What has ended stays as it ended.
            if state.end == nil {
                state.add(head, parts)
                state.end = result
            }
            state.times = times
            // There is nothing to go on with.
            if case .failure(let error) = result, error.endsAtOnce { state.isSuspended = false }
            return state.isSuspended ? nil : state.takeWaiter()
        }
        Self.wake(waiter, by: wakes)
    }

    // MARK: To the task

    /// The head of the response.
    func head() async throws(ClientError) -> ReceivedHead {
        while true {
            // It is hardly ever there yet.
            await news()
            try endIfCancelled()
            let result = state.withLock { state -> Result<ReceivedHead, ClientError>? in
                if state.isSuspended { return nil }
                if let head = state.head {
                    (state.headWasTaken, state.isRead) = (true, true)
                    return .success(head)
                }
                switch state.end {
                case .failure(let error): return .failure(error)
                case .success:
                    return .failure(ClientError(.badResponse, "the response has no head"))
                case nil: return nil
                }
            }
            if let result { return try result.get() }
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

    /// All of the content, and how long it took, where it has come, and in one part at most; nil:
    /// it is to be read part by part.
    func wholePart(atMost maximum: Int) -> (bytes: [UInt8], times: TransferTimes)? {
        guard !Task.isCancelled else { return nil }
        return state.withLock { state in
            guard !state.isSuspended, case .success = state.end, state.taken == 0,
                state.parts.count <= 1, state.bytes <= maximum
            else { return nil }
            (state.bytes, state.isPaused) = (0, false)
            return (state.parts.popLast() ?? [], state.times ?? TransferTimes())
        }
    }

    /// Waits while it is suspended.
    ///
    /// - Throws: where it was cancelled.
    func turn() async throws(ClientError) {
        while true {
            try endIfCancelled()
            let goesOn = state.withLock { state -> Result<Bool, ClientError> in
                if case .failure(let error) = state.end, error.endsAtOnce { return .failure(error) }
                return .success(!state.isSuspended)
            }
            if try goesOn.get() { return }
            await news { !$0.isSuspended }
        }
    }

    /// Whatever there is to read.
    private func endIfCancelled() throws(ClientError) {
        guard Task.isCancelled else { return }
        cancel()
        throw state.withLock { state in
            if case .failure(let error) = state.end { error } else { .cancelled() }
        }
    }

    /// Nil: there is nothing yet. `wakes`: the loop is to be told that there is room.
    private static func takePart(
        from state: inout State
    ) -> (Result<[UInt8]?, ClientError>?, wakes: Bool) {
        if state.isSuspended { return (nil, false) }
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
        state.isRead = true
        if state.taken == state.parts.count {
            state.parts.removeAll(keepingCapacity: true)
            state.taken = 0
        }
        let wakes = state.isPaused && state.bytes <= drainedBytes
        if wakes { state.isPaused = false }
        return (.success(part), wakes)
    }

    /// How long it took until it ended, well or not; until then, to the head of the response.
    var times: TransferTimes? { state.withLock { $0.times ?? $0.head?.metrics } }

    /// How far whoever reads the response is.
    enum Reading {
        /// Nothing has come.
        case unanswered
        /// Something has come that was not taken out.
        case unread
        /// All that has come was taken out.
        case caughtUp
    }

    var reading: Reading {
        state.withLock { state in
            guard state.head != nil else { return .unanswered }
            return state.hasParts || !state.headWasTaken ? .unread : .caughtUp
        }
    }

    /// The response is complete, and all of it was taken out.
    var isExhausted: Bool {
        state.withLock { state in
            if case .success = state.end { !state.hasParts } else { false }
        }
    }

    /// Why the transfer has failed; nil: it has not.
    var failure: ClientError? {
        state.withLock { state in
            if case .failure(let error) = state.end { error } else { nil }
        }
    }

    /// Nothing is handed out, and the loop neither reads nor sends anything further.
    func suspend() {
        state.withLock { state in
            // There is nothing to hold back: whoever waits is to learn of the end.
            if case .failure(let error) = state.end, error.endsAtOnce { return }
            state.isSuspended = true
        }
        runtime.post(.suspend(transfer: number))
    }

    /// It goes on.
    ///
    /// - Returns: Who waits for it, to be resumed when no lock is held.
    func resume() -> Waiter? {
        runtime.post(.resume(transfer: number))
        return state.withLock { state in
            state.isSuspended = false
            return state.takeWaiter()
        }
    }

    /// Nobody waits for the response any more.
    func cancel(_ error: @autoclosure () -> ClientError = .cancelled()) {
        end(with: error())?.resume()
    }

    /// What was not read yet is let go of, too.
    ///
    /// - Returns: Who waits for news, to be resumed when no lock is held.
    func end(with error: @autoclosure () -> ClientError) -> Waiter? {
        let (waiter, isOver) = state.withLock { state in
            let isOver = state.end != nil
            state.isSuspended = false
            if state.isWholeOrOpen {
                state.end = .failure(error())
                state.parts = []
                state.taken = 0
                state.bytes = 0
                state.isPaused = false
            }
            return (state.takeWaiter(), isOver)
        }
        if !isOver { runtime.post(.cancel(transfer: number)) }
        return waiter
    }

    /// Waits until the loop has put something in, or the task is cancelled.
    private func news(
        _ isNews: @escaping @Sendable (State) -> Bool = { $0.hasNews }
    ) async {
        await withTaskCancellationHandler {
            await Waiter.wait { waiter in
                let isThere = state.withLock { state in
                    // One task reads; a second one would wait for ever.
                    precondition(state.waiter == nil, "a response is read by two tasks")
                    let isThere = isNews(state)
                    if !isThere { state.waiter = waiter }
                    return isThere
                }
                if isThere { waiter.resume() }
            }
        } onCancel: {
            cancel()
        }
        runtime.woken.wakeNext()
    }
}

extension ClientError {
    /// What is suspended fails with it, too.
    fileprivate var endsAtOnce: Bool { reason == .cancelled || reason == .sessionInvalidated }
}
