/// A bounded table that is filled by clients, each of which has a share: the entry that is evicted
/// is the least recently used one of the client that holds the most. A client that floods the table
/// evicts its own entries; while it is the only client, it may use the whole table.
///
/// A client is the network by which limits count it; `nil` stands for entries that no client has
/// caused, which have a share like a client's. An entry belongs to the client that inserted it,
/// whoever uses it later. If several clients hold the same amount, the one whose least recently
/// used entry is the oldest loses it: if all hold the same, this is an LRU table.
///
/// Every operation takes at most logarithmic time in the number of clients; the cost of a lookup
/// depends neither on that number nor on the number of entries. Pure.
public struct ShareTable<Key: Hashable, Value> {
    fileprivate struct Slot: AgeLinked {
        let key: Key
        var value: Value
        var weight: Int
        let holder: Int
        /// When it was last used, counted in uses of the table.
        var used: UInt64
        /// The neighbours in its holder's list, ordered by use; -1 at the ends.
        var newer: Int32 = -1
        var older: Int32 = -1
    }

    private struct Holder {
        let client: IPNetwork?
        var weight = 0
        var ages = AgeList()
        /// Its index in `order`.
        var position: Int
    }

    private var indices: [Key: Int] = [:]
    private var slots: ContiguousArray<Slot?> = []
    private var freeSlots: [Int] = []
    private var holderIndices: [IPNetwork?: Int] = [:]
    private var holders: [Holder?] = []
    private var freeHolders: [Int] = []
    /// The indices of the holders, as a heap: the first is the next to lose an entry.
    private var order: [Int] = []
    private var uses: UInt64 = 0
    /// The maximum total weight.
    public private(set) var limit: Int
    /// The total weight of all entries.
    public private(set) var weight = 0

    /// Creates an empty table with a limit on the number of entries, or on the sum of their weights
    /// if they have any. With 0, nothing is kept.
    public init(limit: Int) { self.limit = max(0, limit) }

    /// The number of entries.
    public var count: Int { indices.count }
    public var isEmpty: Bool { indices.isEmpty }
    /// The number of clients that hold an entry.
    public var clientCount: Int { order.count }

    // MARK: Entries

    /// Returns a key's value and makes the entry its client's most recently used one.
    public mutating func use(_ key: Key) -> Value? {
        guard let index = indices[key], let slot = slots[index] else { return nil }
        uses += 1
        slots[index]?.used = uses
        holders[slot.holder]?.ages.renew(Int32(index), in: &slots)
        settle(slot.holder)
        return slot.value
    }

    /// Returns a key's value without counting this as a use.
    public func value(of key: Key) -> Value? {
        indices[key].flatMap { slots[$0]?.value }
    }

    /// Sets a key's value, which then belongs to this client, and makes room for it by evicting
    /// entries of whichever client then holds the most, which may be this one.
    ///
    /// - Parameter weight: how much of `limit` the entry takes; at least 1.
    public mutating func set(
        _ value: Value, for key: Key, of client: IPNetwork?, weight: Int = 1
    ) {
        insert(value, for: key, of: client, weight: weight)
        while self.weight > limit, removeNext() != nil {}
    }

    /// The same without making room: the caller does that, with ``removeNext()``.
    public mutating func insert(
        _ value: Value, for key: Key, of client: IPNetwork?, weight: Int = 1
    ) {
        remove(key)
        let holder = holder(of: client)
        uses += 1
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
        holders[holder]?.ages.link(Int32(index), in: &slots)
        add(slot.weight, to: holder)
    }

    /// Changes the value and weight of an existing key. Its client and its time of last use stay as
    /// they are.
    public mutating func update(_ value: Value, for key: Key, weight: Int) {
        guard let index = indices[key] else { return }
        slots[index]?.value = value
        setWeight(weight, of: key)
    }

    /// Changes an entry's weight, but not its time of last use.
    public mutating func setWeight(_ weight: Int, of key: Key) {
        guard let index = indices[key], let slot = slots[index] else { return }
        let weight = max(1, weight)
        slots[index]?.weight = weight
        add(weight - slot.weight, to: slot.holder)
    }

    /// Removes an entry if it exists.
    @discardableResult
    public mutating func remove(_ key: Key) -> Value? {
        guard let index = indices.removeValue(forKey: key), let slot = slots[index] else {
            return nil
        }
        holders[slot.holder]?.ages.unlink(Int32(index), in: &slots)
        slots[index] = nil
        freeSlots.append(index)
        add(-slot.weight, to: slot.holder)
        return slot.value
    }

    /// Removes the entries that satisfy a condition; takes time linear in the number of entries.
    public mutating func removeAll(where shouldRemove: (Key, Value) -> Bool) {
        for case let slot? in slots where shouldRemove(slot.key, slot.value) { remove(slot.key) }
    }

    /// Changes the limit. The memory of evicted entries is released.
    public mutating func setLimit(_ limit: Int) {
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

    /// All values, in no particular order; takes time linear in the number of entries.
    public var values: [Value] { slots.compactMap { $0?.value } }

    // MARK: Eviction

    /// The total weight of a client's entries.
    public func weight(of client: IPNetwork?) -> Int {
        holderIndices[client].flatMap { holders[$0]?.weight } ?? 0
    }

    /// The total weight of the entries of whoever holds the most.
    public var largestWeight: Int { order.first.flatMap { holders[$0]?.weight } ?? 0 }

    /// The entry to be evicted next.
    ///
    /// - Parameter ofClients: whether to consider only entries that clients have caused.
    public func next(ofClients: Bool = false) -> Value? {
        // Only one holder stands for no client, so the first two rows of the heap contain another
        // one.
        var first: Int?
        for holder in order.prefix(3)
        where !ofClients || holders[holder]?.client != nil {
            if first.map({ precedes(holder, $0) }) ?? true { first = holder }
        }
        return first.flatMap { oldest(of: $0)?.value }
    }

    /// A client's least recently used entry.
    public func next(of client: IPNetwork?) -> Value? {
        holderIndices[client].flatMap { oldest(of: $0)?.value }
    }

    /// Removes the entry to be evicted next; returns `nil` if the table is empty.
    @discardableResult
    public mutating func removeNext() -> Value? {
        guard let first = order.first, let slot = oldest(of: first) else { return nil }
        return remove(slot.key)
    }

    private func oldest(of holder: Int) -> Slot? {
        guard let index = holders[holder]?.ages.oldest, index >= 0 else { return nil }
        return slots[Int(index)]
    }

    // MARK: A holder's entries

    private mutating func holder(of client: IPNetwork?) -> Int {
        if let known = holderIndices[client] { return known }
        let holder = Holder(client: client, position: order.count)
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

    /// Changes a holder's total weight, after its entries were linked; a holder without entries is
    /// removed.
    private mutating func add(_ change: Int, to holder: Int) {
        weight += change
        holders[holder]?.weight += change
        if holders[holder]?.weight == 0 { forget(holder) } else { settle(holder) }
    }

    private mutating func forget(_ holder: Int) {
        guard let known = holders[holder] else { return }
        let last = order.count - 1
        swap(known.position, last)
        order.removeLast()
        holderIndices[known.client] = nil
        holders[holder] = nil
        freeHolders.append(holder)
        if known.position < last { settle(order[known.position]) }
    }

    // MARK: The heap

    /// Whether one holder is to lose an entry before the other.
    private func precedes(_ one: Int, _ other: Int) -> Bool {
        guard let first = holders[one], let second = holders[other] else { return false }
        if first.weight != second.weight { return first.weight > second.weight }
        return (oldest(of: one)?.used ?? 0) < (oldest(of: other)?.used ?? 0)
    }

    /// Restores the heap's order for a holder whose weight has changed.
    private mutating func settle(_ holder: Int) {
        guard var position = holders[holder]?.position else { return }
        while position > 0, precedes(order[position], order[(position - 1) / 2]) {
            swap(position, (position - 1) / 2)
            position = (position - 1) / 2
        }
        while true {
            var first = position
            for child in [2 * position + 1, 2 * position + 2]
            where child < order.count && precedes(order[child], order[first]) {
                first = child
            }
            guard first != position else { return }
            swap(position, first)
            position = first
        }
    }

    private mutating func swap(_ one: Int, _ other: Int) {
        guard one != other else { return }
        order.swapAt(one, other)
        holders[order[one]]?.position = one
        holders[order[other]]?.position = other
    }
}

extension ShareTable: Sendable where Key: Sendable, Value: Sendable {}
extension ShareTable.Slot: Sendable where Key: Sendable, Value: Sendable {}

extension IPNetwork {
    /// The network by which a client's address is counted: the address itself for IPv4, its /64 for
    /// IPv6, which is the least that a subscriber is given. Counting single IPv6 addresses would
    /// limit nobody.
    public init(client address: IPAddress) {
        let address = address.unmapped
        switch address {
        case .v4: self.init(address)
        case .v6: self = IPNetwork(masking: address, prefixLength: 64) ?? IPNetwork(address)
        }
    }
}
