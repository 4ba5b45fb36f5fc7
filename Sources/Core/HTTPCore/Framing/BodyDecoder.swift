/// What a decoder made of the next bytes of a body. Offsets count from the first byte given.
package enum BodyStep: Sendable, Equatable {
    /// `count` bytes of content begin at `offset`; go on after `consumed` bytes.
    case data(offset: Int, count: Int, consumed: Int)
    /// No content in what was given, all of which is consumed; go on with more.
    case needMore(consumed: Int)
    /// The body ended `consumed` bytes after the first byte given. Later calls say the same with
    /// nothing consumed.
    case end(consumed: Int)
}

/// Finds the content and the end of a body, whatever its framing.
///
/// A body whose end is known with its last byte of content says so at once in ``isComplete``; the
/// next call answers `end` without consuming anything.
package struct BodyDecoder: Sendable {
    private enum Mode: UInt8 {
        case length, chunked, untilClose, ended
    }

    private var mode: Mode
    /// What gathering has still to tell.
    var failure: WireError?
    private var remaining: UInt64 = 0
    /// Bytes of content found so far.
    package private(set) var contentBytes: UInt64 = 0
    /// The chunked decoder, for its trailers; unused for other framings.
    package private(set) var chunked: ChunkedDecoder

    /// A decoder before the first byte of a body.
    ///
    /// - Parameter isUserAgent: as of ``ResponseContext``.
    package init(
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

    /// Whether the end was reached. True from the start for `none` and a length of 0.
    package var isComplete: Bool { mode == .ended }

    /// Whether the content is in chunks, and has not ended.
    var isChunked: Bool { mode == .chunked }

    /// Reads on. Bytes that were consumed must not be given again. An error is final.
    package mutating func decode(_ bytes: Span<UInt8>) throws(WireError) -> BodyStep {
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

    /// The connection ended: fine when complete or `untilClose`, else `truncatedBody`.
    package mutating func endOfInput() throws(WireError) {
        switch mode {
        case .ended, .untilClose: mode = .ended
        case .length, .chunked: throw .truncatedBody
        }
    }
}
