import Testing

@testable import EventLoop

@Suite("How busy a loop is")
struct TurnTimesTests {
    private static let second: Int64 = 1_000_000_000

    private static func turn(_ times: TurnTimes, from begin: Int64, to end: Int64) {
        times.begin(at: begin)
        times.end(at: end)
    }

    @Test func `the time of all turns is added up, without what lies between them`() {
        let times = TurnTimes()
        #expect(times.busyNanoseconds { 7 } == 0)
        Self.turn(times, from: 100, to: 130)
        Self.turn(times, from: 200, to: 201)
        Self.turn(times, from: 201, to: 201)
        #expect(times.busyNanoseconds { 10_000 } == 31)
    }

    @Test func `a turn under way counts up to now`() {
        let times = TurnTimes()
        Self.turn(times, from: 100, to: 130)
        times.begin(at: 1000)
        #expect(times.busyNanoseconds { 1000 } == 30)
        #expect(times.busyNanoseconds { 1700 } == 730)
        #expect(times.longestNanoseconds { 1700 } == 700)
        times.end(at: 1800)
        #expect(times.busyNanoseconds { 5000 } == 830)
        #expect(times.longestNanoseconds { 5000 } == 800)
    }

    @Test func `a clock that goes back takes nothing away`() {
        let times = TurnTimes()
        Self.turn(times, from: 100, to: 130)
        Self.turn(times, from: 120, to: 110)
        #expect(times.busyNanoseconds { 200 } == 30)
    }

    @Test func `the longest turn is remembered for one to two minutes`() {
        let period = TurnTimes.period
        let times = TurnTimes()
        Self.turn(times, from: period, to: period + 5 * Self.second)
        Self.turn(times, from: period + 6 * Self.second, to: period + 7 * Self.second)
        // Turns of later periods, and nothing at all, as time passes.
        for (now, expected) in [(1, 5), (2, 5), (3, 0), (4, 0)] as [(Int64, Int64)] {
            #expect(times.longestNanoseconds { now * period } == expected * Self.second)
        }
        Self.turn(times, from: 2 * period, to: 2 * period + Self.second)
        #expect(times.longestNanoseconds { 2 * period + Self.second } == 5 * Self.second)
        Self.turn(times, from: 3 * period, to: 3 * period + 1)
        #expect(times.longestNanoseconds { 3 * period + 1 } == Self.second)
        Self.turn(times, from: 9 * period, to: 9 * period + 2)
        #expect(times.longestNanoseconds { 9 * period + 2 } == 2)
    }

    /// A clock that a test sets.
    private final class Hand {
        var nanoseconds: Int64 = 1_000_000_000
    }

    private final class Slow: EventHandler {
        let hand: Hand
        let taking: Int64

        init(_ hand: Hand, taking: Int64) {
            self.hand = hand
            self.taking = taking
        }

        override func continueWork() { hand.nanoseconds += taking }
        override func deadlineReached() { hand.nanoseconds += 2 * taking }
    }

    @Test func `a loop records what it does for handlers, deadlines and deferred work`() throws {
        let hand = Hand()
        let times = TurnTimes()
        let loop = try EventLoop(
            time: TimeSource(
                monotonicMilliseconds: { hand.nanoseconds / 1_000_000 },
                wallMilliseconds: { 0 }, monotonicNanoseconds: { hand.nanoseconds }),
            turnTimes: times)
        let slow = Slow(hand, taking: Self.second)
        try loop.add(slow)
        loop.requeue(slow)
        loop.turn(waitingAtMost: 0)
        #expect(times.busyNanoseconds() == Self.second)
        loop.setDeadline(slow, after: 0)
        // More than the timer wheel's resolution.
        hand.nanoseconds += 20_000_000
        loop.turn(waitingAtMost: 0)
        #expect(times.busyNanoseconds() == 3 * Self.second)
        loop.afterTurn { hand.nanoseconds += 5 }
        loop.turn(waitingAtMost: 0)
        #expect(times.busyNanoseconds() == 3 * Self.second + 5)
        #expect(times.longestNanoseconds { hand.nanoseconds } == 2 * Self.second)
        hand.nanoseconds += Self.second
        loop.turn(waitingAtMost: 0)
        #expect(times.busyNanoseconds() == 3 * Self.second + 5)
        loop.remove(slow)
    }
}
