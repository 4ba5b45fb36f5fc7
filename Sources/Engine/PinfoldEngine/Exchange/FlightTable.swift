import HTTPCore

/// The cache misses in progress on one worker, by the hashes of their keys, so that others for the
/// same key can wait for the first one's response; and the keys for which waiting did not help.
///
/// Each key has a few slots, determined by its hash: a miss looks at one place in memory and
/// allocates nothing. If all of them are used by other keys, the miss proceeds alone, as it would
/// without the table. The table remembers as many keys that proceed alone as it has slots, and each
/// client has a share of them. Keys with the same hash (which nobody outside can choose) wait for
/// each other in vain and then proceed alone.
struct FlightTable<Flight: AnyObject> {
    /// What a miss does.
    enum Entry {
        /// It is sent to the origin, and others wait for its response.
        case lead
        /// It waits for the response to this flight.
        case follow(Flight)
        /// It is sent to the origin, and nobody waits for it.
        case alone
    }

    private struct Slot {
        var hash: UInt64 = 0
        var leader: Flight?
        /// The value in `alone` for the hash, so that it need not be looked up there.
        var aloneUntil: Int64 = 0
    }

    private var slots: ContiguousArray<Slot>
    /// Until when misses of a key proceed alone, by its hash, in the loop's milliseconds.
    private var alone: ShareTable<UInt64, Int64>
    /// The number of slots of a table.
    static var defaultSlotCount: Int { 2048 }

    /// - Parameter slotCount: a power of two.
    init(slotCount: Int = Self.defaultSlotCount) {
        slots = ContiguousArray(repeating: Slot(), count: slotCount)
        alone = ShareTable(limit: slotCount)
    }

    /// The number of leaders, of all keys.
    var leaderCount: Int { slots.count { $0.leader != nil } }

    /// The number of slots of a key.
    static var ways: Int { 4 }

    private func ways(of hash: UInt64) -> Range<Int> {
        let start = (Int(truncatingIfNeeded: hash) &* Self.ways) & (slots.count - 1)
        return start..<(start + Self.ways)
    }

    /// The slot that has the hash; `nil` if none has.
    private func index(of hash: UInt64) -> Int? {
        ways(of: hash).first { slots[$0].hash == hash }
    }

    /// A slot for the hash; `nil` if all of them are in use.
    private func freeIndex(for hash: UInt64) -> Int? {
        ways(of: hash).first { slots[$0].leader == nil }
    }

    /// Decides what a miss does.
    mutating func enter(_ flight: Flight, hash: UInt64, now: Int64) -> Entry {
        let own = index(of: hash)
        if let own {
            if let leader = slots[own].leader { return .follow(leader) }
            if now < slots[own].aloneUntil { return .alone }
        }
        guard let index = own ?? freeIndex(for: hash) else { return .alone }
        if !alone.isEmpty, let end = alone.value(of: hash) {
            if now < end { return .alone }
            alone.remove(hash)
        }
        slots[index] = Slot(hash: hash, leader: flight)
        return .lead
    }

    /// The flight that leads for a key; `nil` if none does.
    func leader(_ hash: UInt64) -> Flight? {
        index(of: hash).flatMap { slots[$0].leader }
    }

    /// Another flight leads in place of one.
    mutating func replace(_ flight: Flight, by other: Flight, hash: UInt64) {
        guard let index = index(of: hash), slots[index].leader === flight else { return }
        slots[index].leader = other
    }

    /// Nobody needs to wait for the flight any longer.
    mutating func leave(_ flight: Flight, hash: UInt64) {
        guard let index = index(of: hash), slots[index].leader === flight else { return }
        slots[index].leader = nil
    }

    /// Nobody needs to wait for certain flights any longer. Those who wait already are theirs.
    /// - Returns: the hashes of their keys.
    mutating func forget(where isConcerned: (Flight) -> Bool) -> [UInt64] {
        var hashes: [UInt64] = []
        for index in slots.indices {
            guard let leader = slots[index].leader, isConcerned(leader) else { continue }
            slots[index].leader = nil
            hashes.append(slots[index].hash)
        }
        return hashes
    }

    /// Makes misses of the key proceed alone for a while.
    ///
    /// - Parameter client: the client whose miss showed that waiting does not help.
    mutating func proceedAlone(hash: UInt64, until time: Int64, for client: IPNetwork?) {
        alone.set(time, for: hash, of: client)
        guard let index = index(of: hash) ?? freeIndex(for: hash), slots[index].leader == nil
        else { return }
        slots[index] = Slot(hash: hash, aloneUntil: time)
    }
}
