/// A slot of a table with its neighbours by age; -1 at the ends.
protocol AgeLinked {
    var newer: Int32 { get set }
    var older: Int32 { get set }
}

/// The two ends of a list, ordered by age, that runs through the slots of a table.
struct AgeList {
    private(set) var newest: Int32 = -1
    private(set) var oldest: Int32 = -1

    /// Inserts a slot that is not in the list as its newest.
    @inline(__always)
    mutating func link(_ slot: Int32, in slots: inout ContiguousArray<some AgeLinked>) {
        slots[Int(slot)].newer = -1
        slots[Int(slot)].older = newest
        if newest >= 0 { slots[Int(newest)].newer = slot } else { oldest = slot }
        newest = slot
    }

    @inline(__always)
    mutating func unlink(_ slot: Int32, in slots: inout ContiguousArray<some AgeLinked>) {
        let newer = slots[Int(slot)].newer
        let older = slots[Int(slot)].older
        if newer >= 0 { slots[Int(newer)].older = older } else { newest = older }
        if older >= 0 { slots[Int(older)].newer = newer } else { oldest = newer }
    }

    /// Moves a slot of the list to its newest end.
    @inline(__always)
    mutating func renew(_ slot: Int32, in slots: inout ContiguousArray<some AgeLinked>) {
        guard newest != slot else { return }
        unlink(slot, in: &slots)
        link(slot, in: &slots)
    }
}
