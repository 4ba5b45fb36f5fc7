/// The character encodings that a Content-Type may name for text; XML's are handled by its parser.
enum Charset: String {
    case utf8 = "utf-8"
    case ascii = "us-ascii"
    case latin1 = "iso-8859-1"
    case utf16 = "utf-16"
    case utf16LittleEndian = "utf-16le"
    case utf16BigEndian = "utf-16be"

    /// `nil` for an unsupported encoding. Without a name it is UTF-8.
    init?(_ name: String?) {
        switch name {
        case nil, "utf-8", "utf8": self = .utf8
        case "us-ascii", "ascii": self = .ascii
        case "iso-8859-1", "iso8859-1", "latin1", "l1": self = .latin1
        case "utf-16": self = .utf16
        case "utf-16le": self = .utf16LittleEndian
        case "utf-16be": self = .utf16BigEndian
        default: return nil
        }
    }

    /// These are supported only for XML and property lists.
    var isUTF16: Bool { [.utf16, .utf16LittleEndian, .utf16BigEndian].contains(self) }

    /// Converts an ISO-8859-1 text, whose bytes are the numbers of its characters.
    static func utf8(latin1 text: [UInt8]) -> [UInt8] {
        guard text.contains(where: { $0 >= 0x80 }) else { return text }
        var output: [UInt8] = []
        output.reserveCapacity(text.count + text.count / 8)
        for byte in text {
            if byte < 0x80 {
                output.append(byte)
            } else {
                output.append(0xC0 | byte >> 6)
                output.append(0x80 | byte & 0x3F)
            }
        }
        return output
    }

    private static let lowered = Array("89AB".utf8)

    /// Converts a form in ISO-8859-1, in which escapes stand for its bytes: `%E9` becomes `%C3%A9`.
    static func utf8(latin1Form form: [UInt8]) -> [UInt8] {
        let text = utf8(latin1: form)
        var output: [UInt8] = []
        output.reserveCapacity(text.count)
        var rest = text[...]
        while let byte = rest.popFirst() {
            output.append(byte)
            guard byte == UInt8(ascii: "%"), let high = rest.first,
                let digit = Character(Unicode.Scalar(high)).hexDigitValue, digit >= 8
            else { continue }
            // 80 to BF keep their digits after C2; C0 to FF are reduced by 40 after C3.
            output.append(contentsOf: digit < 12 ? "C2%".utf8 : "C3%".utf8)
            output.append(digit < 12 ? high : Self.lowered[digit - 12])
            rest.removeFirst()
        }
        return output
    }
}
