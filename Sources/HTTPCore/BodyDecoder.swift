/// What a decoder made of the next bytes of a body. Offsets count from the first byte given.
package enum BodyStep: Sendable, Equatable {
    /// `count` bytes of content begin at `offset`; go on after `consumed` bytes.
    case data(offset: Int, count: Int, consumed: Int)
    /// No content in what was given; go on after `consumed` bytes, with more.
    case needMore(consumed: Int)
    /// The body ended `consumed` bytes after the first byte given. Later calls say the same with
    /// nothing consumed.
    case end(consumed: Int)
}

/// Finds the content and the end of a body, whatever its framing.
package struct BodyDecoder: Sendable {
    /// Bytes of content found so far.
    package private(set) var contentBytes: UInt64 = 0
    /// Whether the end was reached. True from the start for `none` and a length of 0.
    package var isComplete: Bool { true }
    /// The chunked decoder, for its trailers; unused for other framings.
    package private(set) var chunked: ChunkedDecoder

    /// A decoder before the first byte of a body.
    package init(_ framing: BodyFraming, limits: ChunkedLimits = ChunkedLimits()) {
        chunked = ChunkedDecoder(limits: limits)
    }

    /// Reads on. Bytes that were consumed must not be given again.
    package mutating func decode(_ bytes: Span<UInt8>) throws(WireError) -> BodyStep {
        .needMore(consumed: 0)
    }

    /// The connection ended: fine when complete or `untilClose`, else `truncatedBody`.
    package mutating func endOfInput() throws(WireError) {}
}
