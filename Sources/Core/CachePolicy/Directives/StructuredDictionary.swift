import HTTPCore

/// Splits one field line into the members of a Dictionary (RFC 8941 §3.2, §4.2.2).
///
///     sf-dictionary = dict-member *( OWS "," OWS dict-member )
///     dict-member   = key ( parameters / "=" ( sf-item / inner-list ) )
///
/// Everything is validated, but only Booleans and Integers are returned as values, because cache
/// directives can have no others.
///
/// The package that writes the gateway's own structured fields (RawStructuredFieldValues) has a
/// parser, too. It keeps the members in a list that it searches for every key, so its time is
/// quadratic in their number: 32 KiB of keys, which is a head that a server may send, took it 90
/// ms, while the worker's other connections waited. Here each byte is read once, and nothing is
/// allocated.
struct StructuredDictionary {
    /// A member's value.
    enum Value: Equatable {
        case boolean(Bool)
        case integer(Int64)
        /// A value of another type.
        case other
    }

    /// One step through the line.
    enum Step {
        case member(key: ByteRange, Value)
        case end
        case malformed
    }

    private var position: Int
    private let end: Int
    private var isFirst = true

    init(_ value: ByteRange) {
        position = Int(value.start)
        end = Int(value.end)
    }

    /// The next member.
    mutating func next(in bytes: Span<UInt8>) -> Step {
        skipSpace(in: bytes)
        if position == end, isFirst { return .end }
        if !isFirst {
            if position == end { return .end }
            guard take(UInt8(ascii: ","), in: bytes) else { return .malformed }
            skipSpace(in: bytes)
        }
        isFirst = false
        guard let key = takeKey(in: bytes) else { return .malformed }
        var value = Value.boolean(true)
        if take(UInt8(ascii: "="), in: bytes) {
            guard let given = takeMember(in: bytes) else { return .malformed }
            value = given
        }
        return takeParameters(in: bytes) ? .member(key: key, value) : .malformed
    }

    private mutating func skipSpace(in bytes: Span<UInt8>) {
        while position < end, ASCII.isWhitespace(bytes[position]) { position += 1 }
    }

    private mutating func take(_ byte: UInt8, in bytes: Span<UInt8>) -> Bool {
        guard position < end, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    /// Skips the bytes for which `isPart` is true; returns how many.
    private mutating func skip(in bytes: Span<UInt8>, while isPart: (UInt8) -> Bool) -> Int {
        let start = position
        while position < end, isPart(bytes[position]) { position += 1 }
        return position - start
    }

    private static func isLowerCase(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "a") < 26 }

    private mutating func takeKey(in bytes: Span<UInt8>) -> ByteRange? {
        guard position < end, Self.isLowerCase(bytes[position]) || bytes[position] == 0x2A else {
            return nil
        }
        let start = position
        _ = skip(in: bytes) {
            Self.isLowerCase($0) || ASCII.isDigit($0) || $0 == UInt8(ascii: "_")
                || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "*")
        }
        return ByteRange(from: start, to: position)
    }

    private mutating func takeParameters(in bytes: Span<UInt8>) -> Bool {
        while take(UInt8(ascii: ";"), in: bytes) {
            _ = skip(in: bytes) { $0 == 0x20 }
            guard takeKey(in: bytes) != nil else { return false }
            if take(UInt8(ascii: "="), in: bytes), takeItem(in: bytes) == nil { return false }
        }
        return true
    }

    private mutating func takeMember(in bytes: Span<UInt8>) -> Value? {
        guard take(UInt8(ascii: "("), in: bytes) else { return takeItem(in: bytes) }
        while true {
            let spaces = skip(in: bytes) { $0 == 0x20 }
            if take(UInt8(ascii: ")"), in: bytes) { return .other }
            let isFirst = bytes[position - spaces - 1] == UInt8(ascii: "(")
            guard spaces > 0 || isFirst, takeItem(in: bytes) != nil, takeParameters(in: bytes)
            else { return nil }
        }
    }

    private mutating func takeItem(in bytes: Span<UInt8>) -> Value? {
        guard position < end else { return nil }
        switch bytes[position] {
        case UInt8(ascii: "\""): return takeString(in: bytes)
        case UInt8(ascii: ":"): return takeByteSequence(in: bytes)
        case UInt8(ascii: "?"):
            position += 1
            if take(UInt8(ascii: "1"), in: bytes) { return .boolean(true) }
            return take(UInt8(ascii: "0"), in: bytes) ? .boolean(false) : nil
        case let byte where byte == UInt8(ascii: "-") || ASCII.isDigit(byte):
            return takeNumber(in: bytes)
        case let byte where ASCII.isLetter(byte) || byte == UInt8(ascii: "*"):
            _ = skip(in: bytes) {
                ByteClass.isToken($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/")
            }
            return .other
        default: return nil
        }
    }

    private mutating func takeNumber(in bytes: Span<UInt8>) -> Value? {
        let isNegative = take(UInt8(ascii: "-"), in: bytes)
        let start = position
        let digits = skip(in: bytes, while: ASCII.isDigit)
        guard (1...15).contains(digits) else { return nil }
        if take(UInt8(ascii: "."), in: bytes) {
            let fraction = skip(in: bytes, while: ASCII.isDigit)
            return digits <= 12 && (1...3).contains(fraction) ? .other : nil
        }
        var number: Int64 = 0
        for index in start..<position { number = number * 10 + Int64(bytes[index] - 0x30) }
        return .integer(isNegative ? -number : number)
    }

    private mutating func takeString(in bytes: Span<UInt8>) -> Value? {
        position += 1
        while position < end {
            let byte = bytes[position]
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return .other
            case UInt8(ascii: "\\"):
                guard take(UInt8(ascii: "\""), in: bytes) || take(UInt8(ascii: "\\"), in: bytes)
                else { return nil }
            case 0x20...0x7E: break
            default: return nil
            }
        }
        return nil
    }

    private mutating func takeByteSequence(in bytes: Span<UInt8>) -> Value? {
        position += 1
        _ = skip(in: bytes) {
            ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == UInt8(ascii: "+")
                || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "=")
        }
        return take(UInt8(ascii: ":"), in: bytes) ? .other : nil
    }
}
