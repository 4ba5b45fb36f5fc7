import CacheStore
import CacheTestSupport
import RedisProtocol
import SharedCacheLevel
import Testing

@Suite("Of the gateways that share an engine", .serialized)
struct LeaseTests: LeaseTesting {
    @Test(arguments: [10, 100_000, 1_500_000])
    func `one fetches and the others wait for what it stores`(_ size: Int) throws {
        let engine = try EngineProcess()
        let all = try gateways(engine) { $0.maximumObject = 2 << 20 }
        let lease = try #require(Asking(all[0].store).lease())
        let waiting = Asking(all[1].store)
        awaitWaiting(1, all[1].level)
        #expect(waiting.isOpen)
        try putFresh(all[0].store, "http://a/", body(size))
        lease.end(.stored)
        let found = try #require(waiting.responses()?.first)
        #expect(all[1].store.bytes(found) == body(size))
        #expect(eventually { leases(engine).isEmpty })
        let figures = all[1].level.figures()
        #expect(figures.waits == 1)
        #expect(figures.waitsAnswered == 1)
        #expect(figures.leases == 0)
        #expect(figures.waitingLookups == 0)
        #expect(all[0].level.figures().leases == 1)
        close(all)
    }

    @Test func `those who wait find what is stored before the fetch has ended`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        let lease = try #require(Asking(all[0].store).lease())
        let waiting = Asking(all[1].store)
        awaitWaiting(1, all[1].level)
        try putFresh(all[0].store, "http://a/", body(10))
        #expect(waiting.responses()?.count == 1)
        lease.end(.stored)
        close(all)
    }

    @Test func `no two fetch at a time, however often they ask`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        for round in 0..<50 {
            let url = "http://a/\(round)"
            let asking = all.map { Asking($0.store, url) }
            #expect(eventually { asking.contains { !$0.isOpen } })
            let leader = try #require(asking.firstIndex { !$0.isOpen })
            let lease = try #require(asking[leader].lease())
            #expect(asking[1 - leader].isOpen)
            try putFresh(all[leader].store, url, body(10, seed: round))
            lease.end(.stored)
            #expect(asking[1 - leader].responses()?.count == 1)
        }
        #expect(all.reduce(0) { $0 + $1.level.figures().leases } == 50)
        close(all)
    }

    @Test func `another fetches if the one that did has died, when its lease ends`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        try takeLease(engine, milliseconds: 1500)
        let waiting = Asking(all[0].store)
        let lease = try #require(waiting.lease())
        #expect(lease.isHeld)
        #expect(all[0].level.figures().waits == 1)
        close(all)
    }

    @Test func `another fetches at once if nobody holds the lease any longer`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        var lease = Asking(all[0].store).lease()
        #expect(lease != nil)
        let waiting = Asking(all[1].store)
        awaitWaiting(1, all[1].level)
        // The client of the only one that would have asked for it is gone.
        lease = nil
        #expect(waiting.lease() != nil)
        close(all)
    }

    @Test func `another fetches at once if the one that did is closed`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        let lease = try #require(Asking(all[0].store).lease())
        let waiting = Asking(all[1].store)
        awaitWaiting(1, all[1].level)
        all[0].store.close()
        #expect(waiting.lease() != nil)
        lease.end(.stored)
        close(all)
    }

    @Test func `one that fetches has the same lease for all its requests`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        var first = Asking(all[0].store).lease()
        let second = try #require(Asking(all[0].store).lease())
        #expect(first === second)
        #expect(all[0].level.figures().leases == 1)
        let waiting = Asking(all[1].store)
        awaitWaiting(1, all[1].level)
        first = nil
        settle(100)
        #expect(waiting.isOpen)
        second.end(.failed)
        #expect(waiting.lease() != nil)
        close(all)
    }

    @Test func `nobody waits for what may not be stored, for a while`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine) { $0.noteMilliseconds = 3000 }
        let lease = try #require(Asking(all[0].store).lease())
        let waiting = Asking(all[1].store)
        awaitWaiting(1, all[1].level)
        lease.end(.notStored)
        #expect(waiting.isNothing)
        let name = try #require(leases(engine).first)
        #expect((1...3000).contains(try life(name, engine)))
        #expect(all.allSatisfy { Asking($0.store).isNothing })
        #expect(eventually { leases(engine).isEmpty })
        #expect(Asking(all[1].store).lease() != nil)
        close(all)
    }

    @Test func `nobody waits for what was stored elsewhere only`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine) { $0.maximumObject = 1000 }
        let lease = try #require(Asking(all[0].store).lease())
        let waiting = Asking(all[1].store)
        awaitWaiting(1, all[1].level)
        try putFresh(all[0].store, "http://a/", body(5000))
        lease.end(.stored)
        #expect(waiting.isNothing)
        #expect(Asking(all[1].store).isNothing)
        #expect(all[1].level.figures().waitsInVain == 0)
        close(all)
    }

    @Test func `one that would not store the response takes no lease`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        #expect(Asking(all[0].store, fetches: false).isNothing)
        #expect(all[0].store.seen("http://a/").isEmpty)
        #expect(leases(engine).isEmpty)
        close(all)
    }

    @Test func `those who ask under other trust have their own response`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        let lease = try #require(Asking(all[0].store, trust: 1).lease())
        let waiting = [1, 2, 1].map { Asking(all[1].store, trust: $0) }
        awaitWaiting(3, all[1].level)
        engine.pause()
        try putFresh(all[0].store, "http://a/", body(10, seed: 1), policy: 1)
        try putFresh(all[0].store, "http://a/", body(10, seed: 2), policy: 2)
        lease.end(.stored)
        #expect(eventually { all[0].level.figures().queueCommands == 0 })
        settle(50)
        engine.goOn()
        let found = waiting.map { $0.responses()?.map(\.policy) }
        #expect(found[0] == found[2])
        #expect(found[0] == [1])
        #expect(found[1] == [2])
        close(all)
    }

    @Test func `one has a stale response confirmed and the others wait for that`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        // Of a year ago.
        all[0].store.put("http://a/", body(10, seed: 1))
        all[0].store.flushNow()
        let own = try #require(all[0].store.inMemory("http://a/").first)
        let other = try #require(all[1].store.found("http://a/").first)
        let lease = try #require(Asking(all[0].store, insteadOf: own).lease())
        let waiting = Asking(all[1].store, insteadOf: other)
        awaitWaiting(1, all[1].level)
        try putFresh(all[0].store, "http://a/", body(10, seed: 2))
        lease.end(.stored)
        let found = try #require(waiting.responses()?.first)
        #expect(all[1].store.bytes(found) == body(10, seed: 2))
        // It has taken the place of the stale one.
        #expect(all[1].store.inMemory("http://a/").map { $0 === found } == [true])
        #expect(all[1].store.isShared)
        close(all)
        #expect(!all[1].store.isShared)
    }

    @Test func `one that has a stale response finds at once what another has confirmed`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        all[0].store.put("http://a/", body(10, seed: 1), policy: 1)
        all[0].store.flushNow()
        let stale = try #require(all[1].store.found("http://a/").first)
        // Under other trust, it is another response.
        try putFresh(all[0].store, "http://a/", body(10, seed: 2), policy: 2)
        all[0].store.flushNow()
        let lease = try #require(Asking(all[1].store, insteadOf: stale).lease())
        lease.end(.failed)
        try putFresh(all[0].store, "http://a/", body(10, seed: 3), policy: 1)
        all[0].store.flushNow()
        let found = try #require(Asking(all[1].store, insteadOf: stale).responses()?.first)
        #expect(all[1].store.bytes(found) == body(10, seed: 3))
        close(all)
    }

    @Test func `nobody waits for what has to be confirmed each time`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        all[0].store.put("http://a/", body(10, seed: 1))
        all[0].store.flushNow()
        let stale = try #require(all[1].store.found("http://a/").first)
        let own = try #require(all[0].store.inMemory("http://a/").first)
        let lease = try #require(Asking(all[0].store, insteadOf: own).lease())
        let waiting = Asking(all[1].store, insteadOf: stale)
        awaitWaiting(1, all[1].level)
        try putFresh(all[0].store, "http://a/", body(10, seed: 2), maximumAge: 0)
        lease.end(.stored)
        #expect(waiting.isNothing)
        #expect(Asking(all[1].store, insteadOf: stale).isNothing)
        close(all)
    }
}
