import CachePolicy
import CacheStore
import CacheTestSupport
import SharedCacheLevel
import TestSupport
import Testing

/// Gateways on machines with different certificates.
@Suite("Gateways whose systems trust other roots", .serialized)
struct SystemTrustTests {
    private static let few = SystemTrust(roots: 0x1234_5678_9ABC_DEF0, coversClearText: false)
    private static let many = SystemTrust(roots: 0xFEDC_BA98_7654_3210, coversClearText: false)
    private static let key = "https://a/"

    /// What a request under a policy would be answered with.
    private func usable(_ store: CacheStore, _ key: String, policy: UInt64) -> [[UInt8]?] {
        let answer = Handover<LoadResult>()
        let isAsked = store.key(key) {
            store.load($0, policy: .init(), trust: policy) { answer.give($0) }
        }
        guard isAsked, case .found(let responses, _)? = answer.take() else { return [] }
        return responses.filter { $0.policy == policy }.map { store.bytes($0) }
    }

    @Test(arguments: [10, 400_000])
    func `use only what was obtained by TLS under their own`(_ size: Int) throws {
        let engine = try EngineProcess()
        let (lax, laxLevel) = try engine.gateway(memoryBytes: 0, wholeBodyBytes: 100_000)
        let (strict, level) = try engine.gateway(memoryBytes: 0, wholeBodyBytes: 100_000)
        let (alike, other) = try engine.gateway(memoryBytes: 0, wholeBodyBytes: 100_000)
        laxLevel.trust(Self.many)
        level.trust(Self.few)
        other.trust(Self.few)
        lax.put(Self.key, body(size, seed: 1), policy: 3)
        lax.flushNow()
        #expect(usable(strict, Self.key, policy: 3).isEmpty)
        #expect(usable(lax, Self.key, policy: 3) == [body(size, seed: 1)])
        // Neither replaces what the other has stored.
        strict.put(Self.key, body(size, seed: 2), policy: 3)
        strict.flushNow()
        #expect(usable(lax, Self.key, policy: 3) == [body(size, seed: 1)])
        #expect(usable(strict, Self.key, policy: 3) == [body(size, seed: 2)])
        #expect(usable(alike, Self.key, policy: 3) == [body(size, seed: 2)])
        // What one removes is removed for all.
        strict.drop(Self.key)
        strict.flushNow()
        for store in [lax, strict, alike] {
            #expect(usable(store, Self.key, policy: 3).isEmpty)
            store.close()
        }
    }

    @Test(arguments: ["http://a/", "reverse3:http://a/", "ways1f-reverse3:http://a/https:"])
    func `share what was obtained in clear text, unless by proxies`(_ key: String) throws {
        let engine = try EngineProcess()
        let (lax, laxLevel) = try engine.gateway(memoryBytes: 0)
        let (strict, level) = try engine.gateway(memoryBytes: 0)
        laxLevel.trust(Self.many)
        level.trust(Self.few)
        lax.put(key, body(10), policy: 3)
        lax.flushNow()
        #expect(usable(strict, key, policy: 3) == [body(10)])
        #expect(usable(strict, "reverse3:https://a/", policy: 3).isEmpty)
        level.trust(SystemTrust(roots: 5, coversClearText: true))
        #expect(usable(strict, key, policy: 3).isEmpty)
        lax.close()
        strict.close()
    }

    @Test func `share what was obtained by TLS if they verify nothing by the system's`() throws {
        let engine = try EngineProcess()
        let (first, level) = try engine.gateway(memoryBytes: 0)
        let (second, _) = try engine.gateway(memoryBytes: 0)
        level.trust(.none)
        first.put(Self.key, body(10), policy: 3)
        first.flushNow()
        #expect(usable(second, Self.key, policy: 3) == [body(10)])
        first.close()
        second.close()
    }

    @Test(arguments: [10, 400_000])
    func `do not store what was asked for under former ones`(_ size: Int) throws {
        let engine = try EngineProcess()
        let (store, level) = try engine.gateway(memoryBytes: 0, wholeBodyBytes: 100_000)
        level.trust(Self.many)
        store.put(Self.key, body(size), policy: 3)
        store.flushNow()
        // The same ones change nothing.
        level.trust(Self.many)
        store.put("https://b/", body(size), policy: 3)
        store.flushNow()
        #expect(engine.hashes.count == 2)
        level.trust(Self.few)
        #expect(usable(store, Self.key, policy: 3).isEmpty)
        store.put("https://c/", body(size), policy: 3)
        store.flushNow()
        #expect(usable(store, "https://c/", policy: 3).isEmpty)
        store.close()
    }
}
