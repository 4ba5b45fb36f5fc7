import HTTPCore

/// A slot of a table whose evictions `EvictionQueues` decide.
protocol EvictionSlot: AgeLinked {
    var keyHash: UInt64 { get }
    /// What it takes of the table's limit.
    var weight: Int64 { get }
    /// How it has been used, and in which queue it is.
    var uses: SlotUses { get set }
    /// Whether it is to be spared, in the main queue for another round.
    var isInUse: Bool { get }
}

extension EvictionSlot {
    var isInUse: Bool { uses.count > 0 }
}

/// How often an entry was used since that was last considered, and whether it has proved itself.
struct SlotUses: BitwiseCopyable {
    /// At most 3.
    private(set) var count: UInt8 = 0
    fileprivate(set) var isProven = false

    /// The same in three bits.
    init(bits: UInt8) {
        count = bits & 3
        isProven = bits & 4 != 0
    }
    var bits: UInt8 { count | (isProven ? 4 : 0) }

    @inline(__always)
    mutating func add() { if count < 3 { count &+= 1 } }

    fileprivate mutating func takeOne() { if count > 0 { count -= 1 } }
    fileprivate mutating func prove() { self = SlotUses(isProven: true) }

    init() {}
    init(count: UInt8 = 0, isProven: Bool) {
        self.count = count
        self.isProven = isProven
    }
}

/// Decides which entry of a table is evicted: S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi: "FIFO
/// queues are all you need for cache eviction", SOSP 2023).
///
/// A new entry is on probation, in a queue that gets a tenth of the space. If it has been used by
/// the time it reaches the end of that queue, it goes on to the main queue; otherwise it is
/// evicted, and its key remembered for a while (`GhostTable`): if it is stored again in that time,
/// it goes to the main queue at once. There, an entry that has been used gets another round for
/// each use. So what is asked for once, however much of it there is, costs what is asked for again
/// and again nothing. A use changes one byte and moves nothing.
struct EvictionQueues {
    /// Its queue gets this part of the space.
    private static let probationDivisor: Int64 = 10
    /// The maximum number of entries that are spared for one eviction.
    static let maximumSteps = 64

    private var probation = AgeList()
    private var main = AgeList()
    /// The weight of the entries on probation.
    private var probationWeight: Int64 = 0
    private var ghosts = GhostTable()

    /// Remembers evicted keys in proportion to this many entries.
    mutating func reserve(_ count: Int) { ghosts.reserve(count / 2) }

    /// Adds a slot whose entry is new.
    /// - Parameter isProven: whether it is known to be used more than once.
    mutating func insert<Slots: SlotStorage>(
        _ slot: Int32, isProven: Bool = false, in slots: inout Slots
    ) where Slots.Slot: EvictionSlot {
        let isProven = ghosts.remove(slots[Int(slot)].keyHash) || isProven
        slots[Int(slot)].uses = SlotUses(isProven: isProven)
        if isProven {
            main.link(slot, in: &slots)
        } else {
            probation.link(slot, in: &slots)
            probationWeight += slots[Int(slot)].weight
        }
    }

    /// Takes a slot out.
    mutating func remove<Slots: SlotStorage>(_ slot: Int32, in slots: inout Slots)
    where Slots.Slot: EvictionSlot {
        if slots[Int(slot)].uses.isProven {
            main.unlink(slot, in: &slots)
        } else {
            probation.unlink(slot, in: &slots)
            probationWeight -= slots[Int(slot)].weight
        }
    }

    /// The weight of a slot has become greater by `weight`.
    mutating func hasGrown<Slots: SlotStorage>(
        _ slot: Int32, by weight: Int64, in slots: borrowing Slots
    ) where Slots.Slot: EvictionSlot {
        if !slots[Int(slot)].uses.isProven { probationWeight += weight }
    }

    /// Whether an entry that is at hand, but need not be kept, should be: its key was at hand
    /// before and is remembered. If not, it is remembered from now on.
    mutating func isWorthKeeping(_ hash: UInt64) -> Bool {
        let isKnown = ghosts.remove(hash)
        // `insert` looks for it again.
        ghosts.add(hash)
        return isKnown
    }

    /// Chooses the slot whose entry is evicted; -1 if there is none. The caller removes it.
    /// - Parameters:
    ///   - total: the weight of all entries.
    ///   - isExempt: whether a slot's entry cannot be evicted at present.
    mutating func victim<Slots: SlotStorage>(
        in slots: inout Slots, of total: Int64, except isExempt: (borrowing Slots.Slot) -> Bool
    ) -> Int32 where Slots.Slot: EvictionSlot {
        var steps = Self.maximumSteps
        while true {
            let isOver = probationWeight * Self.probationDivisor > total
            var slot = oldest(of: isOver ? probation : main, in: slots, except: isExempt)
            if slot < 0 {
                slot = oldest(of: isOver ? main : probation, in: slots, except: isExempt)
            }
            guard slot >= 0 else { return -1 }
            let isProven = slots[Int(slot)].uses.isProven
            guard steps > 0, slots[Int(slot)].isInUse else {
                if !isProven { ghosts.add(slots[Int(slot)].keyHash) }
                return slot
            }
            steps -= 1
            if isProven {
                slots[Int(slot)].uses.takeOne()
                main.renew(slot, in: &slots)
            } else {
                remove(slot, in: &slots)
                slots[Int(slot)].uses.prove()
                main.link(slot, in: &slots)
            }
        }
    }

    private func oldest<Slots: SlotStorage>(
        of list: AgeList, in slots: borrowing Slots,
        except isExempt: (borrowing Slots.Slot) -> Bool
    ) -> Int32 where Slots.Slot: EvictionSlot {
        var slot = list.oldest
        while slot >= 0, isExempt(slots[Int(slot)]) { slot = slots[Int(slot)].newer }
        return slot
    }
}
