import Clocks
import Testing

@testable import EventLoop

@Suite("The event loop's clock")
struct LoopClockTests {
    /// One reading: the requested wait, the time that passed, and the time that counts.
    struct Step: Sendable {
        var waited: Int32
        var elapsed: Int64
        var counted: Int64
    }

    @Test(arguments: [
        // As requested, or a little more.
        Step(waited: 8, elapsed: 8, counted: 8),
        Step(waited: 100, elapsed: 99, counted: 99),
        Step(waited: 0, elapsed: 1000, counted: 1000),
        Step(waited: 1000, elapsed: 2000, counted: 2000),
        // A gap: beyond the requested time only the allowance counts.
        Step(waited: 0, elapsed: 1001, counted: 1000),
        Step(waited: 1000, elapsed: 2001, counted: 2000),
        Step(waited: 8, elapsed: 10_000, counted: 1008),
        Step(waited: 1000, elapsed: 86_400_000, counted: 2000),
        // Without a deadline there is none to miss.
        Step(waited: -1, elapsed: 3_600_000, counted: 3_600_000),
        // A clock that stands still or goes backwards.
        Step(waited: 8, elapsed: 0, counted: 0),
        Step(waited: 8, elapsed: -5000, counted: 0),
    ])
    func `time beyond the wait and its allowance does not count`(step: Step) {
        var clock = LoopClock(monotonic: 500_000)
        clock.advance(to: 500_000 + step.elapsed, waited: step.waited)
        #expect(clock.now == 500_000 + step.counted)
        #expect(clock.monotonic == 500_000 + max(0, step.elapsed))
        #expect(clock.skippedMilliseconds == max(0, step.elapsed) - step.counted)
    }

    @Test func `what was left out stays out`() {
        var clock = LoopClock(monotonic: 0)
        clock.advance(to: 10_000, waited: 1000)
        clock.advance(to: 10_008, waited: 8)
        #expect(clock.now == 2008)
        clock.advance(to: 30_008, waited: 0)
        #expect(clock.now == 3008)
        #expect(clock.skippedMilliseconds == 27_000)
    }

    @Test func `a loop with a deadline waits only so long that a gap in the wait is seen`() throws {
        let loop = try EventLoop()
        let handler = Recorder(loop)
        try loop.add(handler)
        loop.setDeadline(handler, after: 60_000)
        let before = Clock.monotonicMilliseconds()
        loop.turn()
        let waited = Clock.monotonicMilliseconds() - before
        #expect(waited >= Int64(LoopClock.longestWaitMilliseconds) - 8)
        #expect(handler.deadlines.isEmpty)
    }
}
