/// A bounded table that clients fill, in which each has a share: what gives way is the longest
/// unused entry of whichever client holds the most. One that floods the table pushes out its own
/// entries, and as long as it is alone it may have all the room.
///
/// A client is the network that limits count it by; nil stands for what no client has caused, and
/// has a share like a client. Who has put an entry in holds it, whoever uses it later. Of several
/// that hold as much, the one whose longest unused entry is the oldest gives way: where everybody
/// holds the same, this is a table of the most recently used.
///
/// Every operation takes time in the logarithm of the number of clients at most; what a lookup
/// costs depends on neither number. Pure.
package struct ShareTable<Key: Hashable, Value> {
    fileprivate struct Slot {
        let key: Key
        var value: Value
        var weight: Int
        let holder: Int
        /// When it was used last, counted in uses of the table.
        var used: UInt64
        /// The neighbours among its holder's entries in the order of their use; `none` at the ends.
        var older = none
        var newer = none
    }

    private struct Holder {
        let client: IPNetwork?
        var weight = 0
        var oldest = none
        var newest = none
        /// Where it stands in `order`.
        var place: Int
    }

    private static var none: Int { -1 }

    private var indices: [Key: Int] = [:]
    private var slots: [Slot?] = []
    private var freeSlots: [Int] = []
    private var holderIndices: [IPNetwork?: Int] = [:]
    private var holders: [Holder?] = []
    private var freeHolders: [Int] = []
    /// The indices of the holders, as a heap: the one that gives way next comes first.
    private var order: [Int] = []
    private var uses: UInt64 = 0
    /// How much all entries may weigh.
    package private(set) var limit: Int
    /// What all entries weigh.
    package private(set) var weight = 0

    /// An empty table of so many entries; 0: none is kept. `limit` bounds the sum of the weights
    /// where entries have any.
    package init(limit: Int) { self.limit = max(0, limit) }

    /// How many entries there are.
    package var count: Int { indices.count }
    package var isEmpty: Bool { indices.isEmpty }
    /// How many clients hold something.
    package var clientCount: Int { order.count }

    // MARK: Entries

    /// The value of a key, which is the latest used of its client's now.
    package mutating func use(_ key: Key) -> Value? {
        guard let index = indices[key], let slot = slots[index] else { return nil }
        unlink(index)
        link(index)
        settle(slot.holder)
        return slot.value
    }

    /// The value of a key, which is not used thereby.
    package func value(of key: Key) -> Value? {
        indices[key].flatMap { slots[$0]?.value }
    }

    /// Sets the value of a key, which the client holds now, and makes room for it: of whoever holds
    /// the most then, which may be this client.
    ///
    /// - Parameter weight: what it takes of `limit`; at least 1.
    package mutating func set(
        _ value: Value, for key: Key, of client: IPNetwork?, weight: Int = 1
    ) {
        insert(value, for: key, of: client, weight: weight)
        while self.weight > limit, removeNext() != nil {}
    }

    /// The same without making room: the caller does, by ``removeNext()``.
    package mutating func insert(
        _ value: Value, for key: Key, of client: IPNetwork?, weight: Int = 1
    ) {
        remove(key)
        let holder = holder(of: client)
        let slot = Slot(
            key: key, value: value, weight: max(1, weight), holder: holder, used: uses)
        let index: Int
        if let free = freeSlots.popLast() {
            index = free
            slots[index] = slot
        } else {
            index = slots.count
            slots.append(slot)
        }
        indices[key] = index
        link(index)
        add(slot.weight, to: holder)
    }

    /// Changes the value of a key that there is, and what it weighs. It stays its client's, and was
    /// used when it was.
    package mutating func update(_ value: Value, for key: Key, weight: Int) {
        guard let index = indices[key] else { return }
        slots[index]?.value = value
        setWeight(weight, of: key)
    }

    /// Changes what an entry weighs, and not when it was used.
    package mutating func setWeight(_ weight: Int, of key: Key) {
        guard let index = indices[key], let slot = slots[index] else { return }
        let weight = max(1, weight)
        slots[index]?.weight = weight
        add(weight - slot.weight, to: slot.holder)
    }

    /// Removes an entry, if there is one.
    @discardableResult
    package mutating func remove(_ key: Key) -> Value? {
        guard let index = indices.removeValue(forKey: key), let slot = slots[index] else {
            return nil
        }
        unlink(index)
        slots[index] = nil
        freeSlots.append(index)
        add(-slot.weight, to: slot.holder)
        return slot.value
    }

    /// Removes the entries that a condition holds for; takes time in the number of all.
    package mutating func removeAll(where isToGo: (Key, Value) -> Bool) {
        for case let slot? in slots where isToGo(slot.key, slot.value) { remove(slot.key) }
    }

    /// Another limit is in force. The memory of what goes is given back.
    package mutating func setLimit(_ limit: Int) {
        guard limit != self.limit else { return }
        self.limit = max(0, limit)
        while weight > self.limit, removeNext() != nil {}
        var smaller = ShareTable(limit: limit)
        for slot in slots.compactMap({ $0 }).sorted(by: { $0.used < $1.used }) {
            smaller.insert(
                slot.value, for: slot.key, of: holders[slot.holder]?.client, weight: slot.weight)
        }
        self = smaller
    }

    // MARK: Who gives way

    /// What a client's entries weigh.
    package func weight(of client: IPNetwork?) -> Int {
        holderIndices[client].flatMap { holders[$0]?.weight } ?? 0
    }

    /// The entry that gives way next.
    ///
    /// - Parameter ofClients: of those that clients have caused.
    package func next(ofClients: Bool = false) -> Value? {
        // The one that stands for no client is not the only one in the heap's first two rows.
        var first: Int?
        for holder in order.prefix(3)
        where !ofClients || holders[holder]?.client != nil {
            if first.map({ precedes(holder, $0) }) ?? true { first = holder }
        }
        return first.flatMap { oldest(of: $0)?.value }
    }

    /// A client's longest unused entry.
    package func next(of client: IPNetwork?) -> Value? {
        holderIndices[client].flatMap { oldest(of: $0)?.value }
    }

    /// Removes the entry that gives way next; nil: there is none.
    @discardableResult
    package mutating func removeNext() -> Value? {
        guard let first = order.first, let slot = oldest(of: first) else { return nil }
        return remove(slot.key)
    }

    private func oldest(of holder: Int) -> Slot? {
        guard let index = holders[holder]?.oldest, index != Self.none else { return nil }
        return slots[index]
    }

    // MARK: A holder's entries

    private mutating func holder(of client: IPNetwork?) -> Int {
        if let known = holderIndices[client] { return known }
        let holder = Holder(client: client, place: order.count)
        let index: Int
        if let free = freeHolders.popLast() {
            index = free
            holders[index] = holder
        } else {
            index = holders.count
            holders.append(holder)
        }
        holderIndices[client] = index
        order.append(index)
        return index
    }

    /// Puts an entry at its holder's newest end.
    private mutating func link(_ index: Int) {
        guard let holder = slots[index]?.holder, let newest = holders[holder]?.newest else {
            return
        }
        uses += 1
        slots[index]?.used = uses
        slots[index]?.older = newest
        slots[index]?.newer = Self.none
        if newest == Self.none {
            holders[holder]?.oldest = index
        } else {
            slots[newest]?.newer = index
        }
        holders[holder]?.newest = index
    }

    private mutating func unlink(_ index: Int) {
        guard let slot = slots[index] else { return }
        if slot.older == Self.none {
            holders[slot.holder]?.oldest = slot.newer
        } else {
            slots[slot.older]?.newer = slot.newer
        }
        if slot.newer == Self.none {
            holders[slot.holder]?.newest = slot.older
        } else {
            slots[slot.newer]?.older = slot.older
        }
    }

    /// Changes what a holder holds, after its entries were linked; one that holds nothing is
    /// forgotten.
    private mutating func add(_ change: Int, to holder: Int) {
        weight += change
        holders[holder]?.weight += change
        if holders[holder]?.weight == 0 { forget(holder) } else { settle(holder) }
    }

    private mutating func forget(_ holder: Int) {
        guard let known = holders[holder] else { return }
        let last = order.count - 1
        swap(known.place, last)
        order.removeLast()
        holderIndices[known.client] = nil
        holders[holder] = nil
        freeHolders.append(holder)
        if known.place < last { settle(order[known.place]) }
    }

    // MARK: The heap

    /// Whether an entry of the one gives way before one of the other.
    private func precedes(_ one: Int, _ other: Int) -> Bool {
        guard let first = holders[one], let second = holders[other] else { return false }
        if first.weight != second.weight { return first.weight > second.weight }
        return (oldest(of: one)?.used ?? 0) < (oldest(of: other)?.used ?? 0)
    }

    /// Moves a holder to where it belongs.
    private mutating func settle(_ holder: Int) {
        guard var place = holders[holder]?.place else { return }
        while place > 0, precedes(order[place], order[(place - 1) / 2]) {
            swap(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
        while true {
            var first = place
            for child in [2 * place + 1, 2 * place + 2]
            where child < order.count && precedes(order[child], order[first]) {
                first = child
            }
            guard first != place else { return }
            swap(place, first)
            place = first
        }
    }

    private mutating func swap(_ one: Int, _ other: Int) {
        guard one != other else { return }
        order.swapAt(one, other)
        holders[order[one]]?.place = one
        holders[order[other]]?.place = other
    }
}

extension ShareTable: Sendable where Key: Sendable, Value: Sendable {}
extension ShareTable.Slot: Sendable where Key: Sendable, Value: Sendable {}

extension IPNetwork {
    /// The network that an address stands for where clients are counted: its own for IPv4, its /64
    /// for IPv6, the least that a subscriber is given. Counting single IPv6 addresses would limit
    /// nobody.
    package init(client address: IPAddress) {
        let address = address.unmapped
        switch address {
        case .v4: self.init(address)
        case .v6: self = IPNetwork(masking: address, prefixLength: 64) ?? IPNetwork(address)
        }
    }
}
