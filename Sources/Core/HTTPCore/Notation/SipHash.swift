/// The state of SipHash (Aumasson and Bernstein, "SipHash: a fast short-input PRF"): a hash under a
/// secret key, of messages that somebody else chooses. Those who use it choose the number of rounds
/// and the order of the words, and finish it.
@frozen
public struct SipState: Sendable {
    @usableFromInline var v0: UInt64
    @usableFromInline var v1: UInt64
    @usableFromInline var v2: UInt64
    @usableFromInline var v3: UInt64

    /// Begins a hash of 64 bits, or of 128.
    /// - Parameter key: k0 and k1.
    @inlinable
    @inline(__always)
    public init(key: (UInt64, UInt64), is128 isWide: Bool = false) {
        v0 = key.0 ^ 0x736F_6D65_7073_6575
        v1 = key.1 ^ 0x646F_7261_6E64_6F6D ^ (isWide ? 0xEE : 0)
        v2 = key.0 ^ 0x6C79_6765_6E65_7261
        v3 = key.1 ^ 0x7465_6462_7974_6573
    }

    /// Absorbs a word of the message, with some rounds.
    @inlinable
    @inline(__always)
    public mutating func absorb(_ word: UInt64, rounds: Int) {
        v3 ^= word
        for _ in 0..<rounds { round() }
        v0 ^= word
    }

    /// Ends the message: the 64 bits after some rounds.
    @inlinable
    @inline(__always)
    public mutating func finish(rounds: Int) -> UInt64 {
        v2 ^= 0xFF
        return value(rounds: rounds)
    }

    /// Ends the message of a hash of 128 bits: the first and the second half in the order of the
    /// reference implementation.
    @inlinable
    @inline(__always)
    public mutating func finish128(rounds: Int) -> (UInt64, UInt64) {
        v2 ^= 0xEE
        let first = value(rounds: rounds)
        v1 ^= 0xDD
        return (first, value(rounds: rounds))
    }

    /// SipHash-2-4 of some bytes, with 128 bits.
    @inlinable
    public static func hash128(_ bytes: UnsafeRawBufferPointer, key: (UInt64, UInt64)) -> (
        UInt64, UInt64
    ) {
        var state = SipState(key: key, is128: true)
        var offset = 0
        while offset &+ 8 <= bytes.count {
            let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            state.absorb(UInt64(littleEndian: word), rounds: 2)
            offset &+= 8
        }
        var last = UInt64(truncatingIfNeeded: bytes.count) &<< 56
        for index in offset..<bytes.count {
            last |= UInt64(bytes[index]) &<< UInt64(truncatingIfNeeded: (index &- offset) &* 8)
        }
        state.absorb(last, rounds: 2)
        return state.finish128(rounds: 4)
    }

    @inlinable
    @inline(__always)
    mutating func value(rounds: Int) -> UInt64 {
        for _ in 0..<rounds { round() }
        return v0 ^ v1 ^ v2 ^ v3
    }

    @inlinable
    @inline(__always)
    mutating func round() {
        v0 = v0 &+ v1
        v1 = Self.rotate(v1, 13) ^ v0
        v0 = Self.rotate(v0, 32)
        v2 = v2 &+ v3
        v3 = Self.rotate(v3, 16) ^ v2
        v0 = v0 &+ v3
        v3 = Self.rotate(v3, 21) ^ v0
        v2 = v2 &+ v1
        v1 = Self.rotate(v1, 17) ^ v2
        v2 = Self.rotate(v2, 32)
    }

    @inlinable
    @inline(__always)
    static func rotate(_ word: UInt64, _ bits: UInt64) -> UInt64 {
        word &<< bits | word &>> (64 &- bits)
    }
}
