import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

/// Where the memory tier keeps what it stores. Under AddressSanitizer there is no heap.
@Suite("Responses in the heap", .enabled(if: BlockHeap.suitable(limit: 64 << 20) != nil))
struct StoredInHeapTests {
    private func options(_ folder: TemporaryFolder? = nil) -> CacheStoreOptions {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 16 << 20
        return options
    }

    @Test func `a small cache has none`() {
        var options = options()
        options.memoryBytes -= 1
        #expect(CacheStore(options: options).memory.heap == nil)
    }

    @Test(
        arguments: [true, false], [1000, 4096, 16_384, 32_000])
    func `a response of 4 KiB and more is stored there, however its body arrived`(
        announced: Bool, count: Int
    ) throws {
        let store = CacheStore(options: options())
        let heap = try #require(store.memory.heap)
        let content = body(count)
        let response = try #require(
            store.put("http://a/", content, announced: announced, piece: 700).response)
        #expect(store.bytes(response) == content)
        let text = response.key.count + response.head.count + content.count
        let units = (text + Slab.unitBytes - 1) / Slab.unitBytes
        #expect(heap.usedBytes == (count < 4000 ? 0 : units * Slab.unitBytes))
        if count > 4000 {
            // What it counts is what it occupies.
            #expect(store.statistics().memoryBytes == 328 + units * Slab.unitBytes)
            #expect(store.statistics().memoryHeapBytes == Slab.bytes)
        }
    }

    @Test func `a large body is in the heap when the memory files are used up`() throws {
        var options = options()
        options.memoryFiles = 0
        let store = CacheStore(options: options)
        let heap = try #require(store.memory.heap)
        let response = try #require(
            store.put("http://a/", body(100_000), announced: false, piece: 9000).response)
        #expect(store.bytes(response) == body(100_000))
        #expect(heap.usedBytes == 100_352)
        #expect(store.statistics().memoryBytes >= 100_352)
    }

    @Test func `what is read from disk is put there`() throws {
        let folder = TemporaryFolder()
        let before = CacheStore(options: options(folder)).ready()
        before.put("http://a/", body(20_000))
        before.flushNow()
        before.close()
        let store = CacheStore(options: options(folder)).ready()
        let heap = try #require(store.memory.heap)
        let response = try #require(store.loaded("http://a/").first)
        #expect(store.bytes(response) == body(20_000))
        #expect(heap.usedBytes >= 20_000)
        store.close()
    }

    @Test func `a full cache evicts, keeps its limit, and gives all back`() throws {
        let store = CacheStore(options: options())
        let heap = try #require(store.memory.heap)
        for index in 0..<4000 {
            store.put("http://a/\(index)", body(4096 + index % 7 * 4096, seed: index))
            #expect(store.statistics().memoryBytes <= 16 << 20)
        }
        #expect(store.statistics().memoryEvictions > 0)
        #expect(heap.residentBytes <= 20 << 20)
        for index in 3900..<4000 {
            let found = try #require(store.inMemory("http://a/\(index)").first)
            #expect(store.bytes(found) == body(4096 + index % 7 * 4096, seed: index))
        }
        store.purgeAll()
        #expect(heap.usedBytes == 0)
        #expect(heap.slabCount == 1)
    }

    @Test func `a response outlives its store`() throws {
        var store: CacheStore? = CacheStore(options: options())
        let response = try #require(store?.put("http://a/", body(20_000)).response)
        store = nil
        guard case .contiguous(let stored) = response.body else {
            Issue.record("\(response.body)")
            return
        }
        #expect([UInt8](stored.bytes) == body(20_000))
    }
}
