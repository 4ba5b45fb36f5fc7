import CachePolicy
import CacheTestSupport
import Clocks
import TestSupport
import Testing

@testable import CacheStore

/// A stale response of one gateway, and what another one has stored since in the level that they
/// share.
@Suite("A stale response")
struct ReplacingTests {
    private let folder = TemporaryFolder()
    private let server = RemoteServer()

    private func open(
        hasDisk: Bool = false, _ change: (inout CacheStoreOptions) -> Void = { _ in }
    ) -> CacheStore {
        var options = CacheStoreOptions.small(hasDisk ? folder : nil)
        change(&options)
        return CacheStore(options: options, below: [RemoteLevel(server)]).ready()
    }

    /// Stores a response that was received some seconds ago.
    private func put(
        _ store: CacheStore, seed: Int, ago: Int64, policy: UInt64 = 0,
        _ cacheControl: String = "max-age=10"
    ) throws {
        let time = Clock.wallSeconds() - ago
        let content = body(1000, seed: seed)
        let head = Array("HTTP/1.1 200 OK\r\nCache-Control: \(cacheControl)\r\n".utf8)
        let made = StoredMetadata(
            storedHead: head.span,
            times: StoredTimes(requestTime: time, responseTime: time, initialAge: 0),
            hasQuery: false, options: PolicyOptions())
        let metadata = try #require(made)
        let ticket = try store.key("http://a/") { key in
            try head.withUnsafeBytes {
                try store.beginStore(
                    key: key, vary: .none, head: $0, metadata: metadata, policy: policy,
                    expectedLength: UInt64(content.count))
            }
        }
        #expect(content.withUnsafeBytes { ticket.append($0) })
        #expect(ticket.finish().refusal == nil)
        store.flushNow()
    }

    /// The same by another gateway, which has nothing but the level.
    private func putElsewhere(
        seed: Int, ago: Int64, policy: UInt64 = 0, _ cacheControl: String = "max-age=10"
    ) throws {
        let other = open()
        try put(other, seed: seed, ago: ago, policy: policy, cacheControl)
        other.close()
    }

    private func ask(_ store: CacheStore, _ stale: CachedResponse) -> Handover<LoadResult> {
        let answer = Handover<LoadResult>()
        #expect(
            store.loadFresh(insteadOf: stale, policy: PolicyOptions()) { answer.give($0) })
        store.wakeReaders()
        return answer
    }

    /// What replaces a response; `nil` if nothing does.
    private func replacement(_ store: CacheStore, _ stale: CachedResponse) -> CachedResponse? {
        guard case .found(let found, _)? = ask(store, stale).take() else { return nil }
        #expect(found.count == 1)
        return found.first
    }

    @Test func `is replaced in memory, and the disk does not bring it back`() throws {
        let store = open(hasDisk: true)
        try put(store, seed: 1, ago: 100)
        #expect(store.statistics().diskEntries == 1)
        let stale = try #require(store.inMemory("http://a/").first)
        #expect(store.mayHaveFresh(insteadOf: stale))
        #expect(store.holds(stale))
        try putElsewhere(seed: 2, ago: 1)
        let found = try #require(replacement(store, stale))
        #expect(store.bytes(found) == body(1000, seed: 2))
        #expect(store.inMemory("http://a/").map { $0 === found } == [true])
        #expect(store.holds(found))
        #expect(!store.holds(stale))
        store.flushNow()
        #expect(eventually { store.statistics().diskEntries == 0 })
        // Others have it still.
        #expect(server.counts.values == 1)
        store.close()
        // After `kill -9`, without the other gateways.
        let alone = CacheStore(options: .small(folder)).ready()
        #expect(alone.found("http://a/").isEmpty)
        alone.close()
    }

    @Test func `is replaced on disk by what leaves memory`() throws {
        let store = open(hasDisk: true) { $0.memoryBytes = 170_000 }
        try put(store, seed: 1, ago: 100)
        let stale = try #require(store.inMemory("http://a/").first)
        try putElsewhere(seed: 2, ago: 1)
        #expect(replacement(store, stale) != nil)
        for number in 0..<12 { store.put("http://b/\(number)", body(20_000, seed: number)) }
        #expect(store.inMemory("http://a/").isEmpty)
        store.flushNow()
        store.close()
        let alone = CacheStore(options: .small(folder)).ready()
        #expect(alone.foundBodies("http://a/") == [body(1000, seed: 2)])
        alone.close()
    }

    @Test func `is removed from disk where memory has no room for the fresh one`() throws {
        let store = open(hasDisk: true) { $0.memoryBytes = 0 }
        try put(store, seed: 1, ago: 100)
        let stale = try #require(store.found("http://a/").first)
        #expect(store.bytes(stale) == body(1000, seed: 1))
        #expect(store.holds(stale))
        try putElsewhere(seed: 2, ago: 1)
        let found = try #require(replacement(store, stale))
        #expect(store.bytes(found) == body(1000, seed: 2))
        #expect(!store.holds(stale))
        #expect(store.foundBodies("http://a/") == [body(1000, seed: 2)])
        store.flushNow()
        #expect(store.statistics().diskEntries == 0)
        store.close()
    }

    @Test(arguments: ["older", "stale", "of another policy", "to be confirmed", "not there"])
    func `stays if what another gateway has is`(_ what: String) throws {
        let store = open(hasDisk: true)
        try put(store, seed: 1, ago: 50)
        let stale = try #require(store.inMemory("http://a/").first)
        switch what {
        case "older": try putElsewhere(seed: 2, ago: 100, "max-age=3600")
        case "stale": try putElsewhere(seed: 2, ago: 20)
        case "of another policy": try putElsewhere(seed: 2, ago: 1, policy: 7)
        case "to be confirmed": try putElsewhere(seed: 2, ago: 1, "no-cache, max-age=10")
        default:
            let other = open()
            other.drop("http://a/")
            other.flushNow()
            other.close()
        }
        #expect(replacement(store, stale) == nil)
        #expect(store.inMemory("http://a/").map { $0 === stale } == [true])
        #expect(store.holds(stale))
        #expect(store.statistics().diskEntries == 1)
        store.close()
    }

    @Test(arguments: ["removed", "replaced", "purged"])
    func `is not replaced once it is`(_ change: String) throws {
        let store = open(hasDisk: true)
        try put(store, seed: 1, ago: 100)
        let stale = try #require(store.inMemory("http://a/").first)
        try putElsewhere(seed: 2, ago: 1)
        server.stop()
        let answer = ask(store, stale)
        switch change {
        case "removed": store.drop("http://a/")
        case "replaced": store.put("http://a/", body(10, seed: 3))
        default: store.purgeAll()
        }
        server.goOn()
        guard case .nothing? = answer.take() else {
            Issue.record("published")
            return
        }
        #expect(!store.holds(stale))
        let expected = change == "replaced" ? [body(10, seed: 3)] : []
        #expect(store.inMemory("http://a/").map { store.bytes($0) } == expected)
        store.close()
    }

    @Test func `is replaced once by two requests that ask`() throws {
        let store = open()
        try put(store, seed: 1, ago: 100)
        let stale = try #require(store.inMemory("http://a/").first)
        try putElsewhere(seed: 2, ago: 1)
        server.stop()
        let answers = (0..<2).map { _ in ask(store, stale) }
        server.goOn()
        let found = answers.map { answer -> CachedResponse? in
            guard case .found(let found, _)? = answer.take() else { return nil }
            return found.first
        }
        #expect(found[0] != nil && found[0] === found[1])
        #expect(store.inMemory("http://a/").map { $0 === found[0] } == [true])
        store.close()
    }

    @Test func `is not asked for where nobody could have a fresh one`() throws {
        let store = open()
        try put(store, seed: 1, ago: 100, "max-age=0")
        let never = try #require(store.inMemory("http://a/").first)
        #expect(!store.mayHaveFresh(insteadOf: never))
        try put(store, seed: 1, ago: 100)
        let stale = try #require(store.inMemory("http://a/").first)
        #expect(store.mayHaveFresh(insteadOf: stale))
        store.close()
        let alone = CacheStore(options: .small())
        #expect(!alone.mayHaveFresh(insteadOf: stale))
        #expect(!alone.loadFresh(insteadOf: stale, policy: PolicyOptions()) { _ in })
        alone.close()
    }
}
