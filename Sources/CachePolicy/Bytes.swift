/// Tests of single bytes, and comparison.
///
/// HTTPCore has the same tests. These stand here because a call into another module is not always
/// inlined, and every loop over bytes in this module would pay for one per byte.
enum Bytes {
    /// Whether `byte` is optional whitespace: space or tab (RFC 9110 §5.6.3).
    @inline(__always)
    static func isWhitespace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Whether `byte` is a decimal digit.
    @inline(__always)
    static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    /// Whether `byte` may be in a token (RFC 9110 §5.6.2): one bit for each byte below 128.
    @inline(__always)
    static func isToken(_ byte: UInt8) -> Bool {
        let word: UInt64 = byte < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return byte < 128 && word &>> UInt64(byte & 63) & 1 == 1
    }

    /// The byte with `A` to `Z` made lower case, all others as they are.
    @inline(__always)
    static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    /// Offset of the first LF from `start`, or the count: eight bytes at a time.
    static func firstLineFeed(from start: Int, in bytes: Span<UInt8>) -> Int {
        bytes.withUnsafeBytes { raw in
            let ones: UInt64 = 0x0101_0101_0101_0101
            var offset = start
            while offset &+ 8 <= raw.count {
                let word = UInt64(
                    littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                // The lowest byte that is zero after this is the first LF; false hits can only
                // stand above it.
                let difference = word ^ (ones &* 0x0A)
                let zeros = (difference &- ones) & ~difference & (ones &* 0x80)
                if zeros != 0 { return offset &+ zeros.trailingZeroBitCount / 8 }
                offset &+= 8
            }
            while offset < raw.count, raw[offset] != 0x0A { offset &+= 1 }
            return offset
        }
    }

    /// Whether two runs of memory hold the same bytes, compared eight at a time.
    static func areEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        let count = left.count
        guard count == right.count else { return false }
        var offset = 0
        while offset &+ 8 <= count {
            let leftWord = left.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            let rightWord = right.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            if leftWord != rightWord { return false }
            offset &+= 8
        }
        while offset < count {
            if left[offset] != right[offset] { return false }
            offset &+= 1
        }
        return true
    }
}
