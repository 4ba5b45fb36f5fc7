import CachePolicy
import CacheStore
import CacheTestSupport
import Clocks
import Dispatch
import Locking
import RedisProtocol
import SharedCacheLevel
import TestSupport
import Testing

private func tagged(_ tags: String) -> String {
    tags.isEmpty ? "" : "Surrogate-Key: \(tags)\r\n"
}

/// What one gateway purges is purged on all.
@Suite("Purges of a fleet", .serialized)
struct FleetPurgeTests {
    /// Three gateways with memory, and the same responses in all of them and in the engine.
    private struct Three {
        let engine: EngineProcess
        let stores: [CacheStore]
        let levels: [SharedLevel]

        init(_ change: (inout SharedLevelOptions) -> Void = { _ in }) throws {
            let engine = try EngineProcess()
            self.engine = engine
            let made = try ["one", "two", "three"].map { name in
                try engine.gateway {
                    $0.gateway = Array(name.utf8)
                    change(&$0)
                }
            }
            stores = made.map(\.store)
            levels = made.map(\.level)
        }

        func put(_ url: String, tags: String = "", seed: Int = 0) {
            stores[0].put(url, body(100, seed: seed), lines: tagged(tags))
            stores[0].flushNow()
            for store in stores { #expect(store.foundBodies(url) == [body(100, seed: seed)]) }
        }

        /// Purges on one, and waits until all have confirmed.
        func purge(_ scope: Purge.Scope, isSoft: Bool = false, at place: Int = 1) throws {
            _ = try stores[place].purge(
                Purge(scope, isSoft: isSoft), now: Clock.wallSeconds())
            let receipt = confirmed(at: place)
            #expect(receipt.isRecorded)
            #expect(receipt.confirmed == ["one", "three", "two"])
            #expect(receipt.unconfirmed.isEmpty)
        }

        func confirmed(at place: Int) -> FleetReceipt {
            let answer = Handover<FleetReceipt>()
            levels[place].confirmPurges { answer.give($0) }
            return answer.take() ?? FleetReceipt(isRecorded: false)
        }

        func close() { for store in stores { store.close() } }
    }

    private static func host(_ text: String) -> Purge.Scope {
        do { return .host(try PurgeHost(text)) } catch { return .everything }
    }

    private static let scopes: [Purge.Scope] = [
        .everything, .tag(Array("t".utf8)), .prefix(Array("http://a/x".utf8)),
        .uri(Array("http://a/x1".utf8)), .keys([CacheKey(bytes: Array("http://a/x1".utf8))]),
        host("a"), host("**.a"), .tag(Array("t".utf8), origin: Array("http://a".utf8)),
    ]

    @Test(arguments: scopes)
    func `reach everything that they are about, and nothing else`(_ scope: Purge.Scope) throws {
        let three = try Three()
        three.put("http://a/x1", tags: "t u")
        three.put("http://b/y", tags: "u")
        try three.purge(scope)
        for store in three.stores {
            #expect(store.found("http://a/x1").isEmpty)
            #expect(store.found("http://b/y").isEmpty == (scope == .everything))
        }
        // Also for one that comes later.
        let late = try three.engine.gateway()
        #expect(late.store.found("http://a/x1").isEmpty)
        #expect(late.store.found("http://b/y").isEmpty == (scope == .everything))
        // What is stored after that stays.
        three.stores[2].put("http://a/x1", body(7), lines: tagged("t"))
        three.stores[2].flushNow()
        for store in three.stores + [late.store] {
            #expect(store.foundBodies("http://a/x1") == [body(7)])
        }
        late.store.close()
        three.close()
    }

    @Test(arguments: scopes)
    func `that are soft leave it, as stale`(_ scope: Purge.Scope) throws {
        let three = try Three()
        three.put("http://a/x1", tags: "t")
        try three.purge(scope, isSoft: true)
        let late = try three.engine.gateway()
        for store in three.stores + [late.store] {
            let found = try #require(store.found("http://a/x1").first)
            #expect(found.staleSince > 0)
            #expect(store.bytes(found) == body(100))
        }
        late.store.close()
        three.close()
    }

    @Test func `hold for what was asked for before them, on every gateway`() throws {
        let three = try Three()
        let flight = three.stores[0].flight("http://a/x")
        try three.purge(.tag(Array("t".utf8)))
        let ticket = try? three.stores[0].begin(
            "http://a/x", length: 0, flight: flight, lines: tagged("t"))
        _ = ticket?.finish()
        three.stores[0].flushNow()
        for store in three.stores { #expect(store.found("http://a/x").isEmpty) }
        three.close()
    }

    @Test func `of a key that a gateway has found to be invalid reach the others`() throws {
        let three = try Three()
        three.put("http://a/x")
        three.put("http://a/y")
        three.stores[2].drop("http://a/x")
        #expect(eventually { three.stores.allSatisfy { $0.found("http://a/x").isEmpty } })
        #expect(three.levels[2].figures().removalsSent == 1)
        // Of one of which the engine has nothing, all are told once for as many times.
        for _ in 0..<20 { three.stores[2].drop("http://a/z") }
        three.stores[2].flushNow()
        #expect(eventually { (2...3).contains(three.levels[2].figures().removalsSent) })
        for store in three.stores { #expect(store.foundBodies("http://a/y") == [body(100)]) }
        three.close()
    }

    @Test func `wait for a gateway that does not say anything, and name it`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway { $0.gateway = Array("one".utf8) }
        // It never carries anything out.
        let stuck = try engine.level(FleetDuties(purge: { _, _ in }, remove: { _ in })) {
            $0.gateway = Array("stuck".utf8)
        }
        _ = try store.purge(Purge(.everything), now: Clock.wallSeconds())
        let answer = Handover<FleetReceipt>()
        let began = Clock.monotonicMilliseconds()
        level.confirmPurges { answer.give($0) }
        let receipt = try #require(answer.take())
        #expect(Clock.monotonicMilliseconds() - began >= 900)
        #expect(
            receipt
                == FleetReceipt(
                    isRecorded: true, confirmed: ["one"], unconfirmed: ["stuck"]))
        store.close()
        stuck.close()
    }

    @Test func `while the engine is away are told when it is back`() throws {
        let three = try Three()
        three.put("http://a/x", tags: "t")
        three.put("http://b/y")
        three.engine.pause()
        _ = try three.stores[1].purge(
            Purge(.tag(Array("t".utf8))), now: Clock.wallSeconds())
        #expect(three.stores[1].inMemory("http://a/x").isEmpty)
        three.engine.goOn()
        #expect(
            eventually {
                three.stores.allSatisfy { $0.found("http://a/x").isEmpty }
            })
        for store in three.stores { #expect(store.foundBodies("http://b/y") == [body(100)]) }
        three.close()
    }

    @Test func `are not missed by a gateway that was away`() throws {
        let engine = try EngineProcess()
        let folder = TemporaryFolder()
        let file = folder.file("position")
        let (one, first) = try engine.gateway()
        let (away, level) = try engine.gateway {
            $0.positionFile = file
            $0.hasOwnEntries = true
        }
        one.put("http://a/x", body(10), lines: tagged("t"))
        one.flushNow()
        #expect(away.foundBodies("http://a/x") == [body(10)])
        #expect(level.figures().madeStale == 1)
        away.close()
        _ = try one.purge(Purge(.tag(Array("t".utf8))), now: Clock.wallSeconds())
        let answer = Handover<FleetReceipt>()
        first.confirmPurges { answer.give($0) }
        #expect(answer.take()?.unconfirmed == [])
        // It carries out what it has missed before it is ready, and nothing else is stale.
        let told = Locked<[Purge]>([])
        let again = try engine.level(
            FleetDuties(
                purge: { purges, completion in
                    told.withLock { $0 += purges }
                    completion(true)
                }, remove: { _ in })
        ) {
            $0.positionFile = file
            $0.hasOwnEntries = true
        }
        #expect(told.withLock { $0 } == [Purge(.tag(Array("t".utf8)))])
        #expect(again.figures().madeStale == 0)
        again.close()
        one.close()
    }

    @Test func `that were lost with the engine make everything stale`() throws {
        let three = try Three { $0.hasOwnEntries = true }
        three.put("http://a/x")
        three.engine.end()
        try three.engine.start()
        #expect(eventually { three.levels.allSatisfy { $0.state == .ready } })
        for store in three.stores {
            #expect(eventually { (store.inMemory("http://a/x").first?.staleSince ?? 0) > 0 })
        }
        three.close()
    }

    @Test func `make everything stale if nothing is heard for the grace period`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway { $0.graceMilliseconds = 300 }
        store.put("http://a/x", body(10))
        engine.end()
        #expect(store.inMemory("http://a/x").first?.staleSince == 0)
        #expect(eventually { (store.inMemory("http://a/x").first?.staleSince ?? 0) > 0 })
        #expect(level.figures().madeStale == 1)
        store.close()
    }

    @Test(arguments: ["stream", "removed", "all:*"])
    func `go on when the engine has lost a part of what they need`(_ lost: String) throws {
        let three = try Three { $0.hasOwnEntries = true }
        three.put("http://a/x", tags: "t")
        for name in three.engine.keys("test:1:p:{fleet}:\(lost)") {
            try three.engine.ask(RedisCommand([Array("DEL".utf8), name]))
        }
        #expect(eventually { three.levels.allSatisfy { $0.figures()[.begunAnew] > 0 } })
        #expect(eventually { three.levels.allSatisfy { $0.state == .ready } })
        three.put("http://a/z", tags: "t")
        try three.purge(.tag(Array("t".utf8)))
        for store in three.stores { #expect(store.found("http://a/z").isEmpty) }
        three.close()
    }

    /// The second one says that its format is another one, in which its code might be elsewhere.
    @Test(arguments: [
        ("forged", SharedLevelReason.foreign), ("PFSC\u{2}aaaaaaaaaaa", .otherVersion),
    ])
    func `cannot be forged: what is not signed makes everything stale, and no more`(
        record: String, reason: SharedLevelReason
    ) throws {
        let three = try Three()
        three.put("http://a/x")
        try three.engine.ask("XADD", "test:1:p:{fleet}:stream", "*", "r", record)
        for store in three.stores {
            #expect(eventually { (store.inMemory("http://a/x").first?.staleSince ?? 0) > 0 })
        }
        #expect(three.levels.allSatisfy { $0.figures()[reason] > 0 })
        three.close()
    }

    @Test func `are not undone by lookups beside them`() throws {
        let engine = try EngineProcess()
        let folder = TemporaryFolder()
        let owner = StoreOfGateway()
        let level = try engine.level(owner.duties)
        var options = CacheStoreOptions.small()
        options.diskBytes = 16 << 20
        options.folder = folder.path
        let store = CacheStore(options: options, below: [level]).ready()
        owner.own(store)
        let isOver = Locked(false)
        let ended = Handover<Bool>()
        DispatchQueue.global().async {
            while !isOver.withLock({ $0 }) { _ = store.loaded("http://a/x") }
            ended.give(true)
        }
        for round in 0..<50 {
            store.put("http://a/x", body(10, seed: round), lines: tagged("t"))
            store.flushNow()
            _ = try store.purge(Purge(.tag(Array("t".utf8))), now: Clock.wallSeconds())
            #expect(store.found("http://a/x").isEmpty, "round \(round)")
        }
        isOver.withLock { $0 = true }
        _ = ended.take()
        store.close()
    }

    @Test func `are missed by nobody who is far behind: everything is stale then`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway { $0.keptPurges = 1000 }
        let held = Locked<[@Sendable (Bool) -> Void]>([])
        let isHolding = Locked(true)
        let slow = try engine.level(
            FleetDuties(
                purge: { _, completion in
                    if isHolding.withLock({ $0 }) {
                        held.withLock { $0.append(completion) }
                    } else {
                        completion(true)
                    }
                }, remove: { _ in })
        ) { $0.keptPurges = 1000 }
        for start in stride(from: 0, to: 8000, by: 500) {
            let purges = (start..<start + 500).map { Purge(.tag(Array("t\($0)".utf8))) }
            _ = try store.purge(purges, now: Clock.wallSeconds())
            store.flushNow()
        }
        isHolding.withLock { $0 = false }
        for completion in held.withLock({ $0 }) { completion(true) }
        #expect(eventually { slow.figures().madeStale > 0 })
        #expect(eventually { slow.state == .ready })
        #expect(level.figures().madeStale == 0)
        slow.close()
        store.close()
    }

    @Test func `that the engine does not know of are told by the next process`() throws {
        let engine = try EngineProcess()
        let folder = TemporaryFolder()
        let file = folder.file("record")
        let (one, _) = try engine.gateway()
        let (other, level) = try engine.gateway {
            $0.positionFile = file
            $0.stallMilliseconds = 300
        }
        one.put("http://a/x", body(10), lines: tagged("t"))
        one.flushNow()
        engine.pause()
        #expect(
            eventually {
                _ = other.loaded("http://a/z")
                return level.state == .off
            })
        _ = try other.purge(Purge(.tag(Array("t".utf8))), now: Clock.wallSeconds())
        let answer = Handover<FleetReceipt>()
        level.confirmPurges { answer.give($0) }
        #expect(answer.take()?.isRecorded == false)
        other.close()
        engine.goOn()
        let (next, _) = try engine.gateway { $0.positionFile = file }
        #expect(next.found("http://a/x").isEmpty)
        #expect(eventually { one.found("http://a/x").isEmpty })
        next.put("http://a/y", body(10))
        next.flushNow()
        next.close()
        // It is told once.
        let (last, _) = try engine.gateway { $0.positionFile = file }
        #expect(last.foundBodies("http://a/y") == [body(10)])
        last.close()
        one.close()
    }

    @Test func `are confirmed one by one, however close they are`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway { $0.gateway = Array("one".utf8) }
        let (slow, _) = try engine.gateway {
            $0.gateway = Array("slow".utf8)
            $0.pollMilliseconds = 300
        }
        for round in 0..<20 {
            store.put("http://a/x", body(10, seed: round), lines: tagged("t"))
            store.flushNow()
            #expect(slow.foundBodies("http://a/x") == [body(10, seed: round)])
            let first = Handover<FleetReceipt>()
            let second = Handover<FleetReceipt>()
            _ = try store.purge(Purge(.tag(Array("u".utf8))), now: Clock.wallSeconds())
            level.confirmPurges { first.give($0) }
            _ = try store.purge(Purge(.tag(Array("t".utf8))), now: Clock.wallSeconds())
            level.confirmPurges { second.give($0) }
            let receipt = try #require(second.take())
            if receipt.confirmed.contains("slow") {
                #expect(slow.found("http://a/x").isEmpty, "round \(round)")
            }
            _ = first.take()
        }
        store.close()
        slow.close()
    }

    @Test func `are made by members that say who they are`() throws {
        let three = try Three()
        let answer = Handover<[FleetMember]?>()
        three.levels[0].readMembers { answer.give($0) }
        let answered = try #require(answer.take())
        let members = try #require(answered)
        #expect(
            members.map { String(decoding: $0.name, as: UTF8.self) } == ["one", "three", "two"])
        #expect(members.filter(\.isSelf).map(\.name) == [Array("one".utf8)])
        three.close()
    }

    @Test func `are beside a policy that is given to all`() throws {
        let engine = try EngineProcess()
        let taken = Locked<[[UInt8]]>([])
        let level = try engine.level()
        let other = try engine.level(
            FleetDuties(
                purge: { $1(true) }, remove: { _ in },
                policy: { envelope, percent in
                    taken.withLock { $0.append(envelope + [UInt8(percent)]) }
                }))
        let answer = Handover<Bool>()
        level.publishPolicy([1, 2, 3], canaryPercent: 10) { answer.give($0) }
        #expect(answer.take() == true)
        #expect(eventually { taken.withLock { $0 } == [[1, 2, 3, 10]] })
        level.close()
        other.close()
    }
}
