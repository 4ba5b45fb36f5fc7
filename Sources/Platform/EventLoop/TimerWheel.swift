/// Deadlines by the tick in which they fall.
///
/// Moving a deadline later costs nothing here: its entry stays, and whoever receives the entry
/// compares it with the deadline in force and schedules again. Each handler has one live entry.
/// Deadlines beyond the wheel's horizon wait in its furthest slot and are rescheduled from there.
/// The resolution is one tick.
///
/// In every turn, a loop asks how long to wait and what is due, and the answer is hardly ever
/// anything. The earliest tick that has entries is therefore cached, and searched for only when its
/// entries are handed out.
struct TimerWheel {
    struct Entry: Equatable {
        let token: Token
        /// When the entry is due, in milliseconds; never later than the deadline it stands for.
        let time: Int64
    }

    static let tickMilliseconds: Int64 = 8
    static let slotCount = OccupiedSlots.count

    private var slots = ContiguousArray<ContiguousArray<Entry>>(repeating: [], count: slotCount)
    private var occupied = OccupiedSlots()
    /// All entries up to and including this tick have been handed out. The remaining ones are
    /// later, by less than one revolution of the wheel: each tick has its own slot.
    private var current: Int64
    /// The earliest tick that has entries; `.max` if there are none.
    private var earliest = Int64.max
    private(set) var count = 0

    init(now: Int64) { current = now / Self.tickMilliseconds }

    /// Adds an entry due at `time`. Returns the earliest time at which it will be handed out, which
    /// is sooner than `time` if that lies beyond the horizon.
    mutating func add(_ token: Token, at time: Int64) -> Int64 {
        // Rounded up: an entry is never handed out before its time.
        let wanted = (time + Self.tickMilliseconds - 1) / Self.tickMilliseconds
        let tick = min(max(wanted, current + 1), current + Int64(Self.slotCount) - 1)
        let due = wanted > tick ? tick * Self.tickMilliseconds : time
        let slot = Self.slot(of: tick)
        slots[slot].append(Entry(token: token, time: due))
        occupied.insert(slot)
        earliest = min(earliest, tick)
        count += 1
        return due
    }

    /// Appends the entries due at `now` to `due`, in the order of their ticks.
    @inline(__always)
    mutating func advance(to now: Int64, into due: inout FIFO<Entry>) {
        let target = now / Self.tickMilliseconds
        if earliest <= target { handOut(through: target, into: &due) }
        current = max(current, target)
    }

    private mutating func handOut(through target: Int64, into due: inout FIFO<Entry>) {
        while earliest <= target {
            let slot = Self.slot(of: earliest)
            for entry in slots[slot] { due.append(entry) }
            count -= slots[slot].count
            slots[slot] = []
            occupied.remove(slot)
            earliest = occupied.distance(from: slot).map { earliest + Int64($0) } ?? .max
        }
    }

    /// Milliseconds from `now` until the next entry may be due; -1 if there is none.
    @inline(__always)
    func wait(from now: Int64) -> Int32 {
        guard count > 0 else { return -1 }
        return Int32(clamping: max(0, earliest * Self.tickMilliseconds - now))
    }

    private static func slot(of tick: Int64) -> Int { Int(tick % Int64(slotCount)) }
}

/// Which slots of the wheel have entries, one bit each.
struct OccupiedSlots {
    private typealias Words = InlineArray<16, UInt64>
    static let count = Words.count * UInt64.bitWidth

    private var words = Words(repeating: 0)

    mutating func insert(_ slot: Int) {
        words[slot / UInt64.bitWidth] |= 1 << UInt64(slot % UInt64.bitWidth)
    }

    mutating func remove(_ slot: Int) {
        words[slot / UInt64.bitWidth] &= ~(1 << UInt64(slot % UInt64.bitWidth))
    }

    /// The distance from `slot` to the next occupied slot, going around; `slot` itself is checked
    /// last. `nil` if no slot is occupied.
    func distance(from slot: Int) -> Int? {
        let first = (slot + 1) % Self.count
        var index = first / UInt64.bitWidth
        var word = words[index] & (.max << UInt64(first % UInt64.bitWidth))
        // The first word is checked again at the end, for the slots before `first`.
        for _ in 0..<Words.count where word == 0 {
            index = (index + 1) % Words.count
            word = words[index]
        }
        guard word != 0 else { return nil }
        let found = index * UInt64.bitWidth + word.trailingZeroBitCount
        return (found - first + Self.count) % Self.count + 1
    }
}
