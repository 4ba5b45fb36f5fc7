/// Strings and names (§7).
extension JSONParser {
    /// Reads a string, whose quotation mark is at an index. Returns the index behind it.
    @inline(__always)
    mutating func string(at mark: Int) throws(JSONParsingError) -> Int {
        let text = text
        let end = try text.endOfPlainText(from: mark &+ 1)
        if text.byte(end) == JSONSource.backslash {
            return try decodedString(at: mark, escape: end)
        }
        try value(JSONEvent(.string, mark &+ 1, end &- mark &- 1), endingAt: end &+ 1)
        return end &+ 1
    }

    @inline(never)
    private mutating func decodedString(
        at mark: Int, escape: Int
    ) throws(JSONParsingError) -> Int {
        let start = decoded.count
        let end = try decode(from: mark + 1, escape: escape)
        try value(JSONEvent(.decodedString, start, decoded.count - start), endingAt: end + 1)
        if !keepsEvents { decoded.cut(to: start) }
        return end + 1
    }

    /// Reads a name of the innermost object, whose names begin at `first` in ``names``.
    @inline(__always)
    mutating func name(in first: Int, at mark: Int) throws(JSONParsingError) -> Int {
        let text = text
        let end = try text.endOfPlainText(from: mark &+ 1)
        if text.byte(end) == JSONSource.backslash {
            return try decodedName(in: first, at: mark, escape: end)
        }
        let length = end &- mark &- 1
        let name = JSONName(offset: mark &+ 1, length: length, mark: mark, end: end &+ 1)
        try names.add(
            name, digest: JSONNames.digest(text.base + (mark &+ 1), length), from: first, text.base,
            decoded.elements, within: &memory)
        try add(JSONEvent(.name, mark &+ 1, length))
        return end &+ 1
    }

    @inline(never)
    private mutating func decodedName(
        in first: Int, at mark: Int, escape: Int
    ) throws(JSONParsingError) -> Int {
        let start = decoded.count
        let end = try decode(from: mark + 1, escape: escape)
        let length = decoded.count - start
        let name = JSONName(offset: start, length: length, mark: mark, end: end + 1)
        let digest = JSONNames.digest(UnsafeRawPointer(decoded.first + start), length)
        try names.add(
            name, digest: digest, from: first, text.base, decoded.elements, within: &memory)
        try add(JSONEvent(.decodedName, start, length))
        return end + 1
    }

    // MARK: - Escapes

    /// Decodes a string that has escapes, the first of them at `escape`, and appends it to
    /// ``decoded``. Returns the index of its closing quotation mark.
    private mutating func decode(
        from start: Int, escape: Int
    ) throws(JSONParsingError) -> Int {
        var plain = start
        var at = escape
        /// The first escape of a low surrogate without a high one.
        var half: Int?
        while text.byte(at) == JSONSource.backslash {
            try appendText(plain..<at)
            plain = try appendEscaped(at: at, &half)
            at = try text.endOfPlainText(from: plain)
        }
        try appendText(plain..<at)
        if let half { throw JSONParsingError(.halfOfSurrogatePair, at: half) }
        return at
    }

    private mutating func appendText(_ range: Range<Int>) throws(JSONParsingError) {
        let start = (text.base + range.lowerBound).assumingMemoryBound(to: UInt8.self)
        try decoded.append(start, count: range.count, within: &memory)
    }

    /// Appends what an escape stands for. Returns the index behind it.
    private mutating func appendEscaped(
        at escape: Int, _ half: inout Int?
    ) throws(JSONParsingError) -> Int {
        let letter = text.byte(escape + 1)
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): try appendByte(letter)
        case UInt8(ascii: "n"): try appendByte(0x0A)
        case UInt8(ascii: "r"): try appendByte(0x0D)
        case UInt8(ascii: "t"): try appendByte(0x09)
        case UInt8(ascii: "b"): try appendByte(0x08)
        case UInt8(ascii: "f"): try appendByte(0x0C)
        case UInt8(ascii: "u"): return try appendCode(at: escape, &half)
        default: throw JSONParsingError(.notAnEscape, at: escape)
        }
        return escape + 2
    }

    private mutating func appendByte(_ byte: UInt8) throws(JSONParsingError) {
        try decoded.append(byte, within: &memory)
    }

    /// The same for one or, if the first is a high surrogate, two escapes with hexadecimal digits.
    private mutating func appendCode(
        at escape: Int, _ half: inout Int?
    ) throws(JSONParsingError) -> Int {
        let code = try unit(at: escape + 2, of: escape)
        guard code & 0xF800 == 0xD800 else {
            try append(Unicode.Scalar(UInt16(code)))
            return escape + 6
        }
        guard code < 0xDC00 else {
            if half == nil { half = escape }
            return escape + 6
        }
        guard text.byte(escape + 6) == JSONSource.backslash,
            text.byte(escape + 7) == UInt8(ascii: "u")
        else {
            throw JSONParsingError(.halfOfSurrogatePair, at: escape)
        }
        let low = try unit(at: escape + 8, of: escape)
        guard low & 0xFC00 == 0xDC00 else {
            throw JSONParsingError(.halfOfSurrogatePair, at: escape)
        }
        try append(Unicode.Scalar(0x10000 + (code & 0x3FF) << 10 + (low & 0x3FF)))
        return escape + 12
    }

    /// The number that four hexadecimal digits are.
    private func unit(at index: Int, of escape: Int) throws(JSONParsingError) -> UInt32 {
        var unit: UInt32 = 0
        for place in index..<index + 4 {
            guard let digit = ASCII.hexValue(text.byte(place)) else {
                throw JSONParsingError(.notFourHexDigits, at: escape)
            }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    private mutating func append(_ scalar: Unicode.Scalar?) throws(JSONParsingError) {
        guard let scalar else { return }
        for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter {
            try appendByte(byte)
        }
    }
}
