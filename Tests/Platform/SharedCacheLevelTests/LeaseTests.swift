import CachePolicy
import CacheStore
import CacheTestSupport
import Clocks
import Locking
import RedisProtocol
import SharedCache
import SharedCacheLevel
import TestSupport
import Testing

/// What a lookup that would fetch the response was told.
private struct Asking {
    private let answer = Handover<LoadResult>()
    private let isAnswered = Locked(false)

    init(
        _ store: CacheStore, _ url: String = "http://a/", trust: UInt64? = nil,
        fetches: Bool = true
    ) {
        let (answer, isAnswered) = (answer, isAnswered)
        let isAccepted = store.key(url) {
            store.load($0, policy: PolicyOptions(), trust: trust, fetches: fetches) { result in
                isAnswered.withLock { $0 = true }
                answer.give(result)
            }
        }
        #expect(isAccepted)
    }

    var isOpen: Bool { isAnswered.withLock { !$0 } }

    /// The lease; `nil` if it was told anything else.
    func lease() -> FetchLease? {
        guard case .lead(let lease)? = answer.take() else { return nil }
        return lease
    }

    func responses() -> [CachedResponse]? {
        guard case .found(let responses, true)? = answer.take() else { return nil }
        return responses
    }

    var isNothing: Bool { if case .nothing? = answer.take() { true } else { false } }
}

@Suite("Of the gateways that share an engine", .serialized)
struct LeaseTests {
    /// Two gateways that wait for each other for long.
    private func gateways(
        _ engine: EngineProcess, _ change: (inout SharedLevelOptions) -> Void = { _ in }
    ) throws -> [(store: CacheStore, level: SharedLevel)] {
        try (0..<2).map { _ in
            try engine.gateway {
                $0.waitMilliseconds = 15_000
                $0.leaseMilliseconds = 10_000
                change(&$0)
            }
        }
    }

    private func close(_ gateways: [(store: CacheStore, level: SharedLevel)]) {
        for gateway in gateways { gateway.store.close() }
    }

    private func leases(_ engine: EngineProcess) -> [[UInt8]] { engine.keys("test:1:l:*") }

    private func life(_ name: [UInt8], _ engine: EngineProcess) throws -> Int64 {
        let reply = try engine.ask(RedisCommand([Array("PTTL".utf8), name]))
        return try #require(reply.integer)
    }

    private func awaitWaiting(_ count: Int, _ level: SharedLevel) {
        #expect(eventually { level.figures().waitingLookups == count }, "\(level.figures())")
    }

    private func leaseName(_ url: String) throws -> [UInt8] {
        let names = try #require(SharedName(prefix: Array("test:".utf8)))
        return names.lease(
            try #require(Array(url.utf8).withUnsafeBytes { SharedName.digest(of: $0) }))
    }

    /// A lease of a gateway that is not there.
    private func takeLease(
        _ engine: EngineProcess, _ url: String = "http://a/", milliseconds: Int,
        secret: UInt8 = 7
    ) throws {
        let name = try leaseName(url)
        let keyring = try engine.options(secret: secret).keyring
        let record = try #require(
            SharedLease(SharedToken(random: (1, 2))).record(under: name, by: keyring))
        let words = [Array("SET".utf8), name, record, Array("PX".utf8)]
        try engine.ask(RedisCommand(words + [Array(String(milliseconds).utf8)]))
    }

    @Test(arguments: [10, 100_000, 1_500_000])
    func `one fetches and the others wait for what it stores`(_ size: Int) throws {
        let engine = try EngineProcess()
        let all = try gateways(engine) { $0.maximumObject = 2 << 20 }
        let lease = try #require(Asking(all[0].store).lease())
        let waiting = Asking(all[1].store)
        awaitWaiting(1, all[1].level)
        #expect(waiting.isOpen)
        all[0].store.put("http://a/", body(size))
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
        all[0].store.put("http://a/", body(10))
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
            all[leader].store.put(url, body(10, seed: round))
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
        all[0].store.put("http://a/", body(5000))
        lease.end(.stored)
        #expect(waiting.isNothing)
        #expect(Asking(all[1].store).isNothing)
        #expect(all[1].level.figures().waitsInVain == 0)
        close(all)
    }

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

    @Test func `one that would not store the response takes no lease`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        #expect(Asking(all[0].store, fetches: false).isNothing)
        #expect(all[0].store.seen("http://a/").isEmpty)
        #expect(leases(engine).isEmpty)
        close(all)
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
        all[0].store.put("http://a/", body(1 << 20))
        lease.end(.stored)
        let found = try #require(first.responses()?.first)
        for one in waiting { #expect(one.responses()?.first === found) }
        #expect(all[1].store.bytes(found) == body(1 << 20))
        // One of them asks for all, at most every 5 ms.
        #expect(try hashReads(engine) - asked < 1000)
        #expect(all[1].level.figures().hits == 3000)
        close(all)
    }

    /// How often a key was looked up.
    private func hashReads(_ engine: EngineProcess) throws -> Int {
        let text = try #require(try engine.ask("INFO", "commandstats").text)
        let line = text.split(whereSeparator: \.isNewline).first {
            $0.hasPrefix("cmdstat_hgetall:")
        }
        let calls = line?.split(separator: "=").dropFirst().first?.prefix { $0.isNumber }
        return try #require(calls.flatMap { Int($0) })
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

    @Test func `those who ask under other trust have their own response`() throws {
        let engine = try EngineProcess()
        let all = try gateways(engine)
        let lease = try #require(Asking(all[0].store, trust: 1).lease())
        let waiting = [1, 2, 1].map { Asking(all[1].store, trust: $0) }
        awaitWaiting(3, all[1].level)
        engine.pause()
        all[0].store.put("http://a/", body(10, seed: 1), policy: 1)
        all[0].store.put("http://a/", body(10, seed: 2), policy: 2)
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

    private func settle(_ milliseconds: Int64) {
        let end = Clock.monotonicMilliseconds() + milliseconds
        _ = eventually { Clock.monotonicMilliseconds() >= end }
    }
}

extension [[UInt8]] {
    /// The words of a command about a key.
    fileprivate func inserting(_ name: [UInt8]) -> [[UInt8]] {
        [self[0], name] + self.dropFirst()
    }
}
