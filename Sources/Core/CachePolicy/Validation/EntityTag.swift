import HTTPCore

/// Entity tags and their comparison (RFC 9110 §8.8.3).
///
///     entity-tag = [ "W/" ] DQUOTE *etagc DQUOTE
///
/// Some servers send tags without quotes. Such a value is treated as a strong tag that equals only
/// the same bytes, so that validation works for these servers, too.
enum EntityTag {
    /// Whether the tag is weak.
    static func isWeak(_ tag: ByteRange, in bytes: Span<UInt8>) -> Bool {
        tag.count > 3 && bytes.holds("W/\"", at: ByteRange(start: tag.start, count: 3))
    }

    /// The tag without its weakness prefix.
    static func opaque(_ tag: ByteRange, in bytes: Span<UInt8>) -> ByteRange {
        isWeak(tag, in: bytes) ? ByteRange(start: tag.start + 2, count: tag.count - 2) : tag
    }

    /// Weak comparison: the opaque parts are equal.
    static func weaklyMatches(
        _ left: ByteRange, in leftBytes: Span<UInt8>, _ right: ByteRange,
        in rightBytes: Span<UInt8>
    ) -> Bool {
        areSame(
            opaque(left, in: leftBytes), in: leftBytes, opaque(right, in: rightBytes),
            in: rightBytes)
    }

    /// Strong comparison: both tags are strong and equal.
    static func stronglyMatches(
        _ left: ByteRange, in leftBytes: Span<UInt8>, _ right: ByteRange,
        in rightBytes: Span<UInt8>
    ) -> Bool {
        !isWeak(left, in: leftBytes) && areSame(left, in: leftBytes, right, in: rightBytes)
    }

    /// Whether two ranges hold the same bytes.
    static func areSame(
        _ left: ByteRange, in leftBytes: Span<UInt8>, _ right: ByteRange,
        in rightBytes: Span<UInt8>
    ) -> Bool {
        guard left.count == right.count else { return false }
        for offset in 0..<Int(left.count)
        where leftBytes[Int(left.start) + offset] != rightBytes[Int(right.start) + offset] {
            return false
        }
        return true
    }
}

/// An iterator over the members of an If-None-Match or If-Match line.
///
///     If-None-Match = "*" / #entity-tag
public struct EntityTagList {
    private var position: Int
    private let end: Int

    /// Creates an iterator over a field's value.
    public init(_ value: ByteRange) {
        position = Int(value.start)
        end = Int(value.end)
    }

    /// The next member, which may be `*`; `nil` at the end.
    public mutating func next(in bytes: Span<UInt8>) -> ByteRange? {
        while position < end,
            ASCII.isWhitespace(bytes[position]) || bytes[position] == UInt8(ascii: ",")
        {
            position += 1
        }
        guard position < end else { return nil }
        let start = position
        let quote = bytes.holds("W/\"", at: prefix(3)) ? position + 2 : position
        if bytes[quote] == UInt8(ascii: "\"") {
            // An entity tag has no escapes: it ends at the next quote.
            position = quote + 1
            while position < end, bytes[position] != UInt8(ascii: "\"") { position += 1 }
            position = min(position + 1, end)
            return ByteRange(from: start, to: position)
        }
        while position < end, bytes[position] != UInt8(ascii: ","),
            !ASCII.isWhitespace(bytes[position])
        {
            position += 1
        }
        return ByteRange(from: start, to: position)
    }

    private func prefix(_ count: Int) -> ByteRange {
        ByteRange(from: position, to: min(position + count, end))
    }
}
