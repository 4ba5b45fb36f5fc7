import Clocks
import HTTPCore

/// When a stored response was last used, in seconds since 1970.
enum LastUse {
    static func now() -> UInt32 { UInt32(clamping: Clock.coarseWallSeconds()) }
}

/// Identifies an entry of the index: its slot, and an id that shows whether it is still there.
struct IndexToken: Sendable, Equatable {
    var slot: Int32
    var id: Int64
    /// Not on disk.
    static let none = IndexToken(slot: -1, id: 0)
}

/// One entry of the index: 48 bytes.
struct IndexSlot: EvictionSlot {
    /// The entry's row id; 0 when the slot is free.
    var id: Int64 = 0
    var keyHash: UInt64 = 0
    var varyHash: UInt32 = 0
    /// Bytes on disk in units of `unitBytes`.
    var units: UInt32 = 0
    /// Time of last use, in seconds since 1970.
    var accessed: UInt32 = 0
    /// Next more recently and less recently used entry; -1 at the ends.
    var newer: Int32 = -1
    var older: Int32 = -1
    /// Next slot of the same bucket, or of the free list.
    var chain: Int32 = -1
    var flags = IndexFlags()
    var uses = SlotUses()
    /// The names nominated by its Vary, as a number in the table's `varyNames`.
    fileprivate(set) var names = VaryNamesTable.none

    static let unitBytes: Int64 = 256
    var bytes: Int64 { Int64(units) * Self.unitBytes }
    var weight: Int64 { bytes }
    /// The uses of what memory has are not seen here.
    var isInUse: Bool { uses.count > 0 || flags.contains(.resident) }

    /// An entry used now, to be inserted into a table.
    init(id: Int64, keyHash: UInt64, varyHash: UInt32, bytes: Int64, flags: IndexFlags) {
        self.id = id
        self.keyHash = keyHash
        self.varyHash = varyHash
        units = UInt32(clamping: (bytes + Self.unitBytes - 1) / Self.unitBytes)
        accessed = LastUse.now()
        self.flags = flags
    }

    /// A free slot.
    init() {}

    /// Whether its variant may be one of those with these hashes.
    func isOne(of varyHashes: [UInt32]) -> Bool {
        names == VaryNamesTable.unknown || varyHashes.contains(varyHash)
    }
}

struct IndexFlags: OptionSet {
    let rawValue: UInt8
    /// Its rows are committed: a reader finds them.
    static let committed = IndexFlags(rawValue: 1)
    /// The memory tier has it too.
    static let resident = IndexFlags(rawValue: 2)
    /// `accessed` is newer than its row says.
    static let accessedChanged = IndexFlags(rawValue: 4)
    /// Its body is kept in chunks.
    static let chunked = IndexFlags(rawValue: 8)
}

/// What is on disk, as a hash table, and the queues by which it is evicted; no locks, no I/O.
/// Several entries may have one key (its variants); equal hashes count as equal keys, which at
/// worst drops an entry too many.
struct IndexTable {
    private(set) var slots: ContiguousArray<IndexSlot> = []
    private var buckets: ContiguousArray<Int32>
    private var free: Int32 = -1
    private var queues = EvictionQueues()
    private(set) var count = 0
    /// Bytes on disk of all entries.
    private(set) var bytes: Int64 = 0
    /// The names that the entries nominate by Vary.
    private(set) var varyNames = VaryNamesTable()

    init(minimumCapacity: Int = 0) {
        var size = 64
        while size < minimumCapacity + minimumCapacity / 2 { size *= 2 }
        buckets = ContiguousArray(repeating: -1, count: size)
        slots.reserveCapacity(minimumCapacity)
        queues.reserve(size)
    }

    subscript(slot: Int32) -> IndexSlot {
        get { slots[Int(slot)] }
    }

    /// Whether `token` still identifies an entry.
    func isLive(_ token: IndexToken) -> Bool {
        token.id != 0 && Int(token.slot) < slots.count && slots[Int(token.slot)].id == token.id
    }

    func token(_ slot: Int32) -> IndexToken { IndexToken(slot: slot, id: slots[Int(slot)].id) }

    /// The first entry with this hash; -1 if there is none.
    func first(_ keyHash: UInt64) -> Int32 { match(buckets[bucket(keyHash)], keyHash) }

    /// The next entry with the same hash; -1 if there is none.
    func next(_ slot: Int32) -> Int32 {
        match(slots[Int(slot)].chain, slots[Int(slot)].keyHash)
    }

    private func match(_ start: Int32, _ keyHash: UInt64) -> Int32 {
        var slot = start
        while slot >= 0, slots[Int(slot)].keyHash != keyHash { slot = slots[Int(slot)].chain }
        return slot
    }

    /// Inserts an entry as the newest. `entry.id` must not be in the table.
    ///
    /// - Parameters:
    ///   - names: the names it nominates by Vary (`VaryKey.names`).
    ///   - isProven: whether it is known to be used more than once.
    mutating func insert(
        _ entry: IndexSlot, varyNames names: [UInt8] = [], isProven: Bool = false
    ) -> IndexToken {
        precondition(entry.id > 0)
        var entry = entry
        entry.names = varyNames.retain(names)
        if count >= buckets.count { grow() }
        let slot: Int32
        if free >= 0 {
            slot = free
            free = slots[Int(slot)].chain
            slots[Int(slot)] = entry
        } else {
            slot = Int32(slots.count)
            slots.append(entry)
        }
        let home = bucket(entry.keyHash)
        slots[Int(slot)].chain = buckets[home]
        buckets[home] = slot
        queues.insert(slot, isProven: isProven, in: &slots)
        count += 1
        bytes += entry.bytes
        return IndexToken(slot: slot, id: entry.id)
    }

    /// Removes an entry and returns it.
    @discardableResult
    mutating func remove(_ slot: Int32) -> IndexSlot {
        let entry = slots[Int(slot)]
        precondition(entry.id > 0)
        queues.remove(slot, in: &slots)
        let home = bucket(entry.keyHash)
        if buckets[home] == slot {
            buckets[home] = entry.chain
        } else {
            var before = buckets[home]
            while slots[Int(before)].chain != slot { before = slots[Int(before)].chain }
            slots[Int(before)].chain = entry.chain
        }
        slots[Int(slot)] = IndexSlot()
        slots[Int(slot)].chain = free
        free = slot
        count -= 1
        bytes -= entry.bytes
        varyNames.release(entry.names)
        return entry
    }

    mutating func countUse(of slot: Int32) { slots[Int(slot)].uses.add() }

    /// The committed entry that is the least likely to be used; -1 if there is none.
    mutating func victim() -> Int32 {
        queues.victim(in: &slots, of: bytes) { !$0.flags.contains(.committed) }
    }

    /// Changes what does not affect the table's order.
    mutating func setFlags(_ slot: Int32, _ flags: IndexFlags) { slots[Int(slot)].flags = flags }

    mutating func setAccessed(_ slot: Int32, _ seconds: UInt32) {
        slots[Int(slot)].accessed = seconds
    }

    private func bucket(_ keyHash: UInt64) -> Int {
        Int(truncatingIfNeeded: keyHash) & (buckets.count &- 1)
    }

    private mutating func grow() {
        buckets = ContiguousArray(repeating: -1, count: buckets.count * 2)
        queues.reserve(buckets.count)
        for slot in slots.indices where slots[slot].id > 0 {
            let home = bucket(slots[slot].keyHash)
            slots[slot].chain = buckets[home]
            buckets[home] = Int32(slot)
        }
    }
}
