public import HTTPTypes

/// A response with its content in memory.
public struct DataResponse: Sendable {
    /// Status and fields.
    public let head: HTTPResponse
    /// The content. It has been decoded unless ``SessionConfiguration/decodesContent`` says
    /// otherwise.
    public let content: [UInt8]
    /// The last request, after redirects.
    public let request: HTTPRequest
    /// How long the parts of the task took.
    public let metrics: TaskMetrics
    /// The trailers (RFC 9110 section 6.5), without those that must not be in trailers.
    public internal(set) var trailers: HTTPFields = [:]
}

/// A response whose content is read while it arrives.
public struct StreamedResponse: Sendable {
    /// Status and fields.
    public let head: HTTPResponse
    /// The last request, after redirects.
    public let request: HTTPRequest
    /// The content, which arrives in parts.
    public let content: ResponseContent
    private let record: AttemptRecord

    /// - Parameter record: The record of the attempt that got the response.
    init(
        head: HTTPResponse, _ record: AttemptRecord, _ guardian: ResponseGuard,
        _ decoder: ContentDecoder?
    ) {
        self.head = decoder == nil ? head : ContentDecoding.decoded(head)
        self.request = record.request
        self.record = record
        content = ResponseContent(guardian, record.request, decoder)
    }

    /// Whether the response comes from the session's cache.
    var isStored: Bool {
        switch record.channel.times?.cache ?? CacheUse.none {
        case .hit, .stale, .confirmed: true
        case .miss, .none: false
        }
    }

    /// The trailers (RFC 9110 section 6.5), once all of the content has been read; until then,
    /// empty.
    public var trailers: HTTPFields { record.channel.trailers }

    /// How long the task took: up to the head, until the content has ended.
    public var metrics: TaskMetrics { record.metrics(status: head.status.code) }
}

/// The content of a response, part by part as it arrives. Data is read from the server no faster
/// than the parts are consumed. It can be read once, by one task.
public struct ResponseContent: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    public typealias Failure = ClientError

    let guardian: ResponseGuard
    private let request: HTTPRequest
    /// The decoder, or `nil` if the content is passed on unchanged.
    private let decoder: ContentDecoder?

    init(_ guardian: ResponseGuard, _ request: HTTPRequest, _ decoder: ContentDecoder?) {
        self.guardian = guardian
        self.request = request
        self.decoder = decoder
    }

    /// Returns an iterator. A further iterator continues where the previous one stopped.
    public func makeAsyncIterator() -> Iterator { Iterator(content: self) }

    /// Iterates over the parts as they arrive.
    public struct Iterator: AsyncIteratorProtocol {
        let content: ResponseContent

        /// Returns the next part, which is never empty, or `nil` at the end.
        ///
        /// - Throws: ``ClientError`` if the content is interrupted. The parts before it are then
        ///   not the whole content.
        public mutating func next() async throws(ClientError) -> [UInt8]? {
            try await content.next()
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(ClientError) -> [UInt8]? {
            try await content.next()
        }
    }

    private func next() async throws(ClientError) -> [UInt8]? {
        do throws(ClientError) {
            let part = try await decodedPart()
            if part == nil { guardian.isOver(nil) }
            return part
        } catch {
            let error = error.about(request)
            guardian.channel.cancel()
            guardian.isOver(error)
            throw error
        }
    }

    private func decodedPart() async throws(ClientError) -> [UInt8]? {
        guard let decoder else { return try await guardian.channel.part() }
        while true {
            // A small amount of encoded content may become many blocks.
            try await guardian.channel.turn()
            if let block = try decoder.next() { return block }
            guard let part = try await guardian.channel.part() else {
                try decoder.finish()
                return nil
            }
            decoder.feed(part)
        }
    }

    /// Collects the whole content.
    ///
    /// - Parameter maximum: The maximum size in bytes. More is an error.
    public func collect(atMost maximum: Int) async throws(ClientError) -> [UInt8] {
        if decoder == nil, let whole = guardian.channel.wholePart(atMost: maximum) {
            guardian.isOver(nil)
            return whole.bytes
        }
        var bytes: [UInt8] = []
        while let part = try await next() {
            guard bytes.count + part.count <= maximum else {
                let error = ClientError(
                    .contentTooLong, "the content is longer than \(maximum) bytes", of: request)
                guardian.channel.cancel()
                guardian.isOver(error)
                throw error
            }
            if bytes.isEmpty { bytes = part } else { bytes += part }
        }
        return bytes
    }
}
