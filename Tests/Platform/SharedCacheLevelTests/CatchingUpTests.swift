import CacheTestSupport
import Clocks
import SharedCacheLevel
import Testing

@Suite("A gateway that starts", .serialized)
struct CatchingUpTests {
    private func level(
        _ engine: EngineProcess, _ change: (inout SharedLevelOptions) -> Void = { _ in }
    ) throws -> SharedLevel {
        var options = try engine.options()
        change(&options)
        return try SharedLevel(options)
    }

    @Test func `waits until it follows the others`() throws {
        let engine = try EngineProcess()
        let level = try level(engine)
        #expect(!level.waitUntilFollowing(milliseconds: 50))
        level.begin(EngineProcess.duties)
        #expect(level.waitUntilFollowing(milliseconds: 20_000))
        #expect(level.figures().isFollowing)
        // It is over for good.
        #expect(level.waitUntilFollowing(milliseconds: 20_000))
        level.close()
        #expect(!level.waitUntilFollowing(milliseconds: 20_000))
    }

    @Test func `waits until what it has missed is carried out`() throws {
        let engine = try EngineProcess()
        let level = try level(engine) { $0.hasOwnEntries = true }
        let ordered = Handover<@Sendable (Bool) -> Void>()
        level.begin(
            FleetDuties(purge: { _, completion in ordered.give(completion) }, remove: { _ in }))
        let complete = try #require(ordered.take())
        #expect(!level.waitUntilFollowing(milliseconds: 100))
        complete(true)
        #expect(level.waitUntilFollowing(milliseconds: 20_000))
        level.close()
    }

    @Test func `does not wait for an engine that is away, or for a level that is closed`() throws {
        let engine = try EngineProcess()
        let level = try level(engine)
        engine.end()
        level.begin(EngineProcess.duties)
        let began = Clock.monotonicMilliseconds()
        #expect(!level.waitUntilFollowing(milliseconds: 100))
        #expect(Clock.monotonicMilliseconds() - began >= 100)
        level.close()
        let closed = Clock.monotonicMilliseconds()
        #expect(!level.waitUntilFollowing(milliseconds: 20_000))
        #expect(Clock.monotonicMilliseconds() - closed < 10_000)
    }
}
