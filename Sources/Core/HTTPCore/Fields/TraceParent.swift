/// The number of a trace: 16 bytes, not all of them 0 (W3C Trace Context §3.2.2.3).
public struct TraceID: Sendable, Hashable {
    /// The first eight bytes.
    public let high: UInt64
    /// The last eight bytes.
    public let low: UInt64

    /// The number with these bytes.
    @inlinable
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The number in 32 lower-case hexadecimal digits.
    public var text: String {
        String(hexadecimal: high, digits: 16) + String(hexadecimal: low, digits: 16)
    }
}

/// The value of `traceparent`, the field by which a request says which trace it belongs to (W3C
/// Trace Context, level 1, §3.2):
///
///     version "-" trace-id "-" parent-id "-" trace-flags
///        00    -  32 hex    -   16 hex    -    2 hex
public struct TraceParent: Sendable, Equatable {
    /// The trace.
    public let trace: TraceID
    /// The span that the request was sent in; not 0.
    public let span: UInt64
    /// Whether the sender may have recorded the trace.
    public let isSampled: Bool

    /// A value with these parts.
    public init(trace: TraceID, span: UInt64, isSampled: Bool) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
    }

    /// The length of a value of version 00 in bytes.
    @usableFromInline static let count = 55

    /// Parses a value without white space around it; `nil` if it is invalid. Of a version after 00,
    /// what that would be is read, and something else may follow (§4.3): a hyphen, and more.
    public init?(_ value: Span<UInt8>) {
        guard value.count >= Self.count,
            value[2] == Self.hyphen, value[35] == Self.hyphen, value[52] == Self.hyphen,
            let version = Self.number(value, 0..<2), version != 0xFF,
            let high = Self.number(value, 3..<19), let low = Self.number(value, 19..<35),
            let span = Self.number(value, 36..<52), let flags = Self.number(value, 53..<55),
            high | low != 0, span != 0
        else { return nil }
        if value.count > Self.count {
            guard version != 0, value[Self.count] == Self.hyphen else { return nil }
        }
        self.init(
            trace: TraceID(high: high, low: low), span: span, isSampled: flags & 1 != 0)
    }

    private static var hyphen: UInt8 { UInt8(ascii: "-") }

    /// A number in hexadecimal digits; `nil` if there is anything else, such as an upper-case one.
    private static func number(_ value: Span<UInt8>, _ digits: Range<Int>) -> UInt64? {
        var number: UInt64 = 0
        for index in digits {
            let byte = value[index]
            switch byte {
            case 0x30...0x39: number = number << 4 | UInt64(byte - 0x30)
            case 0x61...0x66: number = number << 4 | UInt64(byte - 0x57)
            default: return nil
            }
        }
        return number
    }
}

extension HeadWriter {
    /// The number of bytes of a line of `traceparent`.
    public static let traceParentBytes = "traceparent: \r\n".utf8.count + TraceParent.count

    /// Appends the line of `traceparent`, version 00.
    public mutating func append(_ parent: TraceParent) {
        append("traceparent: 00-")
        append(digits: parent.trace.high)
        append(digits: parent.trace.low)
        append("-")
        append(digits: parent.span)
        append(parent.isSampled ? "-01\r\n" : "-00\r\n")
    }

    /// Appends 16 hexadecimal digits.
    private mutating func append(digits number: UInt64) {
        for shift in stride(from: 60, through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: number >> UInt64(shift)) & 15
            append(byte: digit &+ (digit < 10 ? 0x30 : 0x57))
        }
    }
}

/// The traces' fields of a request: which there are, and which are valid.
extension RequestHead {
    private static let traceParent = Array("traceparent".utf8)
    private static let traceState = Array("tracestate".utf8)
    private static let traceSketch = FieldNameSketch([traceParent, traceState])
    private static let traceParentSketch = FieldNameSketch([traceParent])

    /// What `traceparent` says; `nil` if there is none, or it is invalid, as it is if there are
    /// several. Without it, `tracestate` means nothing.
    public func traceParent(in bytes: Span<UInt8>) -> TraceParent? {
        guard fields.unknownNames.intersects(Self.traceParentSketch) else { return nil }
        var value: ByteRange?
        for index in 0..<fields.count where fields[index].id == .other {
            let name = bytes.extracting(fields[index].name.indices)
            guard name.equals(lowercase: Self.traceParent.span) else { continue }
            guard value == nil else { return nil }
            value = fields[index].value
        }
        return value.flatMap { TraceParent(bytes.extracting($0.indices)) }
    }

    /// Makes `traceparent` hop-by-hop, and `tracestate` too unless it is kept and valid.
    public mutating func endTrace(in bytes: Span<UInt8>, keepingState: Bool) {
        guard fields.unknownNames.intersects(Self.traceSketch) else { return }
        let keepsState = keepingState && hasValidTraceState(in: bytes)
        for index in 0..<fields.count where fields[index].id == .other {
            let name = bytes.extracting(fields[index].name.indices)
            if name.equals(lowercase: Self.traceParent.span)
                || !keepsState && name.equals(lowercase: Self.traceState.span)
            {
                fields.nominate(index)
            }
        }
    }

    /// Whether the lines of `tracestate` are a list of at most 32 members (§3.3).
    private func hasValidTraceState(in bytes: Span<UInt8>) -> Bool {
        var members = TraceStateMembers()
        for index in 0..<fields.count where fields[index].id == .other {
            let name = bytes.extracting(fields[index].name.indices)
            guard name.equals(lowercase: Self.traceState.span) else { continue }
            guard members.add(bytes.extracting(fields[index].value.indices)) else { return false }
        }
        return true
    }
}

/// The members of `tracestate` (W3C Trace Context, level 1, §3.3.1), which are checked but mean
/// nothing here: `key=value`, where a key may be `tenant@system`.
struct TraceStateMembers {
    /// The most of them in a request.
    static let limit = 32

    private var count = 0

    /// Adds those of a line. Returns whether they are valid, and not too many.
    mutating func add(_ line: Span<UInt8>) -> Bool {
        var list = ListMembers(line)
        while let member = list.next(in: line) {
            count += 1
            guard count <= Self.limit, Self.isValid(line.extracting(member)) else { return false }
        }
        return true
    }

    private static func isValid(_ member: Span<UInt8>) -> Bool {
        var end = 0
        while end < member.count, member[end] != UInt8(ascii: "=") { end += 1 }
        guard end < member.count else { return false }
        return isKey(member.extracting(0..<end))
            && isValue(member.extracting((end + 1)..<member.count))
    }

    /// `lcalpha 0*255(keychar)`, or `(lcalpha / DIGIT) 0*240(keychar) "@" lcalpha 0*13(keychar)`.
    private static func isKey(_ key: Span<UInt8>) -> Bool {
        guard let at = key.indices.first(where: { key[$0] == UInt8(ascii: "@") }) else {
            return isName(key, atMost: 256, mayBeginWithDigit: false)
        }
        return isName(key.extracting(0..<at), atMost: 241, mayBeginWithDigit: true)
            && isName(key.extracting((at + 1)..<key.count), atMost: 14, mayBeginWithDigit: false)
    }

    private static func isName(
        _ name: Span<UInt8>, atMost limit: Int, mayBeginWithDigit: Bool
    ) -> Bool {
        guard (1...limit).contains(name.count) else { return false }
        let isFirstValid: Bool
        switch name[0] {
        case UInt8(ascii: "a")...UInt8(ascii: "z"): isFirstValid = true
        case UInt8(ascii: "0")...UInt8(ascii: "9"): isFirstValid = mayBeginWithDigit
        default: isFirstValid = false
        }
        return isFirstValid
            && name.indices.allSatisfy { index in
                switch name[index] {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "*"), UInt8(ascii: "/"):
                    true
                default: false
                }
            }
    }

    /// `0*255(chr) nblk-chr`: visible ASCII and spaces without `,` and `=`; no space at the end,
    /// which the list's members do not have anyway.
    private static func isValue(_ value: Span<UInt8>) -> Bool {
        guard (1...256).contains(value.count) else { return false }
        return value.indices.allSatisfy { index in
            let byte = value[index]
            return (0x20...0x7E).contains(byte) && byte != UInt8(ascii: ",")
                && byte != UInt8(ascii: "=")
        }
    }
}
