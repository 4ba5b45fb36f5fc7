import Clocks
import HTTPTypes
import Locking
import Synchronization

/// A WebSocket connection, between the loop and the tasks that use it.
///
///     loop ──► TransferChannel ──► run() ──► inbox ──► receive()
///     loop ◄── WebSocketOutput ◄── frames ◄─────────── send, ping, close
///
/// A single task reads (``run(_:)``): it answers pings, and waits while the inbox is full. The
/// protocol's rules are in `WebSocketConnection`, which is used under the lock. Every waiting task
/// is in one of the lists there. Messages are framed and appended to the output under the lock,
/// too, so that nothing can follow a close frame.
final class WebSocketCore: Sendable {
    typealias Message = WebSocket.Message

    private struct State {
        var connection: WebSocketConnection
        /// The received messages that have not been consumed.
        var inbox: [Message] = []
        var taken = 0
        var inboxBytes = 0
        var readers = WaitingTasks<Message?>()
        var pings = WaitingTasks<Void>()
        var closers = WaitingTasks<WebSocket.Closing>()
        /// The reading task, while the inbox is full.
        var reading: Waiter?
        /// How the connection ended: the result of all later calls. Messages received before that
        /// can still be consumed.
        var end: Result<WebSocket.Closing, ClientError>?
        /// Ends calls that wait for the server for too long.
        var timer: Task<Void, Never>?

        var inboxCount: Int { inbox.count - taken }
    }

    private let state: Locked<State>
    let output: WebSocketOutput
    private let channel: TransferChannel
    private let request: HTTPRequest
    private let options: WebSocketOptions
    private let numbers = Atomic<UInt64>(0)

    init(
        _ connection: WebSocketConnection, _ output: WebSocketOutput, _ channel: TransferChannel,
        _ request: HTTPRequest, _ options: WebSocketOptions
    ) {
        state = Locked(State(connection: connection))
        self.output = output
        self.channel = channel
        self.request = request
        self.options = options
    }

    private func nextNumber() -> UInt64 { numbers.add(1, ordering: .relaxed).newValue }

    var closing: WebSocket.Closing? {
        state.withLock { state in
            if case .success(let closing) = state.end { closing } else { nil }
        }
    }

    var isOpen: Bool { state.withLock { $0.end == nil && $0.connection.isOpen } }

    // MARK: Waiting

    /// Waits in one of the lists, unless there is an immediate result.
    private func wait<Value: Sendable>(
        _ number: UInt64, in list: WritableKeyPath<State, WaitingTasks<Value>> & Sendable,
        unless ready: (inout State) -> Result<Value, ClientError>?
    ) async throws(ClientError) -> Value {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: WaitingTasks<Value>.Continuation) in
                let result = state.withLock { state -> Result<Value, ClientError>? in
                    if Task.isCancelled { return .failure(.cancelled()) }
                    if let result = ready(&state) { return result }
                    state[keyPath: list].append(number, continuation)
                    return nil
                }
                if let result { continuation.resume(returning: result) }
            }
        } onCancel: {
            let waiting = state.withLock { $0[keyPath: list].remove(number) }
            waiting?.resume(returning: .failure(.cancelled()))
        }
        do throws(ClientError) { return try result.get() } catch { throw error.about(request) }
    }

    /// Returns the error for a call that the connection can no longer serve.
    private static func closed(_ state: State) -> ClientError? {
        switch state.end {
        case .failure(let error): error
        case .success: WebSocketOutput.closed
        case nil: state.connection.isOpen ? nil : WebSocketOutput.closed
        }
    }

    // MARK: Sending

    func send(_ message: Message) async throws(ClientError) {
        let number = nextNumber()
        try await takeTurn(number)
        let error = state.withLock { state -> ClientError? in
            if let error = Self.closed(state) { return error }
            switch message {
            case .text(let text): state.connection.send(text: text)
            case .binary(let bytes): state.connection.send(binary: bytes)
            }
            output.append(state.connection.takeOutput(), endingTurn: number)
            return nil
        }
        guard let error else { return }
        output.passTurn(number)
        throw error.about(request)
    }

    private func takeTurn(_ number: UInt64) async throws(ClientError) {
        do throws(ClientError) { try await output.turn(number) } catch {
            guard error.reason != .cancelled else { throw error.about(request) }
            // The loop is the first to know that the connection has ended, and why.
            let known = state.withLock { Self.closed($0) } ?? channel.failure
            throw (known ?? error).about(request)
        }
    }

    func ping() async throws(ClientError) -> Duration {
        let number = nextNumber()
        try await takeTurn(number)
        // In case the task was cancelled before.
        defer { output.passTurn(number) }
        let begun = Clock.monotonicMicroseconds()
        try await wait(number, in: \.pings) { state in
            if let error = Self.closed(state) { return .failure(error) }
            state.connection.ping(Self.bytes(number))
            output.append(state.connection.takeOutput(), endingTurn: number)
            return nil
        }
        return .microseconds(Clock.monotonicMicroseconds() - begun)
    }

    private static func bytes(_ number: UInt64) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }

    func close(_ code: UInt16?, _ reason: String) async throws(ClientError) -> WebSocket.Closing {
        let isAllowed = state.withLock { state in
            guard state.end == nil, state.connection.isOpen else { return true }
            guard state.connection.close(code, reason: reason) else { return false }
            output.append(state.connection.takeOutput())
            output.finish(closing: false)
            state.timer = timer { $0.closeTimedOut() }
            return true
        }
        guard isAllowed else {
            throw ClientError(
                .invalidRequest,
                "the close code \(code ?? 0) may not be sent (RFC 6455 section 7.4)", of: request)
        }
        resumeReading()
        return try await wait(nextNumber(), in: \.closers) { $0.end }
    }

    /// Waits for the server, for a limited time.
    private func timer(
        _ whenOver: @escaping @Sendable (WebSocketCore) -> Void
    ) -> Task<Void, Never> {
        let time = options.closeTimeout
        return Task { [self] in
            do { try await Task.sleep(for: time) } catch { return }
            whenOver(self)
        }
    }

    private func closeTimedOut() {
        end(
            .failure(
                ClientError(
                    .timedOut,
                    "the server has not closed the WebSocket for "
                        + "\(options.closeTimeout.wholeMilliseconds) ms",
                    of: request)))
        channel.cancel()
    }

    // MARK: Receiving

    /// Returns the next message, or `nil` if the connection was closed.
    func receive() async throws(ClientError) -> Message? {
        defer { resumeReading() }
        return try await wait(nextNumber(), in: \.readers) { state in
            if let message = Self.takeMessage(&state) { return .success(message) }
            return state.end.map { $0.map { _ in nil } }
        }
    }

    private static func takeMessage(_ state: inout State) -> Message? {
        guard state.inboxCount > 0 else { return nil }
        let message = state.inbox[state.taken]
        state.inbox[state.taken] = .binary([])
        state.taken += 1
        state.inboxBytes -= message.byteCount
        if state.taken == state.inbox.count {
            state.inbox.removeAll(keepingCapacity: state.taken <= 64)
            state.taken = 0
        }
        return message
    }

    private func hasRoom(_ state: State) -> Bool {
        state.inboxCount < options.receiveBufferMessages
            && state.inboxBytes < options.receiveBufferBytes
    }

    /// Whether the reading task continues. While the connection is closing, it always does, in
    /// order to find the server's close frame.
    private func keepsReading(_ state: State) -> Bool {
        hasRoom(state) || state.end != nil || !state.connection.isOpen
    }

    /// Resumes the reading task if there is space again.
    private func resumeReading() {
        let reading = state.withLock { state in
            keepsReading(state) ? state.reading.take() : nil
        }
        reading?.resume()
    }

    private func waitForRoom() async {
        await Waiter.wait { waiter in
            let isReady = state.withLock { state in
                if keepsReading(state) { return true }
                state.reading = waiter
                return false
            }
            if isReady { waiter.resume() }
        }
    }

    /// Reads until the connection has ended. Must be run once, in a separate task.
    func run(_ content: ResponseContent) async {
        do throws(ClientError) {
            var parts = content.makeAsyncIterator()
            while let part = try await parts.next() {
                take(part)
                await waitForRoom()
            }
            end(
                .failure(
                    ClientError(
                        .connectionLost, "the server ended the connection without a close frame",
                        of: request)))
        } catch {
            end(.failure(error.about(request)))
        }
        state.withLock { $0.timer.take() }?.cancel()
    }

    /// Processes bytes from the server.
    private func take(_ bytes: [UInt8]) {
        let wakes = state.withLock { state -> [@Sendable () -> Void] in
            // It only waits for the connection to end.
            guard state.end == nil else { return [] }
            let events = state.connection.receive(bytes)
            let answer = state.connection.takeOutput()
            if !answer.isEmpty {
                state.connection.isClosed ? output.append(answer) : output.setPong(answer)
            }
            return events.flatMap { take($0, &state) }
        }
        for wake in wakes { wake() }
    }

    private func take(
        _ event: WebSocketConnection.Event, _ state: inout State
    ) -> [@Sendable () -> Void] {
        switch event {
        case .text(let text): return take(Message.text(text), &state)
        case .binary(let bytes): return take(Message.binary(bytes), &state)
        case .ping: return []
        case .pong(let content):
            guard content.count == 8 else { return [] }
            let number = content.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return state.pings.removeAll(through: number).map { ping in
                { ping.resume(returning: .success(())) }
            }
        case .closed(let code, let reason):
            output.finish(closing: false)
            return end(.success(WebSocket.Closing(code: code, reason: reason)), &state)
        case .failed(let error):
            output.finish(closing: true)
            return end(.failure(ClientError(error, of: request)), &state)
        }
    }

    private func take(_ message: Message, _ state: inout State) -> [@Sendable () -> Void] {
        if let reader = state.readers.popFirst() {
            return [{ reader.continuation.resume(returning: .success(message)) }]
        }
        // While the connection is closing, messages are kept only as long as there is space.
        guard state.connection.isOpen || hasRoom(state) else { return [] }
        state.inbox.append(message)
        state.inboxBytes += message.byteCount
        return []
    }

    // MARK: End

    /// Ends all waiting calls. Only the first result counts.
    private func end(_ result: Result<WebSocket.Closing, ClientError>) {
        let wakes = state.withLock { end(result, &$0) }
        for wake in wakes { wake() }
    }

    private func end(
        _ result: Result<WebSocket.Closing, ClientError>, _ state: inout State
    ) -> [@Sendable () -> Void] {
        guard state.end == nil else { return [] }
        state.end = result
        state.timer?.cancel()
        // The server has to close the connection (RFC 6455 section 7.1.1), within this time.
        state.timer = timer { $0.channel.cancel() }
        let (readers, pings) = (state.readers.removeAll(), state.pings.removeAll())
        let (closers, reading) = (state.closers.removeAll(), state.reading.take())
        let closed = Self.closed(state) ?? WebSocketOutput.closed
        return [
            {
                for reader in readers { reader.resume(returning: result.map { _ in nil }) }
                for ping in pings { ping.resume(returning: .failure(closed)) }
                for closer in closers { closer.resume(returning: result) }
                reading?.resume()
            }
        ]
    }

    /// Handles the release of the WebSocket: if either side has closed, the closing is completed;
    /// if it is still open, it is cancelled.
    func released() {
        if state.withLock({ $0.end == nil }) { cancel() }
    }

    /// Closes the connection immediately.
    func cancel() {
        end(.failure(ClientError.cancelled().about(request)))
        channel.cancel()
    }
}

extension ClientError {
    /// Creates the error for a protocol violation by the server.
    init(_ error: WebSocketError, of request: HTTPRequest) {
        switch error {
        case .tooLarge:
            self.init(
                .contentTooLong, "a message is longer than the limit", of: request,
                underlying: error)
        default:
            self.init(
                .protocolViolation, "the server violates the WebSocket protocol: \(error)",
                of: request, underlying: error)
        }
    }
}
