import CachePolicy
import HTTPCore

/// What the memory tier holds for a key.
public enum MemoryMatch: Sendable {
    case none
    /// The usual case; created without any allocation.
    case one(CachedResponse)
    /// Variants, in no particular order.
    case several([CachedResponse])
}

/// One part of the memory tier: a hash table, and the queues by which it evicts. A value without
/// locks.
///
/// A lookup only counts the use of what it finds. Moving a found entry to the front of a list would
/// touch three more memory locations, each a cache miss: half of a lookup's time among many
/// responses.
struct MemoryShard {
    private struct Slot: EvictionSlot {
        var response: CachedResponse?
        var hash: UInt64 = 0
        var bytes = 0
        /// Neighbours by age; -1 at the ends.
        var newer: Int32 = -1
        var older: Int32 = -1
        /// Next slot of the bucket, or of the free list.
        var chain: Int32 = -1
        var uses = SlotUses()

        var keyHash: UInt64 { hash }
        var weight: Int64 { Int64(bytes) }
    }

    private var slots: ContiguousArray<Slot> = []
    private var buckets = ContiguousArray<Int32>(repeating: -1, count: 64)
    private var free: Int32 = -1
    private var queues = EvictionQueues()
    /// Requests under way whose responses may be stored here.
    var flights = StoreFlights()
    /// Where a response is being fetched that others may wait for, by the hash of its key.
    var leaders: [UInt64: Int] = [:]
    private(set) var count = 0
    private(set) var bytes = 0
    private(set) var evictions: UInt64 = 0
    let variantLimit: Int

    init(variantLimit: Int) {
        self.variantLimit = max(1, variantLimit)
        queues.reserve(buckets.count)
    }

    // MARK: Looking

    /// The responses of a key; each counts as used.
    @inline(__always)
    mutating func find(_ hash: UInt64, _ key: UnsafeRawBufferPointer) -> MemoryMatch {
        var slot = buckets[bucket(hash)]
        while slot >= 0 {
            if let response = match(slot, hash, key) {
                let next = slots[Int(slot)].chain
                slots[Int(slot)].uses.add()
                return next < 0 ? .one(response) : findMore(response, next, hash, key)
            }
            slot = slots[Int(slot)].chain
        }
        return .none
    }

    @inline(never)
    private mutating func findMore(
        _ first: CachedResponse, _ start: Int32, _ hash: UInt64, _ key: UnsafeRawBufferPointer
    ) -> MemoryMatch {
        var slot = start
        var several: [CachedResponse] = []
        while slot >= 0 {
            if let response = match(slot, hash, key) {
                if several.isEmpty { several.append(first) }
                several.append(response)
                slots[Int(slot)].uses.add()
            }
            slot = slots[Int(slot)].chain
        }
        return several.isEmpty ? .one(first) : .several(several)
    }

    @inline(__always)
    private func match(
        _ slot: Int32, _ hash: UInt64, _ key: UnsafeRawBufferPointer
    ) -> CachedResponse? {
        guard slots[Int(slot)].hash == hash, let response = slots[Int(slot)].response,
            response.isOf(hash, key)
        else { return nil }
        return response
    }

    /// The response kept for the same variant of the same key, or `nil` if there is none.
    func variant(of response: CachedResponse) -> CachedResponse? {
        var slot = buckets[bucket(response.keyHash)]
        while slot >= 0 {
            if let other = match(slot, response.keyHash, response.key),
                other.varyKey == response.varyKey
            {
                return other
            }
            slot = slots[Int(slot)].chain
        }
        return nil
    }

    /// Whether exactly this response is kept.
    func contains(_ response: CachedResponse) -> Bool {
        var slot = buckets[bucket(response.keyHash)]
        while slot >= 0 {
            if slots[Int(slot)].response === response { return true }
            slot = slots[Int(slot)].chain
        }
        return false
    }

    // MARK: Changing

    /// Adds a response, replacing the same variant of the same key. What is removed as a result is
    /// appended to `dropped`, to be freed outside the lock.
    mutating func insert(_ response: CachedResponse, dropped: inout [CachedResponse]) {
        var variants = 0
        var leastUsed: Int32 = -1
        var oldestVariant: Int32 = -1
        var slot = buckets[bucket(response.keyHash)]
        while slot >= 0 {
            let next = slots[Int(slot)].chain
            if let other = match(slot, response.keyHash, response.key) {
                if other.varyKey == response.varyKey {
                    remove(slot, dropped: &dropped)
                } else {
                    variants += 1
                    // A bucket's chain has the latest first.
                    oldestVariant = slot
                    if slots[Int(slot)].uses.count == 0 { leastUsed = slot }
                }
            }
            slot = next
        }
        if variants >= variantLimit {
            evictions += 1
            remove(leastUsed >= 0 ? leastUsed : oldestVariant, dropped: &dropped)
        }
        add(response)
    }

    /// Removes the stored variant of the key that corresponds to `response`, if there is one.
    mutating func removeVariant(of response: CachedResponse, dropped: inout [CachedResponse]) {
        var slot = buckets[bucket(response.keyHash)]
        while slot >= 0 {
            let next = slots[Int(slot)].chain
            if let other = match(slot, response.keyHash, response.key),
                other.varyKey == response.varyKey
            {
                remove(slot, dropped: &dropped)
            }
            slot = next
        }
    }

    /// Removes a key's responses and voids stores of it that are under way, but for one.
    mutating func invalidate(
        _ hash: UInt64, _ key: UnsafeRawBufferPointer, except flight: StoreFlight?,
        dropped: inout [CachedResponse]
    ) {
        flights.void(hash, except: flight)
        var slot = buckets[bucket(hash)]
        while slot >= 0 {
            let next = slots[Int(slot)].chain
            if match(slot, hash, key) != nil { remove(slot, dropped: &dropped) }
            slot = next
        }
    }

    /// Removes one response, if it is kept.
    mutating func remove(_ response: CachedResponse, dropped: inout [CachedResponse]) {
        var slot = buckets[bucket(response.keyHash)]
        while slot >= 0 {
            let next = slots[Int(slot)].chain
            if slots[Int(slot)].response === response { remove(slot, dropped: &dropped) }
            slot = next
        }
    }

    /// Removes everything and voids all stores under way.
    mutating func removeAll(dropped: inout [CachedResponse]) {
        flights.voidAll()
        for slot in slots.indices where slots[slot].response != nil {
            remove(Int32(slot), dropped: &dropped)
        }
    }

    /// Whether a response that was read from a level below should be kept, if there is little room:
    /// only if it was read before, not long ago.
    mutating func isWorthKeeping(_ hash: UInt64) -> Bool { queues.isWorthKeeping(hash) }

    /// Removes the response that is the least likely to be used, other than `kept`.
    /// - Returns: the response, and whether it had proved itself (`SlotUses`).
    mutating func evict(
        except kept: CachedResponse?
    ) -> (response: CachedResponse, wasProven: Bool)? {
        let slot = queues.victim(in: &slots, of: Int64(bytes)) { $0.response === kept }
        guard slot >= 0, let response = slots[Int(slot)].response else { return nil }
        let wasProven = slots[Int(slot)].uses.isProven
        var dropped: [CachedResponse] = []
        remove(slot, dropped: &dropped)
        evictions += 1
        return (response, wasProven)
    }

    private mutating func add(_ response: CachedResponse) {
        if count >= buckets.count { grow() }
        let slot: Int32
        if free >= 0 {
            slot = free
            free = slots[Int(slot)].chain
        } else {
            slot = Int32(slots.count)
            slots.append(Slot())
        }
        let size = response.memoryBytes
        slots[Int(slot)].response = response
        slots[Int(slot)].hash = response.keyHash
        slots[Int(slot)].bytes = size
        let home = bucket(response.keyHash)
        slots[Int(slot)].chain = buckets[home]
        buckets[home] = slot
        queues.insert(slot, in: &slots)
        count += 1
        bytes += size
    }

    private mutating func remove(_ slot: Int32, dropped: inout [CachedResponse]) {
        queues.remove(slot, in: &slots)
        let home = bucket(slots[Int(slot)].hash)
        let chain = slots[Int(slot)].chain
        if buckets[home] == slot {
            buckets[home] = chain
        } else {
            var before = buckets[home]
            while slots[Int(before)].chain != slot { before = slots[Int(before)].chain }
            slots[Int(before)].chain = chain
        }
        if let response = slots[Int(slot)].response { dropped.append(response) }
        count -= 1
        bytes -= slots[Int(slot)].bytes
        slots[Int(slot)] = Slot()
        slots[Int(slot)].chain = free
        free = slot
    }

    @inline(__always)
    private func bucket(_ hash: UInt64) -> Int {
        Int(truncatingIfNeeded: hash) & (buckets.count &- 1)
    }

    private mutating func grow() {
        buckets = ContiguousArray(repeating: -1, count: buckets.count * 2)
        queues.reserve(buckets.count)
        for slot in slots.indices where slots[slot].response != nil {
            let home = bucket(slots[slot].hash)
            slots[slot].chain = buckets[home]
            buckets[home] = Int32(slot)
        }
    }
}
