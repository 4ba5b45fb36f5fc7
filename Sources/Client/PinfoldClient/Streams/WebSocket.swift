import EventStreams
public import HTTPTypes

/// A WebSocket (RFC 6455), as ``SessionManager/webSocket(for:protocols:options:)`` opens it.
///
///     let socket = try await session.webSocket("wss://example.com/chat")
///     try await socket.send("hello")
///     for try await message in socket.messages {
///         if case .text(let text) = message { print(text) }
///     }
///
/// Any number of tasks may send, and any number receive: each message goes to one of them, in the
/// order in which they asked. Pings are answered without anybody's doing, unless so many messages
/// wait that the server is read no further (``WebSocketOptions/receivedMessages``).
///
/// One that is let go of while it is open is cancelled, as by ``cancel()``.
public final class WebSocket: Sendable {
    /// What is sent and received.
    public enum Message: Hashable, Sendable {
        /// Text; UTF-8 on the wire.
        case text(String)
        /// Bytes.
        case binary([UInt8])

        /// Bytes of its content.
        var byteCount: Int {
            switch self {
            case .text(let text): text.utf8.count
            case .binary(let bytes): bytes.count
            }
        }
    }

    /// How a connection was closed by its server, on its own or in answer.
    public struct Closing: Hashable, Sendable {
        /// The status code (RFC 6455 section 7.4); nil where the server named none.
        public let code: UInt16?
        /// For people; may be empty.
        public let reason: String
    }

    /// The 101 of the server.
    public let head: HTTPResponse
    /// The one of the offered subprotocols that the server chose; nil: none.
    public let subprotocol: String?
    /// Messages may be compressed (permessage-deflate, RFC 7692), as both ends agree.
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
                sentFrameBytes: max(1, options.sentFrameBytes)),
            compresses: agreement.compresses)
        let core = WebSocketCore(
            connection, output, response.content.guardian.channel, response.request, options)
        self.core = core
        Task { [content = response.content] in await core.run(content) }
    }

    deinit { core.letGo() }

    /// How long the handshake took; the end, and bytes in both directions, once it has ended.
    public var metrics: TaskMetrics { response.metrics }

    // MARK: Receiving

    /// The messages as they come. It ends when the connection was closed by a close frame, of
    /// whatever code (``closing``).
    public var messages: Messages { Messages(socket: self) }

    /// The next message; nil: the connection was closed, and there is none.
    ///
    /// - Throws: ``ClientError``: ``ClientError/Reason/protocolViolation`` where the server breaks
    ///   the rules, ``ClientError/Reason/contentTooLong`` for a message longer than
    ///   ``WebSocketOptions/maximumMessageBytes``, ``ClientError/Reason/connectionLost`` where the
    ///   connection ends without a close frame. A task that is cancelled takes no message, and
    ///   the connection stays.
    public func receive() async throws(ClientError) -> Message? { try await core.receive() }

    /// The messages of a WebSocket. Iterators share them.
    public struct Messages: AsyncSequence, Sendable {
        public typealias Element = Message
        public typealias Failure = ClientError

        let socket: WebSocket

        public func makeAsyncIterator() -> Iterator { Iterator(socket: socket) }

        /// Waits for one message after another.
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

    /// Sends a message: returns when it waits for the connection, and suspends before that while
    /// ``WebSocketOptions/sentBytes`` wait. Messages leave in the order of the calls.
    ///
    /// - Throws: ``ClientError``: ``ClientError/Reason/connectionLost`` where the connection is
    ///   closed or being closed. A task that is cancelled before its turn sends nothing.
    public func send(_ message: Message) async throws(ClientError) { try await core.send(message) }

    /// Sends a text. See ``send(_:)-(WebSocket.Message)``.
    public func send(_ text: String) async throws(ClientError) {
        try await core.send(.text(text))
    }

    /// Sends bytes. See ``send(_:)-(WebSocket.Message)``.
    public func send(_ bytes: [UInt8]) async throws(ClientError) {
        try await core.send(.binary(bytes))
    }

    /// Sends a ping, and waits for its answer.
    ///
    /// - Returns: How long the answer took.
    /// - Throws: As ``receive()``. It waits for as long as the task is not cancelled.
    @discardableResult
    public func ping() async throws(ClientError) -> Duration { try await core.ping() }

    // MARK: The end

    /// Messages can be sent.
    public var isOpen: Bool { core.isOpen }

    /// How the server closed it; nil: it has not.
    public var closing: Closing? { core.closing }

    /// Closes the connection behind what has been sent, and waits for the server to close it, too:
    /// for ``WebSocketOptions/closeTimeout`` at most. Messages that come meanwhile can be received.
    /// On one that is closed it returns at once.
    ///
    /// - Parameters:
    ///   - code: 1000 for a normal end, 1001 for an app that ends, 3000 to 4999 for what the two
    ///     ends have agreed on; nil: none is sent.
    ///   - reason: For people, cut off behind 123 bytes.
    /// - Returns: What the server said.
    /// - Throws: ``ClientError``: ``ClientError/Reason/invalidRequest`` for a code that may not be
    ///   sent (RFC 6455 section 7.4), ``ClientError/Reason/timedOut`` where the server does not
    ///   answer; else as ``receive()``. Cancelling the task only ends the waiting.
    @discardableResult
    public func close(
        code: UInt16? = 1000, reason: String = ""
    ) async throws(ClientError) -> Closing {
        try await core.close(code, reason)
    }

    /// Ends the connection at once, without a close frame. Who waits gets
    /// ``ClientError/Reason/cancelled``.
    public func cancel() { core.cancel() }
}

/// How a WebSocket is opened, and what it may take.
public struct WebSocketOptions: Sendable {
    /// What holds for the request of its handshake. Without a rule of its own for redirects none is
    /// followed, as in browsers.
    public var request = RequestOptions()
    /// Offers the server to compress messages (permessage-deflate, RFC 7692), each by itself.
    public var offersCompression = true
    /// Bytes of a message that is received, compressed or not; a longer one closes the connection
    /// with 1009.
    public var maximumMessageBytes = 16 << 20
    /// Bytes of one frame of a message that is sent.
    public var sentFrameBytes = 64 << 10
    /// Bytes that wait to be sent, from which on
    /// ``WebSocket/send(_:)-(WebSocket.Message)`` suspends: so many
    /// and one message.
    public var sentBytes = 1 << 20
    /// Messages that wait to be received, from which on the server is read no further.
    public var receivedMessages = 256
    /// Bytes of them.
    public var receivedBytes = 1 << 20
    /// How long the server may take to answer a close frame, and then to end the connection.
    public var closeTimeout = Duration.seconds(10)

    /// Each option at its default.
    public init() {}
}
