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
    struct Slot: TableSlot {
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

    private var table = SlotTable<Slot>()
    /// Requests under way whose responses may be stored here.
    var flights = StoreFlights()
    /// Where a response is being fetched that others may wait for, by the hash of its key.
    var leaders: [UInt64: Int] = [:]
    var count: Int { table.count }
    private(set) var bytes = 0
    private(set) var evictions: UInt64 = 0
    let variantLimit: Int

    init(variantLimit: Int) {
        self.variantLimit = max(1, variantLimit)
    }

    // MARK: Looking

    /// The responses of a key; each counts as used.
    @inline(__always)
    mutating func find(_ hash: UInt64, _ key: UnsafeRawBufferPointer) -> MemoryMatch {
        var slot = table.start(hash)
        while slot >= 0 {
            if let response = match(slot, hash, key) {
                let next = table[slot].chain
                table[slot].uses.add()
                return next < 0 ? .one(response) : findMore(response, next, hash, key)
            }
            slot = table[slot].chain
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
                table[slot].uses.add()
            }
            slot = table[slot].chain
        }
        return several.isEmpty ? .one(first) : .several(several)
    }

    @inline(__always)
    private func match(
        _ slot: Int32, _ hash: UInt64, _ key: UnsafeRawBufferPointer
    ) -> CachedResponse? {
        guard table[slot].hash == hash, let response = table[slot].response,
            response.isOf(hash, key)
        else { return nil }
        return response
    }

    /// The response kept for the same variant of the same key, or `nil` if there is none.
    func variant(of response: CachedResponse) -> CachedResponse? {
        var slot = table.start(response.keyHash)
        while slot >= 0 {
            if let other = match(slot, response.keyHash, response.key),
                other.varyKey == response.varyKey
            {
                return other
            }
            slot = table[slot].chain
        }
        return nil
    }

    /// Whether exactly this response is kept.
    func contains(_ response: CachedResponse) -> Bool {
        var slot = table.start(response.keyHash)
        while slot >= 0 {
            if table[slot].response === response { return true }
            slot = table[slot].chain
        }
        return false
    }

    /// Calls `body` with the responses in `count` slots from `start` on, until it returns `false`.
    /// Returns the slot to continue with: of the last response if that was refused; `nil` if there
    /// are no more.
    func visit(from start: Int, count: Int, _ body: (CachedResponse) -> Bool) -> Int? {
        let end = min(table.slots.count, start + count)
        guard start < end else { return nil }
        for slot in start..<end {
            if let response = table.slots[slot].response, !body(response) { return slot }
        }
        return end
    }

    // MARK: Changing

    /// A response, or the one that has replaced its head, takes more memory from now on. Returns
    /// `false` if neither is kept.
    mutating func grow(_ response: CachedResponse, by count: Int) -> Bool {
        var slot = table.start(response.keyHash)
        while slot >= 0 {
            if let kept = table[slot].response,
                kept === response || kept.sharesRenditions(with: response)
            {
                table[slot].bytes += count
                table.hasGrown(slot, by: Int64(count))
                bytes += count
                return true
            }
            slot = table[slot].chain
        }
        return false
    }

    /// Adds a response, replacing the same variant of the same key. What is removed as a result is
    /// appended to `dropped`, to be freed outside the lock.
    mutating func insert(_ response: CachedResponse, dropped: inout [CachedResponse]) {
        var variants = 0
        var leastUsed: Int32 = -1
        var oldestVariant: Int32 = -1
        var slot = table.start(response.keyHash)
        while slot >= 0 {
            let next = table[slot].chain
            if let other = match(slot, response.keyHash, response.key) {
                if other.varyKey == response.varyKey {
                    remove(slot, dropped: &dropped)
                } else {
                    variants += 1
                    // A bucket's chain has the latest first.
                    oldestVariant = slot
                    if table[slot].uses.count == 0 { leastUsed = slot }
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
        var slot = table.start(response.keyHash)
        while slot >= 0 {
            let next = table[slot].chain
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
        var slot = table.start(hash)
        while slot >= 0 {
            let next = table[slot].chain
            if match(slot, hash, key) != nil { remove(slot, dropped: &dropped) }
            slot = next
        }
    }

    /// Removes one response, if it is kept.
    mutating func remove(_ response: CachedResponse, dropped: inout [CachedResponse]) {
        var slot = table.start(response.keyHash)
        while slot >= 0 {
            let next = table[slot].chain
            if table[slot].response === response { remove(slot, dropped: &dropped) }
            slot = next
        }
    }

    /// Removes everything and voids all stores under way. Returns what was removed, to be freed
    /// outside the lock.
    mutating func removeAll() -> SlotTable<Slot> {
        flights.voidAll()
        var removed = SlotTable<Slot>()
        swap(&table, &removed)
        bytes = 0
        return removed
    }

    /// Whether a response that was read from a level below should be kept, if there is little room:
    /// only if it was read before, not long ago.
    mutating func isWorthKeeping(_ hash: UInt64) -> Bool { table.isWorthKeeping(hash) }

    /// Removes the response that is the least likely to be used, other than `kept`.
    /// - Returns: the response, and whether it had proved itself (`SlotUses`).
    mutating func evict(
        except kept: CachedResponse?
    ) -> (response: CachedResponse, wasProven: Bool)? {
        let slot = table.victim(of: Int64(bytes)) { $0.response === kept }
        guard slot >= 0, let response = table[slot].response else { return nil }
        let wasProven = table[slot].uses.isProven
        var dropped: [CachedResponse] = []
        remove(slot, dropped: &dropped)
        evictions += 1
        return (response, wasProven)
    }

    private mutating func add(_ response: CachedResponse) {
        var slot = Slot()
        slot.response = response
        slot.hash = response.keyHash
        slot.bytes = response.memoryBytes
        bytes += slot.bytes
        _ = table.insert(slot)
    }

    private mutating func remove(_ slot: Int32, dropped: inout [CachedResponse]) {
        let removed = table.remove(slot)
        bytes -= removed.bytes
        if let response = removed.response { dropped.append(response) }
    }
}
