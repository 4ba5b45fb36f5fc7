/// Says of most names that are not in a set that they are not, from a few bits for each name in it:
/// a Bloom filter whose bits of one name are all in one word.
struct NameFilter {
    private let names: Int
    /// A power of two of them, or none before the first name.
    private var words: [UInt64] = []

    /// For a number of names. With more, it is right as well, but less often of use.
    init(names: Int) { self.names = names }

    private mutating func allocate() {
        // At least 16 bits for each.
        var count = 64
        while count < names / 4, count < 1 << 30 { count *= 2 }
        words = [UInt64](repeating: 0, count: count)
    }

    @inline(__always)
    mutating func insert(_ hash: UInt64) {
        if words.isEmpty { allocate() }
        words[Int(truncatingIfNeeded: hash) & (words.count &- 1)] |= Self.bits(hash)
    }

    /// `false`: not in the set, which has names; `true`: it may be.
    @inline(__always)
    func mayContain(_ hash: UInt64) -> Bool {
        let bits = Self.bits(hash)
        return words[Int(truncatingIfNeeded: hash) & (words.count &- 1)] & bits == bits
    }

    /// Four bits, by the upper half of the hash.
    @inline(__always)
    private static func bits(_ hash: UInt64) -> UInt64 {
        1 << (hash >> 58) | 1 << (hash >> 52 & 63) | 1 << (hash >> 46 & 63) | 1 << (hash >> 40 & 63)
    }

    /// Halves it while at least 12 bits for each name are left.
    mutating func fit(names: Int) {
        while words.count > 64, words.count / 2 * 64 >= names * 12 {
            let half = words.count / 2
            words = (0..<half).map { words[$0] | words[$0 + half] }
        }
    }

    /// Adds the names of a filter that was made for the same number.
    mutating func formUnion(_ other: NameFilter) {
        precondition(names == other.names)
        if words.isEmpty { words = other.words }
        for index in other.words.indices { words[index] |= other.words[index] }
    }
}
