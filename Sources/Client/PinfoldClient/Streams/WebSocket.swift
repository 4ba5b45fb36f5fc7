public import HTTPTypes

/// A WebSocket (RFC 6455), opened by ``SessionManager/webSocket(for:protocols:options:)``.
///
///     let socket = try await session.webSocket("wss://example.com/chat")
///     try await socket.send("hello")
///     for try await message in socket.messages {
///         if case .text(let text) = message { print(text) }
///     }
///
/// Any number of tasks may send and receive concurrently. Each message is delivered to one of them,
/// in the order of their calls. Pings are answered automatically, unless so many messages are
/// waiting that reading from the server is paused (``WebSocketOptions/receiveBufferMessages``).
///
/// If an open WebSocket is released, it is cancelled as by ``cancel()``.
public final class WebSocket: Sendable {
    /// A message that is sent or received.
    public enum Message: Hashable, Sendable {
        /// Text, sent as UTF-8.
        case text(String)
        /// Binary data.
        case binary([UInt8])

        /// The size of its content in bytes.
        var byteCount: Int {
            switch self {
            case .text(let text): text.utf8.count
            case .binary(let bytes): bytes.count
            }
        }
    }

    /// How the server closed the connection, on its own initiative or in response.
    public struct Closing: Hashable, Sendable {
        /// The status code (RFC 6455 section 7.4), or `nil` if the server sent none.
        public let code: UInt16?
        /// A human-readable reason; may be empty.
        public let reason: String
    }

    /// The server's 101 response.
    public let head: HTTPResponse
    /// The subprotocol chosen by the server, or `nil` if it chose none.
    public let subprotocol: String?
    /// Whether both ends have agreed that messages may be compressed (permessage-deflate, RFC
    /// 7692).
    public let isCompressed: Bool
    private let response: StreamedResponse
    private let core: WebSocketCore

    init(
        _ response: StreamedResponse, _ agreement: WebSocketHandshake.Agreement,
        _ output: WebSocketOutput, _ options: WebSocketOptions
    ) {
        head = response.head
        subprotocol = agreement.subprotocol
        isCompressed = agreement.compresses
        self.response = response
        let connection = WebSocketConnection(
            role: .client,
            limits: WebSocketConnection.Limits(
                messageBytes: max(1, options.maximumMessageBytes),
                sentFrameBytes: max(1, options.maximumFrameBytes)),
            compresses: agreement.compresses)
        let core = WebSocketCore(
            connection, output, response.content.guardian.channel, response.request, options)
        self.core = core
        Task { [content = response.content] in await core.run(content) }
    }

    deinit { core.released() }

    /// The metrics: the duration of the handshake, and once it has ended, the total time and the
    /// bytes in both directions.
    public var metrics: TaskMetrics { response.metrics }

    // MARK: Receiving

    /// The messages as they arrive. The sequence ends when the connection was closed by a close
    /// frame with any code (``closing``).
    public var messages: Messages { Messages(socket: self) }

    /// Returns the next message, or `nil` if the connection was closed and there are no more.
    ///
    /// - Throws: ``ClientError``: ``ClientError/Reason/protocolViolation`` if the server violates
    ///   the protocol, ``ClientError/Reason/contentTooLong`` for a message longer than
    ///   ``WebSocketOptions/maximumMessageBytes``, ``ClientError/Reason/connectionLost`` if the
    ///   connection ends without a close frame. If the task is cancelled, no message is lost and
    ///   the connection stays open.
    public func receive() async throws(ClientError) -> Message? { try await core.receive() }

    /// The messages of a WebSocket. All iterators share them.
    public struct Messages: AsyncSequence, Sendable {
        public typealias Element = Message
        public typealias Failure = ClientError

        let socket: WebSocket

        public func makeAsyncIterator() -> Iterator { Iterator(socket: socket) }

        /// Iterates over the messages as they arrive.
        public struct Iterator: AsyncIteratorProtocol {
            let socket: WebSocket

            /// See ``WebSocket/receive()``.
            public mutating func next() async throws(ClientError) -> Message? {
                try await socket.receive()
            }

            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(ClientError) -> Message? {
                try await socket.receive()
            }
        }
    }

    // MARK: Sending

    /// Sends a message. Returns once the message has been buffered; if
    /// ``WebSocketOptions/sendBufferBytes`` or more are waiting to be sent, suspends until there is
    /// space. Messages are sent in the order of the calls.
    ///
    /// - Throws: ``ClientError``, with ``ClientError/Reason/connectionLost`` if the connection is
    ///   closed or closing. If the task is cancelled before its turn, nothing is sent.
    public func send(_ message: Message) async throws(ClientError) { try await core.send(message) }

    /// Sends a text message. See ``send(_:)-(WebSocket.Message)``.
    public func send(_ text: String) async throws(ClientError) {
        try await core.send(.text(text))
    }

    /// Sends a binary message. See ``send(_:)-(WebSocket.Message)``.
    public func send(_ bytes: [UInt8]) async throws(ClientError) {
        try await core.send(.binary(bytes))
    }

    /// Sends a ping, and waits for the pong.
    ///
    /// - Returns: The time until the pong arrived.
    /// - Throws: As ``receive()``. It waits until the task is cancelled.
    @discardableResult
    public func ping() async throws(ClientError) -> Duration { try await core.ping() }

    // MARK: End

    /// Whether messages can be sent.
    public var isOpen: Bool { core.isOpen }

    /// How the server closed the connection, or `nil` if it has not.
    public var closing: Closing? { core.closing }

    /// Closes the connection after what has been sent, and waits for the server to close it, too,
    /// for at most ``WebSocketOptions/closeTimeout``. Messages that arrive in the meantime can be
    /// received. If the connection is already closed, returns immediately.
    ///
    /// - Parameters:
    ///   - code: 1000 for a normal end, 1001 for an app that terminates, 3000 to 4999 for codes on
    ///     which the two ends have agreed, or `nil` to send none.
    ///   - reason: A human-readable reason, truncated to 123 bytes.
    /// - Returns: The server's code and reason.
    /// - Throws: ``ClientError``: ``ClientError/Reason/invalidRequest`` for a code that may not be
    ///   sent (RFC 6455 section 7.4), ``ClientError/Reason/timedOut`` if the server does not
    ///   respond; otherwise as ``receive()``. Cancelling the task only stops the waiting.
    @discardableResult
    public func close(
        code: UInt16? = 1000, reason: String = ""
    ) async throws(ClientError) -> Closing {
        try await core.close(code, reason)
    }

    /// Closes the connection immediately, without a close frame. Waiting calls fail with
    /// ``ClientError/Reason/cancelled``.
    public func cancel() { core.cancel() }
}

/// Options for a WebSocket.
public struct WebSocketOptions: Sendable {
    /// Options for the handshake's request. Unless they have a rule for redirects, redirects are
    /// not followed, as in browsers.
    public var request = RequestOptions()
    /// Whether to offer compression of each message on its own (permessage-deflate, RFC 7692).
    public var offersCompression = true
    /// The maximum size of a received message in bytes, whether or not it is compressed. A longer
    /// message closes the connection with code 1009.
    public var maximumMessageBytes = 16 << 20
    /// The maximum size of a sent frame, in bytes. Longer messages are split.
    public var maximumFrameBytes = 64 << 10
    /// The number of bytes waiting to be sent from which
    /// ``WebSocket/send(_:)-(WebSocket.Message)`` suspends.
    /// At most this number and one message are buffered.
    public var sendBufferBytes = 1 << 20
    /// The number of messages waiting to be received from which reading from the server is paused.
    public var receiveBufferMessages = 256
    /// The number of their bytes from which reading is paused.
    public var receiveBufferBytes = 1 << 20
    /// How long the server may take to answer a close frame, and then to close the connection.
    public var closeTimeout = Duration.seconds(10)

    /// Creates options with default values.
    public init() {}
}
