public import Serialization

/// What is sent with a request.
public struct RequestContent: Sendable {
    enum Source: Sendable {
        case bytes([UInt8])
        /// - Parameter isForeign: It may wait for anything, and not just for the disk.
        case reader(isForeign: Bool, @Sendable () throws -> any ByteSource)
        case stream(@Sendable () -> any ContentFeed)
    }

    let source: Source
    /// In bytes; nil: not known beforehand, so that it is sent in chunks (RFC 9112 section 7.1).
    public let length: Int64?
    /// How long to wait after each part.
    let pause: Duration
    /// It can be sent from its beginning again, as a redirect may ask.
    public let isRepeatable: Bool

    private init(
        _ source: Source, length: Int64?, pause: Duration = .zero, isRepeatable: Bool = true
    ) {
        self.source = source
        self.length = length
        self.pause = pause
        self.isRepeatable = isRepeatable
    }

    /// Content in memory.
    public static func bytes(_ bytes: [UInt8]) -> RequestContent {
        RequestContent(.bytes(bytes), length: Int64(bytes.count))
    }

    /// Text in UTF-8.
    public static func text(_ text: String) -> RequestContent { bytes(Array(text.utf8)) }

    /// A file, read while it is sent, on a thread that may wait for the disk. It must not change
    /// meanwhile: one that became shorter fails with ``ClientError/Reason/contentFailed``, of one
    /// that became longer what was there is sent.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/contentFailed`` where there is no
    ///   regular file of that name.
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

    /// A form of type `multipart/form-data`; its throttle is kept. The type of the content is the
    /// form's, and to be put into the request's Content-Type.
    public static func multipart(_ body: MultipartBody) -> RequestContent {
        RequestContent(
            .reader(isForeign: body.hasStreams) { body.makeReader() }, length: body.length,
            pause: body.throttle?.delay ?? .zero)
    }

    /// Content that is read from a source, on a thread of the runtime's that may wait: one of 32,
    /// on which no files are read. A source that gives nothing holds its thread until it does,
    /// though the request has ended; ``stream(_:length:)`` takes none.
    ///
    /// - Parameters:
    ///   - length: In bytes, if it is known: it must come to so many.
    ///   - open: Begins it anew; called each time that it is sent.
    public static func source(
        length: Int64? = nil, open: @escaping @Sendable () throws -> any ByteSource
    ) -> RequestContent {
        RequestContent(.reader(isForeign: true, open), length: length)
    }

    /// Content that comes from a sequence: the next part is asked for when the server takes it.
    ///
    /// - Parameters:
    ///   - sequence: Read once. Where a redirect asks for it again, the task fails with
    ///     ``ClientError/Reason/contentNotRepeatable``; see ``stream(length:repeating:)``.
    ///   - length: In bytes, if it is known: it must come to so many.
    public static func stream<Parts: AsyncSequence & Sendable>(
        _ sequence: Parts, length: Int64? = nil
    ) -> RequestContent where Parts.Element == [UInt8] {
        RequestContent(
            .stream { SequenceFeed(sequence) }, length: length, isRepeatable: false)
    }

    /// Content that comes from a sequence, which is made anew each time that it is sent: for the
    /// first request, and for redirects, challenges and retries that ask for it again. What
    /// `URLSession(_:task:needNewBodyStream:)` is for.
    ///
    /// - Parameters:
    ///   - length: In bytes, if it is known: it must come to so many each time.
    ///   - make: Makes the sequence. What it throws fails the task with
    ///     ``ClientError/Reason/contentFailed``.
    public static func stream<Parts: AsyncSequence & Sendable>(
        length: Int64? = nil, repeating make: @escaping @Sendable () throws -> Parts
    ) -> RequestContent where Parts.Element == [UInt8] {
        RequestContent(.stream { SequenceFeed(making: make) }, length: length)
    }

    /// The content of a request that a serializer has made.
    init?(_ body: RequestBody?) {
        switch body {
        case nil: return nil
        case .bytes(let bytes): self = .bytes(bytes)
        case .multipart(let body): self = .multipart(body)
        case .file(let path, let length): self = Self.file(path, length: length)
        }
    }

    /// How its end is told.
    var framing: RequestHeadText.Framing { length.map { .length($0) } ?? .chunked }

    /// What the loop sends.
    func outgoing(on runtime: ClientRuntime) -> OutgoingContent {
        guard length != 0 else { return .none }
        switch source {
        case .bytes(let bytes): return bytes.isEmpty ? .none : .bytes(bytes)
        case .reader(let isForeign, let open):
            return .feed(
                SourceFeed(
                    length: length, pauseMilliseconds: pause.wholeMilliseconds,
                    on: isForeign ? runtime.sources : runtime.readers, open: open))
        case .stream(let make):
            return .feed(MeasuredFeed(make(), length: length))
        }
    }
}

extension Duration {
    /// In milliseconds, rounded up, between 0 and 35,000 years.
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0 else { return 0 }
        let rest = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        return min(seconds, 1 << 40) * 1000 + max(0, rest)
    }
}
