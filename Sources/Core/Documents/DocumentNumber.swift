/// A number as JSON writes it, with all its digits.
public struct DocumentNumber: Sendable, Hashable, ExpressibleByIntegerLiteral {
    /// The text, in the grammar of RFC 8259 §6.
    public let text: String

    /// Returns `nil` if the text is not a JSON number.
    public init?(_ text: String) {
        guard Self.isNumber(text) else { return nil }
        self.text = text
    }

    /// Creates a number from a text that is known to be one.
    init(verified text: String) { self.text = text }

    /// Creates a number from an integer.
    public init(_ value: some BinaryInteger) { text = String(value) }
    public init(integerLiteral value: Int) { text = String(value) }

    /// Returns `nil` for infinities and NaN, which JSON does not have.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        text = value.description
    }

    /// The number, if it is a 64-bit integer written without fraction and exponent.
    public var integer: Int64? { Int64(text) }
    /// The nearest double-precision number; infinite if the number is out of range.
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
