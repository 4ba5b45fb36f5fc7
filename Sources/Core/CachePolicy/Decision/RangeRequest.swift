import HTTPCore

/// One range of a Range field (RFC 9110 §14.2). Several are a ``MultipartRanges``.
///
///     Range        = bytes-unit "=" range-set
///     range-spec   = first-pos "-" [ last-pos ] / "-" suffix-length
///
/// Anything else (another unit, a syntax error) is answered with the whole representation, as §14.2
/// allows.
public enum RangeRequest: Equatable {
    case ignored
    /// `first-[last]`.
    case from(first: UInt64, last: UInt64?)
    /// `-count`: this many bytes from the end.
    case suffix(count: UInt64)

    init(_ value: ByteRange, in bytes: Span<UInt8>) {
        let unit = ByteRange(start: value.start, count: min(6, value.count))
        guard bytes.holds(lowercase: "bytes=", at: unit) else {
            self = .ignored
            return
        }
        self.init(spec: ByteRange(from: Int(unit.end), to: Int(value.end)), in: bytes)
    }

    /// One member of a range set.
    init(spec: ByteRange, in bytes: Span<UInt8>) {
        var start = Int(spec.start)
        var end = Int(spec.end)
        while start < end, ASCII.isWhitespace(bytes[start]) { start += 1 }
        while end > start, ASCII.isWhitespace(bytes[end - 1]) { end -= 1 }
        var dash = start
        while dash < end, ASCII.isDigit(bytes[dash]) { dash += 1 }
        guard dash < end, bytes[dash] == UInt8(ascii: "-") else {
            self = .ignored
            return
        }
        let first = ByteRange(from: start, to: dash)
        let last = ByteRange(from: dash + 1, to: end)
        self = Self.range(first: first, last: last, in: bytes) ?? .ignored
    }

    /// Numbers that exceed 64 bits become the largest number: they are past the end of every body.
    private static func range(
        first: ByteRange, last: ByteRange, in bytes: Span<UInt8>
    ) -> RangeRequest? {
        func number(_ range: ByteRange) -> UInt64? {
            for index in range.indices where !ASCII.isDigit(bytes[index]) { return nil }
            return DecimalNumber.parse(range, in: bytes) ?? .max
        }
        if first.isEmpty { return last.isEmpty ? nil : number(last).map { .suffix(count: $0) } }
        guard let from = number(first) else { return nil }
        if last.isEmpty { return .from(first: from, last: nil) }
        guard let to = number(last), to >= from else { return nil }
        return .from(first: from, last: to)
    }

    /// The position of the first byte that a Range field asks for; `nil` if that depends on the
    /// length, or it asks for several ranges or in another unit.
    public static func firstPosition(_ value: ByteRange, in bytes: Span<UInt8>) -> UInt64? {
        if case .from(let first, _) = RangeRequest(value, in: bytes) { first } else { nil }
    }

    /// What part of a body is sent.
    enum Selection: Equatable {
        case whole
        case bytes(first: UInt64, last: UInt64)
        case unsatisfiable
    }

    /// The part of a body of `complete` bytes that the range selects (RFC 9110 §14.1.2).
    func selection(of complete: UInt64) -> Selection {
        switch self {
        case .ignored: .whole
        case .from(let first, _) where first >= complete: .unsatisfiable
        case .from(let first, let last):
            .bytes(first: first, last: min(last ?? .max, complete - 1))
        case .suffix(count: 0): .unsatisfiable
        // A suffix of an empty body is the empty body, which Content-Range cannot express.
        case .suffix where complete == 0: .whole
        case .suffix(let count):
            .bytes(first: complete - min(count, complete), last: complete - 1)
        }
    }
}
