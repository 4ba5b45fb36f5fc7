import HTTPCore

/// The numbers in lines.
enum RESPNumber {
    /// A length or a count: digits only, up to what an `Int` holds.
    static func length(_ text: Span<UInt8>) -> Int? {
        guard !text.isEmpty else { return nil }
        return digits(text, from: 0, negative: false).map { Int($0) }
    }

    /// An integer of 64 bits, with or without a sign.
    static func integer(_ text: Span<UInt8>) -> Int64? {
        guard !text.isEmpty else { return nil }
        let isNegative = text[0] == UInt8(ascii: "-")
        let start = isNegative || text[0] == UInt8(ascii: "+") ? 1 : 0
        return digits(text, from: start, negative: isNegative)
    }

    private static func digits(_ text: Span<UInt8>, from start: Int, negative: Bool) -> Int64? {
        guard start < text.count else { return nil }
        var number: Int64 = 0
        for index in start..<text.count {
            guard ASCII.isDigit(text[index]) else { return nil }
            let digit = Int64(text[index] &- 0x30)
            let (product, overflows) = number.multipliedReportingOverflow(by: 10)
            let (sum, overflowsToo) =
                negative
                ? product.subtractingReportingOverflow(digit)
                : product.addingReportingOverflow(digit)
            guard !overflows, !overflowsToo else { return nil }
            number = sum
        }
        return number
    }

    /// A double: decimal, with or without sign, fraction and exponent; or `inf`, `-inf`, `nan`.
    static func double(_ text: [UInt8]) -> Double? {
        let text = text[...]
        if text.elementsEqual("inf".utf8) || text.elementsEqual("+inf".utf8) { return .infinity }
        if text.elementsEqual("-inf".utf8) { return -.infinity }
        if text.elementsEqual("nan".utf8) || text.elementsEqual("-nan".utf8) { return .nan }
        // The standard library also reads hexadecimal and long words.
        var rest = withoutSign(text)
        let whole = rest.prefix(while: ASCII.isDigit)
        rest = rest[whole.endIndex...]
        var fraction = rest[rest.startIndex..<rest.startIndex]
        if rest.first == UInt8(ascii: ".") {
            fraction = rest.dropFirst().prefix(while: ASCII.isDigit)
            rest = rest[fraction.endIndex...]
        }
        guard !whole.isEmpty || !fraction.isEmpty else { return nil }
        if let first = rest.first, first | 0x20 == UInt8(ascii: "e") {
            let exponent = withoutSign(rest.dropFirst())
            guard !exponent.isEmpty, exponent.allSatisfy(ASCII.isDigit) else { return nil }
            rest = rest[rest.endIndex...]
        }
        guard rest.isEmpty else { return nil }
        return Double(String(decoding: text, as: UTF8.self))
    }

    /// Whether it is an integer of any size.
    static func isBig(_ text: [UInt8]) -> Bool {
        let digits = withoutSign(text[...])
        return !digits.isEmpty && digits.allSatisfy(ASCII.isDigit)
    }

    private static func withoutSign(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let first = text.first
        return first == UInt8(ascii: "-") || first == UInt8(ascii: "+") ? text.dropFirst() : text
    }
}
