/// The decimal digits of a 64-bit integer, with its sign.
struct DecimalDigits {
    private var bytes = InlineArray<20, UInt8>(repeating: 0)
    private var start = 20

    init(_ magnitude: UInt64, isNegative: Bool) {
        var rest = magnitude
        repeat {
            let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
            put(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit))
            rest = quotient
        } while rest > 0
        // The magnitude of a signed integer has at most 19 digits.
        if isNegative { put(UInt8(ascii: "-")) }
    }

    private mutating func put(_ byte: UInt8) {
        start -= 1
        bytes[start] = byte
    }

    func withBytes(
        _ body: (UnsafeRawBufferPointer) throws(DocumentError) -> Void
    ) throws(DocumentError) {
        try bytes.span.withUnsafeBytes { bytes throws(DocumentError) in
            try body(UnsafeRawBufferPointer(rebasing: bytes[start...]))
        }
    }
}
