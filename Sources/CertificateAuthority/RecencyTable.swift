/// Values by key, as many as a limit allows: the one that was used longest ago makes room.
///
/// The order of use is a list through the slots of an array, so that every operation takes the same
/// time however many values there are.
package struct RecencyTable<Key: Hashable, Value> {
    private struct Slot {
        let key: Key
        var value: Value
        /// The slot that was used before this one, and the one after; `none` at the ends.
        var older: Int
        var newer: Int
    }

    private static var none: Int { -1 }

    private var indices: [Key: Int] = [:]
    private var slots: [Slot?] = []
    private var free: [Int] = []
    private var oldest = none
    private var newest = none
    /// At least one.
    private(set) var limit: Int

    /// An empty table of so many values, at least one.
    package init(limit: Int) { self.limit = max(1, limit) }

    /// How many values there are.
    package var count: Int { indices.count }

    /// The value of a key, which is the most recently used one now.
    package mutating func use(_ key: Key) -> Value? {
        guard let index = indices[key], let value = slots[index]?.value else { return nil }
        unlink(index)
        linkAsNewest(index)
        return value
    }

    /// Sets the value of a key, which is the most recently used one now.
    package mutating func set(_ value: Value, for key: Key) {
        remove(key)
        while count >= limit { removeOldest() }
        let slot = Slot(key: key, value: value, older: Self.none, newer: Self.none)
        let index: Int
        if let place = free.popLast() {
            index = place
            slots[index] = slot
        } else {
            index = slots.count
            slots.append(slot)
        }
        indices[key] = index
        linkAsNewest(index)
    }

    /// Removes the value of a key, if there is one.
    package mutating func remove(_ key: Key) {
        guard let index = indices.removeValue(forKey: key) else { return }
        unlink(index)
        slots[index] = nil
        free.append(index)
    }

    /// Allows so many from now on, at least one. The memory of what goes is given back.
    mutating func setLimit(_ limit: Int) {
        guard limit != self.limit else { return }
        var smaller = RecencyTable(limit: limit)
        var index = oldest
        while index != Self.none, let slot = slots[index] {
            smaller.set(slot.value, for: slot.key)
            index = slot.newer
        }
        self = smaller
    }

    private mutating func removeOldest() {
        guard oldest != Self.none, let slot = slots[oldest] else { return }
        remove(slot.key)
    }

    private mutating func unlink(_ index: Int) {
        guard let slot = slots[index] else { return }
        if slot.older == Self.none {
            oldest = slot.newer
        } else {
            slots[slot.older]?.newer = slot.newer
        }
        if slot.newer == Self.none {
            newest = slot.older
        } else {
            slots[slot.newer]?.older = slot.older
        }
    }

    private mutating func linkAsNewest(_ index: Int) {
        slots[index]?.older = newest
        slots[index]?.newer = Self.none
        if newest == Self.none { oldest = index } else { slots[newest]?.newer = index }
        newest = index
    }
}
