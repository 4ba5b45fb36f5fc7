/// A position in an XML document, for reading only simple XML: tags without attributes, and text in
/// UTF-8 whose lines end with LF. Anything else in XML (comments, CDATA sections, attributes, CR,
/// declarations), and anything that is not well-formed, is not read and reported by false or `nil`:
/// another parser must then read the document.
///
/// What is read here is well-formed, and means the same to every XML parser.
struct PlainXMLCursor: ~Copyable {
    private let bytes: UnsafeRawBufferPointer
    private var index = 0
    /// A text with references, after they were resolved.
    private var resolved = ByteStack(capacity: 64)

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { index == bytes.count }

    var isAtEndTag: Bool {
        bytes.count - index >= 2 && bytes[index] == UInt8(ascii: "<")
            && bytes[index + 1] == UInt8(ascii: "/")
    }

    /// Skips spaces, tabs and LFs.
    mutating func skipSpace() {
        while index < bytes.count, bytes[index] == 0x20 || bytes[index] &- 0x09 < 2 { index &+= 1 }
    }

    /// Skips a text if it is at this position.
    mutating func skip(_ text: StaticString) -> Bool {
        let text = UnsafeRawBufferPointer(text)
        guard has(text, at: index) else { return false }
        index += text.count
        return true
    }

    /// Skips the end tag of an element if it is at this position.
    mutating func skipEndTag(_ name: UnsafeRawBufferPointer) -> Bool {
        let end = index + 2 + name.count
        guard isAtEndTag, end < bytes.count, bytes[end] == UInt8(ascii: ">"),
            has(name, at: index + 2)
        else { return false }
        index = end + 1
        return true
    }

    private func has(_ text: UnsafeRawBufferPointer, at start: Int) -> Bool {
        guard text.count <= bytes.count - start else { return false }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<start + text.count])
            .hasSameBytes(as: text)
    }

    /// Skips a start tag, or the tag of an empty element, that consists of a short name.
    ///
    /// - Returns: what is between the angle brackets; at most seven bytes.
    mutating func startTag() -> UnsafeRawBufferPointer? {
        guard bytes.count - index >= 9, bytes[index] == UInt8(ascii: "<") else { return nil }
        let marks = EightBytes(bytes, at: index + 1).marks(of: UInt8(ascii: ">"))
        guard marks != 0 else { return nil }
        let start = index + 1
        let end = start + EightBytes.first(of: marks)
        index = end + 1
        return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
    }

    // MARK: Text

    /// Advances to the next tag.
    ///
    /// - Returns: the text before it, valid until the next one is read.
    mutating func text() -> UnsafeRawBufferPointer? {
        let start = index
        var hasReferences = false
        /// The beginning of what has not been copied.
        var rest = start
        while true {
            skipPlain()
            guard index < bytes.count else { return nil }
            switch bytes[index] {
            case UInt8(ascii: "<"):
                let end = UnsafeRawBufferPointer(rebasing: bytes[rest..<index])
                guard hasReferences else { return end }
                resolved.append(end)
                return resolved.bytes()
            case UInt8(ascii: "&"):
                if !hasReferences { resolved.cut(to: 0) }
                hasReferences = true
                resolved.append(UnsafeRawBufferPointer(rebasing: bytes[rest..<index]))
                guard let scalar = reference() else { return nil }
                Array(String(scalar).utf8).withUnsafeBytes { resolved.append($0) }
                rest = index
            case UInt8(ascii: ">"):
                // The end of a CDATA section must not occur in text (XML 1.0 §2.4).
                guard
                    index - start < 2 || bytes[index - 1] != UInt8(ascii: "]")
                        || bytes[index - 2] != UInt8(ascii: "]")
                else { return nil }
                index &+= 1
            case 0x09, 0x0A: index &+= 1
            case 0x20..<0x80: index &+= 1
            default:
                guard let count = countOfSequence() else { return nil }
                index &+= count
            }
        }
    }

    /// Advances to the next byte that needs examination, or to one of the last seven.
    @inline(__always)
    private mutating func skipPlain() {
        while index &+ 8 <= bytes.count {
            let eight = EightBytes(bytes, at: index)
            // The angle brackets differ in one bit.
            let marks =
                eight.marks(below: 0x20) | eight.marksOfOthers
                | eight.marks(of: UInt8(ascii: "<"), ignoring: 2)
                | eight.marks(of: UInt8(ascii: "&"))
            guard marks == 0 else {
                index &+= EightBytes.first(of: marks)
                return
            }
            index &+= 8
        }
    }

    /// The length of the UTF-8 character that begins here (RFC 3629 §4); `nil` if it is invalid, or
    /// not allowed in XML.
    private func countOfSequence() -> Int? {
        let lead = bytes[index]
        let count: Int
        switch lead {
        case 0xC2...0xDF: count = 2
        case 0xE0...0xEF: count = 3
        case 0xF0...0xF4: count = 4
        default: return nil
        }
        guard count <= bytes.count - index else { return nil }
        for place in index + 1..<index + count where bytes[place] & 0xC0 != 0x80 { return nil }
        let second = bytes[index + 1]
        let isFit =
            switch lead {
            case 0xE0: second >= 0xA0
            case 0xED: second < 0xA0
            case 0xEF: second != 0xBF || bytes[index + 2] < 0xBE
            case 0xF0: second >= 0x90
            case 0xF4: second < 0x90
            default: true
            }
        return isFit ? count : nil
    }

    /// Skips a reference to a character, or to one of XML's five entities.
    private mutating func reference() -> Unicode.Scalar? {
        if skip("&lt;") { return "<" }
        if skip("&gt;") { return ">" }
        if skip("&amp;") { return "&" }
        if skip("&quot;") { return "\"" }
        if skip("&apos;") { return "'" }
        guard skip("&#") else { return nil }
        return skip("x") ? character(radix: 16) : character(radix: 10)
    }

    private mutating func character(radix: Int) -> Unicode.Scalar? {
        // U+10FFFF has seven digits; references with leading zeros are not simple.
        let digits = bytes[index...].prefix(8).prefix { $0 != UInt8(ascii: ";") }
        guard digits.count <= 7, digits.allSatisfy({ $0 != UInt8(ascii: "+") }),
            let number = UInt32(String(decoding: digits, as: UTF8.self), radix: radix),
            let scalar = Unicode.Scalar(number), XMLCharacters.has(scalar),
            digits.endIndex < bytes.count
        else { return nil }
        index = digits.endIndex + 1
        return scalar
    }
}
