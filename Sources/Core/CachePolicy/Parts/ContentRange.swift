import HTTPCore

/// The value of a Content-Range that says which bytes of how many follow (RFC 9110 §14.4).
///
///     Content-Range = "bytes" SP first-pos "-" last-pos "/" complete-length
public struct ContentRange: Sendable, Equatable {
    /// The position of the first byte.
    public let first: UInt64
    /// The position of the last byte.
    public let last: UInt64
    /// The number of bytes of the whole representation.
    public let complete: UInt64

    /// The number of bytes in the range.
    public var count: UInt64 { last - first + 1 }

    /// `nil` for anything else: another unit, an unknown length, an unsatisfied range; and for
    /// lengths that no content can have, of 2^63 bytes or more.
    public init?(_ value: ByteRange, in bytes: Span<UInt8>) {
        let unit = ByteRange(start: value.start, count: min(6, value.count))
        guard bytes.holds(lowercase: "bytes ", at: unit) else { return nil }
        var position = Int(unit.end)
        let end = Int(value.end)
        func number(endingAt mark: UInt8?) -> UInt64? {
            let start = position
            while position < end, ASCII.isDigit(bytes[position]) { position += 1 }
            guard mark == nil ? position == end : position < end && bytes[position] == mark else {
                return nil
            }
            defer { position += 1 }
            return DecimalNumber.parse(ByteRange(from: start, to: position), in: bytes)
        }
        guard let first = number(endingAt: UInt8(ascii: "-")),
            let last = number(endingAt: UInt8(ascii: "/")), let complete = number(endingAt: nil),
            first <= last, last < complete, complete <= UInt64(Int64.max)
        else { return nil }
        (self.first, self.last, self.complete) = (first, last, complete)
    }
}
