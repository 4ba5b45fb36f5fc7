import HTTPCore

/// The cache misses that are under way on one worker, by the hashes of their keys, so that others
/// for the same can wait for the first one's response; and the keys for which waiting was of no
/// use.
///
/// Each key has one place, which its hash tells: a miss looks at one place in memory and allocates
/// nothing. Where the place is taken by another key the miss goes alone, as it would without the
/// table. Of the keys that go alone as many are known as there are places, and each client has a
/// share of them. Keys of the same hash (which nobody outside can choose) wait for each other in
/// vain and then ask for themselves.
struct FlightTable<Flight: AnyObject> {
    /// What a miss does.
    enum Entry {
        /// It asks the origin, and others wait for its response.
        case lead
        /// It waits for the response to this one.
        case follow(Flight)
        /// It asks the origin, and nobody waits for it.
        case alone
    }

    private struct Slot {
        var hash: UInt64 = 0
        var leader: Flight?
        /// What `alone` has for the hash, so that it need not be looked for there.
        var aloneUntil: Int64 = 0
    }

    private var slots: ContiguousArray<Slot>
    /// Until when misses of a key go alone, by its hash, in the loop's milliseconds.
    private var alone: ShareTable<UInt64, Int64>
    /// How many places a table has.
    static var defaultSlotCount: Int { 2048 }

    /// - Parameter slotCount: a power of two.
    init(slotCount: Int = Self.defaultSlotCount) {
        slots = ContiguousArray(repeating: Slot(), count: slotCount)
        alone = ShareTable(limit: slotCount)
    }

    /// How many lead, of all keys.
    var leaderCount: Int { slots.count { $0.leader != nil } }

    private func index(of hash: UInt64) -> Int {
        Int(truncatingIfNeeded: hash) & (slots.count - 1)
    }

    /// A miss: what it does.
    mutating func enter(_ flight: Flight, hash: UInt64, now: Int64) -> Entry {
        let index = index(of: hash)
        if slots[index].hash == hash {
            if let leader = slots[index].leader { return .follow(leader) }
            if now < slots[index].aloneUntil { return .alone }
        } else if slots[index].leader != nil {
            return .alone
        }
        if !alone.isEmpty, let end = alone.value(of: hash) {
            if now < end { return .alone }
            alone.remove(hash)
        }
        slots[index] = Slot(hash: hash, leader: flight)
        return .lead
    }

    /// Nobody needs to wait for the flight any more.
    mutating func leave(_ flight: Flight, hash: UInt64) {
        let index = index(of: hash)
        if slots[index].leader === flight { slots[index].leader = nil }
    }

    /// Lets misses of the key go alone for a while.
    ///
    /// - Parameter client: whose miss has shown that waiting is of no use.
    mutating func goAlone(hash: UInt64, until time: Int64, for client: IPNetwork?) {
        alone.set(time, for: hash, of: client)
        let index = index(of: hash)
        if slots[index].leader == nil { slots[index] = Slot(hash: hash, aloneUntil: time) }
    }
}
