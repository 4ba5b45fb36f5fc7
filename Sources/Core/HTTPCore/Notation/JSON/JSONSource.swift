/// The bytes of a JSON text, and what ends where in them: white space, words, numbers, strings. An
/// index is that of a byte, or the count.
struct JSONSource {
    let base: UnsafeRawPointer
    let count: Int

    init(_ bytes: UnsafeRawBufferPointer) {
        base = bytes.baseAddress ?? UnsafeRawPointer(("" as StaticString).utf8Start)
        count = bytes.count
    }

    static var quotationMark: UInt8 { UInt8(ascii: "\"") }
    static var backslash: UInt8 { UInt8(ascii: "\\") }

    var hasByteOrderMark: Bool { byte(0) == 0xEF && byte(1) == 0xBB && byte(2) == 0xBF }

    /// The byte at an index; 0 at the end and beyond.
    @inline(__always)
    func byte(_ index: Int) -> UInt8 {
        index < count ? base.load(fromByteOffset: index, as: UInt8.self) : 0
    }

    /// The eight bytes from an index on, the first one lowest.
    @inline(__always)
    func word(_ index: Int) -> UInt64 {
        UInt64(littleEndian: base.loadUnaligned(fromByteOffset: index, as: UInt64.self))
    }

    @inline(__always)
    func error(
        _ reason: JSONParsingError.Reason, orAtEnd end: JSONParsingError.Reason, at index: Int
    ) -> JSONParsingError {
        JSONParsingError(index >= count ? end : reason, at: index)
    }

    func notAValue(at index: Int) -> JSONParsingError {
        error(.notAValue, orAtEnd: .endInValue, at: index)
    }

    /// Skips spaces, tabs, line feeds and carriage returns (§2).
    @inline(__always)
    func skippingSpace(from start: Int) -> Int {
        // Texts without white space are frequent.
        byte(start) > 0x20 ? start : skippingAnySpace(from: start)
    }

    @inline(never)
    private func skippingAnySpace(from start: Int) -> Int {
        var at = start
        while at < count {
            switch byte(at) {
            case 0x20, 0x0A, 0x0D, 0x09: at &+= 1
            default: return at
            }
            // After a line feed there is often an indentation.
            while at &+ 8 <= count {
                let others = word(at) ^ (WordSearch.lowBits &* 0x20)
                if others != 0 {
                    at &+= others.trailingZeroBitCount / 8
                    break
                }
                at &+= 8
            }
        }
        return at
    }

    /// Checks that nothing but white space follows from an index on.
    func finish(from end: Int) throws(JSONParsingError) {
        let at = skippingSpace(from: end)
        guard at == count else { throw JSONParsingError(.moreAfterValue, at: at) }
    }

    /// Reads one of the three words.
    ///
    /// - Parameter tail: its last four bytes, the first one lowest.
    /// - Returns: the index behind it.
    @inline(__always)
    func word(
        _ letters: StaticString, tail: UInt32, at start: Int
    ) throws(JSONParsingError) -> Int {
        let end = start &+ letters.utf8CodeUnitCount
        if end <= count {
            let last = base.loadUnaligned(fromByteOffset: end &- 4, as: UInt32.self)
            if UInt32(littleEndian: last) == tail { return end }
        }
        var at = start
        while at < end, byte(at) == letters.utf8Start[at - start] { at += 1 }
        throw notAValue(at: at)
    }

    /// The index behind a number (§6) that begins with a minus sign or a digit.
    @inline(__always)
    func endOfNumber(at start: Int) throws(JSONParsingError) -> Int {
        var at = byte(start) == UInt8(ascii: "-") ? start &+ 1 : start
        if byte(at) == UInt8(ascii: "0") {
            at &+= 1
        } else {
            let end = endOfDigits(from: at)
            guard end > at else { throw notAValue(at: at) }
            at = end
        }
        if byte(at) == UInt8(ascii: ".") {
            let end = endOfDigits(from: at &+ 1)
            guard end > at &+ 1 else { throw JSONParsingError(.noFraction, at: end) }
            at = end
        }
        if byte(at) | 0x20 == UInt8(ascii: "e") {
            at &+= 1
            if byte(at) == UInt8(ascii: "+") || byte(at) == UInt8(ascii: "-") { at &+= 1 }
            let end = endOfDigits(from: at)
            guard end > at else { throw JSONParsingError(.noExponent, at: end) }
            at = end
        }
        return at
    }

    @inline(__always)
    private func endOfDigits(from start: Int) -> Int {
        var at = start
        while at &+ 8 <= count {
            // A digit's high bits are those of 0x30, and its low ones are at most 9: adding 0x76
            // to others sets the high bit.
            let values = word(at) ^ (WordSearch.lowBits &* 0x30)
            let others = (values | (values &+ WordSearch.lowBits &* 0x76)) & WordSearch.highBits
            if others != 0 { return at &+ others.trailingZeroBitCount / 8 }
            at &+= 8
        }
        while byte(at) &- 0x30 < 10 { at &+= 1 }
        return at
    }

    // MARK: - Text

    /// The index of the next quotation mark or backslash.
    ///
    /// - Throws: at what must not be in a string before it, or if there is none.
    @inline(__always)
    func endOfPlainText(from start: Int) throws(JSONParsingError) -> Int {
        var at = start
        while at &+ 8 <= count {
            let marks = Self.marksOfSpecialBytes(in: word(at))
            guard marks != 0 else {
                at &+= 8
                if at &- start == 64 { at = skippingLongText(from: at) }
                continue
            }
            at &+= marks.trailingZeroBitCount / 8
            let found = byte(at)
            if found == Self.quotationMark || found == Self.backslash { return at }
            at = try endOfOthers(from: at)
        }
        return try endOfLastText(from: at)
    }

    /// Skips blocks of a long string that have no special bytes.
    @inline(never)
    private func skippingLongText(from start: Int) -> Int {
        typealias Words = SIMD4<UInt64>
        let ones = Words(repeating: WordSearch.lowBits)
        let spaces = ones &* 0x20
        let quotes = ones &* UInt64(Self.quotationMark)
        let backslashes = ones &* UInt64(Self.backslash)
        var at = start
        while at &+ 32 <= count {
            let words = base.loadUnaligned(fromByteOffset: at, as: Words.self)
            let marks =
                words | (words &- spaces) | ((words ^ quotes) &- ones)
                | ((words ^ backslashes) &- ones)
            guard (marks[0] | marks[1] | marks[2] | marks[3]) & WordSearch.highBits == 0 else {
                return at
            }
            at &+= 32
        }
        return at
    }

    /// The same within the last seven bytes of the text.
    @inline(never)
    private func endOfLastText(from start: Int) throws(JSONParsingError) -> Int {
        var at = start
        while at < count {
            switch byte(at) {
            case Self.quotationMark, Self.backslash: return at
            case 0x20..<0x80: at &+= 1
            default: at = try endOfOthers(from: at)
            }
        }
        throw JSONParsingError(.endInString, at: count)
    }

    /// Marks, by their high bits, the bytes that are not ASCII or do not stand for themselves in a
    /// string; only the lowest mark counts (``WordSearch``). Of ASCII, subtracting 0x20 leaves the
    /// high bit set in control characters, and subtracting 1 in a byte that was 0.
    @inline(__always)
    private static func marksOfSpecialBytes(in word: UInt64) -> UInt64 {
        let ones = WordSearch.lowBits
        let quotes = (word ^ (ones &* UInt64(quotationMark))) &- ones
        let backslashes = (word ^ (ones &* UInt64(backslash))) &- ones
        return (word | (word &- ones &* 0x20) | quotes | backslashes) & WordSearch.highBits
    }

    /// Skips characters that are not ASCII.
    ///
    /// - Throws: at a control character, and at what is not UTF-8.
    @inline(never)
    private func endOfOthers(from start: Int) throws(JSONParsingError) -> Int {
        guard byte(start) >= 0x80 else { throw JSONParsingError(.controlCharacter, at: start) }
        var at = start
        repeat {
            let length = characterLength(at: at)
            guard length > 0 else { throw JSONParsingError(.notUTF8, at: at) }
            at &+= length
        } while byte(at) >= 0x80
        return at
    }

    /// The length of the character of two or more bytes at an index (Unicode 15 table 3-7); 0 if
    /// it is not well-formed.
    @inline(__always)
    private func characterLength(at index: Int) -> Int {
        let four: UInt32
        if index &+ 4 <= count {
            four = UInt32(littleEndian: base.loadUnaligned(fromByteOffset: index, as: UInt32.self))
        } else {
            // What is missing is 0, which continues no character.
            four =
                UInt32(byte(index)) | UInt32(byte(index &+ 1)) << 8
                | UInt32(byte(index &+ 2)) << 16
        }
        if four & 0x00C0_C0F0 == 0x0080_80E0 {
            // The first four bits of the code, and the fifth: neither overlong nor a surrogate.
            let bits = four & 0x200F
            return bits != 0 && bits != 0x200D ? 3 : 0
        }
        if four & 0xC0E0 == 0x80C0 { return four & 0x1E != 0 ? 2 : 0 }
        if four & 0xC0C0_C0F8 == 0x8080_80F0 {
            let plane = (four & 7) << 2 | (four >> 12) & 3
            return plane &- 1 < 16 ? 4 : 0
        }
        return 0
    }
}
