/// A JSON object that is being written (RFC 8259).
struct JSONObjectText {
    private var text = Array("{".utf8)

    /// The whole object.
    var bytes: [UInt8] { text + Array("}".utf8) }

    /// A member whose value is a string.
    mutating func add(_ name: String, _ value: String) {
        begin(name)
        appendString(value)
    }

    /// A member whose value is an array of strings.
    mutating func add(_ name: String, _ values: [String]) {
        begin(name)
        text.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { text.append(UInt8(ascii: ",")) }
            appendString(value)
        }
        text.append(UInt8(ascii: "]"))
    }

    /// A member whose value is a number, true or false.
    mutating func add(_ name: String, literal: String) {
        begin(name)
        text.append(contentsOf: literal.utf8)
    }

    private mutating func begin(_ name: String) {
        if text.count > 1 { text.append(UInt8(ascii: ",")) }
        appendString(name)
        text.append(UInt8(ascii: ":"))
    }

    private mutating func appendString(_ value: String) {
        text.append(UInt8(ascii: "\""))
        for byte in value.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                text.append(UInt8(ascii: "\\"))
                text.append(byte)
            case UInt8(ascii: "\n"): text.append(contentsOf: "\\n".utf8)
            case 0..<0x20, 0x7F:
                let digits = String(byte, radix: 16)
                text.append(contentsOf: (byte < 16 ? "\\u000" : "\\u00").utf8)
                text.append(contentsOf: digits.utf8)
            default: text.append(byte)
            }
        }
        text.append(UInt8(ascii: "\""))
    }
}
