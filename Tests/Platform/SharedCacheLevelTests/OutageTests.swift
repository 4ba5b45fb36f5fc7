import CachePolicy
import CacheStore
import CacheTestSupport
import RedisProtocol
import SharedCacheLevel
import Testing

/// What a gateway has stored and removed while it did not reach the engine.
@Suite("A gateway that is cut off from its fleet", .serialized)
struct OutageTests {
    /// A gateway behind a proxy, which is slow from time to time.
    private func cutOff(
        _ engine: EngineProcess, _ proxy: SlowProxy,
        _ change: (inout SharedLevelOptions) -> Void = { _ in }
    ) throws -> (store: CacheStore, level: SharedLevel) {
        try engine.gateway {
            $0.server = .unix(path: proxy.path)
            $0.stallMilliseconds = 300
            change(&$0)
        }
    }

    private func cut(_ proxy: SlowProxy, _ store: CacheStore, _ level: SharedLevel) {
        proxy.setDelay(milliseconds: 1000)
        store.flush {}
        #expect(eventually { level.state == .off })
    }

    private func mend(_ proxy: SlowProxy, _ level: SharedLevel) {
        proxy.setDelay(milliseconds: 0)
        #expect(eventually { level.state == .ready }, "\(level.figures())")
    }

    /// More than it can remember: it does without what the engine has from before.
    @Test func `has nobody lose anything by what it has stored alone`() throws {
        let engine = try EngineProcess()
        let proxy = try SlowProxy(to: engine.path)
        defer { proxy.end() }
        let (other, others) = try engine.gateway()
        let (store, level) = try cutOff(engine, proxy) { $0.lostKeys = 5 }
        other.put("http://kept/", body(10))
        other.flushNow()
        cut(proxy, store, level)
        for number in 0..<5 { store.put("http://a/\(number)", body(20)) }
        #expect(level.figures().lostKeys == 5)
        store.put("http://a/5", body(20))
        #expect(level.figures().lostKeys == 0)
        mend(proxy, level)
        store.flushNow()
        #expect(store.found("http://kept/").isEmpty)
        #expect(store.inMemory("http://a/0").count == 1)
        #expect(other.inMemory("http://kept/").first?.staleSince == 0)
        let (third, _) = try engine.gateway()
        #expect(third.foundBodies("http://kept/") == [body(10)])
        #expect(others.figures().purgesReceived == 0 && level.figures().purgesSent == 0)
        for store in [store, other, third] { store.close() }
    }

    @Test func `tells nobody of what it has stored alone, but removes what it replaces`() throws {
        let engine = try EngineProcess()
        let proxy = try SlowProxy(to: engine.path)
        defer { proxy.end() }
        let (other, others) = try engine.gateway()
        let (store, level) = try cutOff(engine, proxy)
        other.put("http://a/", body(10))
        other.put("http://b/", body(10))
        other.flushNow()
        cut(proxy, store, level)
        store.put("http://a/", body(20))
        store.drop("http://b/")
        mend(proxy, level)
        store.flushNow()
        let (third, _) = try engine.gateway()
        for url in ["http://a/", "http://b/"] { #expect(third.found(url).isEmpty) }
        #expect(eventually { other.inMemory("http://b/").isEmpty })
        #expect(others.figures().removalsReceived == 1)
        #expect(other.foundBodies("http://a/") == [body(10)])
        for store in [store, other, third] { store.close() }
    }
}
