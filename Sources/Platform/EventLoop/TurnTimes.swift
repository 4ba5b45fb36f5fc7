import Clocks
import Synchronization

/// How busy a loop is: how much time its turns have taken, and how long the longest one was lately.
/// The loop's thread writes it, any thread reads it, and neither waits for the other.
///
/// A turn begins when the wait for events ends, and ends when the next wait begins. A loop whose
/// turns take all the time is saturated, and everything on it waits as long as a turn takes. Time
/// for which the thread does not get a processor counts: its clients wait for that as well.
public final class TurnTimes: Sendable {
    /// How long a longest turn is remembered at least, and half of how long at most, in
    /// nanoseconds.
    static let period: Int64 = 60_000_000_000

    /// While the loop waits, twice the time of all turns. In a turn, twice the time at which this
    /// one would have begun if all turns had followed each other until now, plus one. In this way
    /// one read is consistent, and the sum never goes back.
    private let mark = Atomic<Int64>(0)
    /// When the turn that is under way began, by the monotonic clock; 0 while the loop waits.
    private let begun = Atomic<Int64>(0)
    /// The longest turns of the current period and of the one before it.
    private let longest = Atomic<Int64>(0)
    private let longestBefore = Atomic<Int64>(0)
    /// The number of the current period.
    private let number = Atomic<Int64>(0)

    /// The times of a loop that has not turned yet.
    public init() {}

    // MARK: Writing, on the loop's thread only

    /// The wait for events has ended.
    @inline(__always)
    func begin(at now: Int64) {
        let total = mark.load(ordering: .relaxed) >> 1
        mark.store((now &- total) << 1 | 1, ordering: .relaxed)
        begun.store(now, ordering: .relaxed)
    }

    /// The next wait begins.
    @inline(__always)
    func end(at now: Int64) {
        let start = begun.load(ordering: .relaxed)
        let taken = max(0, now &- start)
        let total = start &- (mark.load(ordering: .relaxed) >> 1)
        mark.store((total &+ taken) << 1, ordering: .relaxed)
        begun.store(0, ordering: .relaxed)
        let present = now / Self.period
        if present != number.load(ordering: .relaxed) { beginPeriod(present) }
        if taken > longest.load(ordering: .relaxed) { longest.store(taken, ordering: .relaxed) }
    }

    @inline(never)
    private func beginPeriod(_ present: Int64) {
        let isNext = present == number.load(ordering: .relaxed) + 1
        longestBefore.store(isNext ? longest.load(ordering: .relaxed) : 0, ordering: .relaxed)
        longest.store(0, ordering: .relaxed)
        number.store(present, ordering: .relaxed)
    }

    // MARK: Reading, from any thread

    /// The time that all turns have taken, including the one under way, in nanoseconds.
    public func busyNanoseconds(_ now: () -> Int64 = Clock.monotonicNanoseconds) -> Int64 {
        let mark = mark.load(ordering: .acquiring)
        return mark & 1 == 0 ? mark >> 1 : max(0, now() &- (mark >> 1))
    }

    /// The longest turn of the last one to two minutes, including the one under way, in
    /// nanoseconds.
    public func longestNanoseconds(_ now: () -> Int64 = Clock.monotonicNanoseconds) -> Int64 {
        let begun = begun.load(ordering: .acquiring)
        let now = now()
        let current = longest.load(ordering: .relaxed)
        let recent =
            switch now / Self.period - number.load(ordering: .relaxed) {
            case ...0: max(current, longestBefore.load(ordering: .relaxed))
            case 1: current
            default: Int64(0)
            }
        return begun == 0 ? recent : max(recent, now &- begun)
    }
}
