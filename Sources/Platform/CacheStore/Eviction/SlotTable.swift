import HTTPCore

/// A slot of a `SlotTable`.
protocol TableSlot: EvictionSlot, Sendable {
    /// Next slot of the same bucket, or of the free list; -1 at the end.
    var chain: Int32 { get set }

    /// A free slot.
    init()
}

/// A hash table of slots, and the queues by which they are evicted. A value without locks.
///
/// It grows by one bucket at a time (W. Litwin: "Linear hashing: a new tool for file and table
/// addressing", VLDB 1980), and its memory in segments: among millions of slots no change takes
/// longer than among a few.
struct SlotTable<Slot: TableSlot>: Sendable {
    /// Buckets at the start; a power of two.
    private static var smallest: Int { 64 }

    private(set) var slots = Segments<Slot>()
    /// The first slot of each bucket; -1 if it is empty.
    private var buckets = Segments<Int32>()
    /// The largest power of two that is not greater than the number of buckets. Those from here on
    /// have taken their part of the slots of the bucket that is this many before them.
    private var half = smallest
    private var free: Int32 = -1
    private var queues = EvictionQueues()
    /// Slots in use.
    private(set) var count = 0

    /// - Parameter count: the number of slots that are about to be inserted, if that is known: each
    ///   then takes a third of the time.
    init(expecting count: Int = 0) {
        for _ in 0..<max(Self.smallest, count + count / 3 + 1) { buckets.append(-1) }
        while half * 2 <= buckets.count { half *= 2 }
        queues.reserve(Self.smallest)
    }

    @inline(__always)
    subscript(_ slot: Int32) -> Slot {
        _read { yield slots[Int(slot)] }
        _modify { yield &slots[Int(slot)] }
    }

    /// The first slot of the bucket of a hash, whose `chain` leads to the others, the latest first;
    /// -1 if there is none. The bucket has slots of other hashes, too.
    @inline(__always)
    func start(_ hash: UInt64) -> Int32 { buckets[bucket(hash)] }

    @inline(__always)
    private func bucket(_ hash: UInt64) -> Int {
        let wide = Int(truncatingIfNeeded: hash) & (half &+ half &- 1)
        return wide < buckets.count ? wide : wide & (half &- 1)
    }

    /// Adds a slot as the newest.
    /// - Parameters:
    ///   - isProven: whether it is known to be used more than once.
    ///   - isQueued: `false` if `enqueue` follows before it may be evicted.
    mutating func insert(_ slot: Slot, isProven: Bool = false, isQueued: Bool = true) -> Int32 {
        // Three slots for four buckets.
        while count &* 4 >= buckets.count &* 3 { splitBucket() }
        let index: Int32
        if free >= 0 {
            index = free
            free = slots[Int(index)].chain
            slots[Int(index)] = slot
        } else {
            index = Int32(slots.count)
            slots.append(slot)
        }
        let home = bucket(slot.keyHash)
        slots[Int(index)].chain = buckets[home]
        buckets[home] = index
        count += 1
        queues.reserve(count &+ count / 2)
        if isQueued { queues.insert(index, isProven: isProven, in: &slots) }
        return index
    }

    /// Makes a slot the newest of its queue.
    mutating func enqueue(_ slot: Int32, isProven: Bool) {
        queues.insert(slot, isProven: isProven, in: &slots)
    }

    /// Removes a slot and returns what it was.
    mutating func remove(_ slot: Int32) -> Slot {
        queues.remove(slot, in: &slots)
        let removed = slots[Int(slot)]
        let home = bucket(removed.keyHash)
        if buckets[home] == slot {
            buckets[home] = removed.chain
        } else {
            var before = buckets[home]
            while slots[Int(before)].chain != slot { before = slots[Int(before)].chain }
            slots[Int(before)].chain = removed.chain
        }
        slots[Int(slot)] = Slot()
        slots[Int(slot)].chain = free
        free = slot
        count -= 1
        return removed
    }

    /// The weight of a slot has become greater by `weight`.
    mutating func hasGrown(_ slot: Int32, by weight: Int64) {
        queues.hasGrown(slot, by: weight, in: slots)
    }

    /// See `EvictionQueues.victim`.
    mutating func victim(of total: Int64, except isExempt: (borrowing Slot) -> Bool) -> Int32 {
        queues.victim(in: &slots, of: total, except: isExempt)
    }

    /// See `EvictionQueues.isWorthKeeping`.
    mutating func isWorthKeeping(_ hash: UInt64) -> Bool { queues.isWorthKeeping(hash) }

    /// Adds a bucket, which takes the slots that are now its own from another one, in their order.
    private mutating func splitBucket() {
        let added = buckets.count
        if added == half &* 2 { half = added }
        buckets.append(-1)
        let source = added &- half
        var slot = buckets[source]
        var (kept, moved): (Int32, Int32) = (-1, -1)
        while slot >= 0 {
            let next = slots[Int(slot)].chain
            if bucket(slots[Int(slot)].keyHash) == added {
                if moved < 0 { buckets[added] = slot } else { slots[Int(moved)].chain = slot }
                moved = slot
            } else {
                if kept < 0 { buckets[source] = slot } else { slots[Int(kept)].chain = slot }
                kept = slot
            }
            slot = next
        }
        if moved >= 0 { slots[Int(moved)].chain = -1 }
        if kept >= 0 { slots[Int(kept)].chain = -1 } else { buckets[source] = -1 }
    }
}
