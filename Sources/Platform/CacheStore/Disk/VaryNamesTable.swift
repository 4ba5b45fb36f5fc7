/// The lists of field names that entries on disk nominate by Vary, each stored once: to determine a
/// request's variant without reading what is stored. A value without locks.
struct VaryNamesTable {
    /// No names: the response has no Vary.
    static let none: UInt16 = 0
    /// The table was full: what the entry nominates is known only to its record.
    static let unknown: UInt16 = 1 << 11 - 1
    /// The maximum number of different lists. Sites use a handful; a server that invents new ones
    /// must not fill the memory.
    static let limit = 1024

    private struct List {
        var names: [UInt8] = []
        var count = 0
    }

    private var lists: [List] = [List()]
    private var ids: [[UInt8]: UInt16] = [:]
    private var free: [UInt16] = []
    /// The numbers found last: a site has one list or two.
    private var recent: [UInt16] = []

    /// The lists in use.
    var count: Int { ids.count }

    /// The names with this number, as `VaryKey.names` returns them, or `nil` for `unknown`.
    subscript(id: UInt16) -> [UInt8]? { id == Self.unknown ? nil : lists[Int(id)].names }

    /// The number of a list of names, for one more entry.
    mutating func retain(_ names: [UInt8]) -> UInt16 {
        if names.isEmpty { return Self.none }
        if let id = ids[names] {
            lists[Int(id)].count += 1
            return id
        }
        guard ids.count < Self.limit else { return Self.unknown }
        let list = List(names: names, count: 1)
        let id: UInt16
        if let reused = free.popLast() {
            id = reused
            lists[Int(id)] = list
        } else {
            id = UInt16(lists.count)
            lists.append(list)
        }
        ids[names] = id
        return id
    }

    /// The same, for each of millions of entries: mostly without an allocation.
    mutating func retain(_ names: UnsafeRawBufferPointer) -> UInt16 {
        if names.isEmpty { return Self.none }
        for id in recent where lists[Int(id)].names.elementsEqual(names) {
            lists[Int(id)].count += 1
            return id
        }
        let id = retain([UInt8](names))
        if id != Self.unknown {
            if recent.count == 4 { recent.removeFirst() }
            recent.append(id)
        }
        return id
    }

    /// Called when one entry less has these names.
    mutating func release(_ id: UInt16) {
        guard id != Self.none, id != Self.unknown else { return }
        lists[Int(id)].count -= 1
        guard lists[Int(id)].count == 0 else { return }
        ids[lists[Int(id)].names] = nil
        lists[Int(id)] = List()
        free.append(id)
    }
}
