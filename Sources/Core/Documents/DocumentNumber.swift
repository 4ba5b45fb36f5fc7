/// A number as JSON writes it, digit by digit.
public struct DocumentNumber: Sendable, Hashable, ExpressibleByIntegerLiteral {
    /// The text, by the grammar of RFC 8259, section 6.
    public let text: String

    /// Nil where the text is no number of JSON.
    public init?(_ text: String) {
        guard Self.isNumber(text) else { return nil }
        self.text = text
    }

    /// A text that is known to be a number.
    init(verified text: String) { self.text = text }

    /// The number that an integer is.
    public init(_ value: some BinaryInteger) { text = String(value) }
    public init(integerLiteral value: Int) { text = String(value) }

    /// Nil for infinities and what is not a number: JSON has none.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        text = value.description
    }

    /// The number where it is an integer of 64 bits written without fraction and exponent.
    public var integer: Int64? { Int64(text) }
    /// The nearest number of double precision; infinite where the number is beyond its range.
    public var double: Double { Double(text) ?? .nan }

    private static func isNumber(_ text: String) -> Bool {
        var rest = Substring(text).utf8
        func digits() -> Int {
            let count = rest.prefix { $0 &- 0x30 < 10 }.count
            rest = rest.dropFirst(count)
            return count
        }
        func take(_ bytes: [UInt8]) -> Bool {
            guard let first = rest.first, bytes.contains(first) else { return false }
            rest = rest.dropFirst()
            return true
        }
        _ = take([UInt8(ascii: "-")])
        let startsWithZero = rest.first == UInt8(ascii: "0")
        let whole = digits()
        guard whole > 0, !startsWithZero || whole == 1 else { return false }
        if take([UInt8(ascii: ".")]), digits() == 0 { return false }
        if take([UInt8(ascii: "e"), UInt8(ascii: "E")]) {
            _ = take([UInt8(ascii: "+"), UInt8(ascii: "-")])
            if digits() == 0 { return false }
        }
        return rest.isEmpty
    }
}
