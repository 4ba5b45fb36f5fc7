/// Searches the eight bytes of a word at once. Each result has the top bit set in the bytes that
/// match; bits above the lowest set one may be false positives, so only the lowest may be used. A
/// union of results keeps this property.
public enum WordSearch {
    @inlinable @inline(__always)
    public static var lowBits: UInt64 { 0x0101_0101_0101_0101 }
    @inlinable @inline(__always)
    public static var highBits: UInt64 { 0x8080_8080_8080_8080 }

    /// Bytes less than `limit`, which is at most 0x80.
    @inlinable @inline(__always)
    public static func below(_ limit: UInt8, in word: UInt64) -> UInt64 {
        (word &- lowBits &* UInt64(limit)) & ~word & highBits
    }

    /// Bytes equal to `byte`.
    @inlinable @inline(__always)
    public static func equal(_ byte: UInt8, in word: UInt64) -> UInt64 {
        below(1, in: word ^ (lowBits &* UInt64(byte)))
    }
}

extension Span where Element == UInt8 {
    /// The offset of the first `byte` from `start` on, or the count; eight bytes at a time.
    public func firstIndex(of byte: UInt8, from start: Int) -> Int {
        withUnsafeBytes { raw in
            var offset = start
            while offset &+ 8 <= raw.count {
                let word = UInt64(
                    littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                let found = WordSearch.equal(byte, in: word)
                if found != 0 { return offset &+ found.trailingZeroBitCount / 8 }
                offset &+= 8
            }
            while offset < raw.count, raw[offset] != byte { offset &+= 1 }
            return offset
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Whether two memory regions hold the same bytes, compared eight at a time.
    public func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        let count = count
        guard count == other.count else { return false }
        var offset = 0
        while offset &+ 8 <= count {
            let leftWord = loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            let rightWord = other.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            if leftWord != rightWord { return false }
            offset &+= 8
        }
        while offset < count {
            if self[offset] != other[offset] { return false }
            offset &+= 1
        }
        return true
    }
}
