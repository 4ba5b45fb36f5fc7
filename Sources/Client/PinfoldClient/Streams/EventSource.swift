public import EventStreams
public import HTTPTypes
import Serialization

/// Server-sent events (WHATWG HTML, "Server-sent events"), as they come: what `EventSource` is in
/// browsers.
///
///     for try await event in session.events(for: try HTTPRequest(.get, url)) {
///         print(event.type, event.data)
///     }
///
/// Where the connection breaks off or ends, also in the midst of a chunk or of a content coding,
/// the stream is asked for again after a while, with Last-Event-ID. It ends with a 204. It fails
/// with any response that is no stream of events, after ``EventSourceOptions/maximumFailures``, and
/// with an event or a line that is too large, behind the events that came before it. Cancelling the
/// task ends it at any stage.
///
/// Each iterator has a connection of its own, which does not count as a request under way; so many
/// streams may be open at a time (``SessionConfiguration/maximumEventStreams``). The server is read
/// no faster than events are taken.
public struct EventSource: AsyncSequence, Sendable {
    public typealias Element = ServerSentEvent
    public typealias Failure = ClientError

    /// What an iterator does.
    public enum State: Sendable {
        /// The stream is asked for.
        case connecting
        /// It is there, with this head.
        case open(HTTPResponse)
        /// It will be asked for again after this time. The error says why there is none; nil: the
        /// server has ended it.
        case waiting(Duration, ClientError?)
        /// It is over.
        case closed
    }

    let session: SessionManager
    let request: HTTPRequest
    let content: RequestContent?
    let options: EventSourceOptions

    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Waits for one event after another.
    public struct Iterator: AsyncIteratorProtocol {
        private struct Stream {
            var content: ResponseContent.Iterator
            var parser: ServerSentEventParser
        }

        private let source: EventSource
        private var reconnection: Reconnection
        private var stream: Stream?
        /// Read and not yet taken: the last is the next.
        private var events: [ServerSentEvent] = []
        /// Follows on the events.
        private var error: ClientError?
        private var isOver = false

        init(_ source: EventSource) {
            self.source = source
            let isRepeated = source.options.reconnects ?? (source.request.method == .get)
            reconnection = Reconnection(
                source.options,
                isRepeated: isRepeated && source.content?.isRepeatable ?? true)
        }

        /// The next event; nil: there are no more.
        ///
        /// - Throws: ``ClientError``; nothing follows on it.
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
            if !isOver { source.options.stateChanged?(.closed) }
            (isOver, stream, error, events) = (true, nil, nil, [])
        }

        // MARK: Connecting

        private mutating func connect(
            _ actor: isolated (any Actor)?
        ) async throws(ClientError) {
            source.options.stateChanged?(.connecting)
            let response: StreamedResponse
            do throws(ClientError) {
                response = try await source.session.response(
                    for: source.request.asking(from: reconnection.lastEventID),
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
            source.options.stateChanged?(.open(response.head))
        }

        /// A response that is not kept is cancelled.
        private static func check(_ response: StreamedResponse) throws(ClientError) {
            guard response.head.status.code == 200 else {
                throw ClientError(response.head, .status, of: response.request)
            }
            let type: String?
            do throws(ConflictingFieldLines) {
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
                source.options.stateChanged?(.waiting(wait, error))
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
        // What to do after a failure is decided here.
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
    /// The request for events behind the one with an ID; empty: for those from now on.
    fileprivate func asking(from lastEventID: String) -> HTTPRequest {
        var request = self
        if !request.headerFields.contains(.accept) {
            request.headerFields[.accept] = ServerSentEventParser.mediaType
        }
        guard let name = HTTPField.Name.lastEventID else { return request }
        // What can be no field's value is not sent.
        let isValue = !lastEventID.isEmpty && HTTPField.isValidValue(lastEventID)
        request.headerFields[name] = isValue ? lastEventID : nil
        return request
    }
}

/// How a stream of events is asked for, and what it may take.
public struct EventSourceOptions: Sendable {
    /// What holds for each request: its time-out is that for the head. Requests are not repeated by
    /// its retry policy, nor answered by a cache.
    public var request = RequestOptions()
    /// What Last-Event-ID says at first: where an earlier stream is to be gone on from. Empty: it
    /// is not sent.
    public var lastEventID = ""
    /// Whether the stream is asked for again where it ends; nil: where the method is GET.
    /// Content that can be read once only is not sent again.
    public var reconnects: Bool?
    /// How long to wait before that, unless the server says another time (`retry`).
    public var reconnectionTime = Duration.seconds(3)
    /// What a server may ask for, and what the waits grow to while attempts fail: each is twice as
    /// long as the one before at most.
    public var reconnectionBounds = Duration.milliseconds(250)...Duration.seconds(60)
    /// Attempts in a row that come to no stream, until the last one's error is thrown; nil: there
    /// is no limit, as in browsers.
    public var maximumFailures: Int? = 10
    /// How long nothing may come, comments included, before the stream counts as broken off; nil:
    /// for ever.
    public var idleTimeout: Duration?
    /// Bytes of an event, and of a line.
    public var limits = ServerSentEventParser.Limits()
    /// Is told what an iterator does, by the task that iterates.
    public var stateChanged: (@Sendable (EventSource.State) -> Void)?

    /// Each option at its default.
    public init() {}
}

extension SessionManager {
    /// The events of a stream, which is asked for when they are iterated over.
    ///
    /// - Parameters:
    ///   - request: Mostly a GET. Accept is added where it has none.
    ///   - content: What is sent with it each time; nil: nothing.
    ///   - options: When it is asked for again, and what it may take.
    public func events(
        for request: HTTPRequest, content: RequestContent? = nil,
        options: EventSourceOptions = EventSourceOptions()
    ) -> EventSource {
        EventSource(session: self, request: request, content: content, options: options)
    }
}
