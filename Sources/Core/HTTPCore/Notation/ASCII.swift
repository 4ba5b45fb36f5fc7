/// Tests of single bytes of text. The package has each of these once; a class of one protocol's
/// grammar stays with that protocol (`ByteClass`).
public enum ASCII {
    /// The byte, with `A` to `Z` lowercased and all others unchanged.
    @inlinable @inline(__always)
    public static func lowercased(_ byte: UInt8) -> UInt8 {
        isUppercase(byte) ? byte | 0x20 : byte
    }

    /// Whether `byte` is one of `A` to `Z`.
    @inlinable @inline(__always)
    public static func isUppercase(_ byte: UInt8) -> Bool { byte &- 0x41 < 26 }

    /// Whether `byte` is a decimal digit.
    @inlinable @inline(__always)
    public static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    /// Whether `byte` is a letter of either case.
    @inlinable @inline(__always)
    public static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }

    /// Whether `byte` is a space or a tab: the whitespace of HTTP (RFC 9110 §5.6.3) and of PEM.
    @inlinable @inline(__always)
    public static func isWhitespace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Whether `byte` may be in a token (RFC 9110 §5.6.2). The code that every message passes
    /// through uses a table instead (`ByteClass`), which a test compares with this function.
    @inlinable
    public static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "!"), UInt8(ascii: "#")...UInt8(ascii: "'"), UInt8(ascii: "*"),
            UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^")...UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: isLetter(byte) || isDigit(byte)
        }
    }

    /// The value of a hexadecimal digit of either case; `nil` for any other byte.
    @inlinable @inline(__always)
    public static func hexValue(_ byte: UInt8) -> UInt8? {
        let digit = byte &- 0x30
        if digit < 10 { return digit }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? letter &+ 10 : nil
    }

    /// The lower-case hexadecimal digit for the low four bits of `value`.
    @inlinable @inline(__always)
    public static func hexDigit(_ value: UInt8) -> UInt8 {
        let value = value & 15
        return value < 10 ? 0x30 &+ value : 0x57 &+ value
    }

    /// The upper-case hexadecimal digit for the low four bits of `value`.
    @inlinable @inline(__always)
    public static func capitalHexDigit(_ value: UInt8) -> UInt8 {
        let value = value & 15
        return value < 10 ? 0x30 &+ value : 0x37 &+ value
    }
}

extension StringProtocol {
    /// The text with `A` to `Z` lowercased. No other character is mapped to one of these letters
    /// (by Unicode's rules the Kelvin sign would become `k`), because the text is compared with
    /// ASCII.
    public var lowercasedASCII: String {
        let hasUppercase =
            utf8.withContiguousStorageIfAvailable { $0.contains(where: ASCII.isUppercase) }
            ?? utf8.contains(where: ASCII.isUppercase)
        guard hasUppercase else { return String(self) }
        return String(decoding: utf8.lazy.map(ASCII.lowercased), as: UTF8.self)
    }
}

extension BidirectionalCollection where Element == UInt8 {
    /// The bytes without leading and trailing spaces and tabs.
    public var withoutOuterSpace: SubSequence {
        var (start, end) = (startIndex, endIndex)
        while start < end, ASCII.isWhitespace(self[start]) { formIndex(after: &start) }
        while start < end {
            let last = index(before: end)
            guard ASCII.isWhitespace(self[last]) else { break }
            end = last
        }
        return self[start..<end]
    }
}

extension StringProtocol where SubSequence == Substring {
    /// The text without leading and trailing spaces and tabs, even if a combining mark follows one.
    public var withoutOuterSpace: Substring {
        let text = self[...]
        let bytes = text.utf8.withoutOuterSpace
        return text[bytes.startIndex..<bytes.endIndex]
    }
}
