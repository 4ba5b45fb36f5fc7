/// A set of names, as keyed hashes of 128 bits (``NameHash``): two names are taken for the same
/// with a probability of 2⁻¹²⁸.
///
/// While names are added, their hashes are in their order; `seal` sorts them in place. Hashes are
/// spread evenly, so where one is can be computed but for a few places, and it is found with one or
/// two reads of memory. A filter before that (``NameFilter``) spares them for almost all names that
/// are not in the set.
struct NameSet {
    /// The first bits by which hashes are distributed before each part is sorted by itself.
    private static let sortedBits: UInt64 = 8
    /// About how many hashes have the same place in `starts`.
    private static let hashesPerStart = 64

    private var hashes: [NameHash] = []
    private var filter: NameFilter
    /// The numbers of labels of the names.
    private(set) var depths = DepthSet()
    /// For each value of the first bits, where the hashes with it start; and at last their number.
    private var starts: [UInt32] = []
    private var startBits: UInt64 = 0
    private let expected: Int

    /// An empty set.
    ///
    /// - Parameter expected: about how many names there will be. Memory for many more is reserved,
    ///   which costs nothing until it is written, because growing would take twice as much.
    init(expecting expected: Int) {
        self.expected = expected
        filter = NameFilter(names: expected)
    }

    /// The number of names; before `seal`, with duplicates.
    var count: Int { hashes.count }

    var isEmpty: Bool { hashes.isEmpty }

    // MARK: Building

    /// Adds a name.
    ///
    /// - Parameters:
    ///   - quick: its other hash (``QuickHash``).
    ///   - depth: the number of its labels.
    mutating func insert(_ hash: NameHash, _ quick: UInt64, depth: Int) {
        reserve(1)
        hashes.append(hash)
        filter.insert(quick)
        depths.insert(depth)
    }

    /// Adds the names of another set, made for the same number of names.
    mutating func formUnion(_ other: NameSet) {
        reserve(other.count)
        hashes += other.hashes
        filter.formUnion(other.filter)
        depths.formUnion(other.depths)
    }

    private mutating func reserve(_ added: Int) {
        let count = hashes.count + added
        guard count > hashes.capacity else { return }
        hashes.reserveCapacity(hashes.isEmpty ? max(count, expected * 2) : count + count / 4)
    }

    /// Makes the set ready for look-ups; nothing can be added any more.
    mutating func seal(pausing: () -> Void) {
        sort(pausing)
        removeDuplicates()
        // A small set returns what it reserved.
        if hashes.count < 1 << 16, hashes.capacity > hashes.count * 2 {
            hashes = Array(hashes[...])
        }
        filter.fit(names: hashes.count)
        startBits = 0
        while hashes.count >> Int(startBits) > Self.hashesPerStart { startBits += 1 }
        starts = []
        starts.reserveCapacity(1 << Int(startBits) + 1)
        for (index, hash) in hashes.enumerated() {
            while starts.count <= hash.first(startBits) { starts.append(UInt32(index)) }
        }
        while starts.count <= 1 << Int(startBits) { starts.append(UInt32(hashes.count)) }
    }

    /// Sorts in place: distributes the hashes by their first bits, each exchanged with one that is
    /// where it belongs, and then sorts those with the same first bits.
    private mutating func sort(_ pausing: () -> Void) {
        var ends = [Int](repeating: 0, count: 1 << Int(Self.sortedBits))
        for hash in hashes { ends[hash.first(Self.sortedBits)] += 1 }
        var next: [Int] = []
        var sum = 0
        for part in ends.indices {
            next.append(sum)
            sum += ends[part]
            ends[part] = sum
        }
        let firsts = next
        hashes.withUnsafeMutableBufferPointer { hashes in
            for part in ends.indices {
                while next[part] < ends[part] {
                    var hash = hashes[next[part]]
                    while hash.first(Self.sortedBits) != part {
                        let place = next[hash.first(Self.sortedBits)]
                        next[hash.first(Self.sortedBits)] += 1
                        swap(&hash, &hashes[place])
                    }
                    hashes[next[part]] = hash
                    next[part] += 1
                }
                pausing()
            }
            for part in ends.indices {
                var sorted = UnsafeMutableBufferPointer(
                    rebasing: hashes[firsts[part]..<ends[part]])
                sorted.sort(by: NameHash.precedes)
                pausing()
            }
        }
    }

    private mutating func removeDuplicates() {
        var kept = 0
        for index in hashes.indices where kept == 0 || hashes[kept - 1] != hashes[index] {
            hashes[kept] = hashes[index]
            kept += 1
        }
        hashes.removeLast(hashes.count - kept)
    }

    // MARK: Looking up

    /// `false`: a name is not in the set; `true`: it may be.
    @inline(__always)
    func mayContain(_ quick: UInt64, depth: Int) -> Bool {
        depths.contains(depth) && filter.mayContain(quick)
    }

    /// Whether the set has a name.
    func contains(_ hash: NameHash) -> Bool {
        guard !starts.isEmpty else { return false }
        let first = hash.first(startBits)
        let (start, end) = (Int(starts[first]), Int(starts[first + 1]))
        guard start < end else { return false }
        // Where it would be if the hashes had equal distances; then where it is.
        let rest = hash.high << startBits
        var index = start + Int(rest.multipliedFullWidth(by: UInt64(end - start)).high)
        while index > start, hashes[index - 1].high >= hash.high { index -= 1 }
        while index < end, hashes[index].high < hash.high { index += 1 }
        while index < end, hashes[index].high == hash.high {
            if hashes[index].low == hash.low { return true }
            index += 1
        }
        return false
    }
}

extension NameSet: Equatable {
    /// Whether two sealed sets have the same names, if their hashes have the same key. The filter
    /// depends on how they were made.
    static func == (left: NameSet, right: NameSet) -> Bool { left.hashes == right.hashes }
}
