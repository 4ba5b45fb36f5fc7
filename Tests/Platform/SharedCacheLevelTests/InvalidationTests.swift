import CachePolicy
import CacheStore
import CacheTestSupport
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
}
