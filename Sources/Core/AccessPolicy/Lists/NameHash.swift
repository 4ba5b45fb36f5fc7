import HTTPCore

/// The secret of a process under which the names of its lists are hashed, so that nobody can find
/// names with the same hash.
package struct DomainListKey: Sendable, Equatable {
    /// One key for all lists of the process.
    package static let ofProcess = {
        var generator = SystemRandomNumberGenerator()
        return DomainListKey(using: &generator)
    }()

    /// The key of SipHash, k0 and k1.
    let first: UInt64
    let second: UInt64
    /// The secrets of the quick hash.
    let start: UInt64
    let factor: UInt64

    /// Draws a key.
    package init(using generator: inout some RandomNumberGenerator) {
        first = generator.next()
        second = generator.next()
        start = generator.next()
        factor = generator.next() | 1
    }

    /// A key of SipHash, for its test vectors.
    init(first: UInt64, second: UInt64) {
        (self.first, self.second, start, factor) = (first, second, first, second | 1)
    }
}

/// The 128 bits of a name's hash. Two names that are chosen without knowledge of the key have the
/// same with a probability of 2⁻¹²⁸.
struct NameHash: Equatable {
    var high: UInt64
    var low: UInt64

    /// The value of the first bits.
    @inline(__always)
    func first(_ bits: UInt64) -> Int { Int(truncatingIfNeeded: high >> (64 - bits)) }

    static func precedes(_ left: NameHash, _ right: NameHash) -> Bool {
        left.high != right.high ? left.high < right.high : left.low < right.low
    }
}

/// SipHash-2-4 with 128 bits (Aumasson and Bernstein; reference implementation, `HASH_LEN` 16).
///
/// A name is hashed from its end, eight bytes at a time, so that what has been computed serves the
/// longer names with the same end: the message consists of the last eight bytes of the name, the
/// eight before them and so on, and of the rest. Each word has the bytes in the order of the name,
/// the first one lowest. The order does not matter to the strength of the hash.
struct NameHasher {
    private var state: SipState

    @inline(__always)
    init(_ key: DomainListKey) { state = SipState(key: (key.first, key.second), is128: true) }

    /// Hashes the eight bytes before those hashed so far.
    @inline(__always)
    mutating func absorb(_ word: UInt64) { state.absorb(word, rounds: 2) }

    /// The hash of a name.
    ///
    /// - Parameters:
    ///   - rest: its first bytes, at most seven.
    ///   - count: its length in bytes.
    @inline(__always)
    consuming func hash(rest: UInt64, count: Int) -> NameHash {
        absorb(rest | UInt64(truncatingIfNeeded: count) << 56)
        let (high, low) = state.finish128(rounds: 4)
        return NameHash(high: high, low: low)
    }

    /// The hash of the last bytes of a name, in lower case.
    static func hash(
        _ name: UnsafeRawBufferPointer, from start: Int, _ key: DomainListKey
    ) -> NameHash {
        var hasher = NameHasher(key)
        var end = name.count
        while end &- start >= 8 {
            hasher.absorb(NameWord.load(name, at: end &- 8).lowercased.value)
            end &-= 8
        }
        var rest = NameWord(value: 0)
        if start < end {
            let word = NameWord.ending(name, at: end)
            rest = NameWord(value: word.value >> UInt64(64 &- 8 &* (end &- start))).lowercased
        }
        return hasher.hash(rest: rest.value, count: name.count - start)
    }
}

/// A hash of 64 bits that costs a few cycles for each end of a name, by the folded multiplication
/// of wyhash. It only says which names need not be looked up.
struct QuickHash {
    private var value: UInt64
    private let factor: UInt64

    @inline(__always)
    init(_ key: DomainListKey) { (value, factor) = (key.start, key.factor) }

    @inline(__always)
    mutating func absorb(_ word: UInt64) { value = folded(value ^ word) }

    /// The hash of a name, as by ``NameHasher/hash(rest:count:)``.
    @inline(__always)
    func hash(rest: UInt64, count: Int) -> UInt64 {
        folded(folded(value ^ (rest | UInt64(truncatingIfNeeded: count) << 56)) ^ factor)
    }

    @inline(__always)
    private func folded(_ word: UInt64) -> UInt64 {
        let product = word.multipliedFullWidth(by: factor)
        return product.high ^ product.low
    }
}

/// Eight bytes of a name, the first one lowest.
struct NameWord {
    var value: UInt64

    @inline(__always)
    static func load(_ name: UnsafeRawBufferPointer, at offset: Int) -> NameWord {
        NameWord(
            value: UInt64(
                littleEndian: name.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
    }

    /// The bytes before an offset, eight at most, in the highest bytes; the others are zero.
    @inline(__always)
    static func ending(_ name: UnsafeRawBufferPointer, at end: Int) -> NameWord {
        if end >= 8 { return load(name, at: end &- 8) }
        let gap = UInt64(64 &- 8 &* end)
        if name.count >= 8 { return NameWord(value: load(name, at: 0).value << gap) }
        var value: UInt64 = 0
        for index in 0..<end { value |= UInt64(name[index]) << UInt64(8 &* index) }
        return NameWord(value: value << gap)
    }

    /// With `A` to `Z` in lower case.
    @inline(__always)
    var lowercased: NameWord {
        let heptets = value & ~WordSearch.highBits
        let fromA = heptets &+ WordSearch.lowBits &* (0x80 - 0x41)
        let aboveZ = heptets &+ WordSearch.lowBits &* (0x7F - 0x5A)
        let isUppercase = ~value & WordSearch.highBits & (fromA ^ aboveZ)
        return NameWord(value: value | isUppercase >> 2)
    }

    /// The top bits of the bytes that are dots, exactly.
    @inline(__always)
    var dots: UInt64 {
        let other = value ^ (WordSearch.lowBits &* 0x2E)
        let filled = (other & ~WordSearch.highBits) &+ ~WordSearch.highBits
        return ~(filled | other | ~WordSearch.highBits)
    }
}
