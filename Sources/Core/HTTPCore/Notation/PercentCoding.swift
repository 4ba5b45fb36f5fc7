/// Percent-encoding (RFC 3986 §2.1): a percent sign and two hexadecimal digits for a byte.
public enum PercentCoding {
    /// The byte encoded by the two digits after a percent sign; `nil` if either is not a digit.
    @inlinable @inline(__always)
    public static func byte(_ high: UInt8, _ low: UInt8) -> UInt8? {
        guard let high = ASCII.hexValue(high), let low = ASCII.hexValue(low) else { return nil }
        return high << 4 | low
    }

    /// Appends the escape of a byte, with upper-case digits (RFC 3986 §6.2.2.1).
    @inlinable @inline(__always)
    public static func append(escaped byte: UInt8, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "%"))
        output.append(ASCII.capitalHexDigit(byte >> 4))
        output.append(ASCII.capitalHexDigit(byte))
    }

    /// Appends a text, escaping the bytes that are not allowed.
    @inlinable
    public static func append(
        _ text: some Sequence<UInt8>, to output: inout [UInt8], mayStand: (UInt8) -> Bool
    ) {
        for byte in text {
            if mayStand(byte) {
                output.append(byte)
            } else {
                append(escaped: byte, to: &output)
            }
        }
    }

    /// Returns a text, escaping the bytes that are not allowed.
    @inlinable
    public static func encode(
        _ text: some Sequence<UInt8>, mayStand: (UInt8) -> Bool
    ) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(text.underestimatedCount)
        append(text, to: &output, mayStand: mayStand)
        return output
    }

    /// Decodes a text; `nil` if a percent sign is not followed by two digits.
    public static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        decode(text, keepingOtherSigns: false)
    }

    /// Decodes a text. A percent sign that is not followed by two digits is kept.
    public static func decodeEscapes(_ text: some Sequence<UInt8>) -> [UInt8] {
        decode(text, keepingOtherSigns: true) ?? []
    }

    private static func decode(
        _ text: some Sequence<UInt8>, keepingOtherSigns: Bool
    ) -> [UInt8]? {
        let bytes = Array(text)
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            if bytes[index] != UInt8(ascii: "%") {
                output.append(bytes[index])
            } else if index + 2 < bytes.count,
                let byte = byte(bytes[index + 1], bytes[index + 2])
            {
                output.append(byte)
                index += 2
            } else if keepingOtherSigns {
                output.append(bytes[index])
            } else {
                return nil
            }
            index += 1
        }
        return output
    }
}
