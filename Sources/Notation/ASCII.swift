/// Single bytes of text. The package has one of each of these tests; what is a class of one
/// protocol's grammar stays with it (`ByteClass`).
package enum ASCII {
    /// The byte with `A` to `Z` made lower case, all others as they are.
    @inlinable @inline(__always)
    package static func lowercased(_ byte: UInt8) -> UInt8 {
        isUppercase(byte) ? byte | 0x20 : byte
    }

    /// Whether `byte` is one of `A` to `Z`.
    @inlinable @inline(__always)
    package static func isUppercase(_ byte: UInt8) -> Bool { byte &- 0x41 < 26 }

    /// Whether `byte` is a decimal digit.
    @inlinable @inline(__always)
    package static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    /// Whether `byte` is a letter of either case.
    @inlinable @inline(__always)
    package static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }

    /// Whether `byte` is a space or a tab: the whitespace of HTTP (RFC 9110 §5.6.3) and of PEM.
    @inlinable @inline(__always)
    package static func isWhitespace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}

extension StringProtocol {
    /// The text with `A` to `Z` made lower case. Nothing else becomes one of these letters, as the
    /// Kelvin sign does by Unicode's rules: what is compared with it was written in ASCII.
    package var lowercasedASCII: String {
        let hasUppercase =
            utf8.withContiguousStorageIfAvailable { $0.contains(where: ASCII.isUppercase) }
            ?? utf8.contains(where: ASCII.isUppercase)
        guard hasUppercase else { return String(self) }
        return String(decoding: utf8.lazy.map(ASCII.lowercased), as: UTF8.self)
    }
}
