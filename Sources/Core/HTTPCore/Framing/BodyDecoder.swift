/// What a decoder found in the next bytes of a body. Offsets count from the first byte given.
public enum BodyStep: Sendable, Equatable {
    /// `count` bytes of content begin at `offset`; continue after `consumed` bytes.
    case data(offset: Int, count: Int, consumed: Int)
    /// The bytes held no content and were all consumed; continue with more.
    case needMore(consumed: Int)
    /// The body ended `consumed` bytes after the first byte given. Later calls return the same with
    /// nothing consumed.
    case end(consumed: Int)
}

/// Finds the content and the end of a body, whatever its framing.
///
/// If the end of a body is known with its last byte of content, ``isComplete`` is true at once; the
/// next call returns `end` without consuming anything.
public struct BodyDecoder: Sendable {
    @usableFromInline enum Mode: UInt8, Sendable {
        case length, chunked, untilClose, ended
    }

    @usableFromInline var mode: Mode
    /// An error that gathering found and has yet to throw.
    var failure: WireError?
    private var remaining: UInt64 = 0
    /// The number of content bytes so far.
    public private(set) var contentBytes: UInt64 = 0
    /// The chunked decoder, for its trailers; unused for other framings.
    public private(set) var chunked: ChunkedDecoder

    /// Creates a decoder for a body of which nothing has been read.
    ///
    /// - Parameter isUserAgent: see ``ResponseContext``.
    public init(
        _ framing: BodyFraming, limits: ChunkedLimits = ChunkedLimits(), isUserAgent: Bool = false
    ) {
        chunked = ChunkedDecoder(limits: limits, isUserAgent: isUserAgent)
        switch framing {
        case .none, .length(0): mode = .ended
        case .length(let count):
            mode = .length
            remaining = count
        case .chunked: mode = .chunked
        case .untilClose: mode = .untilClose
        }
    }

    /// Whether the end was reached. True from the start for `none` and for a length of 0.
    @inlinable public var isComplete: Bool { mode == .ended }

    /// Whether the content is chunked and has not ended.
    var isChunked: Bool { mode == .chunked }

    /// Decodes more bytes. Bytes that were consumed must not be passed again. An error is final.
    public mutating func decode(_ bytes: Span<UInt8>) throws(WireError) -> BodyStep {
        switch mode {
        case .ended:
            return .end(consumed: 0)
        case .length:
            guard bytes.count > 0 else { return .needMore(consumed: 0) }
            let count = Int(min(remaining, UInt64(bytes.count)))
            remaining &-= UInt64(count)
            contentBytes &+= UInt64(count)
            if remaining == 0 { mode = .ended }
            return .data(offset: 0, count: count, consumed: count)
        case .chunked:
            let step = try chunked.decode(bytes)
            switch step {
            case .data(_, let count, _): contentBytes &+= UInt64(count)
            case .end: mode = .ended
            case .needMore: break
            }
            return step
        case .untilClose:
            guard bytes.count > 0 else { return .needMore(consumed: 0) }
            contentBytes &+= UInt64(bytes.count)
            return .data(offset: 0, count: bytes.count, consumed: bytes.count)
        }
    }

    /// Reports that the connection ended: correct if the body is complete or `untilClose`,
    /// otherwise `truncatedBody`.
    public mutating func endOfInput() throws(WireError) {
        switch mode {
        case .ended, .untilClose: mode = .ended
        case .length, .chunked: throw .truncatedBody
        }
    }
}
