/// Which units of a slab are in use, one bit each.
///
/// A block goes into the shortest run of free units that can hold it, which leaves the long runs
/// intact.
struct UnitMap {
    /// Units per slab.
    static let units = 4096
    /// Units per page of the system.
    static let unitsPerPage = 8
    private static let wordCount = units / 64

    private var words = InlineArray<64, UInt64>(repeating: 0)
    /// Units in use.
    private(set) var used = 0
    /// The length of the longest free run, in units.
    private(set) var longest = UnitMap.units

    /// Allocates `count` contiguous units; returns the first one, or `nil` if no free run is long
    /// enough.
    mutating func take(_ count: Int) -> Int? {
        guard count <= longest else { return nil }
        var best = (start: 0, count: Int.max)
        var longestOther = 0
        var position = firstFree(from: 0)
        while position < Self.units {
            let end = firstUsed(from: position)
            var other = end - position
            if other >= count, other < best.count {
                (other, best) = (best.count == .max ? 0 : best.count, (position, other))
            }
            longestOther = max(longestOther, other)
            position = firstFree(from: end)
        }
        assert(best.count != .max, "the longest run is known")
        mark(best.start, count, isUsed: true)
        longest = max(longestOther, best.count - count)
        return best.start
    }

    /// Allocates the `count` units from `start` on; `false` if any of them is in use.
    mutating func take(_ count: Int, at start: Int) -> Bool {
        guard start + count <= Self.units, firstUsed(from: start) >= start + count else {
            return false
        }
        let run = firstUsed(from: start) - lastUsed(before: start) - 1
        mark(start, count, isUsed: true)
        if run == longest { longest = measuredLongest() }
        return true
    }

    /// Frees `count` units, which are in use.
    mutating func give(back start: Int, _ count: Int) {
        mark(start, count, isUsed: false)
        let run = firstUsed(from: start + count) - lastUsed(before: start) - 1
        longest = max(longest, run)
    }

    /// Whether every unit of a page is free.
    func isFree(page: Int) -> Bool {
        let shift = UInt64(page % 8 * Self.unitsPerPage)
        return words[page / 8] >> shift & 0xFF == 0
    }

    private func measuredLongest() -> Int {
        var longest = 0
        var position = firstFree(from: 0)
        while position < Self.units {
            let end = firstUsed(from: position)
            longest = max(longest, end - position)
            position = firstFree(from: end)
        }
        return longest
    }

    private mutating func mark(_ start: Int, _ count: Int, isUsed: Bool) {
        var position = start
        let end = start + count
        while position < end {
            let first = position % 64
            let length = min(64 - first, end - position)
            let mask = (UInt64.max >> UInt64(64 - length)) << UInt64(first)
            let word = words[position / 64]
            assert(word & mask == (isUsed ? 0 : mask), "a unit is taken or given back twice")
            words[position / 64] = isUsed ? word | mask : word & ~mask
            position += length
        }
        used += isUsed ? count : -count
    }

    /// The first free unit from `start` on, or `units` if there is none.
    private func firstFree(from start: Int) -> Int { first(from: start, flipping: .max) }

    /// The first unit in use from `start` on, or `units` if there is none.
    private func firstUsed(from start: Int) -> Int { first(from: start, flipping: 0) }

    private func first(from start: Int, flipping flip: UInt64) -> Int {
        guard start < Self.units else { return Self.units }
        var index = start / 64
        var word = (words[index] ^ flip) & (UInt64.max << UInt64(start % 64))
        while word == 0 {
            index += 1
            guard index < Self.wordCount else { return Self.units }
            word = words[index] ^ flip
        }
        return index * 64 + word.trailingZeroBitCount
    }

    /// The last unit in use before `end`, or -1 if there is none.
    private func lastUsed(before end: Int) -> Int {
        guard end > 0 else { return -1 }
        var index = (end - 1) / 64
        var word = words[index] & (UInt64.max >> UInt64(63 - (end - 1) % 64))
        while word == 0 {
            index -= 1
            guard index >= 0 else { return -1 }
            word = words[index]
        }
        return index * 64 + 63 - word.leadingZeroBitCount
    }
}
