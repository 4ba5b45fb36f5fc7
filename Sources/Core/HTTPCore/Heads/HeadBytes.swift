/// The bytes of a head received so far, and searches for where its parts end.
///
/// A pointer rather than a span, because the searches read eight bytes at a time. Every access is
/// asserted in debug builds, which the tests and their fuzzing use.
struct HeadBytes {
    private let base: UnsafePointer<UInt8>
    /// The number of bytes that may be read.
    let count: Int

    /// The first `count` bytes of `buffer`, which must outlive this value; `nil` if there are none.
    @inline(__always)
    init?(_ buffer: UnsafeBufferPointer<UInt8>, count: Int) {
        assert(count <= buffer.count)
        guard count > 0, let base = buffer.baseAddress else { return nil }
        self.base = base
        self.count = count
    }

    /// The bytes from `start` up to `end`.
    func bytes(from start: Int, to end: Int) -> UnsafeRawBufferPointer {
        assert(start >= 0 && start <= end && end <= count)
        return UnsafeRawBufferPointer(start: base + start, count: end &- start)
    }

    @inline(__always)
    subscript(index: Int) -> UInt8 {
        assert(index >= 0 && index < count)
        return base[index]
    }

    /// Eight bytes from `index`, the first one in the lowest bits.
    @inline(__always)
    func word(at index: Int) -> UInt64 {
        assert(index >= 0 && index &+ 8 <= count)
        return UInt64(
            littleEndian: UnsafeRawPointer(base + index).loadUnaligned(as: UInt64.self))
    }

    /// Up to eight bytes from `start` up to `end`, the first one in the lowest bits, padded with
    /// zeros.
    @inline(__always)
    func shortWord(from start: Int, to end: Int) -> UInt64 {
        assert(start < end && end &- start <= 8)
        let count = UInt64(truncatingIfNeeded: end &- start)
        if start &+ 8 <= self.count {
            return word(at: start) & (UInt64.max &>> (64 &- count &* 8))
        }
        var word: UInt64 = 0
        for index in stride(from: end &- 1, through: start, by: -1) {
            word = word &<< 8 | UInt64(self[index])
        }
        return word
    }

    /// The end of the token that begins at `start`: the first byte that may not be in a token.
    @inline(__always)
    func endOfToken(from start: Int) -> Int {
        var index = start
        while index < count, ByteClass.isToken(base[index]) { index &+= 1 }
        return index
    }

    /// The first byte from `start` on that may not be in a request target.
    @inline(__always)
    func endOfTarget(from start: Int) -> Int {
        var index = start
        while index &+ 8 <= count {
            let word = word(at: index)
            let odd =
                WordSearch.below(0x21, in: word) | WordSearch.equal(0x7F, in: word)
                | WordSearch.equal(0x23, in: word) | (word & WordSearch.highBits)
            if odd != 0 { return index &+ odd.trailingZeroBitCount &>> 3 }
            index &+= 8
        }
        while index < count, ByteClass.isTarget(base[index]) { index &+= 1 }
        return index
    }

    /// The first byte from `start` on that may not be in a field value, or that is a tab: the
    /// caller skips tabs, which are rare.
    @inline(__always)
    func endOfFieldValue(from start: Int) -> Int {
        var index = start
        while index &+ 8 <= count {
            let word = word(at: index)
            let odd = WordSearch.below(0x20, in: word) | WordSearch.equal(0x7F, in: word)
            if odd != 0 { return index &+ odd.trailingZeroBitCount &>> 3 }
            index &+= 8
        }
        while index < count, base[index] >= 0x20, base[index] != 0x7F { index &+= 1 }
        return index
    }

    /// The index of the first `byte` in `start..<end`; `nil` if there is none.
    func first(_ byte: UInt8, from start: Int, to end: Int) -> Int? {
        var index = start
        while index < end {
            if self[index] == byte { return index }
            index &+= 1
        }
        return nil
    }

    /// The range without leading and trailing spaces and tabs.
    @inline(__always)
    func trimmed(from start: Int, to end: Int) -> ByteRange {
        var start = start
        var end = end
        while start < end, ASCII.isWhitespace(base[start]) { start &+= 1 }
        while start < end, ASCII.isWhitespace(base[end &- 1]) { end &-= 1 }
        return ByteRange(from: start, to: end)
    }

    /// The position of the first colon in the 32 bytes from `start`, if it is within a whole word
    /// of them.
    @inline(__always)
    func nearColon(from start: Int) -> Int? {
        var index = start
        while index &- start < 32, index &+ 8 <= count {
            let found = WordSearch.equal(Byte.colon, in: word(at: index))
            if found != 0 { return index &+ found.trailingZeroBitCount &>> 3 }
            index &+= 8
        }
        return nil
    }

    /// Whether the bytes in `range` equal `name`, ignoring case. `name` has 1 to 16 lower-case
    /// letters, digits and `-` (see ``CaseFolding``); the words that it is compared in are
    /// constants.
    @inline(__always)
    func holds(lowercase name: StaticString, at range: ByteRange) -> Bool {
        let length = name.utf8CodeUnitCount
        assert((1...16).contains(length))
        guard range.count == length else { return false }
        let start = Int(range.start)
        let end = start &+ length
        if length < 8 {
            return CaseFolding.fold(shortWord(from: start, to: end)) == CaseFolding.short(name)
        }
        return CaseFolding.fold(word(at: start)) == CaseFolding.word(of: name, at: 0)
            && CaseFolding.fold(word(at: end &- 8)) == CaseFolding.word(of: name, at: length &- 8)
    }

    /// Whether two ranges hold the same bytes.
    @inline(__always)
    func equal(_ left: ByteRange, _ right: ByteRange) -> Bool {
        guard left.count == right.count else { return false }
        let count = Int(left.count)
        let (leftStart, rightStart) = (Int(left.start), Int(right.start))
        guard count >= 8 else {
            return count == 0
                || shortWord(from: leftStart, to: leftStart &+ count)
                    == shortWord(from: rightStart, to: rightStart &+ count)
        }
        // The last word may overlap the one before it.
        let last = count &- 8
        var offset = 0
        while offset < last {
            guard word(at: leftStart &+ offset) == word(at: rightStart &+ offset) else {
                return false
            }
            offset &+= 8
        }
        return word(at: leftStart &+ last) == word(at: rightStart &+ last)
    }

    /// Whether two ranges hold the same bytes, ignoring ASCII case.
    func equalIgnoringCase(_ left: ByteRange, _ right: ByteRange) -> Bool {
        guard left.count == right.count else { return false }
        for offset in 0..<Int(left.count)
        where ASCII.lowercased(self[Int(left.start) &+ offset])
            != ASCII.lowercased(self[Int(right.start) &+ offset])
        {
            return false
        }
        return true
    }
}

/// Case-insensitive comparison of eight bytes at once.
///
/// Folding sets bit 0x20 of bytes that have bit 0x40. Only `A` and `a` fold to `a`, and only `-`
/// and digits fold to themselves. So the comparison with a text of lower-case letters, digits and
/// `-` is exact whatever the bytes are; they need not be known to form a token.
enum CaseFolding {
    @inline(__always)
    static func fold(_ word: UInt64) -> UInt64 {
        word | (word & 0x4040_4040_4040_4040) &>> 1
    }

    /// Eight bytes of `text` from `index`: a constant.
    @inline(__always)
    static func word(of text: StaticString, at index: Int) -> UInt64 {
        UInt64(
            littleEndian: UnsafeRawPointer(text.utf8Start + index).loadUnaligned(as: UInt64.self))
    }

    /// All of `text`, of fewer than eight bytes, padded with zeros: a constant.
    @inline(__always)
    static func short(_ text: StaticString) -> UInt64 {
        var word: UInt64 = 0
        for index in 0..<text.utf8CodeUnitCount {
            word |= UInt64(text.utf8Start[index]) &<< UInt64(8 &* index)
        }
        return word
    }
}
