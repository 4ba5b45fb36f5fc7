import Foundation
import HTTPCore
import TestSupport
import Testing

@testable import CacheStore

private struct Slot: EvictionSlot {
    var keyHash: UInt64
    var weight: Int64 = 1
    var uses = SlotUses()
    var newer: Int32 = -1
    var older: Int32 = -1
    var isPinned = false
}

/// A cache of keys, each with a weight of 1.
private struct Keys {
    private var queues = EvictionQueues()
    private var slots: ContiguousArray<Slot> = []
    private var free: [Int32] = []
    private(set) var places: [Int: Int32] = [:]
    let limit: Int

    init(limit: Int) {
        self.limit = limit
        queues.reserve(limit)
    }

    /// Spread evenly, as the hashes of a cache are.
    static func hash(_ key: Int) -> UInt64 {
        var mixed = UInt64(key) &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// Whether it is there; if it is not, it is inserted.
    mutating func ask(_ key: Int) -> Bool {
        if let slot = places[key] {
            slots[Int(slot)].uses.add()
            return true
        }
        insert(key)
        return false
    }

    /// The same for what is on disk as well: it is inserted only if it is worth keeping.
    mutating func load(_ key: Int) -> Bool {
        if let slot = places[key] {
            slots[Int(slot)].uses.add()
            return true
        }
        if places.count < limit || queues.isWorthKeeping(Self.hash(key)) { insert(key) }
        return false
    }

    private mutating func insert(_ key: Int) {
        while places.count >= limit, evict() != nil {}
        let slot = free.popLast() ?? Int32(slots.count)
        if Int(slot) == slots.count { slots.append(Slot(keyHash: 0)) }
        slots[Int(slot)] = Slot(keyHash: Self.hash(key))
        keys[slot] = key
        places[key] = slot
        queues.insert(slot, in: &slots)
    }

    private var keys: [Int32: Int] = [:]

    mutating func evict() -> Int? {
        let slot = queues.victim(in: &slots, of: Int64(places.count)) { $0.isPinned }
        guard slot >= 0, let key = keys[slot] else { return nil }
        remove(key)
        return key
    }

    mutating func remove(_ key: Int) {
        guard let slot = places.removeValue(forKey: key) else { return }
        queues.remove(slot, in: &slots)
        keys[slot] = nil
        free.append(slot)
    }

    mutating func pin(_ key: Int, _ isPinned: Bool = true) {
        if let slot = places[key] { slots[Int(slot)].isPinned = isPinned }
    }
}

@Suite("What is evicted")
struct EvictionQueuesTests {
    @Test func `what was not used goes first, in the order in which it came`() {
        var keys = Keys(limit: 100)
        for key in 0..<100 { _ = keys.ask(key) }
        for key in stride(from: 0, to: 100, by: 2) { _ = keys.ask(key) }
        // A tenth of the space stays with those on probation.
        let evicted = (0..<40).compactMap { _ in keys.evict() }
        #expect(evicted == Array(stride(from: 1, to: 80, by: 2)))
    }

    @Test func `among those that proved themselves, each use is worth a round`() {
        var keys = Keys(limit: 30)
        for key in 0..<30 { _ = keys.ask(key) }
        // They prove themselves, and what they were used for is forgotten.
        for key in 0..<30 { _ = keys.ask(key) }
        for _ in 0..<10 { _ = keys.evict() }
        let left = keys.places.keys.sorted()
        for key in left { for _ in 0..<(key % 3) { _ = keys.ask(key) } }
        let evicted = left.compactMap { _ in keys.evict() }
        #expect(evicted.map { $0 % 3 } == left.map { $0 % 3 }.sorted())
    }

    @Test func `what is pinned stays, and nothing else is lost by it`() {
        var keys = Keys(limit: 20)
        for key in 0..<20 { _ = keys.ask(key) }
        for key in 0..<5 { keys.pin(key) }
        let unpinned = (0..<20).compactMap { _ in keys.evict() }
        #expect(unpinned == Array(5..<20))
        for key in 0..<5 { keys.pin(key, false) }
        let rest = (0..<20).compactMap { _ in keys.evict() }
        #expect(rest == Array(0..<5))
    }

    @Test func `what comes back soon after it was evicted goes to the main queue`() {
        var keys = Keys(limit: 100)
        for key in 0..<110 { _ = keys.ask(key) }
        // 0 was the first to go; it comes back, and outlives everything that was asked for once.
        #expect(keys.places[0] == nil)
        _ = keys.ask(0)
        for key in 1000..<1300 { _ = keys.ask(key) }
        #expect(keys.places[0] != nil)
        #expect(keys.places[1] == nil && keys.places[1000] == nil)
    }

    @Test func `work for one eviction is bounded`() {
        var keys = Keys(limit: 10_000)
        for round in 0..<4 { for key in 0..<10_000 where keys.ask(key) || round == 0 {} }
        // All have three uses: without a bound, each would first get three rounds.
        let evicted = keys.evict()
        #expect(evicted == EvictionQueues.maximumSteps)
    }

    /// Keys from 0 on, by Zipf's law with the exponent 0.9.
    private static func zipf(_ count: Int, of keys: Int, seed: UInt64) -> [Int] {
        var sums: [Double] = []
        var sum = 0.0
        for key in 0..<keys {
            sum += exp(-0.9 * log(Double(key + 1)))
            sums.append(sum)
        }
        var generator = SeededRandom(seed: seed)
        return (0..<count).map { _ in
            let sought = Double.random(in: 0..<sum, using: &generator)
            var (low, high) = (0, keys - 1)
            while low < high {
                let middle = (low + high) / 2
                if sums[middle] < sought { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }

    /// The ratio of hits, after the first third of the requests. If there is a scan, one key in two
    /// is asked for once only, and not counted.
    private static func ratio(
        scans: Bool, _ ask: (Int) -> Bool
    ) -> Double {
        let requests = zipf(200_000, of: 10_000, seed: 7)
        var (hits, counted) = (0, 0)
        for (number, key) in requests.enumerated() {
            let isHit = ask(key)
            if scans { _ = ask(10_000 + number) }
            guard number >= requests.count / 3 else { continue }
            counted += 1
            hits += isHit ? 1 : 0
        }
        return Double(hits) / Double(counted)
    }

    /// A cache that evicts the least recently used key, to compare with.
    private struct LeastRecentlyUsed {
        private var table = ShareTable<Int, Bool>(limit: 1000)

        mutating func ask(_ key: Int) -> Bool {
            if table.value(of: key) != nil {
                table.set(true, for: key, of: nil)
                return true
            }
            table.set(true, for: key, of: nil)
            return false
        }
    }

    @Test func `a tenth of the keys answers more than it does for the least recently used`() {
        var keys = Keys(limit: 1000)
        var loads = Keys(limit: 1000)
        var other = LeastRecentlyUsed()
        let ratio = Self.ratio(scans: false) { keys.ask($0) }
        let loaded = Self.ratio(scans: false) { loads.load($0) }
        let usual = Self.ratio(scans: false) { other.ask($0) }
        #expect(ratio > usual + 0.06 && loaded > usual + 0.06, "\(usual): \(ratio), \(loaded)")
    }

    @Test func `a scan of what is asked for once costs next to nothing`() {
        var keys = Keys(limit: 1000)
        var scanned = Keys(limit: 1000)
        var other = LeastRecentlyUsed()
        let alone = Self.ratio(scans: false) { keys.ask($0) }
        let ratio = Self.ratio(scans: true) { scanned.ask($0) }
        let usual = Self.ratio(scans: true) { other.ask($0) }
        #expect(ratio > alone - 0.03 && ratio > usual + 0.15, "\(alone), \(usual): \(ratio)")
    }
}

@Suite("Keys that were evicted lately")
struct GhostTableTests {
    private func isRemoved(_ key: Int, _ ghosts: inout GhostTable) -> Bool {
        ghosts.remove(Keys.hash(key))
    }

    @Test func `are remembered up to the capacity, once`() {
        var ghosts = GhostTable()
        ghosts.add(Keys.hash(1))
        do {
            let isThere = isRemoved(1, &ghosts)
            #expect(!isThere, "without a capacity there is nothing")
        }
        ghosts.reserve(1000)
        for key in 0..<10_000 { ghosts.add(Keys.hash(key)) }
        let remembered = (0..<10_000).filter { isRemoved($0, &ghosts) }
        #expect(remembered.count > 900 && remembered.count < 1100)
        #expect(remembered.allSatisfy { $0 >= 10_000 - 1100 })
        let again = (0..<10_000).filter { isRemoved($0, &ghosts) }
        #expect(again.isEmpty)
    }

    @Test func `one that is added again is as new`() {
        var ghosts = GhostTable()
        ghosts.reserve(100)
        for key in 0..<5000 {
            ghosts.add(Keys.hash(key))
            ghosts.add(Keys.hash(1_000_000))
        }
        do {
            let isThere = isRemoved(1_000_000, &ghosts)
            #expect(isThere)
        }
    }

    @Test func `with another capacity it knows what it knew`() {
        var ghosts = GhostTable()
        ghosts.reserve(100)
        ghosts.add(Keys.hash(1))
        ghosts.reserve(50)
        #expect(ghosts.capacity == 100)
        do {
            let isThere = isRemoved(1, &ghosts)
            #expect(isThere)
        }
        // It grows by one while keys are added, as a table does.
        for key in 0..<1000 {
            ghosts.add(Keys.hash(key))
            ghosts.reserve(1000 + key)
        }
        let remembered = (0..<1000).filter { isRemoved($0, &ghosts) }
        #expect(remembered.count > 950)
        #expect(ghosts.capacity == 1999)
    }
}
