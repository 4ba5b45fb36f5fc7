import CachePolicy
import CacheStore
import CacheTestSupport
import Locking
import RedisProtocol
import SharedCacheLevel
import Testing

/// What an unsafe request has made invalid (RFC 9111 §4.4), by whichever gateway it went.
@Suite("What one gateway has found to be invalid", .serialized)
struct InvalidationTests {
    /// Reads what others have removed so seldom that it does not happen in a test.
    private func isDeaf(_ options: inout SharedLevelOptions) {
        options.pollMilliseconds = 600_000
    }

    @Test(arguments: [false, true])
    func `is not stored under the number that a lookup has found meanwhile`(
        hasVariant: Bool
    ) throws {
        let engine = try EngineProcess()
        let (asking, level) = try engine.gateway(isDeaf)
        let (other, _) = try engine.gateway(memoryBytes: 0)
        if hasVariant {
            other.put("http://a/", body(5), vary: vary("it"))
            other.flushNow()
        }
        #expect(asking.found("http://a/", vary: "de").isEmpty)
        let flight = asking.flight("http://a/")
        other.drop("http://a/")
        other.flushNow()
        // Somebody else asks for the same: what is found belongs to the number by now.
        #expect(asking.found("http://a/", vary: "fr").isEmpty)
        let ticket = try? asking.begin(
            "http://a/", vary: vary("de"), length: 0, flight: flight)
        _ = ticket?.finish()
        asking.flushNow()
        for store in [asking, other] {
            #expect(store.found("http://a/", vary: "de").isEmpty)
        }
        // What is asked for after that is stored.
        asking.put("http://a/", body(10), vary: vary("de"))
        asking.flushNow()
        #expect(other.foundBodies("http://a/", vary: "de") == [body(10)])
        #expect(level.state == .ready)
        asking.close()
        other.close()
    }

    @Test func `is not confirmed under it either`() throws {
        let engine = try EngineProcess()
        let (asking, _) = try engine.gateway(isDeaf)
        let (other, _) = try engine.gateway(memoryBytes: 0)
        asking.put("http://a/", body(10), vary: vary("de"))
        asking.flushNow()
        let stale = try #require(asking.found("http://a/", vary: "de").first)
        let flight = asking.flight("http://a/")
        other.drop("http://a/")
        other.flushNow()
        #expect(asking.loaded("http://a/").isEmpty)
        #expect(throws: StoreRefusalReason.superseded) {
            _ = try asking.confirm(stale, vary: vary("de"), flight: flight)
        }
        asking.endFlight(flight)
        asking.flushNow()
        #expect(other.found("http://a/", vary: "de").isEmpty)
        asking.close()
        other.close()
    }

    /// What the engine has of it does not say what other gateways have.
    @Test func `is gone everywhere, also if the engine has nothing of it any longer`() throws {
        let engine = try EngineProcess()
        let (one, _) = try engine.gateway()
        let (other, level) = try engine.gateway()
        for url in ["http://a/", "http://b/"] {
            one.put(url, body(10))
            one.flushNow()
            #expect(other.foundBodies(url) == [body(10)])
        }
        for hash in engine.hashes {
            try engine.ask("DEL", String(decoding: hash, as: UTF8.self))
        }
        one.drop("http://a/")
        #expect(eventually { other.inMemory("http://a/").isEmpty })
        #expect(level.figures().removalsReceived == 1)
        // So is what is under way.
        let flight = other.flight("http://c/")
        one.drop("http://c/")
        #expect(eventually { level.figures().removalsReceived == 2 })
        #expect(throws: StoreRefusalReason.invalidated) {
            _ = try other.begin("http://c/", length: 0, flight: flight)
        }
        #expect(other.foundBodies("http://b/") == [body(10)])
        one.close()
        other.close()
    }

    @Test func `is told of all keys of its URI`() throws {
        let engine = try EngineProcess()
        let uris = Locked<[[UInt8]]>([])
        let other = try engine.level(
            FleetDuties(
                purge: { $1(true) }, remove: { _ in },
                removeURI: { uri in uris.withLock { $0.append(uri) } }))
        let (one, level) = try engine.gateway()
        for route in ["", "query:", "upgraded:", "reverse3:", "ways1f-reverse3-query:"] {
            one.drop("\(route)http://a/x?y")
        }
        one.flushNow()
        #expect(eventually { !uris.withLock { $0.isEmpty } })
        #expect(uris.withLock { Set($0) } == [Array("http://a/x?y".utf8)])
        #expect(level.figures().removalsSent <= 2)
        one.close()
        other.close()
    }

    @Test func `is told when there is memory for it again`() throws {
        let engine = try EngineProcess()
        let (one, level) = try engine.gateway()
        let (other, _) = try engine.gateway()
        one.put("http://a/", body(10))
        one.flushNow()
        #expect(other.foundBodies("http://a/") == [body(10)])
        let flight = other.flight("http://a/")
        try engine.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        try engine.ask("CONFIG", "SET", "maxmemory", "1")
        one.drop("http://a/")
        one.flushNow()
        #expect(eventually { level.figures()[.outOfMemory] > 0 })
        // It has no new number yet either.
        #expect(eventually { level.figures().lostKeys == 1 })
        #expect(level.state == .ready && !other.inMemory("http://a/").isEmpty)
        try engine.ask("CONFIG", "SET", "maxmemory", "0")
        #expect(eventually { other.inMemory("http://a/").isEmpty })
        #expect(eventually { level.figures().lostKeys == 0 })
        #expect(throws: StoreRefusalReason.invalidated) {
            _ = try other.begin("http://a/", length: 0, flight: flight)
        }
        one.close()
        other.close()
    }

    @Test func `is told by one that is closed before it was time for that`() throws {
        let engine = try EngineProcess()
        let (one, level) = try engine.gateway()
        let (other, others) = try engine.gateway(isDeaf)
        // The first one is told at once, and what follows later.
        one.drop("http://a/")
        #expect(eventually { level.figures().removalsSent == 1 })
        one.drop("http://a/")
        one.flushNow()
        one.close()
        #expect(level.figures().removalsSent == 2)
        #expect(try engine.ask("XLEN", "test:1:p:{fleet}:removed").integer == 3)
        #expect(others.state == .ready)
        other.close()
    }
}
