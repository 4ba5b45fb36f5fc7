/// Deadlines by the tick they fall into.
///
/// Moving a deadline later costs nothing here: its entry stays, and whoever receives the entry
/// compares it with the deadline in force and schedules again. Each handler has one live entry.
/// Deadlines beyond the wheel's horizon wait in its furthest slot and are scheduled again from
/// there. Resolution: one tick.
struct TimerWheel {
    struct Entry: Equatable {
        let token: Token
        /// When the entry is due, in milliseconds; at most the deadline it stands for.
        let time: Int64
    }

    static let tickMilliseconds: Int64 = 8
    static let slotCount = 1024

    private var slots = ContiguousArray<ContiguousArray<Entry>>(repeating: [], count: slotCount)
    /// The tick up to and including which all entries were handed out.
    private var current: Int64
    private(set) var count = 0

    init(now: Int64) { current = now / Self.tickMilliseconds }

    /// Adds an entry due at `time`; returns the time at which it will be handed out at the
    /// earliest, which is sooner than `time` when that lies beyond the horizon.
    mutating func add(_ token: Token, at time: Int64) -> Int64 {
        // Rounded up: an entry is never handed out before its time.
        let wanted = (time + Self.tickMilliseconds - 1) / Self.tickMilliseconds
        let tick = min(max(wanted, current + 1), current + Int64(Self.slotCount) - 1)
        let due = wanted > tick ? tick * Self.tickMilliseconds : time
        slots[Int(tick % Int64(Self.slotCount))].append(Entry(token: token, time: due))
        count += 1
        return due
    }

    /// Hands out the entries due at `now`.
    mutating func advance(to now: Int64) -> [Entry] {
        let target = now / Self.tickMilliseconds
        guard target > current else { return [] }
        var due: [Entry] = []
        // After a long sleep every slot is due once; more turns would find them empty.
        let first = max(current + 1, target - Int64(Self.slotCount) + 1)
        current = target
        guard count > 0 else { return [] }
        for tick in first...target {
            let index = Int(tick % Int64(Self.slotCount))
            guard !slots[index].isEmpty else { continue }
            due.append(contentsOf: slots[index])
            count -= slots[index].count
            slots[index] = []
        }
        return due
    }

    /// Milliseconds from `now` until the next entry may be due; -1 when there is none.
    func wait(from now: Int64) -> Int32 {
        guard count > 0 else { return -1 }
        for tick in (current + 1)..<(current + Int64(Self.slotCount))
        where !slots[Int(tick % Int64(Self.slotCount))].isEmpty {
            return Int32(clamping: max(0, tick * Self.tickMilliseconds - now))
        }
        return -1
    }
}
