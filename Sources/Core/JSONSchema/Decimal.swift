/// An exact JSON number: (−1)^isNegative × digits × 10^exponent, with digits that have no zeros at
/// either end. Zero has no digits.
struct Decimal: Equatable {
    private(set) var isNegative = false
    /// From 0 to 9, the most significant first.
    private(set) var digits: [UInt8] = []
    private(set) var exponent = 0

    /// Larger exponents are reduced to this: no schema distinguishes such numbers.
    private static let maximumExponent = 1 << 40

    /// - Parameter text: in the grammar of RFC 8259 §6.
    init(_ text: UnsafeRawBufferPointer) {
        var position = 0
        if text.first == UInt8(ascii: "-") {
            isNegative = true
            position = 1
        }
        var isFraction = false
        digits.reserveCapacity(text.count)
        while position < text.count {
            let byte = text[position]
            if byte == UInt8(ascii: ".") {
                isFraction = true
            } else if byte | 0x20 == UInt8(ascii: "e") {
                exponent += Self.exponent(text[(position + 1)...])
                break
            } else {
                if !digits.isEmpty || byte != UInt8(ascii: "0") { digits.append(byte & 0xF) }
                if isFraction { exponent -= 1 }
            }
            position += 1
        }
        normalize()
    }

    private mutating func normalize() {
        while digits.last == 0 {
            digits.removeLast()
            exponent += 1
        }
        if digits.isEmpty {
            isNegative = false
            exponent = 0
        }
    }

    private static func exponent(_ text: Slice<UnsafeRawBufferPointer>) -> Int {
        var value = 0
        for byte in text where byte != UInt8(ascii: "-") && byte != UInt8(ascii: "+") {
            value = min(value * 10 + Int(byte & 0xF), maximumExponent)
        }
        return text.first == UInt8(ascii: "-") ? -value : value
    }

    var isInteger: Bool { exponent >= 0 }

    /// The value as a nonnegative integer; `nil` if it is not one, or exceeds 2^53.
    var count: Int? {
        guard !isNegative, isInteger, digits.count + exponent <= 16 else { return nil }
        let value = digits.reduce(0) { $0 * 10 + Int($1) }
        return (0..<exponent).reduce(value) { value, _ in value * 10 }
    }

    /// Below, equal to or above zero if `self` is below, equal to or above `other`.
    func compared(to other: Decimal) -> Int {
        let sign = digits.isEmpty ? 0 : isNegative ? -1 : 1
        let otherSign = other.digits.isEmpty ? 0 : other.isNegative ? -1 : 1
        guard sign == otherSign, sign != 0 else { return sign - otherSign }
        return sign * comparedSize(to: other)
    }

    private func comparedSize(to other: Decimal) -> Int {
        let magnitude = digits.count + exponent
        let otherMagnitude = other.digits.count + other.exponent
        guard magnitude == otherMagnitude else { return magnitude < otherMagnitude ? -1 : 1 }
        for (digit, otherDigit) in zip(digits, other.digits) where digit != otherDigit {
            return digit < otherDigit ? -1 : 1
        }
        return digits.count - other.digits.count
    }
}

/// A divisor for `multipleOf`: up to 18 digits, with any exponent.
struct Divisor: Equatable {
    private let digits: UInt64
    private let exponent: Int

    /// Returns `nil` if it is not above zero, or has more digits.
    init?(_ number: Decimal) {
        guard !number.isNegative, 1...18 ~= number.digits.count else { return nil }
        digits = number.digits.reduce(0) { $0 * 10 + UInt64($1) }
        exponent = number.exponent
    }

    /// Whether a number is an exact multiple.
    func divides(_ number: Decimal) -> Bool {
        guard !number.digits.isEmpty else { return true }
        // The last digit is not 0, so there is no power of ten to factor out.
        guard number.exponent >= exponent else { return false }
        let remainder = number.digits.reduce(UInt64(0)) { remainder, digit in
            (multiplied(remainder, 10) + UInt64(digit)) % digits
        }
        return multiplied(remainder, power(of: number.exponent - exponent)) == 0
    }

    private func multiplied(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right % digits)
        return digits.dividingFullWidth((product.high, product.low)).remainder
    }

    /// 10^exponent, modulo the digits.
    private func power(of exponent: Int) -> UInt64 {
        var result = 1 % digits
        var base = 10 % digits
        var left = exponent
        while left > 0 {
            if left & 1 == 1 { result = multiplied(result, base) }
            base = multiplied(base, base)
            left >>= 1
        }
        return result
    }
}
