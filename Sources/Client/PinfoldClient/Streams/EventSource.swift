public import HTTPTypes

/// Server-sent events (WHATWG HTML, "Server-sent events") as they arrive, like `EventSource` in
/// browsers.
///
///     for try await event in session.events(for: try HTTPRequest(.get, url)) {
///         print(event.type, event.data)
///     }
///
/// If the connection is interrupted or ends, even within a chunk or a content coding, the stream is
/// requested again after a delay, with Last-Event-ID. It ends with status 204. It fails with any
/// response that is not an event stream, after ``EventSourceOptions/maximumFailures``, and with an
/// event or line that is too large, after the events before it. Cancelling the task ends it at any
/// time.
///
/// Each iterator has its own connection, which does not count as an active request. The number of
/// open streams is limited (``SessionConfiguration/maximumEventStreams``). Data is read from the
/// server no faster than events are consumed.
public struct EventSource: AsyncSequence, Sendable {
    public typealias Element = ServerSentEvent
    public typealias Failure = ClientError

    /// The state of an iterator.
    public enum State: Sendable {
        /// The stream is being requested.
        case connecting
        /// The stream is open, with this response.
        case open(HTTPResponse)
        /// The stream will be requested again after this delay. The error says why there is no
        /// stream, or is `nil` if the server has ended it.
        case waiting(Duration, ClientError?)
        /// The stream is closed.
        case closed
    }

    let session: SessionManager
    let request: HTTPRequest
    let content: RequestContent?
    let options: EventSourceOptions

    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Iterates over the events as they arrive.
    public struct Iterator: AsyncIteratorProtocol {
        private struct Stream {
            var content: ResponseContent.Iterator
            var parser: ServerSentEventParser
        }

        private let source: EventSource
        private var reconnection: Reconnection
        private var stream: Stream?
        /// The events that have been read but not consumed, in reverse order.
        private var events: [ServerSentEvent] = []
        /// The error that follows the events.
        private var error: ClientError?
        private var isOver = false

        init(_ source: EventSource) {
            self.source = source
            let isRepeated = source.options.reconnects ?? (source.request.method == .get)
            reconnection = Reconnection(
                source.options,
                isRepeated: isRepeated && source.content?.isRepeatable ?? true)
        }

        /// Returns the next event, or `nil` at the end.
        ///
        /// - Throws: ``ClientError``, after which there are no more events.
        public mutating func next() async throws(ClientError) -> ServerSentEvent? {
            try await next(isolation: nil)
        }

        /// See ``next()``.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(ClientError) -> ServerSentEvent? {
            do throws(ClientError) {
                while true {
                    if Task.isCancelled { throw ClientError.cancelled().about(source.request) }
                    if let event = events.popLast() { return event }
                    if let error { throw error }
                    if isOver { return nil }
                    if stream == nil { try await connect(actor) } else { try await read(actor) }
                }
            } catch {
                close()
                throw error
            }
        }

        private mutating func close() {
            if !isOver { source.options.onStateChange?(.closed) }
            (isOver, stream, error, events) = (true, nil, nil, [])
        }

        // MARK: Connecting

        private mutating func connect(
            _ actor: isolated (any Actor)?
        ) async throws(ClientError) {
            source.options.onStateChange?(.connecting)
            let response: StreamedResponse
            do throws(ClientError) {
                response = try await source.session.response(
                    for: source.request.resuming(after: reconnection.lastEventID),
                    content: source.content, options: source.requestOptions)
            } catch {
                var generator = SystemRandom()
                let step = reconnection.step(afterFailure: error, using: &generator)
                return try await take(step, error, actor)
            }
            if response.head.status.code == 204 { return close() }
            try Self.check(response)
            reconnection.opened()
            stream = Stream(
                content: response.content.makeAsyncIterator(),
                parser: ServerSentEventParser(
                    limits: source.options.limits, lastEventID: reconnection.lastEventID))
            source.options.onStateChange?(.open(response.head))
        }

        /// If the response is not kept, it is cancelled.
        private static func check(_ response: StreamedResponse) throws(ClientError) {
            guard response.head.status.code == 200 else {
                throw ClientError(response.head, .status, of: response.request)
            }
            let type: String?
            do throws(ConflictingFieldLinesError) {
                type = try response.head.headerFields.single(.contentType)
            } catch {
                let types = error.values.joined(separator: ", ")
                throw ClientError(response.head, .contentType(types), of: response.request)
            }
            guard let type, ServerSentEventParser.isEventStream(contentType: type) else {
                throw ClientError(response.head, .contentType(type), of: response.request)
            }
        }

        private mutating func take(
            _ step: Reconnection.Step, _ error: ClientError?, _ actor: isolated (any Actor)?
        ) async throws(ClientError) {
            switch step {
            case .end: close()
            case .fail(let error): throw error
            case .reconnect(let wait):
                source.options.onStateChange?(.waiting(wait, error))
                do { try await Task.sleep(for: wait) } catch {
                    throw ClientError.cancelled().about(source.request)
                }
            }
        }

        // MARK: Reading

        private mutating func read(
            _ actor: isolated (any Actor)?
        ) async throws(ClientError) {
            guard var stream = stream.take() else { return }
            let part: [UInt8]?
            do throws(ClientError) { part = try await stream.content.next(isolation: actor) } catch
            {
                return try await take(reconnection.step(afterEnd: error), error, actor)
            }
            guard let part else {
                return try await take(reconnection.step(afterEnd: nil), nil, actor)
            }
            do throws(ServerSentEventError) {
                try stream.parser.parse(part, into: &events)
                self.stream = stream
            } catch {
                self.error = ClientError(
                    .contentTooLong, "a line or an event of the stream is too long: \(error)",
                    of: source.request, underlying: error)
            }
            events.reverse()
            reconnection.lastEventID = stream.parser.lastEventID
            if let milliseconds = stream.parser.reconnectionMilliseconds {
                reconnection.setTime(milliseconds: milliseconds)
            }
        }
    }
}

extension EventSource {
    fileprivate var requestOptions: RequestOptions {
        var requestOptions = options.request
        requestOptions.cachePolicy = .reloadIgnoringCache
        // The iterator itself decides what to do after a failure.
        requestOptions.retries = .never
        requestOptions.stream = .content(
            idleMilliseconds: options.idleTimeout.map { Swift.max(1, $0.wholeMilliseconds) })
        return requestOptions
    }
}

extension HTTPField.Name {
    fileprivate static let lastEventID = HTTPField.Name("Last-Event-ID")
}

extension HTTPRequest {
    /// Returns the request for events after the one with an ID, or if that is empty, for events
    /// from now on.
    fileprivate func resuming(after lastEventID: String) -> HTTPRequest {
        var request = self
        if !request.headerFields.contains(.accept) {
            request.headerFields[.accept] = ServerSentEventParser.mediaType
        }
        guard let name = HTTPField.Name.lastEventID else { return request }
        // An ID that is not a valid field value is not sent.
        let isValue = !lastEventID.isEmpty && HTTPField.isValidValue(lastEventID)
        request.headerFields[name] = isValue ? lastEventID : nil
        return request
    }
}

/// Options for an event stream.
public struct EventSourceOptions: Sendable {
    /// Options for each request. The timeout applies to the head of the response. Requests are not
    /// repeated by the retry policy, and are not answered by a cache.
    public var request = RequestOptions()
    /// The initial Last-Event-ID, to continue an earlier stream. If it is empty, it is not sent.
    public var lastEventID = ""
    /// Whether the stream is requested again when it ends, or `nil` if that depends on the method
    /// being GET. Content that can be read only once is not sent again.
    public var reconnects: Bool?
    /// The delay before that, unless the server specifies one (`retry`).
    public var reconnectionTime = Duration.seconds(3)
    /// The bounds for the delay that the server specifies, and for the increasing delays while
    /// attempts fail: each is at most twice as long as the previous one.
    public var reconnectionBounds = Duration.milliseconds(250)...Duration.seconds(60)
    /// The number of consecutive failed attempts after which the last error is thrown, or `nil` for
    /// no limit, as in browsers.
    public var maximumFailures: Int? = 10
    /// How long nothing may arrive, not even comments, before the stream counts as interrupted, or
    /// `nil` for no limit.
    public var idleTimeout: Duration?
    /// The maximum sizes of an event and of a line.
    public var limits = ServerSentEventParser.Limits()
    /// Receives the state of an iterator, in the task that iterates.
    public var onStateChange: (@Sendable (EventSource.State) -> Void)?

    /// Creates options with default values.
    public init() {}
}

extension SessionManager {
    /// Returns the events of a stream, which is requested when iteration starts.
    ///
    /// - Parameters:
    ///   - request: The request, usually a GET. If it has no Accept field, that is added.
    ///   - content: The content to send with each request, or `nil` for none.
    ///   - options: Options for reconnecting and for limits.
    public func events(
        for request: HTTPRequest, content: RequestContent? = nil,
        options: EventSourceOptions = EventSourceOptions()
    ) -> EventSource {
        EventSource(session: self, request: request, content: content, options: options)
    }
}
