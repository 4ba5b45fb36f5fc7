/// Base64 with the standard alphabet and padding (RFC 4648 §4), as pins and PEM use it.
enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// The value of one base64 digit; nil for any other byte.
    private static func value(_ byte: UInt8) -> UInt32? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }

    /// Whether a character is one of the alphabet's 64; the padding is none.
    static func isDigit(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isASCII && value(UInt8(truncatingIfNeeded: scalar.value)) != nil
    }

    /// The text of `bytes`, padded.
    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let present = min(3, bytes.count - start)
            var group: UInt32 = 0
            for offset in 0..<3 {
                group = group << 8 | (offset < present ? UInt32(bytes[start + offset]) : 0)
            }
            for digit in 0..<4 {
                guard digit <= present else {
                    text.append(UInt8(ascii: "="))
                    continue
                }
                text.append(alphabet[Int(group >> UInt32(18 - 6 * digit)) & 0x3F])
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes that `text` stands for; nil when it is not canonical: a byte outside the alphabet,
    /// missing or misplaced padding, or set bits that the padding says are unused.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 4) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var group: UInt32 = 0
        var digits = 0
        var padding = 0
        for byte in text {
            if byte == UInt8(ascii: "=") {
                padding += 1
                guard padding <= 2 else { return nil }
                group <<= 6
            } else {
                guard padding == 0, let value = value(byte) else { return nil }
                group = group << 6 | value
            }
            digits += 1
            guard digits == 4 else { continue }
            let unused = (UInt32(1) << UInt32(8 * padding)) - 1
            guard group & unused == 0 else { return nil }
            bytes.append(UInt8(truncatingIfNeeded: group >> 16))
            if padding < 2 { bytes.append(UInt8(truncatingIfNeeded: group >> 8)) }
            if padding < 1 { bytes.append(UInt8(truncatingIfNeeded: group)) }
            group = 0
            digits = 0
        }
        return bytes
    }
}

/// Hexadecimal text of certificate fingerprints.
enum Hexadecimal {
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// The value of one hex digit of either case; nil for any other byte.
    static func value(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// Two upper-case digits for each byte, with `separator` between the pairs.
    static func encode(_ bytes: [UInt8], separator: UInt8) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 3)
        for byte in bytes {
            if !text.isEmpty { text.append(separator) }
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 0x0F)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of pairs of digits, either all separated by single colons or none; nil otherwise.
    static func decode(_ text: [UInt8]) -> [UInt8]? {
        let separated = text.contains(UInt8(ascii: ":"))
        let stride = separated ? 3 : 2
        guard (text.count + (separated ? 1 : 0)).isMultiple(of: stride) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / stride + 1)
        var index = 0
        while index < text.count {
            guard let high = value(text[index]), let low = value(text[index + 1]) else {
                return nil
            }
            bytes.append(high << 4 | low)
            index += 2
            guard separated, index < text.count else { continue }
            guard text[index] == UInt8(ascii: ":") else { return nil }
            index += 1
        }
        return bytes
    }
}
