import Synchronization

/// Pointers by slot. There may be as many slots as configurations require.
///
/// They are stored in parts, each twice as large as the previous one. A part is created when a slot
/// in it is first written, and is neither moved nor freed before the end: readers need no lock.
struct SlotDirectory: ~Copyable, @unchecked Sendable {
    private typealias Entry = Atomic<UnsafeMutableRawPointer?>

    /// Slots of the first part, a power of two.
    private static var firstPart: Int { 64 }
    /// This many parts have room for four million slots, more than a ``LabelTable`` assigns.
    private static var parts: Int { 16 }

    private let parts: UnsafeMutablePointer<Entry>

    init() {
        parts = .allocate(capacity: Self.parts)
        for part in 0..<Self.parts { (parts + part).initialize(to: Atomic(nil)) }
    }

    deinit {
        for part in 0..<Self.parts {
            guard let entries = ownEntries(ofPart: part) else { continue }
            entries.deinitialize(count: Self.firstPart << part)
            entries.deallocate()
        }
        parts.deinitialize(count: Self.parts)
        parts.deallocate()
    }

    /// The location of a slot: the part, and the index in it.
    @inline(__always)
    private static func locate(_ slot: Int) -> (part: Int, entry: Int) {
        let shifted = slot + firstPart
        let part =
            (Int.bitWidth - 1 - shifted.leadingZeroBitCount) - firstPart.trailingZeroBitCount
        return (part, shifted - firstPart << part)
    }

    /// For the writing thread, which reads back its own stores, so that no ordering is needed.
    @inline(__always)
    private func ownEntries(ofPart part: Int) -> UnsafeMutablePointer<Entry>? {
        // Bound to `Entry` by `makePart`.
        parts[part].load(ordering: .relaxed)?.assumingMemoryBound(to: Entry.self)
    }

    /// For any thread.
    private func entries(ofPart part: Int) -> UnsafeMutablePointer<Entry>? {
        parts[part].load(ordering: .acquiring)?.assumingMemoryBound(to: Entry.self)
    }

    /// The pointer for a slot; for the writing thread.
    @inline(__always)
    func ownPointer(_ slot: UInt32) -> UnsafeMutableRawPointer? {
        let (part, entry) = Self.locate(Int(slot))
        guard part < Self.parts, let entries = ownEntries(ofPart: part) else {
            return nil
        }
        return entries[entry].load(ordering: .relaxed)
    }

    /// The pointer for a slot, with everything written to it before; for any thread.
    func pointer(_ slot: UInt32) -> UnsafeMutableRawPointer? {
        let (part, entry) = Self.locate(Int(slot))
        guard part < Self.parts, let entries = entries(ofPart: part) else {
            return nil
        }
        return entries[entry].load(ordering: .acquiring)
    }

    /// Sets the pointer for a slot; for the writing thread. What it points to must be complete.
    func keep(_ pointer: UnsafeMutableRawPointer, for slot: UInt32) {
        let (part, entry) = Self.locate(Int(slot))
        precondition(part < Self.parts, "a slot that no table of labels assigns")
        let entries = ownEntries(ofPart: part) ?? makePart(part)
        entries[entry].store(pointer, ordering: .releasing)
    }

    private func makePart(_ part: Int) -> UnsafeMutablePointer<Entry> {
        let count = Self.firstPart << part
        let entries = UnsafeMutablePointer<Entry>.allocate(capacity: count)
        for entry in 0..<count { (entries + entry).initialize(to: Atomic(nil)) }
        parts[part].store(UnsafeMutableRawPointer(entries), ordering: .releasing)
        return entries
    }

    /// Calls `body` with every pointer.
    func visit(_ body: (UnsafeMutableRawPointer) -> Void) {
        for part in 0..<Self.parts {
            guard let entries = entries(ofPart: part) else { continue }
            for entry in 0..<(Self.firstPart << part) {
                if let pointer = entries[entry].load(ordering: .acquiring) { body(pointer) }
            }
        }
    }
}

/// Blocks of counters by the slots of labels, each created by the writing thread at its first use.
///
/// A block belongs to one name of its slot. When the writing thread first counts for a later name,
/// it sets the block to zero; counts for an earlier name then have no block. Readers get the block
/// of the name that they ask for, or none.
struct SlotBlocks: ~Copyable, @unchecked Sendable {
    private let directory = SlotDirectory()
    /// Counters of a block.
    let cells: Int

    /// - Parameter cells: counters of a block.
    init(cells: Int) { self.cells = cells }

    deinit {
        // The counters are preceded by one for the owner.
        directory.visit { CounterCells(atOwner: $0, count: cells).deallocateWithOwner() }
    }

    /// A slot's block for one of its names; `nil` if it belongs to a later one. For the writing
    /// thread.
    @inline(__always)
    func forWriting(_ slot: UInt32, owner: UInt64) -> CounterCells? {
        guard let known = directory.ownPointer(slot) else { return make(slot, owner) }
        let block = CounterCells(atOwner: known, count: cells)
        return block.owner(.relaxed) == owner ? block : takeOver(block, owner)
    }

    @inline(never)
    private func make(_ slot: UInt32, _ owner: UInt64) -> CounterCells {
        let block = CounterCells.allocateWithOwner(owner, count: cells)
        // Readers must see the zeros before they see the block: it is published by `keep`.
        directory.keep(block.ownerAddress, for: slot)
        return block
    }

    @inline(never)
    private func takeOver(_ block: CounterCells, _ owner: UInt64) -> CounterCells? {
        guard SlotOwner.isLater(owner, than: block.owner(.relaxed)) else { return nil }
        for cell in 0..<cells { block.set(0, at: cell) }
        block.setOwner(owner)
        return block
    }

    /// The owner of a slot's block; `nil` if there is no block. For the writing thread.
    func owner(ofSlot slot: UInt32) -> UInt64? {
        directory.ownPointer(slot).map { CounterCells(atOwner: $0, count: cells).owner(.relaxed) }
    }

    /// The block of `other`, whose slot never has another name. For the writing thread.
    func ofOther() -> CounterCells {
        let other = LabelIndex.other.slot
        return directory.ownPointer(other).map { CounterCells(atOwner: $0, count: cells) }
            ?? make(other, 0)
    }

    /// A slot's block if it belongs to this name; for any thread.
    func reading(_ slot: UInt32, owner: UInt64) -> CounterCells? {
        guard let known = directory.pointer(slot) else { return nil }
        let block = CounterCells(atOwner: known, count: cells)
        return block.owner(.acquiring) == owner ? block : nil
    }
}

/// The blocks of the exchanges of listeners with host entries: for each listener's slot, those of
/// the host entries' slots.
struct RouteBlocks: ~Copyable, @unchecked Sendable {
    private let listeners = SlotDirectory()
    /// Counters of a block.
    private let cells: Int

    init(cells: Int) { self.cells = cells }

    deinit {
        listeners.visit {
            let blocks = RouteBlocks.blocks(at: $0)
            blocks.deinitialize(count: 1)
            blocks.deallocate()
        }
    }

    private static func blocks(
        at memory: UnsafeMutableRawPointer
    ) -> UnsafeMutablePointer<SlotBlocks> {
        // Bound by `make`.
        memory.assumingMemoryBound(to: SlotBlocks.self)
    }

    /// A route's block; `nil` if it belongs to a later name of either slot. For the writing thread.
    @inline(__always)
    func forWriting(_ route: RouteIndex) -> CounterCells? {
        let memory = listeners.ownPointer(route.listener.slot) ?? make(route.listener.slot)
        return Self.blocks(at: memory).pointee.forWriting(route.host.slot, owner: route.owner)
    }

    /// The block to use if a route's block belongs to a later name of either slot: that of the
    /// listener's other hosts if only the host entry's slot has been reassigned. For the writing
    /// thread.
    func ofOther(insteadOf route: RouteIndex) -> CounterCells {
        let others = RouteIndex(listener: route.listener, host: .other)
        if let memory = listeners.ownPointer(route.listener.slot),
            let owner = Self.blocks(at: memory).pointee.owner(ofSlot: route.host.slot),
            SlotOwner.first(of: owner) == route.listener.use, let block = forWriting(others)
        {
            return block
        }
        return ofOther()
    }

    /// The block for everything without a name. For the writing thread.
    private func ofOther() -> CounterCells {
        let other = LabelIndex.other.slot
        return Self.blocks(at: listeners.ownPointer(other) ?? make(other)).pointee.ofOther()
    }

    @inline(never)
    private func make(_ listener: UInt32) -> UnsafeMutableRawPointer {
        let blocks = UnsafeMutablePointer<SlotBlocks>.allocate(capacity: 1)
        blocks.initialize(to: SlotBlocks(cells: cells))
        listeners.keep(UnsafeMutableRawPointer(blocks), for: listener)
        return UnsafeMutableRawPointer(blocks)
    }

    /// A route's block if it has one; for any thread.
    func reading(_ route: RouteIndex) -> CounterCells? {
        guard let memory = listeners.pointer(route.listener.slot) else { return nil }
        return Self.blocks(at: memory).pointee.reading(route.host.slot, owner: route.owner)
    }
}

/// The owner of a block: the number of a slot's name, or of a pair of names.
enum SlotOwner {
    /// The owner for one slot's name.
    static func of(_ index: LabelIndex) -> UInt64 { UInt64(index.use) }

    /// The owner for the names of two slots.
    @inline(__always)
    static func of(_ one: LabelIndex, _ other: LabelIndex) -> UInt64 {
        UInt64(one.use) << 32 | UInt64(other.use)
    }

    /// The first of two names, of an owner that is a pair.
    static func first(of pair: UInt64) -> UInt32 { UInt32(pair >> 32) }

    /// Whether an owner is later than another one: none of its names is earlier, and one is later.
    static func isLater(_ owner: UInt64, than other: UInt64) -> Bool {
        let (high, low) = (owner >> 32, owner & 0xFFFF_FFFF)
        let (otherHigh, otherLow) = (other >> 32, other & 0xFFFF_FFFF)
        return owner != other && high >= otherHigh && low >= otherLow
    }
}
