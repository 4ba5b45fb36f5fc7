/// xxHash64 (the algorithm's public specification, version 0.1.1): the store's hash for keys, with
/// a random seed, and its checksum for rows. It detects damage; it does not protect against someone
/// who can write to the database file.
enum XXHash64 {
    @usableFromInline static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
    @usableFromInline static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    @usableFromInline static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
    @usableFromInline static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
    @usableFromInline static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

    /// The hash of `bytes`; any count, any alignment.
    static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        let count = bytes.count
        guard let base = bytes.baseAddress, count > 0 else {
            return avalanche(seed &+ prime5)
        }
        var offset = 0
        var result: UInt64
        if count >= 32 {
            result = stripes(base, count, seed, &offset)
        } else {
            result = seed &+ prime5
        }
        result = result &+ UInt64(truncatingIfNeeded: count)
        while offset &+ 8 <= count {
            let word = UInt64(
                littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            result ^= round(0, word)
            result = rotate(result, 27) &* prime1 &+ prime4
            offset &+= 8
        }
        if offset &+ 4 <= count {
            let word = UInt32(
                littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
            result ^= UInt64(word) &* prime1
            result = rotate(result, 23) &* prime2 &+ prime3
            offset &+= 4
        }
        while offset < count {
            result ^= UInt64(base.load(fromByteOffset: offset, as: UInt8.self)) &* prime5
            result = rotate(result, 11) &* prime1
            offset &+= 1
        }
        return avalanche(result)
    }

    /// The four lanes over all whole 32-byte stripes.
    @inline(__always)
    private static func stripes(
        _ base: UnsafeRawPointer, _ count: Int, _ seed: UInt64, _ offset: inout Int
    ) -> UInt64 {
        var lane1 = seed &+ prime1 &+ prime2
        var lane2 = seed &+ prime2
        var lane3 = seed
        var lane4 = seed &- prime1
        var at = 0
        let last = count &- 32
        while at <= last {
            lane1 = round(lane1, load(base, at))
            lane2 = round(lane2, load(base, at &+ 8))
            lane3 = round(lane3, load(base, at &+ 16))
            lane4 = round(lane4, load(base, at &+ 24))
            at &+= 32
        }
        offset = at
        var result = rotate(lane1, 1) &+ rotate(lane2, 7) &+ rotate(lane3, 12) &+ rotate(lane4, 18)
        result = merge(result, lane1)
        result = merge(result, lane2)
        result = merge(result, lane3)
        return merge(result, lane4)
    }

    @inline(__always)
    private static func load(_ base: UnsafeRawPointer, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    @inline(__always)
    private static func rotate(_ value: UInt64, _ by: UInt64) -> UInt64 {
        (value &<< by) | (value &>> (64 &- by))
    }

    @inline(__always)
    private static func round(_ lane: UInt64, _ word: UInt64) -> UInt64 {
        rotate(lane &+ word &* prime2, 31) &* prime1
    }

    @inline(__always)
    private static func merge(_ result: UInt64, _ lane: UInt64) -> UInt64 {
        (result ^ round(0, lane)) &* prime1 &+ prime4
    }

    @inline(__always)
    private static func avalanche(_ value: UInt64) -> UInt64 {
        var result = value
        result = (result ^ (result &>> 33)) &* prime2
        result = (result ^ (result &>> 29)) &* prime3
        return result ^ (result &>> 32)
    }
}
