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

/// A response in memory and how it was used.
struct MemoryEntry: Sendable {
    let response: CachedResponse
    /// Its entry on disk.
    let token: IndexToken
    /// How often it was found.
    let hits: UInt64
    /// How often, since that was last noted for its row.
    let untold: UInt32
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
        /// How often it was found, all in all,
        var hits: UInt64 = 0
        /// when it was last considered for eviction,
        private var considered: UInt32 = 0
        /// and when the disk's index was last told (the lower 32 bits of each).
        private var told: UInt32 = 0
        private var isProven = false

        var uses: SlotUses {
            get {
                let count = UInt32(truncatingIfNeeded: hits) &- considered
                return SlotUses(count: UInt8(min(count, 3)), isProven: isProven)
            }
            set {
                considered = UInt32(truncatingIfNeeded: hits) &- UInt32(newValue.count)
                isProven = newValue.isProven
            }
        }

        /// These hits were found as another response: they count, but not for its eviction.
        mutating func inherit(_ count: UInt64) {
            hits &+= count
            considered &+= UInt32(truncatingIfNeeded: count)
        }

        /// The uses that the disk's index has not been told of.
        var untold: UInt32 { UInt32(truncatingIfNeeded: hits) &- told }

        /// The same; it has then.
        mutating func takeHits() -> UInt32 {
            let count = untold
            told = UInt32(truncatingIfNeeded: hits)
            return count
        }

        var keyHash: UInt64 { hash }
        var weight: Int64 { Int64(bytes) }
    }

    private var table = SlotTable<Slot>()
    /// Requests under way whose responses may be stored here.
    var flights = StoreFlights()
    /// Where a response is being fetched that others may wait for, by the hash of its key.
    var leaders: [UInt64: Int] = [:]
    /// The last purge that it knows of: what is added is not about those before.
    private(set) var serial: UInt64 = 0
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
                table[slot].hits &+= 1
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
                table[slot].hits &+= 1
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

    // MARK: Purging

    /// A ban is in force from now on: what is here and under way may be what it is about.
    mutating func note(_ serial: UInt64) {
        self.serial = max(self.serial, serial)
        flights.suspect(since: serial)
    }

    /// Ends a flight. Returns whether its response may be stored.
    mutating func land(
        _ flight: StoreFlight, _ response: CachedResponse, _ bans: BansInForce
    ) -> Bool {
        let suspicion = flights.suspectSince(flight)
        guard flights.land(flight) else { return false }
        response.born = serial
        guard let suspicion else { return true }
        return bans.verdict(
            key: response.key, head: response.head, .born(suspicion - 1)
        ).isNone
    }

    /// What the bans since it was stored make of a response that is kept, or about to be.
    func verdict(_ response: CachedResponse, _ bans: BansInForce) -> BanVerdict {
        response.born < serial ? bans.verdict(response) : .none
    }

    /// Carries the bans out in `count` slots from `start` on. Returns the slot to continue with;
    /// `nil` if there are no more.
    mutating func sweep(
        from start: Int, count: Int, _ bans: BansInForce, dropped: inout [CachedResponse]
    ) -> Int? {
        guard start < table.slots.count, count > 0 else { return nil }
        let end = start + min(table.slots.count - start, count)
        for slot in start..<end { sweep(Int32(slot), bans, dropped: &dropped) }
        return end
    }

    /// The same for the responses of one key.
    mutating func sweep(
        _ hash: UInt64, _ key: UnsafeRawBufferPointer, _ bans: BansInForce,
        dropped: inout [CachedResponse]
    ) {
        var slot = table.start(hash)
        while slot >= 0 {
            let next = table[slot].chain
            if match(slot, hash, key) != nil { sweep(slot, bans, dropped: &dropped) }
            slot = next
        }
    }

    private mutating func sweep(
        _ slot: Int32, _ bans: BansInForce, dropped: inout [CachedResponse]
    ) {
        guard let response = table[slot].response, response.born < serial else { return }
        let verdict = bans.verdict(response)
        switch verdict {
        case .none: response.born = serial
        case .gone:
            remove(slot, dropped: &dropped)
            bans.count(verdict, inMemory: true)
        case .stale(_, let since):
            bans.count(verdict, inMemory: true)
            // Without memory for a stale one there is none.
            guard let stale = response.stale(since: since) else {
                return remove(slot, dropped: &dropped)
            }
            stale.born = serial
            dropped.append(response)
            // It takes as much as the other one did, and the queues know of that.
            table[slot].response = stale
        }
    }

    /// How often each response in `count` slots from `start` on was found since this was last
    /// asked.
    mutating func takeHits(
        from start: Int, count: Int, _ body: (CachedResponse, UInt32) -> Void
    ) -> Int? {
        guard start < table.slots.count, count > 0 else { return nil }
        let end = start + min(table.slots.count - start, count)
        for slot in start..<end {
            guard let response = table.slots[slot].response else { continue }
            let hits = table[Int32(slot)].takeHits()
            if hits > 0 { body(response, hits) }
        }
        return end
    }

    /// Calls `body` with the responses in `count` slots from `start` on. Returns the slot to
    /// continue with; `nil` if there are no more.
    func visitEntries(from start: Int, count: Int, _ body: (MemoryEntry) -> Void) -> Int? {
        guard start < table.slots.count, count > 0 else { return nil }
        let end = start + min(table.slots.count - start, count)
        for slot in start..<end {
            if let response = table.slots[slot].response { body(entry(response, Int32(slot))) }
        }
        return end
    }

    private func entry(_ response: CachedResponse, _ slot: Int32) -> MemoryEntry {
        MemoryEntry(
            response: response, token: response.token, hits: table[slot].hits,
            untold: table[slot].untold)
    }

    /// How often a response was found; 0 if it is not kept.
    func hits(of response: CachedResponse) -> UInt64 {
        var slot = table.start(response.keyHash)
        while slot >= 0 {
            if table[slot].response === response { return table[slot].hits }
            slot = table[slot].chain
        }
        return 0
    }

    /// What was found as another response counts for this one, which has taken its place.
    mutating func inherit(_ hits: UInt64, _ response: CachedResponse) {
        var slot = table.start(response.keyHash)
        while slot >= 0 {
            if table[slot].response === response { return table[slot].inherit(hits) }
            slot = table[slot].chain
        }
    }

    /// The responses of a key, each with its number of uses; none counts as used.
    func entries(
        _ hash: UInt64, _ key: UnsafeRawBufferPointer
    ) -> [MemoryEntry] {
        var found: [MemoryEntry] = []
        var slot = table.start(hash)
        while slot >= 0 {
            if let response = match(slot, hash, key) {
                found.append(entry(response, slot))
            }
            slot = table[slot].chain
        }
        return found
    }

    /// Calls `body` with the responses in `count` slots from `start` on, until it returns `false`.
    /// Returns the slot to continue with: of the last response if that was refused; `nil` if there
    /// are no more.
    func visit(from start: Int, count: Int, _ body: (CachedResponse) -> Bool) -> Int? {
        guard start < table.slots.count, count > 0 else { return nil }
        let end = start + min(table.slots.count - start, count)
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
    /// - Returns: the response, whether it had proved itself (`SlotUses`), and how often it was
    ///   found since `takeHits`.
    mutating func evict(
        except kept: CachedResponse?
    ) -> (response: CachedResponse, wasProven: Bool, hits: UInt32)? {
        let slot = table.victim(of: Int64(bytes)) { $0.response === kept }
        guard slot >= 0, let response = table[slot].response else { return nil }
        let wasProven = table[slot].uses.isProven
        let hits = table[slot].takeHits()
        var dropped: [CachedResponse] = []
        remove(slot, dropped: &dropped)
        evictions += 1
        return (response, wasProven, hits)
    }

    private mutating func add(_ response: CachedResponse) {
        response.born = serial
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
