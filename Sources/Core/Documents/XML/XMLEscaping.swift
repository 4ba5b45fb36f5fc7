/// The context in which text is written, which determines what must be escaped.
enum XMLEscaping {
    case content
    case attribute

    fileprivate func replacement(of byte: UInt8) -> StaticString? {
        switch byte {
        case UInt8(ascii: "&"): "&amp;"
        case UInt8(ascii: "<"): "&lt;"
        case UInt8(ascii: ">"): "&gt;"
        case 0x0D: "&#13;"
        case UInt8(ascii: "\"") where self == .attribute: "&quot;"
        case 0x09 where self == .attribute: "&#9;"
        case 0x0A where self == .attribute: "&#10;"
        default: nil
        }
    }

    /// The index of the next byte that may need escaping or begin a character that XML does not
    /// allow; the count if there is none.
    @inline(__always)
    func nextSpecial(in text: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index &+ 8 <= text.count {
            let bytes = EightBytes(text, at: index)
            var found =
                bytes.marks(below: 0x20) | bytes.marks(of: UInt8(ascii: "&"))
                | bytes.marks(of: UInt8(ascii: "<"), ignoring: 2) | bytes.marks(of: 0xEF)
            if self == .attribute { found |= bytes.marks(of: UInt8(ascii: "\"")) }
            if found != 0 { break }
            index &+= 8
        }
        while index < text.count, !isSpecial(text[index]) { index &+= 1 }
        return index
    }

    private func isSpecial(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == 0xEF || byte == UInt8(ascii: "&")
            || byte | 2 == UInt8(ascii: ">") || (byte == UInt8(ascii: "\"") && self == .attribute)
    }
}

extension OutputBytes {
    /// Appends a text as XML. If it contains a character that XML does not allow, the text is not
    /// appended completely, and a description of the character is returned.
    mutating func append(
        escaping text: UnsafeRawBufferPointer, in context: XMLEscaping
    ) -> String? {
        var start = 0
        while true {
            let next = context.nextSpecial(in: text, from: start)
            append(UnsafeRawBufferPointer(rebasing: text[start..<next]))
            guard next < text.count else { return nil }
            if let unfit = XMLCharacters.unfit(in: text, at: next) { return unfit }
            if let replacement = context.replacement(of: text[next]) {
                append(replacement)
            } else {
                append(text[next])
            }
            start = next + 1
        }
    }
}

/// Text in HTML, which has XML's references, but no characters that it does not allow.
package enum HTMLText {
    /// The text as the content of an element or as a quoted attribute. White space stays as it is.
    package static func escaped(_ text: String) -> String {
        var escaped: [UInt8] = []
        for byte in text.utf8 {
            if byte > 0x20, let reference = XMLEscaping.attribute.replacement(of: byte) {
                reference.withUTF8Buffer { escaped += $0 }
            } else {
                escaped.append(byte)
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }
}

/// Reverses ``XMLEscaping/content``.
enum XMLUnescaping {
    static func text(_ escaped: String) -> String {
        guard escaped.utf8.contains(UInt8(ascii: "&")) else { return escaped }
        var text = ""
        for (index, piece) in escaped.split(separator: "&", omittingEmptySubsequences: false)
            .enumerated()
        {
            guard index > 0, let end = piece.firstIndex(of: ";") else {
                text += piece
                continue
            }
            switch piece[..<end] {
            case "lt": text += "<"
            case "gt": text += ">"
            case "#13": text += "\r"
            default: text += "&"
            }
            text += piece[piece.index(after: end)...]
        }
        return text
    }
}
