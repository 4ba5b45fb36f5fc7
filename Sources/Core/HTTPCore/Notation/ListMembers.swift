/// Splits a comma-separated HTTP list whose members are not quoted strings (RFC 9110 §5.6.1).
public struct ListMembers {
    private var position = 0
    private let end: Int

    /// Creates an iterator over a field's value.
    public init(_ value: Span<UInt8>) { end = value.count }

    /// The next nonempty member, without surrounding whitespace; `nil` at the end.
    public mutating func next(in value: Span<UInt8>) -> Range<Int>? {
        while position < end {
            var start = position
            while position < end, value[position] != UInt8(ascii: ",") { position += 1 }
            var last = position
            position += 1
            while start < last, ASCII.isWhitespace(value[start]) { start += 1 }
            while start < last, ASCII.isWhitespace(value[last - 1]) { last -= 1 }
            if start < last { return start..<last }
        }
        return nil
    }
}
