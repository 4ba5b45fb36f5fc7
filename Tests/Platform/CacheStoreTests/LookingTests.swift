import CachePolicy
import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

/// What `LevelRule.looksWithoutKeeping` says of all levels, in the detail of memory and disk.
@Suite("Looking at what is stored for a key")
struct LookingTests: HandsOver {
    let folder = TemporaryFolder()
    let log = EventLog()

    /// A store with these bodies on disk, and nothing in memory.
    private func filled(
        _ sizes: [Int], _ change: (inout CacheStoreOptions) -> Void = { _ in }
    ) -> CacheStore {
        let store = open(change)
        for size in sizes { store.put("http://a/\(size)", body(size)) }
        store.close()
        return open(change)
    }

    @Test func `what is in memory is found there, and no use is counted`() throws {
        let store = open { $0.memoryBytes = 4 << 20 }
        defer { store.close() }
        store.put("http://a/", body(10), vary: vary("de"))
        store.put("http://a/", body(11), vary: vary("fr"))
        store.flushNow()
        for _ in 0..<3 {
            let seen = try store.looked(at: "http://a/")
            #expect(seen.count == 2 && seen.allSatisfy(\.isInMemory))
            #expect(try store.looked(at: "http://a/", inMemoryOnly: true).count == 2)
        }
        #expect(try store.listed("http://a/").map(\.hits) == [0, 0])
        #expect(store.disk.index.takeAccesses(limit: 100).isEmpty)
        #expect(try store.looked(at: "http://b/").isEmpty)
    }

    @Test func `what is on disk is found there, stays there, and no use is counted`() throws {
        let sizes = [0, 10, 5000, 100_000, 3_000_000]
        let store = filled(sizes) { $0.memoryBytes = 8 << 20 }
        defer { store.close() }
        let before = store.statistics()
        for size in sizes {
            #expect(try store.looked(at: "http://a/\(size)", inMemoryOnly: true).isEmpty)
            for _ in 0..<3 {
                let seen = try store.looked(at: "http://a/\(size)")
                #expect(seen.map(\.isInMemory) == [false])
                let response = try #require(seen.first?.response)
                #expect(store.bytes(response) == body(size))
                #expect([UInt8](response.head) == head())
            }
            #expect(try store.listed("http://a/\(size)").map(\.hits) == [0])
        }
        let after = store.statistics()
        #expect(after.memoryEntries == 0 && after.memoryBytes == 0 && after.memoryFiles == 0)
        #expect(after.diskHits == before.diskHits && after.diskMisses == before.diskMisses)
        #expect(store.disk.index.takeAccesses(limit: 100).isEmpty)
        // Nothing is left that keeps chunks from being removed.
        #expect(eventually { store.disk.index.state.withLock { $0.pins.isEmpty } })
    }

    @Test func `a look does not save from eviction`() throws {
        let store = filled([10, 20, 30])
        defer { store.close() }
        for _ in 0..<10 { #expect(try store.looked(at: "http://a/10").count == 1) }
        // Without any use, the oldest is the first to go.
        let oldest = try #require(store.key("http://a/10") { store.disk.index.ids($0.bytes) })
        #expect(store.disk.index.evict(\.bytes)?.id == oldest.first)
    }

    @Test func `memory's copy is the one that is seen`() throws {
        let store = open { $0.memoryBytes = 4 << 20 }
        defer { store.close() }
        store.put("http://a/", body(10), vary: vary("de"))
        store.flushNow()
        #expect(try store.looked(at: "http://a/").map(\.isInMemory) == [true])
    }

    @Test func `what waits for the writer is found`() throws {
        let store = open {
            $0.memoryBytes = 0
            $0.batchMilliseconds = 60_000
        }
        defer { store.close() }
        store.put("http://a/", body(10), vary: vary("de"))
        // Its chunks are written as they come; its row is awaited.
        store.put("http://a/", body(2_000_000), vary: vary("fr"))
        let seen = try store.looked(at: "http://a/")
        #expect(Set(seen.map(\.response.bodyCount)) == [10, 2_000_000])
    }

    @Test(arguments: [true, false])
    func `what was purged is not seen, and what is stale is seen as that`(onDisk: Bool) throws {
        let store = open { if onDisk { $0.memoryBytes = 0 } }
        for number in 1...3 { store.put("http://a/\(number)", body(10)) }
        store.flushNow()
        let stale = testTimes.responseTime + 9
        _ = try store.purge(Purge(.prefix(Array("http://a/1".utf8))), now: 5)
        _ = try store.purge(Purge(.prefix(Array("http://a/2".utf8)), isSoft: true), now: stale)
        #expect(try store.looked(at: "http://a/1").isEmpty)
        #expect(try store.looked(at: "http://a/2").map(\.response.staleSince) == [stale])
        #expect(try store.looked(at: "http://a/3").map(\.response.staleSince) == [0])
        store.close()
    }

    @Test func `a row that is not what was written is dropped, as by a load`() throws {
        var store = filled([10, 20])
        store.close()
        try execute(
            folder.database,
            "UPDATE content SET sum = sum + 1 WHERE id = (SELECT min(id) FROM content)")
        store = open()
        defer { store.close() }
        #expect(try store.looked(at: "http://a/10").isEmpty)
        #expect(log.contains { if case .damagedEntry = $0 { true } else { false } })
        #expect(try store.looked(at: "http://a/20").count == 1)
    }

    @Test func `a tier that is away is an error, and one that is not there is none`() throws {
        let store = filled([10])
        #expect(handOver(store) == .released)
        #expect(throws: CacheListingError.handedOver) { try store.looked(at: "http://a/10") }
        #expect(try store.looked(at: "http://a/10", inMemoryOnly: true).isEmpty)
        store.close()
        let without = CacheStore(options: .small()).ready()
        without.put("http://a/", body(10))
        #expect(try without.looked(at: "http://a/").count == 1)
        without.close()
    }

    @Test func `with too many reads waiting a look is refused, and misses nothing`() throws {
        let store = filled([10]) { $0.pendingReads = 0 }
        defer { store.close() }
        #expect(throws: CacheListingError.busy) { try store.looked(at: "http://a/10") }
    }
}
