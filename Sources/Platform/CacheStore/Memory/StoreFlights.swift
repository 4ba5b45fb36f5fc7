/// A request on its way to its server, whose response may be stored; stores are checked against it
/// (see `CacheStore.beginFlight`). It is only an identifier, which its owner must end exactly once.
public struct StoreFlight: Sendable, Equatable {
    /// The hash of the key that the request is for.
    let hash: UInt64
    let slot: Int32
    /// Distinguishes it from earlier flights in the slot.
    let serial: UInt32
}

/// Whether the response to a request under way may be stored.
enum StoreFlightStanding: UInt8, Sendable {
    case valid
    /// Something was purged by a pattern since it was sent (`StoreFlights.suspectSince`).
    case suspect
    /// Its key was invalidated since it was sent.
    case void
}

/// The requests under way for the keys of one shard, by the keys' hashes, so that an invalidation
/// voids the stores of exactly its key. A level without an index keeps another one, of its loads
/// under way. A value without locks.
///
/// It has as many slots as there ever were requests under way at the same time: beginning and
/// ending one allocates only when a new maximum is reached. Keys are distinguished by their hash
/// alone: 64 bits under the process's secret seed.
package struct StoreFlights {
    private struct Slot {
        var hash: UInt64 = 0
        var serial: UInt32 = 0
        /// Next slot of the bucket, or of the free list; -1 at the end.
        var chain: Int32 = -1
        /// The slot of the bucket before it; -1 for the first. Many may be under way for one key.
        var previous: Int32 = -1
        var isFree = true
        var standing = StoreFlightStanding.valid
    }

    private var slots: ContiguousArray<Slot> = []
    private var buckets = ContiguousArray<Int32>(repeating: -1, count: 16)
    private var free: Int32 = -1
    package private(set) var count = 0
    /// The suspects among the slots: the serial of the first purge since each began.
    private var suspects: [Int32: UInt64] = [:]

    package init() {}

    @inline(__always)
    private func bucket(_ hash: UInt64) -> Int {
        Int(truncatingIfNeeded: hash &>> 17) & (buckets.count &- 1)
    }

    /// Called when a request for a key is about to be sent.
    @inline(__always)
    package mutating func begin(_ hash: UInt64) -> StoreFlight {
        if free < 0 { grow() }
        let slot = free
        let index = Int(slot)
        let home = bucket(hash)
        let serial = slots[index].serial &+ 1
        free = slots[index].chain
        slots[index] = Slot(
            hash: hash, serial: serial, chain: buckets[home], isFree: false, standing: .valid)
        if buckets[home] >= 0 { slots[Int(buckets[home])].previous = slot }
        buckets[home] = slot
        count += 1
        return StoreFlight(hash: hash, slot: slot, serial: serial)
    }

    /// Whether the flight is under way and its key was not invalidated since it began.
    package func isValid(_ flight: StoreFlight) -> Bool {
        guard isUnderWay(flight) else { return false }
        return slots[Int(flight.slot)].standing != .void
    }

    /// The serial of the first purge since a flight began, for one that is valid unless one of
    /// those is about its response; `nil` if there was none.
    package func suspectSince(_ flight: StoreFlight) -> UInt64? {
        guard isUnderWay(flight), slots[Int(flight.slot)].standing == .suspect else { return nil }
        return suspects[flight.slot]
    }

    /// Something has been purged by a pattern: whether that is about what is under way will be seen
    /// when its response is there.
    package mutating func suspect(since serial: UInt64) {
        guard count > 0 else { return }
        for index in slots.indices
        where !slots[index].isFree && slots[index].standing == .valid {
            slots[index].standing = .suspect
            suspects[Int32(index)] = serial
        }
    }

    /// The serial of the first purge that any flight may be about; `nil` if there is none.
    package var firstSuspicion: UInt64? { suspects.values.min() }

    /// Voids the suspects of purges up to a serial.
    package mutating func voidSuspects(through serial: UInt64) {
        for (slot, since) in suspects where since <= serial {
            slots[Int(slot)].standing = .void
            suspects[slot] = nil
        }
    }

    private func isUnderWay(_ flight: StoreFlight) -> Bool {
        guard slots.indices.contains(Int(flight.slot)) else { return false }
        let slot = slots[Int(flight.slot)]
        return !slot.isFree && slot.serial == flight.serial
    }

    /// Ends the flight without storing anything. Safe to call again.
    @inline(__always)
    package mutating func end(_ flight: StoreFlight) {
        guard isUnderWay(flight) else { return }
        let index = Int(flight.slot)
        if slots[index].standing == .suspect { suspects[flight.slot] = nil }
        let (next, previous) = (slots[index].chain, slots[index].previous)
        if previous < 0 {
            buckets[bucket(flight.hash)] = next
        } else {
            slots[Int(previous)].chain = next
        }
        if next >= 0 { slots[Int(next)].previous = previous }
        slots[index].chain = free
        slots[index].isFree = true
        free = flight.slot
        count -= 1
    }

    /// Ends the flight; returns whether its response may be stored.
    package mutating func land(_ flight: StoreFlight) -> Bool {
        defer { end(flight) }
        return isValid(flight)
    }

    /// Voids what is under way for a key, but for this one if it is of the same key: another key's
    /// may be another shard's, with the same slot.
    package mutating func void(_ hash: UInt64, except flight: StoreFlight? = nil) {
        let spared = flight.map { $0.hash == hash && isUnderWay($0) ? $0.slot : -1 } ?? -1
        var slot = buckets[bucket(hash)]
        while slot >= 0 {
            if slots[Int(slot)].hash == hash, slot != spared {
                slots[Int(slot)].standing = .void
                suspects[slot] = nil
            }
            slot = slots[Int(slot)].chain
        }
    }

    /// Voids everything under way.
    package mutating func voidAll() {
        for index in slots.indices { slots[index].standing = .void }
        suspects = [:]
    }

    /// Doubles the slots, and the buckets.
    @inline(never)
    private mutating func grow() {
        let first = slots.count
        let total = max(16, first * 2)
        slots.reserveCapacity(total)
        for index in first..<total {
            slots.append(Slot(chain: index + 1 < total ? Int32(index + 1) : -1))
        }
        free = Int32(first)
        buckets = ContiguousArray(repeating: -1, count: total)
        for index in 0..<first where !slots[index].isFree {
            let home = bucket(slots[index].hash)
            slots[index].chain = buckets[home]
            slots[index].previous = -1
            if buckets[home] >= 0 { slots[Int(buckets[home])].previous = Int32(index) }
            buckets[home] = Int32(index)
        }
    }
}
