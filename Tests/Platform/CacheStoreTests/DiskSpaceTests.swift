import CLinux
import CachePolicy
import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

/// What responses take in the database's file.
@Suite("Space on disk")
struct DiskSpaceTests {
    private let folder = TemporaryFolder()

    private func store() -> CacheStore {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 0
        options.diskBytes = 1 << 30
        options.inlineBodyBytes = 64 << 10
        return CacheStore(options: options).ready()
    }

    /// Stores responses, and returns bytes of the database's file and of what is in it.
    private func fill(
        _ sizes: (Int) -> Int, count: Int, flushes: Int
    ) -> (file: Int64, net: Int64) {
        let store = store()
        var net: Int64 = 0
        for number in 0..<count {
            let size = sizes(number)
            #expect(store.put("http://space/\(number)", body(size, seed: number)).refusal == nil)
            net += Int64(size + "http://space/\(number)".utf8.count + head().count)
            if number % flushes == 0 { store.flushNow() }
        }
        store.flushNow()
        let accounted = store.statistics().diskBytes
        for number in stride(from: 0, to: count, by: 17) {
            let found = store.loaded("http://space/\(number)")
            #expect(found.map { store.bytes($0) } == [body(sizes(number), seed: number)])
        }
        store.close()
        let file = (query(folder.database, "PRAGMA page_count") ?? 0) * Int64(Schema.pageBytes)
        let share = Double(accounted) / Double(file)
        #expect(share > 0.95 && share < 1.05, "\(accounted) of \(file)")
        return (file, net)
    }

    @Test(
        arguments: [
            (200, 3000, 0.55), (1500, 1500, 0.14), (4096, 1400, 0.07), (9000, 300, 0.06),
            (30_000, 100, 0.06), (100_000, 60, 0.06),
        ])
    func `little is wasted, and what an entry counts for is what it takes`(
        _ size: Int, _ count: Int, _ most: Double
    ) {
        let (file, net) = fill({ _ in size }, count: count, flushes: 200)
        // Record, checksums, lengths and the index's row are some 140 bytes of each.
        #expect(Double(file) < Double(net) * (1 + most), "\(file / Int64(count)) for each")
    }

    @Test func `the same if each is written alone, and of every size`() {
        let (file, net) = fill({ 1 + $0 * 7919 % 12_000 }, count: 500, flushes: 1)
        #expect(Double(file) < Double(net) * 1.07)
    }

    @Test func `rows on the last pages that were removed do not mislead it for long`() {
        let store = store()
        var live: Set<Int> = []
        var generator = SeededRandom(seed: 4)
        for number in 0..<1200 {
            store.put("http://space/\(number)", body(4096, seed: number))
            live.insert(number)
            if number % 3 == 0 {
                let gone = number - Int.random(in: 0..<4, using: &generator)
                store.drop("http://space/\(gone)")
                live.remove(gone)
            }
            if number % 11 == 0 { store.flushNow() }
        }
        store.flushNow()
        for number in stride(from: 0, to: 1200, by: 7) {
            let found = store.loaded("http://space/\(number)")
            #expect(
                found.map { store.bytes($0) }
                    == (live.contains(number) ? [body(4096, seed: number)] : []))
        }
        store.close()
        let pages = query(folder.database, "PRAGMA page_count") ?? 0
        let free = query(folder.database, "PRAGMA freelist_count") ?? 0
        let used = (pages - free) * Int64(Schema.pageBytes)
        // A third of the pages' space may be free around what was removed.
        #expect(used < Int64(live.count) * 4350 * 3 / 2, "\(used / Int64(live.count)) for each")
    }

    @Test func `half a body is not served`() throws {
        let store = store()
        for number in 0..<20 { store.put("http://space/\(number)", body(5000, seed: number)) }
        store.close()
        let divided = query(
            folder.database, "SELECT min(id) FROM content WHERE id % 2 = 1")
        let second = try #require(divided)
        #expect((query(folder.database, "SELECT count(*) FROM content WHERE id % 2 = 1") ?? 0) > 5)
        try execute(folder.database, "DELETE FROM content WHERE id = \(second)")
        let next = self.store()
        var missing = 0
        for number in 0..<20 {
            let found = next.loaded("http://space/\(number)")
            if found.isEmpty { missing += 1 }
            for response in found { #expect(next.bytes(response) == body(5000, seed: number)) }
        }
        #expect(missing == 1 && next.statistics().damagedEntries == 1)
        next.close()
    }

    @Test func `an index row that is not what was written is noticed when it is read`() throws {
        let store = store()
        for number in 0..<20 { store.put("http://space/\(number)", body(50)) }
        store.close()
        try execute(folder.database, "UPDATE entry SET facts = x'0102' WHERE id = 7")
        let log = EventLog()
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 0
        let next = CacheStore(options: options, onEvent: log.record).ready()
        #expect(log.contains { if case .setAside = $0 { true } else { false } })
        #expect(next.statistics().diskState == .ready && next.statistics().diskEntries == 0)
        next.close()
    }
}
