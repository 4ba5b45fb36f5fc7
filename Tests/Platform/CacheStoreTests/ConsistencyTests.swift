import CachePolicy
import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

/// What was replaced, invalidated or purged does not come back.
@Suite("What was replaced, invalidated or purged")
struct ConsistencyTests {
    private let folder = TemporaryFolder()

    private func restarted(_ store: CacheStore, _ options: CacheStoreOptions) -> CacheStore {
        store.close()
        return CacheStore(options: options).ready()
    }

    @Test func `an invalidated key is removed from memory, disk and the writer's queue`() {
        for window in [1, 60_000] {
            var options = CacheStoreOptions.small(folder)
            options.batchMilliseconds = window
            let store = CacheStore(options: options).ready()
            store.put("http://a/", body(10), vary: vary("de"))
            store.put("http://a/", body(2_000_000), vary: vary("fr"))
            if window == 1 { store.flushNow() }
            store.drop("http://a/")
            #expect(store.inMemory("http://a/").isEmpty)
            #expect(!store.key("http://a/") { store.diskMayHold($0) })
            #expect(store.loaded("http://a/").isEmpty)
            let again = restarted(store, options)
            #expect(again.loaded("http://a/").isEmpty)
            #expect(again.statistics().diskEntries == 0)
            again.close()
        }
    }

    @Test
    func `a replaced response is removed from disk at once, before its successor is written`()
        throws
    {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 200_000
        let store = CacheStore(options: options).ready()
        store.put("http://a/", body(10, seed: 1))
        store.flushNow()
        options.batchMilliseconds = 60_000
        let slow = restarted(store, options)
        slow.put("http://a/", body(20_000, seed: 2))
        for number in 0..<20 { slow.put("http://b/\(number)", body(20_000)) }
        #expect(slow.inMemory("http://a/").isEmpty)
        let found = try #require(slow.loaded("http://a/").first)
        #expect(slow.bytes(found) == body(20_000, seed: 2))
        let again = restarted(slow, options)
        let last = try #require(again.loaded("http://a/").first)
        #expect(again.bytes(last) == body(20_000, seed: 2))
    }

    @Test func `a successor that the disk does not take still replaces what the disk has`() {
        var options = CacheStoreOptions.small(folder)
        let store = CacheStore(options: options).ready()
        store.put("http://a/", body(10, seed: 1))
        store.flushNow()
        options.diskBytes = 1 << 20
        options.memoryBytes = 32 << 20
        let again = restarted(store, options)
        // More than half of the disk: kept in memory only.
        #expect(again.put("http://a/", body(800_000, seed: 2)).response != nil)
        #expect(!again.key("http://a/") { again.diskMayHold($0) })
        let last = restarted(again, options)
        #expect(last.loaded("http://a/").isEmpty)
    }

    @Test func `a store whose request was sent before an invalidation is refused`() throws {
        for size in [10, 100_000, 3_000_000] {
            let store = CacheStore(options: .small(folder)).ready()
            let content = body(size)
            let (sent, delayed) = (store.flight("http://a/"), store.flight("http://a/"))
            let early = try store.begin("http://a/", length: UInt64(size), flight: sent)
            #expect(content.withUnsafeBytes { early.append($0) })
            store.drop("http://a/")
            #expect(early.finish().refusal == .invalidated)
            // Its response arrived after the invalidation, but its request was sent before.
            #expect(throws: StoreRefusalReason.invalidated) {
                _ = try store.begin("http://a/", length: UInt64(size), flight: delayed)
            }
            #expect(store.memory.flightCount == 0)
            #expect(store.inMemory("http://a/").isEmpty)
            #expect(!store.key("http://a/") { store.diskMayHold($0) })
            #expect(store.put("http://a/", content).refusal == nil)
            store.flushNow()
            #expect(store.statistics().queueBytes == 0)
            store.purgeAll()
            store.close()
        }
    }

    @Test func `a purge empties both tiers and voids what is under way`() throws {
        let options = CacheStoreOptions.small(folder)
        let store = CacheStore(options: options).ready()
        for number in 0..<50 { store.put("http://a/\(number)", body(5000, seed: number)) }
        store.put("http://a/large", body(2_000_000))
        store.flushNow()
        for number in 50..<60 { store.put("http://a/\(number)", body(5000, seed: number)) }
        let ticket = try store.begin("http://a/60", length: 10)
        #expect(body(10).withUnsafeBytes { ticket.append($0) })
        store.purgeAll()
        #expect(ticket.finish().refusal == .invalidated)
        #expect(store.statistics().memoryEntries == 0)
        #expect(store.statistics().diskEntries == 0)
        store.put("http://a/after", body(77))
        store.flushNow()
        let path = folder.database
        #expect(
            eventually {
                query(path, "SELECT count(*) FROM content") == 1
                    && query(path, "SELECT count(*) FROM chunk") == 0
            })
        let again = restarted(store, options)
        #expect(again.statistics().diskEntries == 1)
        #expect(again.loaded("http://a/after").map { again.bytes($0) } == [body(77)])
    }

    @Test(arguments: [10, 40_000, 100_000, 3_000_000], [false, true])
    func `a 304 gives the same body a new head in both tiers`(_ size: Int, isFromDisk: Bool) throws
    {
        let options = CacheStoreOptions.small(folder)
        var store = CacheStore(options: options).ready()
        let content = body(size)
        store.put("http://a/", content, vary: vary("de"), tag: "old")
        store.flushNow()
        if isFromDisk { store = restarted(store, options) }
        let old = try #require(
            store.inMemory("http://a/").first ?? store.loaded("http://a/").first)
        let fresh = head("old", extra: "X-New: 1\r\n")
        let updated = try fresh.withUnsafeBytes {
            try store.update(
                old, vary: vary("fr"), head: $0, metadata: metadata(fresh), policy: 5)
        }
        #expect([UInt8](updated.head) == fresh)
        #expect(updated.varyKey == vary("fr"))
        #expect(updated.policy == 5)
        #expect(store.bytes(updated) == content)
        // The old one is obsolete: it cannot be updated again.
        #expect(throws: StoreRefusalReason.superseded) {
            try fresh.withUnsafeBytes {
                _ = try store.update(
                    old, vary: .none, head: $0, metadata: metadata(fresh), policy: 0)
            }
        }
        store.flushNow()
        #expect(store.statistics().diskEntries == 1)
        let again = restarted(store, options)
        let found = again.loaded("http://a/")
        #expect(found.map { [UInt8]($0.head) } == [fresh])
        #expect(found.first?.varyKey == vary("fr"))
        #expect(found.first.flatMap { again.bytes($0) } == content)
        // The same again for something only on disk, after which nothing of it may be left.
        let second = try #require(found.first)
        _ = try fresh.withUnsafeBytes {
            try again.update(
                second, vary: vary("fr"), head: $0, metadata: metadata(fresh), policy: 6)
        }
        #expect(again.loaded("http://a/").map(\.policy) == [6])
        again.drop("http://a/")
        again.flushNow()
        let path = folder.database
        #expect(query(path, "SELECT count(*) FROM content") == 0)
        again.close()
    }

    @Test func `a 304 for a response that was invalidated meanwhile restores nothing`() throws {
        let store = CacheStore(options: .small(folder)).ready()
        for size in [10, 3_000_000] {
            store.put("http://a/", body(size))
            store.flushNow()
            let old = try #require(
                store.inMemory("http://a/").first ?? store.loaded("http://a/").first)
            store.drop("http://a/")
            let fresh = head("new")
            #expect(throws: StoreRefusalReason.superseded) {
                try fresh.withUnsafeBytes {
                    _ = try store.update(
                        old, vary: .none, head: $0, metadata: metadata(fresh), policy: 0)
                }
            }
            #expect(store.inMemory("http://a/").isEmpty)
            #expect(store.loaded("http://a/").isEmpty)
        }
    }

    @Test func `what changed while the database was being opened does not come back from it`() {
        let index = DiskIndex(phase: .opening, accessSeconds: 30)
        func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
        for key in ["invalidated", "kept"] {
            bytes(key).withUnsafeBytes { #expect(index.remove(key: $0).isEmpty || key == "kept") }
            if key == "invalidated" { continue }
        }
        var table = IndexTable()
        for (number, key) in ["invalidated", "other"].enumerated() {
            var entry = IndexSlot()
            entry.id = Int64(number + 1)
            entry.keyHash = bytes(key).withUnsafeBytes { XXHash64.hash($0, seed: 4) }
            entry.flags = .committed
            _ = table.insert(entry)
        }
        let removals = index.begin(
            DiskIndex.Contents(seed: 4, table: consume table, lastID: 2))
        #expect(removals == [Removal(id: 1, body: .none)])
        bytes("invalidated").withUnsafeBytes { #expect(!index.mayHold($0)) }
        bytes("other").withUnsafeBytes { #expect(index.mayHold($0)) }
    }

    @Test func `after too many changes while it was away nothing of the database is trusted`() {
        var journal = IndexJournal()
        for number in 0..<IndexJournal.maximumChanges {
            Array("\(number)".utf8).withUnsafeBytes {
                journal.note($0, vary: nil, in: .opening)
            }
        }
        #expect(!journal.isOverflowed)
        [UInt8(1)].withUnsafeBytes { journal.note($0, vary: nil, in: .opening) }
        #expect(journal.isOverflowed)
        var large = IndexJournal()
        [UInt8](repeating: 1, count: IndexJournal.maximumBytes).withUnsafeBytes {
            large.note($0, vary: nil, in: .off(.locked))
        }
        #expect(!large.isOverflowed)
        [UInt8(1)].withUnsafeBytes { large.note($0, vary: nil, in: .off(.locked)) }
        #expect(large.isOverflowed)
    }

    @Test func `what was stored while the database was being opened is written once it is open`()
        throws
    {
        var options = CacheStoreOptions.small(folder)
        // More than the queue takes at a time.
        options.queueBytes = 200_000
        options.memoryShards = 4
        let store = CacheStore(withoutThreads: options, onEvent: { _ in })
        for number in 0..<1000 { store.put("http://new/\(number)", body(500, seed: number)) }
        store.put("http://new/0", body(600, seed: 7))
        store.drop("http://new/1")
        #expect(store.statistics().diskEntries == 0)
        store.disk.start(with: store.memory)
        _ = store.ready()
        #expect(eventually { store.statistics().diskWrites == 999 })
        store.close()
        let next = CacheStore(options: options).ready()
        #expect(next.statistics().diskEntries == 999)
        #expect(next.loaded("http://new/0").map { next.bytes($0) } == [body(600, seed: 7)])
        #expect(next.loaded("http://new/1").isEmpty)
        for number in 2..<1000 {
            let found = next.loaded("http://new/\(number)")
            #expect(found.map { next.bytes($0) } == [body(500, seed: number)])
        }
        next.close()
    }

    @Test func `what leaves memory while the database is being opened is no change of it`() throws {
        var options = CacheStoreOptions.small(folder)
        let before = CacheStore(options: options).ready()
        before.put("http://old/", body(100))
        before.close()
        options.memoryBytes = 1 << 20
        let store = CacheStore(withoutThreads: options, onEvent: { _ in })
        // Fewer than are recorded, and more than half of them: most have left memory by the time
        // the disk is available.
        for number in 0..<IndexJournal.maximumChanges * 3 / 4 {
            store.put("http://new/\(number)", body(1000))
        }
        #expect(store.statistics().memoryEvictions > IndexJournal.maximumChanges / 2)
        store.disk.start()
        _ = store.ready()
        #expect(store.loaded("http://old/").map { store.bytes($0) } == [body(100)])
        store.close()
    }
}
