import CachePolicy
import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

@Suite("A purge while two processes use the folder")
struct PurgeHandoverTests: HandsOver {
    let folder = TemporaryFolder()
    let log = EventLog()

    private func tagged(_ store: CacheStore, _ url: String, _ tag: String) {
        let head = CacheTestSupport.head(extra: "Cache-Tag: \(tag)\r\n")
        store.key(url) { key in
            head.withUnsafeBytes { bytes in
                let ticket = try? store.beginStore(
                    key: key, vary: .none, head: bytes, metadata: metadata(head),
                    expectedLength: 3)
                _ = body(3).withUnsafeBytes { ticket?.append($0) }
                #expect(ticket?.finish().response != nil)
            }
        }
    }

    private func found(_ store: CacheStore, _ url: String) -> [CachedResponse] {
        let inMemory = store.inMemory(url)
        return inMemory.isEmpty ? store.loaded(url) : inMemory
    }

    @Test(arguments: [true, false])
    func `one by a pattern in the next process holds in the one before`(isSoft: Bool) throws {
        let old = open()
        tagged(old, "http://a/red", "red")
        tagged(old, "http://a/blue", "blue")
        old.flushNow()
        let lock = try lock(of: handOver(old, keepingLock: true))
        let next = open(inheriting: lock)
        defer {
            old.close()
            next.close()
        }
        #expect(found(old, "http://a/red").count == 1)
        _ = try next.purge(Purge(.tag(Array("red".utf8)), isSoft: isSoft), now: 1_763_719_300)
        for store in [old, next] {
            let red = found(store, "http://a/red")
            #expect(isSoft ? red.map(\.staleSince) == [1_763_719_300] : red.isEmpty)
            #expect(found(store, "http://a/blue").map(\.staleSince) == [0])
        }
    }

    @Test func `by a pattern it is refused by the one that has handed over, by a key it holds`()
        throws
    {
        let old = open()
        for name in ["x", "y"] { tagged(old, "http://a/\(name)", "red") }
        old.flushNow()
        let lock = try lock(of: handOver(old, keepingLock: true))
        let next = open(inheriting: lock)
        defer {
            old.close()
            next.close()
        }
        #expect(throws: PurgeError.handedOver) {
            try old.purge(Purge(.tag(Array("red".utf8))), now: 1)
        }
        #expect(found(old, "http://a/x").count == 1)
        let key = CacheKey(bytes: Array("http://a/x".utf8))
        _ = try old.purge(Purge(.keys([key])), now: 1)
        for store in [old, next] {
            #expect(found(store, "http://a/x").isEmpty)
            #expect(found(store, "http://a/y").count == 1)
        }
    }

    @Test func `one that was not carried out passes to the next process`() throws {
        let old = open()
        for number in 0..<20 { tagged(old, "http://a/\(number)", "red") }
        old.flushNow()
        _ = try old.purge(Purge(.tag(Array("red".utf8))), now: 1)
        let lock = try lock(of: handOver(old, keepingLock: true))
        let next = open(inheriting: lock)
        defer {
            old.close()
            next.close()
        }
        for number in 0..<20 { #expect(found(next, "http://a/\(number)").isEmpty) }
        tagged(next, "http://a/0", "red")
        #expect(found(next, "http://a/0").count == 1)
        old.close()
        let isDone = eventually { !next.bans.isInForce }
        #expect(isDone)
        #expect(found(next, "http://a/0").count == 1)
    }
}
