import HTTPCore

/// What a number of JSON is in a property list.
enum PropertyListNumber {
    /// An integer of at most 18 digits; as JSON writes it, property lists do, too.
    case small(Int64)
    /// Any other integer of 64 bits.
    case integer(String)
    /// Within the range of double precision.
    case real

    /// Nil where it is out of range: of 64 bits, or of double precision.
    init?(_ text: UnsafeRawBufferPointer) {
        var magnitude: Int64 = 0
        var isReal = false
        var hasExponent = false
        for byte in text {
            if ASCII.isDigit(byte) {
                magnitude = magnitude &* 10 &+ Int64(byte & 0x0F)
            } else if byte == UInt8(ascii: ".") {
                isReal = true
            } else if byte | 0x20 == UInt8(ascii: "e") {
                hasExponent = true
            }
        }
        guard !isReal, !hasExponent else {
            // A double has 308 digits before the point.
            let isInRange = !hasExponent && text.count <= 308
            guard isInRange || Self.parsed(text) != nil else { return nil }
            self = .real
            return
        }
        let isNegative = text.first == UInt8(ascii: "-")
        if text.count <= 18, magnitude > 0 || !isNegative {
            self = .small(isNegative ? -magnitude : magnitude)
        } else {
            guard let digits = PropertyListInteger(text)?.digits else { return nil }
            self = .integer(digits)
        }
    }

    /// The number of double precision that is nearest to a real in range.
    static func double(_ text: UnsafeRawBufferPointer) -> Double {
        plain(text) ?? parsed(text) ?? .nan
    }

    private static func parsed(_ text: UnsafeRawBufferPointer) -> Double? {
        guard let value = Double(String(decoding: text, as: UTF8.self)), value.isFinite else {
            return nil
        }
        return value
    }

    /// The number where it has at most 18 digits and no exponent, and its digits and the power of
    /// ten below them are doubles: then one division rounds it, once.
    private static func plain(_ text: UnsafeRawBufferPointer) -> Double? {
        guard text.count <= 18 else { return nil }
        var digits: Int64 = 0
        var scale: Int64 = 0
        for byte in text {
            if ASCII.isDigit(byte) {
                digits = digits * 10 + Int64(byte & 0x0F)
                scale *= 10
            } else if byte == UInt8(ascii: "."), scale == 0 {
                scale = 1
            } else if byte != UInt8(ascii: "-") {
                return nil
            }
        }
        guard digits <= 1 << 53, scale > 0 else { return nil }
        let magnitude = Double(digits) / Double(scale)
        return text.first == UInt8(ascii: "-") ? -magnitude : magnitude
    }
}
