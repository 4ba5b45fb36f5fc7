/// Copies in words: the fastest way for the few dozen bytes of a field.
enum WordCopy {
    /// How many bytes past the end of both places may be touched.
    static let slack = 16

    /// Copies `count` bytes, and up to ``slack`` more whose values mean nothing; the places must
    /// not overlap.
    @inline(__always)
    static func copy(_ source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, count: Int) {
        var offset = 0
        repeat {
            let word = (source + offset).loadUnaligned(as: SIMD16<UInt8>.self)
            (target + offset).storeBytes(of: word, as: SIMD16<UInt8>.self)
            offset &+= 16
        } while offset < count
    }

    /// Whether `count` bytes are equal; nothing past their ends is read.
    @inline(__always)
    static func equal(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, count: Int) -> Bool {
        guard count >= 8 else { return equalShort(left, right, count: count) }
        // The last word may overlap the one before it.
        let last = count &- 8
        var offset = 0
        while offset < last {
            guard word(left + offset) == word(right + offset) else { return false }
            offset &+= 8
        }
        return word(left + last) == word(right + last)
    }

    @inline(never)
    private static func equalShort(
        _ left: UnsafeRawPointer, _ right: UnsafeRawPointer, count: Int
    ) -> Bool {
        for offset in 0..<count
        where (left + offset).load(as: UInt8.self) != (right + offset).load(as: UInt8.self) {
            return false
        }
        return true
    }

    /// Eight bytes, the first one in the lowest bits.
    @inline(__always)
    static func word(_ place: UnsafeRawPointer) -> UInt64 {
        UInt64(littleEndian: place.loadUnaligned(as: UInt64.self))
    }

    /// Eight bytes, the first one in the highest bits.
    @inline(__always)
    static func bigEndianWord(_ place: UnsafeRawPointer) -> UInt64 {
        UInt64(bigEndian: place.loadUnaligned(as: UInt64.self))
    }
}
