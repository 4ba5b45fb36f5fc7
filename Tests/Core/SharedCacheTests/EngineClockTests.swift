import CachePolicy
import Testing

@testable import SharedCache

@Suite("The engine's clock")
struct EngineClockTests {
    @Test func `is not known before it was asked`() {
        let clock = EngineClock()
        #expect(!clock.isKnown)
        #expect(clock.engineSeconds(0) == nil)
        #expect(clock.toOwn(Sample.times) == nil)
    }

    @Test(arguments: [-3_600_000, -1499, -500, -499, 0, 499, 500, 3_600_000] as [Int64])
    func `converts times there and back`(offset: Int64) throws {
        var clock = EngineClock()
        clock.measured(asked: 10_000_000, answered: 10_000_004, engine: 10_000_002 + offset)
        let seconds = Int64((Double(offset) / 1000).rounded(.toNearestOrAwayFromZero))
        #expect(clock.engineSeconds(10_000) == 10_000 + seconds)
        #expect(clock.ownSeconds(10_000 + seconds) == 10_000)
        let times = StoredTimes(requestTime: 9000, responseTime: 9001, initialAge: 7)
        let moved = try #require(clock.toEngine(times))
        #expect(moved.requestTime == 9000 + seconds)
        #expect(moved.initialAge == 7)
        #expect(clock.toOwn(moved) == times)
    }

    @Test func `is measured by the shortest question`() {
        var clock = EngineClock()
        clock.measured(asked: 0, answered: 1000, engine: 10_900)
        #expect(clock.engineSeconds(0) == 10)
        clock.measured(asked: 2000, answered: 2002, engine: 12_601)
        #expect(clock.engineSeconds(0) == 11)
        clock.measured(asked: 3000, answered: 4000, engine: 13_900)
        #expect(clock.engineSeconds(0) == 11)
    }

    @Test func `is measured anew if a clock was set, and after a while`() {
        var clock = EngineClock()
        clock.measured(asked: 0, answered: 2, engine: 1)
        #expect(clock.engineSeconds(0) == 0)
        clock.measured(asked: 100, answered: 200, engine: 5150)
        #expect(clock.engineSeconds(0) == 5)
        let later = EngineClock.lifetimeMilliseconds + 200
        clock.measured(asked: later, answered: later + 1900, engine: later + 4000 + 950)
        #expect(clock.engineSeconds(0) == 4)
    }

    @Test func `is not measured by answers that took too long or cannot be`() {
        var clock = EngineClock()
        clock.measured(asked: 0, answered: 2001, engine: 1)
        clock.measured(asked: 10, answered: 9, engine: 1)
        clock.measured(asked: 0, answered: 1, engine: -1)
        clock.measured(asked: 0, answered: 1, engine: .max)
        #expect(!clock.isKnown)
    }
}
