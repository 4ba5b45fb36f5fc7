import CachePolicy
import CacheStore
import CacheTestSupport
import RedisProtocol
import SharedCacheLevel
import Testing

/// Two gateways over one engine.
@Suite("Gateways that share an engine", .serialized)
struct FleetTests {
    @Test(arguments: [0, 10, 40_000, 100_000, 400_000, 2_000_000])
    func `find what another has stored`(_ size: Int) throws {
        let engine = try EngineProcess()
        let (first, _) = try engine.gateway()
        let (second, level) = try engine.gateway()
        first.put("http://a/", body(size), vary: vary("de"), policy: 3)
        first.flushNow()
        let found = try #require(second.found("http://a/", vary: "de").first)
        #expect(second.bytes(found) == body(size))
        #expect(found.policy == 3)
        #expect([UInt8](found.head) == head())
        #expect(found.metadata.times == testTimes)
        #expect(second.found("http://a/", vary: "fr").isEmpty)
        #expect(level.statistics().hits == 2)
        first.close()
        second.close()
    }

    @Test func `find nothing of what another has purged, and what was stored after that`() throws {
        let engine = try EngineProcess()
        let (first, _) = try engine.gateway()
        let (second, _) = try engine.gateway()
        for number in 0..<10 { first.put("http://a/\(number)", body(1000, seed: number)) }
        first.flushNow()
        #expect(second.foundBodies("http://a/0") == [body(1000, seed: 0)])
        second.purgeAll()
        second.flushNow()
        for store in [second, try engine.gateway().store] {
            for number in 0..<10 { #expect(store.found("http://a/\(number)").isEmpty) }
        }
        second.put("http://a/3", body(70))
        second.flushNow()
        let (third, _) = try engine.gateway()
        #expect(third.foundBodies("http://a/3") == [body(70)])
        for store in [first, second, third] { store.close() }
    }

    @Test func `do not find what was asked for before another has removed the key`() throws {
        let engine = try EngineProcess()
        let (first, _) = try engine.gateway()
        let (second, level) = try engine.gateway(memoryBytes: 0)
        // The first one has looked, and asks the origin.
        #expect(first.found("http://a/").isEmpty)
        second.drop("http://a/")
        second.flushNow()
        first.put("http://a/", body(10, seed: 1))
        first.flushNow()
        #expect(second.found("http://a/").isEmpty)
        #expect(level.figures()[.voided] == 1)
        // What it asks for after that is found.
        first.drop("http://a/")
        #expect(first.found("http://a/").isEmpty)
        first.put("http://a/", body(10, seed: 2))
        first.flushNow()
        #expect(second.foundBodies("http://a/") == [body(10, seed: 2)])
        first.close()
        second.close()
    }

    @Test func `void a lookup of one that another's purge overtakes`() throws {
        let engine = try EngineProcess()
        let (first, _) = try engine.gateway()
        let (second, _) = try engine.gateway(memoryBytes: 0)
        first.put("http://a/", body(10))
        first.flushNow()
        engine.pause()
        let answer = Handover<LoadResult>()
        #expect(second.key("http://a/") { second.load($0, policy: .init()) { answer.give($0) } })
        second.drop("http://a/")
        engine.goOn()
        guard case .nothing? = answer.take() else {
            Issue.record("it was published")
            return
        }
        #expect(second.found("http://a/").isEmpty)
        first.close()
        second.close()
    }

    @Test func `leave the chunks of a body that another may be reading, for a while`() throws {
        let engine = try EngineProcess()
        let (first, _) = try engine.gateway(wholeBodyBytes: 100_000)
        let (second, _) = try engine.gateway(memoryBytes: 0, wholeBodyBytes: 100_000)
        first.put("http://a/", body(400_000))
        first.flushNow()
        let reading = try #require(second.found("http://a/").first)
        first.put("http://a/", body(10))
        first.flushNow()
        #expect(second.bytes(reading) == body(400_000))
        #expect(engine.chunks.count == 7)
        #expect(
            engine.chunks.allSatisfy {
                let left = try? engine.ask(RedisCommand([Array("PTTL".utf8), $0])).integer
                return (1...300_000).contains(left ?? 0)
            })
        first.close()
        second.close()
    }

    @Test func `do not shorten the life of what they only look at`() throws {
        let engine = try EngineProcess()
        let (first, _) = try engine.gateway(wholeBodyBytes: 100_000)
        let (second, _) = try engine.gateway(memoryBytes: 0, wholeBodyBytes: 100_000)
        first.put("http://a/", body(400_000))
        first.flushNow()
        #expect(second.seen("http://a/").map { second.bytes($0.response) } == [body(400_000)])
        #expect(second.foundBodies("http://a/") == [body(400_000)])
        second.flushNow()
        second.close()
        #expect(engine.chunks.count == 7)
        #expect(
            engine.chunks.allSatisfy {
                let left = try? engine.ask(RedisCommand([Array("PTTL".utf8), $0])).integer
                return (left ?? 0) > 1_000_000
            })
        first.close()
    }

    @Test func `keep what was obtained under different trust beside each other`() throws {
        let engine = try EngineProcess()
        let (strict, _) = try engine.gateway(memoryBytes: 0)
        let (lax, _) = try engine.gateway(memoryBytes: 0)
        strict.put("http://a/", body(10, seed: 1), policy: 1)
        strict.flushNow()
        lax.put("http://a/", body(10, seed: 2), policy: 2)
        lax.flushNow()
        for trust: UInt64 in [1, 2] {
            for store in [strict, lax] {
                let answer = Handover<LoadResult>()
                let isAsked = store.key("http://a/") {
                    store.load($0, policy: .init(), trust: trust) { answer.give($0) }
                }
                #expect(isAsked)
                guard case .found(let responses, _)? = answer.take() else {
                    Issue.record("not found")
                    return
                }
                #expect(responses.map(\.policy) == [trust])
                #expect(responses.map { store.bytes($0) } == [body(10, seed: Int(trust))])
            }
        }
        strict.close()
        lax.close()
    }

    @Test func `leave nothing in the engine that does not expire`() throws {
        let engine = try EngineProcess()
        let (store, _) = try engine.gateway(wholeBodyBytes: 100_000)
        store.put("http://a/", body(10))
        store.put("http://b/", body(90_000))
        store.put("http://c/", body(400_000))
        store.drop("http://d/")
        store.purgeAll()
        store.flushNow()
        let all = engine.keys("*")
        #expect(all.count > 10)
        for key in all {
            #expect(try engine.ask(RedisCommand([Array("PTTL".utf8), key])).integer ?? 0 > 0)
        }
        store.close()
    }

    @Test func `keep no more variants of a key than they may`() throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway(memoryBytes: 0) { $0.maximumVariants = 4 }
        for number in 0..<20 { store.put("http://a/", body(10), vary: vary("\(number)")) }
        store.flushNow()
        #expect(eventually { level.figures()[.tooManyVariants] > 0 })
        store.flushNow()
        #expect(engine.hashes.allSatisfy { engine.fields($0).count <= 8 })
        #expect(store.foundBodies("http://a/", vary: "0") == [body(10)])
        store.close()
    }
}
