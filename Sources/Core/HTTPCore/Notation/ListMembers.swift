/// Takes a comma-separated list of HTTP's without quoted strings apart (RFC 9110, section 5.6.1).
package struct ListMembers {
    private var position = 0
    private let end: Int

    /// A walk over a field's value.
    package init(_ value: Span<UInt8>) { end = value.count }

    /// The next member that is not empty, without the whitespace around it; nil at the end.
    package mutating func next(in value: Span<UInt8>) -> Range<Int>? {
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
