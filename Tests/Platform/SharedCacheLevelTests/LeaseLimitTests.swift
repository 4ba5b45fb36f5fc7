import CacheStore
import CacheTestSupport
import Clocks
import RedisProtocol
import SharedCache
import SharedCacheLevel
import Testing

@Suite("A lease that is not kept", .serialized)
struct LeaseLimitTests: LeaseTesting {
    @Test func `nobody believes a lease that was forged`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        let name = try leaseName("http://a/")
        let keyring = try engine.options().keyring
        // It is right, but for another key.
        let other = try #require(
            SharedLease(SharedToken(random: (1, 2))).record(
                under: try leaseName("http://b/"), by: keyring))
        try engine.ask(RedisCommand([Array("SET".utf8), name, other]))
        #expect(Asking(all[0].store).isNothing)
        #expect(all[0].level.figures()[.damaged] == 1)
        #expect(eventually { leases(engine).isEmpty })
        #expect(Asking(all[0].store).lease() != nil)
        close(all)
    }

    @Test func `nobody waits for a lease that it cannot read`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        try engine.ask(
            RedisCommand([Array("SET".utf8), try leaseName("http://a/"), Array("x".utf8)]))
        #expect(Asking(all[0].store).isNothing)
        #expect(all[0].level.figures()[.foreign] == 1)
        try takeLease(engine, "http://b/", milliseconds: 60_000, secret: 9)
        #expect(Asking(all[0].store, "http://b/").isNothing)
        #expect(all[0].level.figures()[.otherSecret] == 1)
        #expect(leases(engine).count == 2)
        try engine.ask(
            RedisCommand(
                ["LPUSH", "x"].map { Array($0.utf8) }.inserting(try leaseName("http://c/"))))
        #expect(Asking(all[0].store, "http://c/").isNothing)
        #expect(eventually { leases(engine).count == 2 })
        #expect(Asking(all[0].store, "http://c/").lease() != nil)
        close(all)
    }

    @Test(arguments: [true, false])
    func `those who wait are told at once if the key is removed`(_ isOne: Bool) throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        try takeLease(engine, milliseconds: 60_000)
        let waiting = Asking(all[0].store)
        awaitWaiting(1, all[0].level)
        if isOne { all[0].store.drop("http://a/") } else { all[0].store.purgeAll() }
        #expect(waiting.isNothing)
        #expect(all[0].level.figures().waitsInVain == 0)
        close(all)
    }

    @Test func `those who wait are told at once if the engine is gone`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        let lease = try #require(Asking(all[0].store).lease())
        let waiting = (0..<20).map { _ in Asking(all[1].store) }
        awaitWaiting(20, all[1].level)
        engine.end()
        #expect(waiting.allSatisfy { $0.isNothing })
        #expect(all[1].level.figures().waitingLookups == 0)
        // The lease is forgotten, and not only in the engine.
        #expect(eventually { all[0].level.state == .off })
        lease.end(.stored)
        try engine.start()
        #expect(eventually { all.allSatisfy { $0.level.state == .ready } })
        #expect(Asking(all[1].store).lease() != nil)
        close(all)
    }

    @Test func `those who wait are told when the gateway is closed`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        try takeLease(engine, milliseconds: 60_000)
        let waiting = (0..<20).map { _ in Asking(all[0].store) }
        awaitWaiting(20, all[0].level)
        close(all)
        #expect(waiting.allSatisfy { $0.isNothing })
    }

    @Test func `one waits no longer than it may, and not again`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine) { $0.waitMilliseconds = 200 }
        try takeLease(engine, milliseconds: 60_000)
        let began = Clock.monotonicMilliseconds()
        #expect(Asking(all[0].store).isNothing)
        #expect(Clock.monotonicMilliseconds() - began >= 200)
        for _ in 0..<10 { #expect(Asking(all[0].store).isNothing) }
        let figures = all[0].level.figures()
        #expect(figures.waitsInVain == 1)
        #expect(figures.waits == 1)
        // Slow fetches are not the engine's fault.
        #expect(all[0].level.state == .ready)
        #expect(figures[.timeout] == 0)
        close(all)
    }

    @Test func `one that is not to wait neither does, nor lets others wait`() throws {
        let engine = try EngineProcess()
        let (store, _) = try engine.gateway { $0.waitMilliseconds = 0 }
        try takeLease(engine, milliseconds: 60_000)
        #expect(Asking(store).isNothing)
        #expect(Asking(store, "http://b/").isNothing)
        #expect(leases(engine).count == 1)
        store.close()
    }

    @Test func `thousands of requests wait together, and ask as often as one`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        let lease = try #require(Asking(all[0].store).lease())
        let first = Asking(all[1].store)
        awaitWaiting(1, all[1].level)
        let asked = try hashReads(engine)
        let waiting = (1..<3000).map { _ in Asking(all[1].store) }
        awaitWaiting(3000, all[1].level)
        try putFresh(all[0].store, "http://a/", body(1 << 20))
        lease.end(.stored)
        let found = try #require(first.responses()?.first)
        for one in waiting { #expect(one.responses()?.first === found) }
        #expect(all[1].store.bytes(found) == body(1 << 20))
        // One of them asks for all, at most every 5 ms.
        #expect(try hashReads(engine) - asked < 1000)
        #expect(all[1].level.figures().hits == 3000)
        close(all)
    }

    @Test func `no more requests wait than may, and no key's requests take all places`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine) { $0.waitingLookups = 8 }
        let urls = ["http://a/", "http://b/", "http://c/", "http://d/", "http://e/"]
        for url in urls { try takeLease(engine, url, milliseconds: 60_000) }
        let waiting = urls.dropLast().flatMap { url in
            (0..<2).map { _ in Asking(all[0].store, url) }
        }
        awaitWaiting(8, all[0].level)
        for url in urls { #expect(Asking(all[0].store, url).isNothing) }
        #expect(waiting.allSatisfy { $0.isOpen })
        close(all)
        #expect(waiting.allSatisfy { $0.isNothing })
    }

    @Test func `one that fetches for long keeps its lease, but not for ever`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine) {
            $0.leaseMilliseconds = 1000
            $0.longestLeaseMilliseconds = 3000
        }
        let lease = try #require(Asking(all[0].store).lease())
        let name = try #require(leases(engine).first)
        let waiting = Asking(all[1].store)
        let began = Clock.monotonicMilliseconds()
        while Clock.monotonicMilliseconds() - began < 2000 {
            #expect((1...1000).contains(try life(name, engine)))
            settle(50)
        }
        #expect(waiting.isOpen)
        let next = try #require(waiting.lease())
        #expect(lease.isHeld)
        // What it does then does not end another's lease.
        lease.end(.notStored)
        all[0].store.flushNow()
        #expect(leases(engine).count == 1)
        #expect(Asking(all[1].store).lease() === next)
        close(all)
    }
}
