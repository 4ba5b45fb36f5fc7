/// The bytes seen of a head so far, and the searches that find where its parts end.
///
/// A pointer rather than a span, because a scan over words reads eight bytes at a time. Every
/// access is asserted in debug builds, under which the tests and their fuzzing run.
struct HeadBytes {
    private let base: UnsafePointer<UInt8>
    /// Number of bytes that may be read.
    let count: Int

    /// The first `count` bytes of `buffer`, which must outlive the value; nil when there are none.
    @inline(__always)
    init?(_ buffer: UnsafeBufferPointer<UInt8>, count: Int) {
        assert(count <= buffer.count)
        guard count > 0, let base = buffer.baseAddress else { return nil }
        self.base = base
        self.count = count
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

    /// Up to eight bytes from `start` up to `end`, the first one in the lowest bits, zeros above.
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

    /// Where the token that begins at `start` ends: the first byte that no token may hold.
    @inline(__always)
    func endOfToken(from start: Int) -> Int {
        var index = start
        while index < count, ByteClass.isToken(base[index]) { index &+= 1 }
        return index
    }

    /// The first byte from `start` on that no request target may hold.
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

    /// The first byte from `start` on that no field value may hold, or a tab: the caller passes
    /// over tabs, which are rare.
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

    /// The first of `start..<end` that holds `byte`; nil if none does.
    func first(_ byte: UInt8, from start: Int, to end: Int) -> Int? {
        var index = start
        while index < end {
            if self[index] == byte { return index }
            index &+= 1
        }
        return nil
    }

    /// The range without spaces and tabs at its ends.
    @inline(__always)
    func trimmed(from start: Int, to end: Int) -> ByteRange {
        var start = start
        var end = end
        while start < end, ByteClass.isWhitespace(base[start]) { start &+= 1 }
        while start < end, ByteClass.isWhitespace(base[end &- 1]) { end &-= 1 }
        return ByteRange(from: start, to: end)
    }

    /// Whether the bytes of `range` are those of `lowercase`, ASCII letter case not counting.
    @inline(__always)
    func holds(lowercase: StaticString, at range: ByteRange) -> Bool {
        guard range.count == lowercase.utf8CodeUnitCount else { return false }
        let start = Int(range.start)
        for index in 0..<Int(range.count)
        where ByteClass.lowercased(self[start &+ index]) != lowercase.utf8Start[index] {
            return false
        }
        return true
    }

    /// Whether two ranges hold the same bytes, ASCII letter case not counting.
    func equalIgnoringCase(_ left: ByteRange, _ right: ByteRange) -> Bool {
        guard left.count == right.count else { return false }
        for offset in 0..<Int(left.count)
        where ByteClass.lowercased(self[Int(left.start) &+ offset])
            != ByteClass.lowercased(self[Int(right.start) &+ offset])
        {
            return false
        }
        return true
    }
}

/// Searches in the eight bytes of a word at once. Each answer has the top bit set of bytes that
/// match; bits above the lowest set one may be false, so only the lowest may be used, and a union
/// of answers keeps that property.
enum WordSearch {
    static let lowBits: UInt64 = 0x0101_0101_0101_0101
    static let highBits: UInt64 = 0x8080_8080_8080_8080

    /// Bytes less than `limit`, which is at most 0x80.
    @inline(__always)
    static func below(_ limit: UInt8, in word: UInt64) -> UInt64 {
        (word &- lowBits &* UInt64(limit)) & ~word & highBits
    }

    /// Bytes equal to `byte`.
    @inline(__always)
    static func equal(_ byte: UInt8, in word: UInt64) -> UInt64 {
        below(1, in: word ^ (lowBits &* UInt64(byte)))
    }
}
