/// A name's index in a ``LabelTable``: a slot, and the number of the name among those that the slot
/// has had. It still stands for the same name after a reload has removed that, and for none once
/// the slot has been reassigned.
public struct LabelIndex: Sendable, Hashable {
    /// The slot of the name's counters.
    public let slot: UInt32
    /// The number of the name among the slot's names, from 0.
    public let use: UInt32

    /// The name for all values that have no slot of their own (any more).
    public static let other = LabelIndex(slot: 0, use: 0)

    /// The name number `use` of a slot.
    @inlinable
    public init(slot: UInt32, use: UInt32) {
        self.slot = slot
        self.use = use
    }
}

/// The label values of one dimension.
///
/// Values come from the configuration, never from traffic, and the table has room for all of them.
/// A value that a reload removes is no longer in force: its series end. What is still in progress
/// with it is counted as before, and if the value returns soon, its series continue. Only when as
/// many values have been removed as are in force (and at least `retainedLabels`) is the slot of the
/// value removed first reassigned to a new one, whose counters begin at zero.
public struct LabelTable: Sendable, Equatable {
    /// The value for everything without a series of its own.
    public static let overflowLabel = "other"
    /// How many removed values keep their slots, however few are in force.
    public static let retainedLabels = 64
    /// The most slots; a value without one is counted with `other`. No configuration comes near
    /// this: it limits the effect of a bug elsewhere.
    public static let maximumSlots = 1 << 20

    private enum State: Equatable { case inForce, taken, removed }

    private struct Slot: Equatable {
        var label: String
        var use: UInt32
        var state: State
    }

    /// The first one is for `other`; it and those of the permanent values never change.
    private var slots: [Slot]
    private let permanent: Int
    private var slotIndexes: [String: Int] = [:]
    /// Slots whose values were removed, in the order of removal.
    private var removed: [Int] = []
    private var inForceCount = 0

    /// A table with `labels` in force.
    ///
    /// - Parameter permanent: values that no reload removes, in the slots from 1 on.
    public init(_ labels: [String] = [], permanent: [String] = []) {
        let fixed = [LabelTable.overflowLabel] + permanent
        slots = fixed.map { Slot(label: $0, use: 0, state: .inForce) }
        self.permanent = fixed.count
        for (slot, label) in fixed.enumerated() { slotIndexes[label] = slot }
        activate(labels)
    }

    /// The indexes of a configuration's values, assigning slots to unknown ones. The configuration
    /// need not come into force.
    public mutating func indexes(for labels: [String]) -> [LabelIndex] {
        // Slots that were assigned before and have not come into force are released.
        for slot in slots.indices where slots[slot].state == .taken { remove(slot) }
        // Known values first, so that their slots are not reassigned.
        for label in labels {
            guard let slot = slotIndexes[label], slots[slot].state == .removed else { continue }
            slots[slot].state = .taken
            removed.removeAll { $0 == slot }
        }
        let wanted = max(inForceCount, labels.count)
        let room = permanent + wanted + max(LabelTable.retainedLabels, wanted)
        return labels.map { index(for: $0, room: room) }
    }

    /// Puts the values of a configuration in force, and no others.
    public mutating func activate(_ labels: [String]) {
        _ = indexes(for: labels)
        let wanted = Set(labels)
        for slot in slots.indices.dropFirst(permanent) where slots[slot].state != .removed {
            if wanted.contains(slots[slot].label) {
                slots[slot].state = .inForce
            } else {
                remove(slot)
            }
        }
        inForceCount = slots.indices.dropFirst(permanent)
            .count(where: { slots[$0].state == .inForce })
    }

    private mutating func remove(_ slot: Int) {
        slots[slot].state = .removed
        removed.append(slot)
    }

    private mutating func index(for label: String, room: Int) -> LabelIndex {
        if let known = slotIndexes[label] {
            return LabelIndex(slot: UInt32(known), use: slots[known].use)
        }
        guard slots.count >= room, let slot = removed.first else {
            guard slots.count < LabelTable.maximumSlots else { return .other }
            slotIndexes[label] = slots.count
            slots.append(Slot(label: label, use: 0, state: .taken))
            return LabelIndex(slot: UInt32(slots.count - 1), use: 0)
        }
        removed.removeFirst()
        slotIndexes[slots[slot].label] = nil
        slots[slot] = Slot(label: label, use: slots[slot].use &+ 1, state: .taken)
        slotIndexes[label] = slot
        return LabelIndex(slot: UInt32(slot), use: slots[slot].use)
    }

    /// The value at an index; `other` if its slot has another value by now.
    public subscript(index: LabelIndex) -> String {
        let slot = Int(index.slot)
        guard slots.indices.contains(slot), slots[slot].use == index.use else {
            return LabelTable.overflowLabel
        }
        return slots[slot].label
    }

    /// The values in force and the permanent ones, but not `other`, by slot.
    public var inForce: [(index: LabelIndex, label: String)] {
        slots.indices.dropFirst().compactMap { slot in
            guard slots[slot].state == .inForce else { return nil }
            return (LabelIndex(slot: UInt32(slot), use: slots[slot].use), slots[slot].label)
        }
    }

    /// All values that have a slot, in force or not, but not `other`, by slot.
    var all: [(index: LabelIndex, label: String)] {
        slots.indices.dropFirst().map { slot in
            (LabelIndex(slot: UInt32(slot), use: slots[slot].use), slots[slot].label)
        }
    }

    /// Each slot's current name, and the number of that name.
    public var names: [(use: UInt32, label: String)] { slots.map { ($0.use, $0.label) } }
}
