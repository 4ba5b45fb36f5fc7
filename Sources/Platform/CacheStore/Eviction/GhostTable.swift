/// The keys of entries that were evicted lately, by fingerprints of 16 bits: an entry that is
/// stored again soon after its eviction was evicted too early.
///
/// It forgets the oldest first, to within a 64th of its capacity. About one key in 20,000 is
/// mistaken for another.
struct GhostTable {
    /// Places in which a key may be.
    private static let associativity = 4
    /// The steps in which a key ages, from new to forgotten.
    private static let ages = 64

    /// Each way has a fingerprint in its upper half, never 0, and the step in which it was added in
    /// the lower half; 0 if it is empty. A key may be in the `associativity` ways of one set. There
    /// are as many sets as the capacity needs, and they are found as `SlotTable` finds its buckets.
    private var ways = Segments<UInt32>()
    private var sets = 0
    /// The largest power of two that is not greater than the number of sets.
    private var half = 1
    private(set) var capacity = 0
    /// Keys added so far in the current step, and the number of the step.
    private var added = 0
    private var hasAny = false
    private var step: UInt16 = 0

    /// Makes it remember this many keys, two for each set, and all that it remembers already. Each
    /// set that this adds takes a few steps.
    mutating func reserve(_ count: Int) {
        guard count > capacity else { return }
        capacity = count
        while sets * 2 < count {
            if sets == half * 2 { half = sets }
            // A key does not say in which of the two it is from now on.
            let source = sets > 0 ? (sets - half) * Self.associativity : -1
            for way in 0..<Self.associativity { ways.append(source < 0 ? 0 : ways[source + way]) }
            sets += 1
        }
    }

    private func fingerprint(_ hash: UInt64) -> UInt32 {
        max(1 << 16, UInt32(truncatingIfNeeded: hash &>> 32) & ~0xFFFF)
    }

    private func set(_ hash: UInt64) -> Range<Int> {
        var set = Int(truncatingIfNeeded: hash) & (half * 2 - 1)
        if set >= sets { set &= half - 1 }
        return set * Self.associativity..<(set + 1) * Self.associativity
    }

    /// How many steps ago it was added; more than `ages` if it is forgotten.
    private func age(_ way: UInt32) -> UInt16 {
        way == 0 ? .max : step &- UInt16(truncatingIfNeeded: way)
    }

    /// Adds a key, as the newest.
    mutating func add(_ hash: UInt64) {
        guard capacity > 0 else { return }
        hasAny = true
        added += 1
        if added * Self.ages >= capacity {
            added = 0
            step &+= 1
        }
        let fingerprint = fingerprint(hash)
        let set = set(hash)
        let known = set.first { ways[$0] & ~0xFFFF == fingerprint }
        let place = known ?? set.max { age(ways[$0]) < age(ways[$1]) }
        if let place { ways[place] = fingerprint | UInt32(step) }
    }

    /// Whether a key was added lately; it is then forgotten.
    mutating func remove(_ hash: UInt64) -> Bool {
        guard capacity > 0, hasAny else { return false }
        let fingerprint = fingerprint(hash)
        for way in set(hash) where ways[way] & ~0xFFFF == fingerprint {
            defer { ways[way] = 0 }
            return age(ways[way]) <= Self.ages
        }
        return false
    }
}
