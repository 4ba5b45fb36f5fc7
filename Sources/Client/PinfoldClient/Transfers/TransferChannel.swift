import HTTPTypes
import Locking

/// A response's head, and how it was obtained.
struct ReceivedHead: Sendable {
    var response: HTTPResponse
    /// The status code; `HTTPResponse.Status` would have to parse its text.
    let status: Int
    /// Which of its fields the task has to act on.
    let marks: FieldMarks
    var metrics: TransferTimes
}

/// What follows the head of a response, all of it.
struct WholeResponse: Sendable {
    var bytes: [UInt8]
    var times: TransferTimes
    var trailers: HTTPFields
}

/// Passes a response from the loop to the task that waits for it. The loop puts in, and one task
/// takes out.
///
/// The content in it is limited; if it is full, reading from the server pauses.
final class TransferChannel: Sendable {
    /// The number of unread bytes above which the loop pauses.
    static let fullBytes = 256 << 10
    /// The number of unread bytes below which the loop continues.
    static let drainedBytes = 64 << 10

    private struct State {
        var head: ReceivedHead?
        var headWasTaken = false
        var parts: [[UInt8]] = []
        var taken = 0
        var bytes = 0
        var end: Result<Void, ClientError>?
        var trailers = HTTPFields()
        /// The times, once the transfer has ended, successfully or not.
        var times: TransferTimes?
        /// Whether nothing is delivered.
        var isSuspended = false
        /// Whether it was cancelled, even if it had ended by then. It is not suspended any more:
        /// nobody resumes a cancelled task, whose reader has yet to learn that it is over.
        var isCancelled = false
        /// Why it was cancelled, or `nil` if nobody has said so.
        var reason: ClientError?
        var waiter: Waiter?
        /// Whether the loop was asked to pause, and waits for a message that there is space.
        var isPaused = false
        /// Whether anything was taken out since the loop last checked.
        var isRead = false

        var hasParts: Bool { taken < parts.count }
        /// Whether there is something to read, including the end.
        var hasUnread: Bool {
            !isSuspended && (end != nil || hasParts || head != nil && !headWasTaken)
        }
        /// Whether it has not failed, and there is or will be something to read.
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
    /// Receives each transfer of content, or `nil` if it is not observed.
    private let progress: TransferProgress.Part?

    init(_ number: UInt64, on runtime: ClientRuntime, progress: TransferProgress.Part?) {
        self.number = number
        self.runtime = runtime
        self.progress = progress
    }

    // MARK: Used by the loop

    /// Adds what a turn has brought. Returns `false` if the reader is behind;
    /// ``RuntimeMessage/taken(transfer:)`` follows.
    ///
    /// - Parameter wakes: Resumes the reader at the end of the turn; if it is `nil`, the reader is
    ///   resumed immediately.
    func push(
        _ head: ReceivedHead?, _ parts: [[UInt8]], wakes: WakeBatch? = nil
    ) -> Bool {
        show(head, parts)
        let (waiter, hasRoom) = state.withLock { state in
            // Nothing is added after a gap.
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

    /// Ends the response, together with what a turn has brought, so that the reader is resumed
    /// once.
    func finish(
        _ times: TransferTimes, _ head: ReceivedHead? = nil, _ parts: [[UInt8]] = [],
        wakes: WakeBatch? = nil
    ) {
        end(.success(()), times, head, parts, wakes)
    }

    /// Ends the transfer with an error, after what a turn has brought.
    func fail(
        _ error: ClientError, _ times: TransferTimes = TransferTimes(),
        _ head: ReceivedHead? = nil, _ parts: [[UInt8]] = [], wakes: WakeBatch? = nil
    ) {
        end(.failure(error), times, head, parts, wakes)
    }

    /// Updates the progress, before anybody can read the content.
    private func show(_ head: ReceivedHead?, _ parts: [[UInt8]]) {
        guard let progress, head != nil || !parts.isEmpty, state.withLock({ $0.end == nil }) else {
            return
        }
        if let head { progress.expectsReceived(head.response) }
        let count = parts.reduce(0) { $0 + $1.count }
        if count > 0 { progress.received(count) }
    }

    /// Records that bytes of the request's content were sent.
    func sent(_ count: Int) {
        if state.withLock({ $0.end == nil }) { progress?.sent(count) }
    }

    /// Returns whether anything was taken out since the last call.
    func takeReadingMark() -> Bool {
        state.withLock { state in
            defer { state.isRead = false }
            return state.isRead
        }
    }

    /// Sets the trailers, before the response ends.
    func setTrailers(_ trailers: HTTPFields) { state.withLock { $0.trailers = trailers } }

    /// The trailers; empty until the response has ended.
    var trailers: HTTPFields { state.withLock { $0.trailers } }

    /// Whether the reader is behind.
    var isFull: Bool { state.withLock { $0.isPaused } }

    private func end(
        _ result: Result<Void, ClientError>, _ times: TransferTimes, _ head: ReceivedHead?,
        _ parts: [[UInt8]], _ wakes: WakeBatch?
    ) {
        show(head, parts)
        let waiter = state.withLock { state in
            // The first result counts.
            if state.end == nil {
                state.add(head, parts)
                state.end = result
            }
            state.times = times
            // There is nothing to continue with.
            if case .failure(let error) = result, error.endsAtOnce { state.isSuspended = false }
            return state.isSuspended ? nil : state.takeWaiter()
        }
        Self.wake(waiter, by: wakes)
    }

    // MARK: Used by the task

    /// Returns the head of the response.
    func head() async throws(ClientError) -> ReceivedHead {
        while true {
            // It is rarely there already.
            await waitForUpdate()
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

    /// Returns the next part of the content, or `nil` at the end.
    func part() async throws(ClientError) -> [UInt8]? {
        while true {
            try endIfCancelled()
            let (result, wakes) = state.withLock { state in Self.takePart(from: &state) }
            if wakes { runtime.post(.taken(transfer: number)) }
            if let result { return try result.get() }
            await waitForUpdate()
        }
    }

    /// Returns all that follows the head, if all of it has arrived in at most one part, or `nil` if
    /// it has to be read part by part.
    func wholePart(atMost maximum: Int) -> WholeResponse? {
        guard !Task.isCancelled else { return nil }
        return state.withLock { state in
            guard !state.isSuspended, case .success = state.end, state.taken == 0,
                state.parts.count <= 1, state.bytes <= maximum
            else { return nil }
            (state.bytes, state.isPaused) = (0, false)
            return WholeResponse(
                bytes: state.parts.popLast() ?? [], times: state.times ?? TransferTimes(),
                trailers: state.trailers)
        }
    }

    /// Waits while the transfer is suspended.
    ///
    /// - Throws: ``ClientError`` if it was cancelled.
    func turn() async throws(ClientError) {
        while true {
            try endIfCancelled()
            let isRunning = state.withLock { state -> Result<Bool, ClientError> in
                if case .failure(let error) = state.end, error.endsAtOnce { return .failure(error) }
                return .success(!state.isSuspended)
            }
            if try isRunning.get() { return }
            await waitForUpdate { !$0.isSuspended }
        }
    }

    /// Throws if the transfer was cancelled, even if there is something to read.
    private func endIfCancelled() throws(ClientError) {
        guard Task.isCancelled else { return }
        cancel()
        throw state.withLock { state in
            if case .failure(let error) = state.end { error } else { state.reason ?? .cancelled() }
        }
    }

    /// Returns `nil` if there is nothing yet. `wakes`: whether the loop must be notified that there
    /// is space.
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

    /// How long it took until it ended, successfully or not; until then, up to the head of the
    /// response.
    var times: TransferTimes? { state.withLock { $0.times ?? $0.head?.metrics } }

    /// How far the response has been read.
    enum Reading {
        /// Nothing has arrived.
        case unanswered
        /// Something has arrived that was not taken out.
        case unread
        /// All that has arrived was taken out.
        case caughtUp
    }

    var reading: Reading {
        state.withLock { state in
            guard state.head != nil else { return .unanswered }
            return state.hasParts || !state.headWasTaken ? .unread : .caughtUp
        }
    }

    /// Whether the response is complete and has been taken out.
    var isExhausted: Bool {
        state.withLock { state in
            if case .success = state.end { !state.hasParts } else { false }
        }
    }

    /// Why the transfer has failed, or `nil` if it has not.
    var failure: ClientError? {
        state.withLock { state in
            if case .failure(let error) = state.end { error } else { nil }
        }
    }

    /// Stops delivery. The loop neither reads nor sends any more.
    func suspend() {
        state.withLock { state in
            // There is nothing to hold back: the reader has to learn of the end.
            if state.isCancelled { return }
            if case .failure(let error) = state.end, error.endsAtOnce { return }
            state.isSuspended = true
        }
        runtime.post(.suspend(transfer: number))
    }

    /// Continues.
    ///
    /// - Returns: The waiting reader, to be resumed without holding a lock.
    func resume() -> Waiter? {
        runtime.post(.resume(transfer: number))
        return state.withLock { state in
            state.isSuspended = false
            return state.takeWaiter()
        }
    }

    /// Has the transfer leave the queue of its session, or return to it. Returns `false` if it has
    /// ended, and has no place there.
    @discardableResult
    func setIsInQueue(_ isInQueue: Bool) -> Bool {
        guard state.withLock({ $0.end == nil }) else { return false }
        runtime.post(isInQueue ? .returnToQueue(transfer: number) : .leaveQueue(transfer: number))
        return true
    }

    /// Nobody waits for the response any more.
    ///
    /// - Parameter error: See ``end(with:)``.
    func cancel(_ error: ClientError? = nil) { end(with: error)?.resume() }

    /// Ends the transfer and discards what was not read yet.
    ///
    /// - Parameter error: The error for the reader, also if the response has arrived completely but
    ///   the reader is cancelled before it has taken it; `nil` for ``ClientError/cancelled()``.
    /// - Returns: The waiting reader, to be resumed without holding a lock.
    func end(with error: ClientError?) -> Waiter? {
        let (waiter, isOver) = state.withLock { state in
            let isOver = state.end != nil
            (state.isCancelled, state.isSuspended) = (true, false)
            if state.reason == nil { state.reason = error }
            if state.isWholeOrOpen {
                state.end = .failure(state.reason ?? .cancelled())
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

    /// Waits until the loop has added something, or the task is cancelled.
    private func waitForUpdate(
        _ isReady: @escaping @Sendable (State) -> Bool = { $0.hasUnread }
    ) async {
        await withTaskCancellationHandler {
            await Waiter.wait { waiter in
                let isReadable = state.withLock { state in
                    // Only one task may read; a second one would wait forever.
                    precondition(state.waiter == nil, "a response is read by two tasks")
                    let isReadable = isReady(state)
                    if !isReadable { state.waiter = waiter }
                    return isReadable
                }
                if isReadable { waiter.resume() }
            }
        } onCancel: {
            cancel()
        }
        runtime.woken.wakeNext()
    }
}

extension ClientError {
    /// Whether the error also ends a suspended transfer.
    fileprivate var endsAtOnce: Bool { reason == .cancelled || reason == .sessionInvalidated }
}
