/// Base64 with padding (RFC 4648, section 4).
package enum Base64 {
    private static let digits: StaticString =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

    /// Characters of so many bytes.
    static func count(_ bytes: Int) -> Int { (bytes + 2) / 3 * 4 }

    package static func text(_ bytes: [UInt8]) -> String {
        var output: [UInt8] = []
        bytes.withUnsafeBytes { append($0[...], to: &output) }
        return String(decoding: output, as: UTF8.self)
    }

    static func append(_ bytes: Slice<UnsafeRawBufferPointer>, to output: inout [UInt8]) {
        output.reserveCapacity(output.count + count(bytes.count))
        var rest = UnsafeRawBufferPointer(rebasing: bytes)[...]
        while let first = rest.popFirst() {
            let second = rest.popFirst()
            let third = rest.popFirst()
            let bits = UInt32(first) << 16 | UInt32(second ?? 0) << 8 | UInt32(third ?? 0)
            output.append(digit(bits >> 18))
            output.append(digit(bits >> 12))
            output.append(second == nil ? UInt8(ascii: "=") : digit(bits >> 6))
            output.append(third == nil ? UInt8(ascii: "=") : digit(bits))
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
