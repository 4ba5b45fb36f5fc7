/// Bytes as the inside of a JSON string (RFC 8259 section 7).
enum JSONText {
    /// Appends bytes that claim to be UTF-8. What is not becomes U+FFFD, one for each maximal part
    /// of a character that is cut short (Unicode 15 section 3.9), so that the line is UTF-8
    /// whatever a client sent. Quotation marks, backslashes and control characters are escaped;
    /// also DEL and those from U+0080 to U+009F, which terminals obey.
    static func append(_ bytes: UnsafeRawBufferPointer, to output: inout LineBuffer) {
        var clean = 0
        var index = 0
        while index < bytes.count {
            if index + 8 <= bytes.count,
                isPlain(bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            {
                index += 8
                continue
            }
            let byte = bytes[index]
            if byte >= 0x20 && byte < 0x7f && byte != UInt8(ascii: "\"")
                && byte != UInt8(ascii: "\\")
            {
                index += 1
                continue
            }
            if byte >= 0x80, let length = characterLength(bytes, at: index) {
                index += length
                continue
            }
            output.append(UnsafeRawBufferPointer(rebasing: bytes[clean..<index]))
            index += appendEscaped(bytes, at: index, to: &output)
            clean = index
        }
        output.append(UnsafeRawBufferPointer(rebasing: bytes[clean...]))
    }

    /// Whether eight bytes are all printable ASCII and none needs an escape. A byte is below `n` if
    /// subtracting `n` borrows into its highest bit; it equals `n` if the difference, as bits, is
    /// below 1. (A borrow into the next byte only comes from a byte that is special itself.)
    private static func isPlain(_ eight: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let tops: UInt64 = 0x8080_8080_8080_8080
        func hasByte(_ word: UInt64, below limit: UInt64) -> UInt64 {
            (word &- ones &* limit) & ~word
        }
        let special =
            eight | hasByte(eight, below: 0x20) | hasByte(eight ^ ones &* 0x22, below: 1)
            | hasByte(eight ^ ones &* 0x5c, below: 1) | hasByte(eight ^ ones &* 0x7f, below: 1)
        return special & tops == 0
    }

    /// Appends what stands for the byte or character at `index` that cannot stand for itself;
    /// returns how many bytes it has.
    private static func appendEscaped(
        _ bytes: UnsafeRawBufferPointer, at index: Int, to output: inout LineBuffer
    ) -> Int {
        let byte = bytes[index]
        switch byte {
        case UInt8(ascii: "\""): output.append("\\\"")
        case UInt8(ascii: "\\"): output.append("\\\\")
        case UInt8(ascii: "\n"): output.append("\\n")
        case UInt8(ascii: "\r"): output.append("\\r")
        case UInt8(ascii: "\t"): output.append("\\t")
        case 0..<0x80: appendUnicode(byte, to: &output)
        case 0xc2 where index + 1 < bytes.count && bytes[index + 1] & 0xe0 == 0x80:
            appendUnicode(bytes[index + 1], to: &output)
            return 2
        default:
            output.append("\\ufffd")
            return brokenLength(bytes, at: index)
        }
        return 1
    }

    private static func appendUnicode(_ value: UInt8, to output: inout LineBuffer) {
        output.append("\\u00")
        output.append(hexadecimalDigit: value >> 4)
        output.append(hexadecimalDigit: value & 15)
    }

    /// The length of the well-formed character of several bytes at `index`, `nil` if there is none
    /// or it is a control character.
    private static func characterLength(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Int? {
        let length = expectedLength(bytes[index])
        guard length > 0, partLength(bytes, at: index) == length else { return nil }
        if bytes[index] == 0xc2 && bytes[index + 1] < 0xa0 { return nil }
        return length
    }

    /// How many bytes are replaced together: what could begin a character, at least one byte.
    private static func brokenLength(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Int {
        max(1, partLength(bytes, at: index))
    }

    /// The length that a first byte announces; 0 if it cannot be one (Unicode 15 table 3-7).
    private static func expectedLength(_ first: UInt8) -> Int {
        switch first {
        case 0xc2...0xdf: 2
        case 0xe0...0xef: 3
        case 0xf0...0xf4: 4
        default: 0
        }
    }

    /// How many bytes from `index` on are the start of a character, or all of it.
    private static func partLength(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Int {
        let first = bytes[index]
        let length = expectedLength(first)
        guard length > 0 else { return 0 }
        var count = 1
        while count < length && index + count < bytes.count {
            let byte = bytes[index + count]
            guard count == 1 ? isSecond(byte, after: first) : byte & 0xc0 == 0x80 else { break }
            count += 1
        }
        return count
    }

    /// Whether a second byte can follow: overlong forms, surrogates and what is beyond U+10FFFF are
    /// excluded here.
    private static func isSecond(_ byte: UInt8, after first: UInt8) -> Bool {
        switch first {
        case 0xe0: (0xa0...0xbf).contains(byte)
        case 0xed: (0x80...0x9f).contains(byte)
        case 0xf0: (0x90...0xbf).contains(byte)
        case 0xf4: (0x80...0x8f).contains(byte)
        default: byte & 0xc0 == 0x80
        }
    }
}

/// Bytes between quotation marks in Apache's formats: what is not printable ASCII becomes `\xhh`,
/// with C's short escapes where there are any (Apache 2.4, mod_log_config).
enum ApacheText {
    /// Appends bytes of any kind.
    static func append(_ bytes: UnsafeRawBufferPointer, to output: inout LineBuffer) {
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\""): output.append("\\\"")
            case UInt8(ascii: "\\"): output.append("\\\\")
            case 0x08: output.append("\\b")
            case UInt8(ascii: "\n"): output.append("\\n")
            case UInt8(ascii: "\r"): output.append("\\r")
            case UInt8(ascii: "\t"): output.append("\\t")
            case 0x0b: output.append("\\v")
            case 0x20..<0x7f: output.append(byte)
            default:
                output.append("\\x")
                output.append(hexadecimalDigit: byte >> 4)
                output.append(hexadecimalDigit: byte & 15)
            }
        }
    }
}

/// The userinfo of a target or referer: `user:password@` (RFC 3986 section 3.2.1).
enum Userinfo {
    /// Gives the bytes to `body` piece by piece, with `***` in place of userinfo. Requests with
    /// userinfo are refused, but refusals are logged too.
    static func redacting(
        _ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        guard let secret = range(bytes) else { return body(bytes) }
        body(UnsafeRawBufferPointer(rebasing: bytes[..<secret.lowerBound]))
        ("***" as StaticString).withUTF8Buffer { body(UnsafeRawBufferPointer($0)) }
        body(UnsafeRawBufferPointer(rebasing: bytes[secret.upperBound...]))
    }

    /// Where the userinfo lies: from the authority's start to its last `@`.
    private static func range(_ bytes: UnsafeRawBufferPointer) -> Range<Int>? {
        guard let first = bytes.first, first != UInt8(ascii: "/") else { return nil }
        var start = 0
        var at: Int?
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: ":")
            where start == 0 && isSlash(bytes, index + 1) && isSlash(bytes, index + 2):
                start = index + 3
                index = start
                at = nil
            case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"):
                return at.map { start..<$0 }
            case UInt8(ascii: "@"):
                at = index
                index += 1
            default:
                index += 1
            }
        }
        return at.map { start..<$0 }
    }

    private static func isSlash(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> Bool {
        index < bytes.count && bytes[index] == UInt8(ascii: "/")
    }
}
