import HTTPCore

/// What a JSON number becomes in a property list.
enum PropertyListNumber {
    /// An integer of at most 18 digits; property lists write it as JSON does.
    case small(Int64)
    /// Any other 64-bit integer.
    case integer(String)
    /// A number within the range of double precision.
    case real

    /// Returns `nil` if it is out of range for 64 bits, or for double precision.
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
            // A double has at most 308 digits before the point.
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

    /// The nearest double-precision number to a real in range.
    static func double(_ text: UnsafeRawBufferPointer) -> Double {
        plain(text) ?? parsed(text) ?? .nan
    }

    private static func parsed(_ text: UnsafeRawBufferPointer) -> Double? {
        guard let value = Double(String(decoding: text, as: UTF8.self)), value.isFinite else {
            return nil
        }
        return value
    }

    /// The number, if it has at most 18 digits and no exponent, and its digits and the power of ten
    /// that divides them are exact doubles: then a single division rounds correctly.
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
