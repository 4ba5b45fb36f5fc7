import HTTPCore

/// The characters of XML 1.0 (sections 2.2 and 2.3).
enum XMLCharacters {
    /// White space: space, tab, LF and CR.
    static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x09 || byte == 0x0D
    }

    /// Whether a UTF-8 text is a valid name for an element or attribute.
    static func isName(_ text: UnsafeRawBufferPointer) -> Bool {
        guard let first = text.first, first < 0x80 ? isStart(first) : true else { return false }
        if text.allSatisfy({ isStart($0) || isFurther($0) }) { return true }
        var isFirst = true
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars {
            guard isStart(scalar) || (!isFirst && isFurther(scalar)) else { return false }
            isFirst = false
        }
        return true
    }

    /// A description of the character at an index, if no XML document may contain it: all below
    /// U+0020 except white space, U+FFFE and U+FFFF. `text` is UTF-8.
    static func unfit(in text: UnsafeRawBufferPointer, at index: Int) -> String? {
        let byte = text[index]
        if byte < 0x20 { return isSpace(byte) ? nil : named(UInt32(byte)) }
        guard byte == 0xEF, index + 2 < text.count, text[index + 1] == 0xBF,
            text[index + 2] >= 0xBE
        else { return nil }
        return named(text[index + 2] == 0xBE ? 0xFFFE : 0xFFFF)
    }

    /// Whether XML documents may contain a character, if only as a reference.
    static func has(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09, 0x0A, 0x0D, 0x20...0xFFFD, 0x1_0000...: true
        default: false
        }
    }

    private static func named(_ scalar: UInt32) -> String {
        "the character U+" + String(hexadecimal: scalar, digits: 4, uppercase: true)
    }

    private static func isStart(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ":")
    }

    private static func isFurther(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 10 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
    }

    private static func isStart(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x80: isStart(UInt8(scalar.value))
        case 0xC0...0xD6, 0xD8...0xF6, 0xF8...0x2FF, 0x370...0x37D, 0x37F...0x1FFF,
            0x200C...0x200D, 0x2070...0x218F, 0x2C00...0x2FEF, 0x3001...0xD7FF,
            0xF900...0xFDCF, 0xFDF0...0xFFFD, 0x10000...0xEFFFF:
            true
        default: false
        }
    }

    private static func isFurther(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x80: isFurther(UInt8(scalar.value))
        case 0xB7, 0x300...0x36F, 0x203F...0x2040: true
        default: false
        }
    }
}
