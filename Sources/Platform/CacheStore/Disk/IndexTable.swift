import Clocks

/// When a stored response was last used, in seconds since 1970.
enum LastUse {
    static func now() -> UInt32 { UInt32(clamping: Clock.wallSeconds()) }
}

/// Identifies an entry of the index: its slot, and an id that shows whether it is still there.
struct IndexToken: Sendable, Equatable {
    var slot: Int32
    var id: Int64
    /// Not on disk.
    static let none = IndexToken(slot: -1, id: 0)
}

/// What is on disk, as a hash table, and the queues by which it is evicted; no locks, no I/O.
/// Several entries may have one key (its variants); equal hashes count as equal keys, which at
/// worst drops an entry too many.
struct IndexTable {
    private var table: SlotTable<IndexSlot>
    /// Bytes on disk of all entries.
    private(set) var bytes: Int64 = 0
    /// The names that the entries nominate by Vary.
    private(set) var varyNames = VaryNamesTable()

    /// - Parameter count: the number of entries that are about to be inserted.
    init(expecting count: Int = 0) { table = SlotTable(expecting: count) }

    var count: Int { table.count }

    /// The number of slots, used and free.
    var slotCount: Int { table.slots.count }

    subscript(slot: Int32) -> IndexSlot {
        get { table[slot] }
    }

    /// Whether `token` still identifies an entry.
    func isLive(_ token: IndexToken) -> Bool {
        token.id != 0 && Int(token.slot) < table.slots.count && table[token.slot].id == token.id
    }

    func token(_ slot: Int32) -> IndexToken { IndexToken(slot: slot, id: table[slot].id) }

    /// The first entry with this hash; -1 if there is none.
    func first(_ keyHash: UInt64) -> Int32 { match(table.start(keyHash), keyHash) }

    /// The next entry with the same hash; -1 if there is none.
    func next(_ slot: Int32) -> Int32 { match(table[slot].chain, table[slot].keyHash) }

    private func match(_ start: Int32, _ keyHash: UInt64) -> Int32 {
        var slot = start
        while slot >= 0, table[slot].keyHash != keyHash { slot = table[slot].chain }
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
        let slot = table.insert(entry, isProven: isProven)
        bytes += entry.bytes
        return IndexToken(slot: slot, id: entry.id)
    }

    /// Inserts an entry that was read from the database, in any order; `orderByAge` must follow.
    mutating func insertUnordered(_ entry: IndexSlot, varyNames names: UnsafeRawBufferPointer) {
        var entry = entry
        entry.names = varyNames.retain(names)
        _ = table.insert(entry, isQueued: false)
        bytes += entry.bytes
    }

    /// Puts entries that were inserted without an order into that of their last use; of those that
    /// were used in the same second, in that of their ids. All count as used more than once.
    mutating func orderByAge() {
        // They were read in the order of their ids, and sorting by one digit keeps equal ones in
        // order.
        var order = ContiguousArray(0..<Int32(slotCount))
        var sorted = ContiguousArray<Int32>(repeating: 0, count: order.count)
        let digits = 1 << 11
        for shift in [0, 11, 22] as [UInt32] {
            var starts = ContiguousArray(repeating: 0, count: digits + 1)
            func digit(_ slot: Int32) -> Int {
                Int(table[slot].accessed &>> shift) & (digits - 1)
            }
            for slot in order { starts[digit(slot) + 1] += 1 }
            // All have the same digit: they are in order.
            if starts.contains(order.count) { continue }
            for digit in 0..<digits { starts[digit + 1] += starts[digit] }
            for slot in order {
                let digit = digit(slot)
                sorted[starts[digit]] = slot
                starts[digit] += 1
            }
            swap(&order, &sorted)
        }
        for slot in order { table.enqueue(slot, isProven: true) }
    }

    /// Removes an entry and returns it.
    @discardableResult
    mutating func remove(_ slot: Int32) -> IndexSlot {
        precondition(table[slot].id > 0)
        let entry = table.remove(slot)
        bytes -= entry.bytes
        varyNames.release(entry.names)
        return entry
    }

    mutating func countUse(of slot: Int32) { table[slot].uses.add() }

    /// The committed entry that is the least likely to be used; -1 if there is none.
    mutating func victim() -> Int32 {
        table.victim(of: bytes) { !$0.flags.contains(.committed) }
    }

    /// Changes what does not affect the table's order.
    mutating func setFlags(_ slot: Int32, _ flags: IndexFlags) { table[slot].flags = flags }

    mutating func setStale(_ slot: Int32) { table[slot].isStale = true }

    mutating func setAccessed(_ slot: Int32, _ seconds: UInt32) { table[slot].accessed = seconds }
}
