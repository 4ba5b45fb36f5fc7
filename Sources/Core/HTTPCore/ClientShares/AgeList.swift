/// A slot of a table with its neighbours by age; -1 at the ends.
public protocol AgeLinked {
    var newer: Int32 { get set }
    var older: Int32 { get set }
}

/// A slot of a table with free slots. Only one in use can be in a list.
extension Optional: AgeLinked where Wrapped: AgeLinked {
    @inlinable public var newer: Int32 {
        get { self?.newer ?? -1 }
        set { self?.newer = newValue }
    }
    @inlinable public var older: Int32 {
        get { self?.older ?? -1 }
        set { self?.older = newValue }
    }
}

/// Where the slots of a table are. An access to one moves no other.
public protocol SlotStorage {
    associatedtype Slot
    subscript(_ slot: Int) -> Slot { get set }
}

extension ContiguousArray: SlotStorage {
    public typealias Slot = Element
}

/// The two ends of a list, ordered by age, that runs through the slots of a table. Several lists
/// may run through one table; a slot is in at most one of them.
public struct AgeList: Sendable {
    @usableFromInline var ends: (newest: Int32, oldest: Int32) = (-1, -1)

    /// The slot at each end; -1 if the list is empty.
    @inlinable public var newest: Int32 { ends.newest }
    @inlinable public var oldest: Int32 { ends.oldest }

    @inlinable public init() {}

    /// Inserts a slot that is not in the list as its newest.
    @inlinable @inline(__always)
    public mutating func link<Slots: SlotStorage>(_ slot: Int32, in slots: inout Slots)
    where Slots.Slot: AgeLinked {
        slots[Int(slot)].newer = -1
        slots[Int(slot)].older = ends.newest
        if ends.newest >= 0 { slots[Int(ends.newest)].newer = slot } else { ends.oldest = slot }
        ends.newest = slot
    }

    /// Takes a slot out of the list.
    @inlinable @inline(__always)
    public mutating func unlink<Slots: SlotStorage>(_ slot: Int32, in slots: inout Slots)
    where Slots.Slot: AgeLinked {
        let newer = slots[Int(slot)].newer
        let older = slots[Int(slot)].older
        if newer >= 0 { slots[Int(newer)].older = older } else { ends.newest = older }
        if older >= 0 { slots[Int(older)].newer = newer } else { ends.oldest = newer }
    }

    /// Moves a slot of the list to its newest end.
    @inlinable @inline(__always)
    public mutating func renew<Slots: SlotStorage>(_ slot: Int32, in slots: inout Slots)
    where Slots.Slot: AgeLinked {
        guard ends.newest != slot else { return }
        unlink(slot, in: &slots)
        link(slot, in: &slots)
    }
}
