import CachePolicy
import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

/// Variants of one key on disk: what a request reads, and how many are kept.
@Suite("Variants of one key")
struct VariantTests {
    private let folder = TemporaryFolder()

    private func open(_ change: (inout CacheStoreOptions) -> Void = { _ in }) -> CacheStore {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 0
        change(&options)
        return CacheStore(options: options).ready()
    }

    private func onDisk(_ store: CacheStore, _ value: String?) -> LevelVariants {
        store.key("http://a/") { key in
            store.levelVariants(key) { $0.isEmpty ? VaryKey.none : vary(value) }
        }
    }

    private func load(_ store: CacheStore, _ value: String?) -> [CachedResponse] {
        guard case .candidates(let variants) = onDisk(store, value) else { return [] }
        let handover = Handover<LoadResult>()
        let accepted = store.key("http://a/") { key in
            store.load(key, variants, policy: PolicyOptions()) { handover.give($0) }
        }
        guard accepted, case .found(let responses, _)? = handover.take() else { return [] }
        return responses
    }

    @Test
    func `of a hundred large variants a request reads its own, and none when it has none there`() {
        let store = open { $0.diskBytes = 256 << 20 }
        for number in 0..<100 {
            store.put("http://a/", body(900_000, seed: number), vary: vary("\(number)"))
            if number % 10 == 0 { store.flushNow() }
        }
        store.flushNow()
        let before = store.statistics()
        for number in 0..<50 { #expect(onDisk(store, "new \(number)") == .others) }
        #expect(onDisk(store, nil) == .others)
        #expect(store.statistics().diskRowsRead == before.diskRowsRead)
        let found = load(store, "99")
        #expect(found.map { store.bytes($0) } == [body(900_000, seed: 99)])
        // Its row and its chunks.
        #expect(store.statistics().diskRowsRead - before.diskRowsRead == 15)
        #expect(store.statistics().diskBytesRead - before.diskBytesRead < 901_000)
        store.close()
    }

    @Test func `beyond the limit the least recently used variant of a key is removed`() {
        let store = open { $0.variantsPerKey = 4 }
        for number in 0..<1000 { store.put("http://a/", body(10), vary: vary("\(number)")) }
        store.put("http://b/", body(10))
        store.flushNow()
        #expect(store.statistics().diskEntries == 5)
        #expect(store.statistics().diskEvictions.variants == 996)
        #expect((996..<1000).allSatisfy { load(store, "\($0)").count == 1 })
        #expect(query(folder.database, "SELECT count(*) FROM content") == 5)
        store.close()
    }

    @Test func `what a variant nominates is known after a restart`() {
        var store = open()
        store.put("http://a/", body(10, seed: 1), vary: vary("de"))
        store.put("http://a/", body(10, seed: 2), vary: vary("en"))
        store.put("http://a/", body(10, seed: 3))
        store.close()
        store = open()
        #expect(load(store, "de").contains { store.bytes($0) == body(10, seed: 1) })
        #expect(!load(store, "de").contains { store.bytes($0) == body(10, seed: 2) })
        // The response without Vary answers any request.
        #expect(load(store, "fr").map { store.bytes($0) } == [body(10, seed: 3)])
        store.drop("http://a/")
        #expect(onDisk(store, "de") == .none)
        store.close()
    }

    @Test
    func `lists of names are kept once, forgotten with their last entry, and bounded in number`() {
        var table = VaryNamesTable()
        #expect(table.retain([]) == VaryNamesTable.none)
        let first = table.retain([1, 65])
        #expect(table.retain([1, 65]) == first)
        #expect(table[first] == [1, 65])
        table.release(first)
        #expect(table.count == 1)
        table.release(first)
        #expect(table.count == 0)
        var given: Set<UInt16> = []
        for number in 0..<VaryNamesTable.limit {
            given.insert(table.retain([2, UInt8(number >> 8), UInt8(number & 255)]))
        }
        #expect(given.count == VaryNamesTable.limit)
        let more = table.retain([3, 1, 1, 1])
        #expect(more == VaryNamesTable.unknown)
        #expect(table[more] == nil)
        table.release(more)
        #expect(table.count == VaryNamesTable.limit)
        #expect(table.retain([2, 0, 0]) != VaryNamesTable.unknown)
    }

    @Test func `entries whose names are not known are read, a few of them`() {
        let store = open()
        for number in 0..<VaryNamesTable.limit {
            let name = Array("x-\(number)".utf8)
            let key = VaryKey(bytes: [1, UInt8(name.count)] + name + [0])
            store.put("http://b/\(number)", body(10), vary: key ?? .none)
        }
        store.put("http://a/", body(10, seed: 1), vary: vary("de"))
        store.flushNow()
        #expect(onDisk(store, "fr") == .candidates([]))
        #expect(load(store, "fr").count == 1)
        for number in 0..<40 { store.put("http://a/", body(10), vary: vary("\(number)")) }
        store.flushNow()
        let before = store.statistics().diskRowsRead
        _ = load(store, "fr")
        #expect(store.statistics().diskRowsRead - before == 8)
        store.close()
    }
}
