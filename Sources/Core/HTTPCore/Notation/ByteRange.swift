/// A range of bytes in one head, as offsets from the head's first byte.
///
/// Heads are kept and forwarded as bytes; every part that a parser finds is one of these. 32 bits
/// are enough because no head may be larger than ``HeadLimits/headBytes``.
public struct ByteRange: Sendable, Equatable {
    /// Offset of the first byte.
    public var start: UInt32
    /// Number of bytes.
    public var count: UInt32

    /// A range of `count` bytes from `start`.
    @inlinable @inline(__always)
    public init(start: UInt32 = 0, count: UInt32 = 0) {
        self.start = start
        self.count = count
    }

    /// The range from `start` up to, not including, `end`; `0 <= start <= end < 2^32`.
    @inlinable @inline(__always)
    public init(from start: Int, to end: Int) {
        assert(0 <= start && start <= end && end <= Int(UInt32.max))
        self.start = UInt32(truncatingIfNeeded: start)
        self.count = UInt32(truncatingIfNeeded: end &- start)
    }

    /// Offset one past the last byte.
    @inlinable @inline(__always)
    public var end: UInt32 { start &+ count }

    /// Whether the range is empty.
    @inlinable @inline(__always)
    public var isEmpty: Bool { count == 0 }

    /// The same range as indices of the head's bytes, for `Span.extracting(_:)`.
    @inlinable @inline(__always)
    public var indices: Range<Int> {
        Range(uncheckedBounds: (Int(start), Int(start) &+ Int(count)))
    }
}

extension Span where Element == UInt8 {
    /// Whether the bytes in `range` equal `text`, case-sensitively.
    public func holds(_ text: StaticString, at range: ByteRange) -> Bool {
        extracting(range.indices).equals(text)
    }

    /// Whether the bytes in `range` equal `lowercase`, ignoring ASCII case. `lowercase` must be
    /// written in lower case.
    public func holds(lowercase: StaticString, at range: ByteRange) -> Bool {
        extracting(range.indices).equals(lowercase: lowercase)
    }

    /// The bytes in `range` as text, for logs and messages; not for hot paths.
    public func text(at range: ByteRange) -> String {
        let part = extracting(range.indices)
        return part.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }
}
