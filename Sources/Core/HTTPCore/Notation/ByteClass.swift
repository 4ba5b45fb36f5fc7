/// The classes of bytes that HTTP's grammar is made of, as one table of bits (RFC 9110 §5.6).
public enum ByteClass {
    /// `tchar`: the bytes of a token, and so of methods and field names.
    @usableFromInline static let token: UInt8 = 1
    /// Bytes of a label of a host name: letters, digits, `-` and `_`.
    @usableFromInline static let hostLabel: UInt8 = 2
    /// `0` to `9`.
    @usableFromInline static let digit: UInt8 = 4
    /// Hexadecimal digits of either case.
    @usableFromInline static let hexDigit: UInt8 = 8
    /// Bytes of a request target: visible ASCII except `#`.
    @usableFromInline static let target: UInt8 = 16
    /// Bytes of a field value: visible ASCII, space, tab, and 0x80 to 0xFF (obs-text).
    @usableFromInline static let fieldValue: UInt8 = 32

    /// The classes of every byte value, or-ed together. A test recomputes it from the definitions.
    @usableFromInline static let table: InlineArray<256, UInt8> = [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        32, 49, 48, 33, 49, 49, 49, 49, 48, 48, 49, 49, 48, 51, 49, 48,
        63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 48, 48, 48, 48, 48, 48,
        48, 59, 59, 59, 59, 59, 59, 51, 51, 51, 51, 51, 51, 51, 51, 51,
        51, 51, 51, 51, 51, 51, 51, 51, 51, 51, 51, 48, 48, 48, 49, 51,
        49, 59, 59, 59, 59, 59, 59, 51, 51, 51, 51, 51, 51, 51, 51, 51,
        51, 51, 51, 51, 51, 51, 51, 51, 51, 51, 51, 48, 49, 48, 49, 0,
        32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
    ]

    @inlinable @inline(__always)
    static func isMember(_ byte: UInt8, of mask: UInt8) -> Bool {
        table[unchecked: Int(byte)] & mask != 0
    }

    /// Whether `byte` may be in a token (RFC 9110 §5.6.2).
    @inlinable @inline(__always)
    public static func isToken(_ byte: UInt8) -> Bool { isMember(byte, of: token) }

    /// Whether `byte` is a hexadecimal digit.
    @inlinable @inline(__always)
    public static func isHexDigit(_ byte: UInt8) -> Bool { isMember(byte, of: hexDigit) }

    /// Whether `byte` may be in a field value (RFC 9110 §5.5).
    @inlinable @inline(__always)
    public static func isFieldValue(_ byte: UInt8) -> Bool { isMember(byte, of: fieldValue) }

    /// Whether `byte` may be in a request target.
    @inlinable @inline(__always)
    public static func isTarget(_ byte: UInt8) -> Bool { isMember(byte, of: target) }

    /// Whether `byte` may be in a label of a host name.
    @inlinable @inline(__always)
    static func isHostLabel(_ byte: UInt8) -> Bool { isMember(byte, of: hostLabel) }

    /// Whether `byte` may be in a registered name unencoded: unreserved or sub-delims (RFC 3986
    /// §2.2, §2.3). Not for hot paths.
    static func isRegisteredName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "."), UInt8(ascii: "~"), UInt8(ascii: "!"), UInt8(ascii: "$"),
            UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "("), UInt8(ascii: ")"),
            UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: ";"),
            UInt8(ascii: "="):
            true
        default: isHostLabel(byte)
        }
    }
}

extension Span where Element == UInt8 {
    /// The first byte in `start..<end` that may not be in a token, or `end`.
    public func endOfToken(from start: Int, to end: Int) -> Int {
        var index = start
        while index < end, ByteClass.isToken(self[index]) { index &+= 1 }
        return index
    }
}
