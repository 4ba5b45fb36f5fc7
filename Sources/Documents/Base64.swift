/// Base64 with padding (RFC 4648, section 4).
package enum Base64 {
    private static let digits: StaticString =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

    /// Characters of so many bytes.
    static func count(_ bytes: Int) -> Int { (bytes + 2) / 3 * 4 }

    package static func text(_ bytes: [UInt8]) -> String {
        var output = OutputBytes(capacity: count(bytes.count))
        output.write(atMost: count(bytes.count)) { cursor in
            bytes.withUnsafeBytes { write($0, to: &cursor) }
        }
        return output.text(0..<output.count)
    }

    /// Writes ``count(_:)`` characters.
    static func write(_ bytes: UnsafeRawBufferPointer, to output: inout ByteCursor) {
        var index = 0
        while index < bytes.count {
            let remaining = bytes.count - index
            let second = remaining > 1 ? bytes[index + 1] : 0
            let third = remaining > 2 ? bytes[index + 2] : 0
            let bits = UInt32(bytes[index]) << 16 | UInt32(second) << 8 | UInt32(third)
            output.put(digit(bits >> 18))
            output.put(digit(bits >> 12))
            output.put(remaining > 1 ? digit(bits >> 6) : UInt8(ascii: "="))
            output.put(remaining > 2 ? digit(bits) : UInt8(ascii: "="))
            index += 3
        }
    }

    private static func digit(_ bits: UInt32) -> UInt8 {
        digits.utf8Start[Int(bits & 0x3F)]
    }

    /// Adds what a text says, white space left out, to `output`. Returns whether it is base64: no
    /// other characters, padding at the end and no bits that say nothing.
    static func decode(_ text: UnsafeRawBufferPointer, into output: inout [UInt8]) -> Bool {
        output.reserveCapacity(output.count + text.count / 4 * 3)
        var bits: UInt32 = 0
        var count = 0
        var padding = 0
        for byte in text {
            if byte == UInt8(ascii: "=") {
                padding += 1
                continue
            }
            if XMLCharacters.isSpace(byte) { continue }
            guard padding == 0, let value = value(of: byte) else { return false }
            bits = bits << 6 | value
            count += 1
            guard count == 4 else { continue }
            output.append(UInt8(truncatingIfNeeded: bits >> 16))
            output.append(UInt8(truncatingIfNeeded: bits >> 8))
            output.append(UInt8(truncatingIfNeeded: bits))
            (bits, count) = (0, 0)
        }
        switch (count, padding) {
        case (0, 0): return true
        case (2, 2) where bits & 0xF == 0:
            output.append(UInt8(truncatingIfNeeded: bits >> 4))
            return true
        case (3, 1) where bits & 0x3 == 0:
            output.append(UInt8(truncatingIfNeeded: bits >> 10))
            output.append(UInt8(truncatingIfNeeded: bits >> 2))
            return true
        default: return false
        }
    }

    private static func value(of byte: UInt8) -> UInt32? {
        switch byte {
        case 0x41...0x5A: UInt32(byte - 0x41)
        case 0x61...0x7A: UInt32(byte - 0x61 + 26)
        case 0x30...0x39: UInt32(byte - 0x30 + 52)
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
