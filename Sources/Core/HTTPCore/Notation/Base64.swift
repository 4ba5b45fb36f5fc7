/// Base64 with the standard alphabet and padding (RFC 4648, section 4).
public enum Base64 {
    @usableFromInline static var digits: StaticString {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    }

    @inlinable @inline(__always)
    static func digit(_ bits: UInt32) -> UInt8 { digits.utf8Start[Int(bits & 0x3F)] }

    /// The value of a digit; `nil` for any other byte, including the padding.
    @inlinable @inline(__always)
    public static func value(_ byte: UInt8) -> UInt32? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte &- UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte &- UInt8(ascii: "a") &+ 26)
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte &- UInt8(ascii: "0") &+ 52)
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }

    /// The number of characters that encode this many bytes.
    @inlinable
    public static func count(_ bytes: Int) -> Int { (bytes + 2) / 3 * 4 }

    /// Passes the ``count(_:)`` characters that encode some bytes to a closure, one by one.
    @inlinable
    public static func write(_ bytes: UnsafeRawBufferPointer, _ put: (UInt8) -> Void) {
        var index = 0
        while index < bytes.count {
            let left = bytes.count - index
            let second = left > 1 ? bytes[index + 1] : 0
            let third = left > 2 ? bytes[index + 2] : 0
            let bits = UInt32(bytes[index]) << 16 | UInt32(second) << 8 | UInt32(third)
            put(digit(bits >> 18))
            put(digit(bits >> 12))
            put(left > 1 ? digit(bits >> 6) : UInt8(ascii: "="))
            put(left > 2 ? digit(bits) : UInt8(ascii: "="))
            index += 3
        }
    }

    /// Encodes bytes as text.
    public static func encode(_ bytes: [UInt8]) -> String {
        let count = count(bytes.count)
        return String(unsafeUninitializedCapacity: count) { output in
            var index = 0
            bytes.withUnsafeBytes { bytes in
                write(bytes) {
                    output[index] = $0
                    index += 1
                }
            }
            return count
        }
    }

    /// Decodes a text; `nil` unless it is canonical: no other characters, padding at the end, and
    /// no unused bits that are set.
    public static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var output: [UInt8] = []
        return decode(text, into: &output, skipping: { _ in false }) ? output : nil
    }

    /// Decodes a text in the URL-safe alphabet without padding (RFC 4648 §5, RFC 7515 §2); `nil`
    /// unless it is canonical: no other characters, no padding, and no unused bits that are set.
    public static func decode(urlSafe text: some Collection<UInt8>) -> [UInt8]? {
        var output: [UInt8] = []
        output.reserveCapacity(text.count / 4 * 3 + 2)
        var bits: UInt32 = 0
        var count = 0
        for byte in text {
            switch byte {
            case UInt8(ascii: "-"): bits = bits << 6 | 62
            case UInt8(ascii: "_"): bits = bits << 6 | 63
            case UInt8(ascii: "+"), UInt8(ascii: "/"): return nil
            default:
                guard let value = value(byte) else { return nil }
                bits = bits << 6 | value
            }
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            output.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            bits &= 1 << UInt32(count) - 1
        }
        // Six bits are no byte, and what is left of a whole one must be zero.
        return count < 6 && bits == 0 ? output : nil
    }

    /// Appends the decoded bytes. Returns whether the text is canonical, apart from the characters
    /// that are skipped wherever they are.
    @inlinable
    public static func decode(
        _ text: some Sequence<UInt8>, into output: inout [UInt8],
        skipping isSkipped: (UInt8) -> Bool
    ) -> Bool {
        output.reserveCapacity(output.count + text.underestimatedCount / 4 * 3)
        var bits: UInt32 = 0
        var count = 0
        var padding = 0
        for byte in text {
            if byte == UInt8(ascii: "=") {
                padding += 1
                continue
            }
            if isSkipped(byte) { continue }
            guard padding == 0, let value = value(byte) else { return false }
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
}
