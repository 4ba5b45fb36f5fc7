import ContentCoding

/// The content of a request.
public struct RequestContent: Sendable {
    enum Source: Sendable {
        case bytes([UInt8])
        /// - Parameter isForeign: Whether reading may wait for anything, not only for the disk.
        case reader(isForeign: Bool, @Sendable () throws -> any ByteSource)
        case stream(@Sendable () -> any ContentFeed)
    }

    let source: Source
    /// How the source is compressed while it is sent, or `nil` if it is not.
    private(set) var compression: RequestCompression?
    /// The length of what the source provides, or `nil` if it is not known.
    private let sourceLength: Int64?
    /// The length in bytes, or `nil` if it is not known in advance. The content is then sent in
    /// chunks (RFC 9112 section 7.1).
    public let length: Int64?
    /// How long to wait after each part.
    let pause: Duration
    /// Whether the content can be sent again from its beginning, for example after a redirect.
    public let isRepeatable: Bool

    private init(
        _ source: Source, length: Int64?, pause: Duration = .zero, isRepeatable: Bool = true
    ) {
        self.source = source
        self.length = length
        sourceLength = length
        self.pause = pause
        self.isRepeatable = isRepeatable
    }

    /// Creates content from bytes in memory.
    public static func bytes(_ bytes: [UInt8]) -> RequestContent {
        RequestContent(.bytes(bytes), length: Int64(bytes.count))
    }

    /// Creates content from text, encoded as UTF-8.
    public static func text(_ text: String) -> RequestContent { bytes(Array(text.utf8)) }

    /// Creates content from a file, which is read while it is sent, on a thread that may wait for
    /// the disk. The file must not change during that time: if it became shorter, the request fails
    /// with ``ClientError/Reason/contentFailed``; if it became longer, the original length is sent.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/contentFailed`` if there is no regular
    ///   file at the path.
    public static func file(_ path: String) throws(ClientError) -> RequestContent {
        do throws(MultipartError) {
            let length = try FileSource.length(of: path)
            return file(path, length: length)
        } catch {
            throw ClientError(.contentFailed, "\(error)", underlying: error)
        }
    }

    private static func file(_ path: String, length: Int64) -> RequestContent {
        RequestContent(.reader(isForeign: false) { try FileSource(path) }, length: length)
    }

    /// Creates content of type `multipart/form-data`, including its throttle. Set the request's
    /// Content-Type to the form's content type.
    public static func multipart(_ body: MultipartBody) -> RequestContent {
        RequestContent(
            .reader(isForeign: body.hasStreams) { body.makeReader() }, length: body.length,
            pause: body.throttle?.delay ?? .zero)
    }

    /// Creates content that is read from a source, on one of 32 threads of the runtime that may
    /// block; files are not read on these. A source that blocks occupies its thread even after the
    /// request has ended. ``stream(_:length:)`` does not use a thread.
    ///
    /// - Parameters:
    ///   - length: The exact length in bytes, if it is known.
    ///   - open: Opens the source at its beginning. It is called each time the content is sent.
    public static func source(
        length: Int64? = nil, open: @escaping @Sendable () throws -> any ByteSource
    ) -> RequestContent {
        RequestContent(.reader(isForeign: true, open), length: length)
    }

    /// Creates content from a sequence. The next element is requested when the server is ready to
    /// receive it.
    ///
    /// - Parameters:
    ///   - sequence: The sequence, which is read once. If a redirect requires the content again,
    ///     the task fails with ``ClientError/Reason/contentNotRepeatable``; see
    ///     ``stream(length:repeating:)``.
    ///   - length: The exact length in bytes, if it is known.
    public static func stream<Parts: AsyncSequence & Sendable>(
        _ sequence: Parts, length: Int64? = nil
    ) -> RequestContent where Parts.Element == [UInt8] {
        RequestContent(
            .stream { SequenceFeed(sequence) }, length: length, isRepeatable: false)
    }

    /// Creates content from a sequence that is created each time the content is sent: for the first
    /// request, and for redirects, challenges and retries that need it again. This corresponds to
    /// `URLSession(_:task:needNewBodyStream:)`.
    ///
    /// - Parameters:
    ///   - length: The exact length in bytes, if it is known and always the same.
    ///   - make: Creates the sequence. If it throws, the task fails with
    ///     ``ClientError/Reason/contentFailed``.
    public static func stream<Parts: AsyncSequence & Sendable>(
        length: Int64? = nil, repeating make: @escaping @Sendable () throws -> Parts
    ) -> RequestContent where Parts.Element == [UInt8] {
        RequestContent(.stream { SequenceFeed(making: make) }, length: length)
    }

    /// Creates content from the body of a serialized request.
    init?(_ body: RequestBody?) {
        switch body {
        case nil: return nil
        case .bytes(let bytes): self = .bytes(bytes)
        case .multipart(let body): self = .multipart(body)
        case .file(let path, let length): self = Self.file(path, length: length)
        }
    }

    private init(_ content: RequestContent, _ compression: RequestCompression) {
        (source, sourceLength) = (content.source, content.sourceLength)
        self.compression = compression
        length = nil
        (pause, isRepeatable) = (content.pause, content.isRepeatable)
    }

    /// The content, compressed: at once if it is in memory, otherwise while it is sent, so that its
    /// length is not known in advance.
    func compressed(
        by compression: RequestCompression
    ) throws(ContentCodingError) -> RequestContent {
        guard case .bytes(let bytes) = source else { return RequestContent(self, compression) }
        return .bytes(try ContentCodings.encode(bytes, as: compression.coding))
    }

    /// The whole content as it is before any compression, or `nil` if it is a stream.
    ///
    /// - Throws: What the source throws.
    package func collected() throws -> [UInt8]? {
        switch source {
        case .bytes(let bytes): return bytes
        case .stream: return nil
        case .reader(_, let open):
            var (source, bytes) = (try open(), [UInt8]())
            var part = [UInt8](repeating: 0, count: 256 << 10)
            while true {
                let count = try part.withUnsafeMutableBytes { try source.read(into: $0) }
                guard count > 0 else { return bytes }
                bytes += part[..<count]
            }
        }
    }

    /// How the end of the content is marked.
    var framing: RequestHeadText.Framing { length.map { .length($0) } ?? .chunked }

    /// The content in the form that the loop sends.
    func outgoing(on runtime: ClientRuntime) -> OutgoingContent {
        guard length != 0 else { return .none }
        let feed: any ContentFeed
        switch source {
        case .bytes(let bytes): return bytes.isEmpty ? .none : .bytes(bytes)
        case .reader(let isForeign, let open):
            feed = SourceFeed(
                length: sourceLength, pauseMilliseconds: pause.wholeMilliseconds,
                on: isForeign ? runtime.sources : runtime.readers, open: open)
        case .stream(let make): feed = MeasuredFeed(make(), length: sourceLength)
        }
        return .feed(compression.map { CompressingFeed(feed, $0) } ?? feed)
    }
}

extension Duration {
    /// The duration in milliseconds, rounded up, between 0 and 35,000 years.
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0 else { return 0 }
        let rest = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        return min(seconds, 1 << 40) * 1000 + max(0, rest)
    }
}
