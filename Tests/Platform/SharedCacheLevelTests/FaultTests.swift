import CachePolicy
import CacheStore
import CacheTestSupport
import RedisProtocol
import SharedCacheLevel
import Testing

/// What goes wrong with the engine costs hits, and nothing else.
@Suite("An engine that fails", .serialized)
struct FaultTests {
    /// Waits until the level is off, and ready again.
    private func awaitState(_ state: LevelState, _ level: SharedLevel) {
        #expect(eventually { level.state == state }, "\(level.figures())")
    }

    @Test func `that is killed and comes back empty costs hits`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway()
        store.put("http://a/", body(10))
        store.flushNow()
        engine.end()
        awaitState(.off, level)
        #expect(level.figures().reason != nil)
        // Memory goes on, and nothing is asked.
        #expect(store.foundBodies("http://a/") == [body(10)])
        #expect(!store.key("http://b/") { store.load($0, policy: .init()) { _ in } })
        #expect(store.put("http://b/", body(20)).refusal == nil)
        store.flushNow()
        try engine.start()
        awaitState(.ready, level)
        #expect(level.figures().reason == nil)
        store.put("http://c/", body(30))
        store.flushNow()
        let (other, _) = try engine.gateway()
        #expect(other.found("http://a/").isEmpty)
        #expect(other.found("http://b/").isEmpty)
        #expect(other.foundBodies("http://c/") == [body(30)])
        store.close()
        other.close()
    }

    @Test func `that is away has nobody wait for the rest of a body`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway(memoryBytes: 0, wholeBodyBytes: 100_000)
        store.put("http://large/", body(300_000))
        store.flushNow()
        let response = try #require(store.found("http://large/").first)
        guard case .disk(let large) = response.body else {
            Issue.record("not streamed")
            store.close()
            return
        }
        let answers = (Handover<ChunkResult>(), Handover<ChunkResult>())
        #expect(store.readChunk(large, 0) { answers.0.give($0) })
        guard case .chunk? = answers.0.take() else {
            Issue.record("no chunk")
            store.close()
            return
        }
        engine.end()
        awaitState(.off, level)
        #expect(store.readChunk(large, 1) { answers.1.give($0) })
        guard case .gone? = answers.1.take() else {
            Issue.record("it is waited for")
            store.close()
            return
        }
        store.close()
    }

    @Test func `that comes back with what it had saved is not believed`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway(memoryBytes: 0)
        store.put("http://a/", body(10))
        store.flushNow()
        try engine.ask("SAVE")
        store.drop("http://a/")
        store.flushNow()
        engine.end()
        awaitState(.off, level)
        try engine.start()
        awaitState(.ready, level)
        #expect(engine.hashes.count == 1)
        #expect(store.found("http://a/").isEmpty)
        store.close()
    }

    @Test func `that was away has nothing of what was changed meanwhile`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway { $0.stallMilliseconds = 100 }
        for name in ["kept", "replaced", "dropped", "forgotten"] {
            store.put("http://\(name)/", body(10, seed: 1))
        }
        store.flushNow()
        engine.pause()
        // A command without a reply.
        store.flush {}
        awaitState(.off, level)
        store.put("http://replaced/", body(10, seed: 2))
        store.drop("http://dropped/")
        if let response = store.inMemory("http://forgotten/").first { store.remove(response) }
        #expect(level.figures().lostKeys == 3)
        engine.goOn()
        awaitState(.ready, level)
        store.flushNow()
        #expect(level.figures().lostKeys == 0)
        let (other, _) = try engine.gateway()
        #expect(other.foundBodies("http://kept/") == [body(10, seed: 1)])
        for name in ["replaced", "dropped", "forgotten"] {
            #expect(other.found("http://\(name)/").isEmpty)
        }
        store.close()
        other.close()
    }

    @Test(arguments: [false, true])
    func `that was away is emptied if too much was changed, or all`(_ isPurge: Bool) throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway {
            $0.stallMilliseconds = 100
            $0.lostRemovals = 5
        }
        store.put("http://kept/", body(10))
        store.flushNow()
        engine.pause()
        store.flush {}
        awaitState(.off, level)
        if isPurge {
            store.purgeAll()
        } else {
            for number in 0..<6 { store.drop("http://a/\(number)") }
        }
        engine.goOn()
        awaitState(.ready, level)
        store.flushNow()
        let (other, _) = try engine.gateway()
        #expect(other.found("http://kept/").isEmpty)
        other.put("http://kept/", body(11))
        other.flushNow()
        #expect(try engine.gateway().store.foundBodies("http://kept/") == [body(11)])
        store.close()
        other.close()
    }

    @Test func `that is stopped ends lookups at their deadline, and is not asked any more`() throws
    {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway(memoryBytes: 0) {
            $0.timeoutMilliseconds = 20
            $0.breaker.longestOpenMilliseconds = 20
        }
        store.put("http://a/", body(10))
        store.flushNow()
        engine.pause()
        // Each of them ends, though there is no reply.
        while level.state == .ready { #expect(store.found("http://a/").isEmpty) }
        let figures = level.figures()
        #expect(figures[.timeout] >= 5)
        #expect(figures.reason == .timeout)
        #expect(figures.breaker != .closed)
        #expect(store.key("http://a/") { store.levelVariants($0) { _ in nil } } == .none)
        engine.goOn()
        awaitState(.ready, level)
        #expect(level.figures().breaker == .closed)
        store.close()
    }

    @Test func `that is slow is not asked until it is quick again`() throws {
        let engine = try EngineProcess()
        let proxy = try SlowProxy(to: engine.path)
        defer { proxy.end() }
        let (store, level) = try engine.gateway(memoryBytes: 0) {
            $0.server = .unix(path: proxy.path)
            $0.timeoutMilliseconds = 100
        }
        store.put("http://a/", body(10))
        store.flushNow()
        proxy.setDelay(milliseconds: 500)
        while level.state == .ready { #expect(store.found("http://a/").isEmpty) }
        #expect(level.figures().reason == .timeout)
        // What is changed meanwhile is not found later.
        store.drop("http://a/")
        store.put("http://b/", body(20))
        proxy.setDelay(milliseconds: 0)
        awaitState(.ready, level)
        // The connection was kept.
        #expect(level.figures().connections == 1)
        #expect(store.found("http://a/").isEmpty)
        #expect(store.found("http://b/").isEmpty)
        store.put("http://b/", body(20))
        #expect(eventually { store.foundBodies("http://b/") == [body(20)] })
        store.close()
    }

    @Test func `that is stopped does not hold up the end`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway { $0.closeMilliseconds = 20 }
        engine.pause()
        let isEnded = Handover<Bool>()
        store.put("http://a/", body(10))
        store.flush { isEnded.give(true) }
        store.close()
        #expect(isEnded.take() == true)
        #expect(level.state == .off)
        engine.goOn()
    }

    @Test func `that is full goes on answering, and keeps nothing by halves`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway(memoryBytes: 0, wholeBodyBytes: 200_000)
        store.put("http://kept/", body(10))
        store.put("http://a/", body(10, seed: 1))
        store.put("http://b/", body(400_000, seed: 1))
        store.flushNow()
        try engine.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        try engine.ask("CONFIG", "SET", "maxmemory", "1")
        for size in [10, 100_000, 400_000] {
            store.put("http://a/", body(size, seed: 2))
            store.put("http://b/", body(size, seed: 2))
            store.flushNow()
            store.flushNow()
            #expect(store.found("http://a/").isEmpty)
            #expect(store.found("http://b/").isEmpty)
        }
        #expect(store.foundBodies("http://kept/") == [body(10)])
        store.drop("http://kept/")
        #expect(store.found("http://kept/").isEmpty)
        #expect(level.state == .ready)
        #expect(level.figures()[.outOfMemory] >= 6)
        try engine.ask("CONFIG", "SET", "maxmemory", "0")
        store.put("http://a/", body(10, seed: 3))
        #expect(store.foundBodies("http://a/") == [body(10, seed: 3)])
        store.close()
    }

    @Test func `that wants a password says so, and is used when it gets the right one`() throws {
        let engine = try EngineProcess()
        try engine.ask("CONFIG", "SET", "requirepass", "right")
        let without = try SharedLevel(engine.options())
        without.begin(FleetDuties(purge: { $1(true) }, remove: { _ in }))
        #expect(eventually { without.figures().reason == .passwordRequired })
        without.close()
        var options = try engine.options()
        options.session.password = Array("wrong".utf8)
        let wrong = try SharedLevel(options)
        wrong.begin(FleetDuties(purge: { $1(true) }, remove: { _ in }))
        #expect(eventually { wrong.figures().reason == .wrongPassword })
        #expect(wrong.state == .off)
        wrong.close()
        options.session.password = Array("right".utf8)
        options.session.database = 3
        let right = try SharedLevel(options)
        right.begin(FleetDuties(purge: { $1(true) }, remove: { _ in }))
        #expect(eventually { right.state == .ready })
        right.close()
    }

    @Test func `that is a replica is not written to`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway(memoryBytes: 0)
        try engine.ask("REPLICAOF", "127.0.0.1", "1")
        store.put("http://a/", body(10))
        #expect(eventually { level.figures().reason == .readOnly })
        #expect(level.state == .off)
        try engine.ask("REPLICAOF", "NO", "ONE")
        awaitState(.ready, level)
        #expect(store.found("http://a/").isEmpty)
        store.close()
    }

    /// What others had purged while another server was the master is not in its streams.
    @Test func `that was a replica meanwhile has nothing from before`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway(memoryBytes: 0)
        let (other, second) = try engine.gateway(memoryBytes: 0)
        store.put("http://a/", body(10))
        store.flushNow()
        #expect(other.foundBodies("http://a/") == [body(10)])
        try engine.ask("REPLICAOF", "127.0.0.1", "1")
        store.put("http://b/", body(10))
        awaitState(.off, level)
        try engine.ask("REPLICAOF", "NO", "ONE")
        awaitState(.ready, level)
        #expect(level.figures()[.begunAnew] > 0)
        #expect(engine.hashes.count == 1)
        #expect(store.found("http://a/").isEmpty)
        #expect(eventually { second.figures()[.begunAnew] > 0 })
        awaitState(.ready, second)
        #expect(other.found("http://a/").isEmpty)
        store.put("http://c/", body(30))
        #expect(eventually { other.foundBodies("http://c/") == [body(30)] })
        store.close()
        other.close()
    }

    @Test func `whose values are damaged has none of them`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway(memoryBytes: 0)
        for place in [0, 5, 20, 60, 200, 1100] {
            store.put("http://a/", body(1000))
            store.flushNow()
            let hash = try #require(engine.hashes.first)
            let (field, value) = try #require(
                engine.fields(hash).first { $0.name.count == 16 })
            var damaged = value
            damaged[min(place, value.count - 1)] ^= 0x10
            try engine.set(hash, field, damaged)
            #expect(store.found("http://a/").isEmpty)
            store.flushNow()
            // It is removed, unless it looks like somebody else's.
            let isLeft = engine.fields(hash).contains { $0.name == field }
            #expect(isLeft == (place == 0), "\(place)")
            try engine.ask("DEL", String(decoding: hash, as: UTF8.self))
        }
        #expect(level.figures()[.damaged] == 5)
        #expect(level.figures()[.foreign] == 1)
        store.close()
    }

    @Test func `with another program's values under the same names is used nevertheless`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway(memoryBytes: 0)
        store.put("http://a/", body(10))
        store.flushNow()
        let hash = try #require(engine.hashes.first.map { String(decoding: $0, as: UTF8.self) })
        try engine.ask("DEL", hash)
        try engine.ask("SET", hash, "mine")
        #expect(store.found("http://a/").isEmpty)
        store.put("http://a/", body(10))
        store.flushNow()
        #expect(store.found("http://a/").isEmpty)
        #expect(try engine.ask("GET", hash).text == "mine")
        #expect(level.figures()[.foreign] >= 2)
        #expect(level.state == .ready)
        store.put("http://b/", body(20))
        #expect(store.foundBodies("http://b/") == [body(20)])
        store.close()
    }

    @Test(arguments: [100_000, 400_000])
    func `that has lost a chunk has nothing of its body`(_ size: Int) throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway(memoryBytes: 0, wholeBodyBytes: 200_000)
        store.put("http://a/", body(size))
        store.flushNow()
        #expect(store.foundBodies("http://a/") == [body(size)])
        let chunk = try #require(engine.chunks.first)
        try engine.ask("DEL", String(decoding: chunk, as: UTF8.self))
        #expect(store.found("http://a/").isEmpty)
        #expect(level.figures()[.incomplete] == 1)
        store.put("http://a/", body(size, seed: 2))
        #expect(store.foundBodies("http://a/") == [body(size, seed: 2)])
        store.close()
    }

    @Test func `that forgets what it is asked for first is asked again`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway(memoryBytes: 0)
        store.put("http://a/", body(10))
        store.flushNow()
        try engine.ask("FLUSHALL")
        #expect(store.found("http://a/").isEmpty)
        store.flushNow()
        store.put("http://a/", body(11))
        #expect(store.foundBodies("http://a/") == [body(11)])
        #expect(level.state == .ready)
        store.close()
    }

    @Test func `whose gateways have other secrets is not used`() throws {
        let engine = try EngineProcess()
        let (store, _) = try engine.gateway(memoryBytes: 0)
        store.put("http://a/", body(10))
        store.flushNow()
        let other = try SharedLevel(engine.options(secret: 8))
        other.begin(FleetDuties(purge: { $1(true) }, remove: { _ in }))
        #expect(eventually { other.figures().reason == .otherSecret })
        #expect(other.state == .off)
        other.close()
        #expect(store.foundBodies("http://a/") == [body(10)])
        store.close()
    }

    @Test func `that is not there is waited for`() throws {
        let engine = try EngineProcess()
        let options = try engine.options()
        engine.end()
        let level = try SharedLevel(options)
        level.begin(FleetDuties(purge: { $1(true) }, remove: { _ in }))
        #expect(eventually { level.figures().reason == .unreachable })
        #expect(level.state == .off)
        try engine.start()
        awaitState(.ready, level)
        level.close()
    }
}
