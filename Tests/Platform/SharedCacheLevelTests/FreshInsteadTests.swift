import CachePolicy
import CacheStore
import CacheTestSupport
import Clocks
import SharedCacheLevel
import Testing

@Suite("Of gateways that have the same response, and each a stale one", .serialized)
struct FreshInsteadTests: LeaseTesting {
    @Test(arguments: [10, 100_000, 1_500_000])
    func `one finds what another has stored since, without waiting`(_ size: Int) throws {
        let engine = try EngineProcess()
        let all = try gateways(engine) { $0.maximumObject = 2 << 20 }
        all[0].store.put("http://a/", body(size, seed: 1))
        all[0].store.flushNow()
        let stale = try #require(all[1].store.found("http://a/").first)
        #expect(all[1].store.mayHaveFresh(insteadOf: stale))
        #expect(Asking(all[1].store, insteadOf: stale, fetches: false).isNothing)
        try putFresh(all[0].store, "http://a/", body(size, seed: 2))
        all[0].store.flushNow()
        let asking = Asking(all[1].store, insteadOf: stale, fetches: false)
        let found = try #require(asking.responses()?.first)
        #expect(all[1].store.bytes(found) == body(size, seed: 2))
        #expect(all[1].store.foundBodies("http://a/") == [body(size, seed: 2)])
        #expect(all.allSatisfy { $0.level.figures().leases == 0 })
        close(all)
    }

    @Test func `those who wait for different variants each get their own`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        for language in ["de", "en"] {
            all[0].store.put("http://a/", body(10), vary: vary(language))
        }
        all[0].store.flushNow()
        let stale = try ["de", "en"].map {
            try #require(all[1].store.found("http://a/", vary: $0).first)
        }
        let own = try #require(all[0].store.inMemory("http://a/").first)
        let lease = try #require(Asking(all[0].store, insteadOf: own).lease())
        let waiting = stale.map { Asking(all[1].store, insteadOf: $0) }
        awaitWaiting(2, all[1].level)
        engine.pause()
        try putFresh(all[0].store, "http://a/", body(10, seed: 1), vary: vary("de"))
        try putFresh(all[0].store, "http://a/", body(10, seed: 2), vary: vary("en"))
        lease.end(.stored)
        #expect(eventually { all[0].level.figures().queueCommands == 0 })
        settle(50)
        engine.goOn()
        let found = waiting.map { $0.responses() ?? [] }
        #expect(found.map { $0.map(\.varyKey) } == [[vary("de")], [vary("en")]])
        #expect(
            found.map { $0.map { all[1].store.bytes($0) } }
                == [[body(10, seed: 1)], [body(10, seed: 2)]])
        close(all)
    }

    @Test func `none finds what was made stale, and one has it confirmed`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        try putFresh(all[0].store, "http://a/", body(10))
        all[0].store.flushNow()
        #expect(all[1].store.found("http://a/").count == 1)
        let everything = [Purge(.everything, isSoft: true)]
        _ = try all[0].store.purge(everything, now: Clock.wallSeconds())
        let isStale = eventually {
            all[1].store.inMemory("http://a/").first.map { $0.staleSince > 0 } ?? false
        }
        #expect(isStale)
        let stale = try #require(all[1].store.inMemory("http://a/").first)
        #expect(all[1].store.mayHaveFresh(insteadOf: stale))
        let lease = try #require(Asking(all[1].store, insteadOf: stale).lease())
        // Whoever confirms it in the same second has a fresh one.
        try putFresh(all[1].store, "http://a/", body(10))
        all[1].store.flushNow()
        lease.end(.stored)
        let own = try #require(all[0].store.inMemory("http://a/").first)
        #expect(own.staleSince > 0)
        let found = try #require(Asking(all[0].store, insteadOf: own).responses()?.first)
        #expect(found.staleSince == 0)
        #expect(all[0].store.inMemory("http://a/").map { $0 === found } == [true])
        close(all)
    }
}
