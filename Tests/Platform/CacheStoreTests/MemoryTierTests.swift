import CachePolicy
import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

@Suite("The memory tier")
struct MemoryTierTests {
    @Test func `a stored response is found with its head, body, times and policy`() throws {
        let store = CacheStore(options: .small())
        let content = body(1000)
        store.put("http://a/", content, policy: 77)
        let response = try #require(store.inMemory("http://a/").first)
        #expect([UInt8](response.head) == head())
        #expect(store.bytes(response) == content)
        #expect(String(decoding: response.key, as: UTF8.self) == "http://a/")
        #expect(response.metadata.times == testTimes)
        #expect(response.metadata.bodyBytes == 1000)
        #expect(response.bodyCount == 1000)
        #expect(response.policy == 77)
        #expect(store.inMemory("http://a/b").isEmpty)
        #expect(store.inMemory("http://A/").isEmpty)
    }

    @Test func `keys with the same hash are distinguished by their bytes`() {
        let store = CacheStore(options: .small())
        store.put("http://a/", body(10))
        let other = Array("http://b/".utf8)
        let match = store.key("http://a/") { key in
            other.withUnsafeBytes { store.lookup(CacheKeyView(bytes: $0, hash: key.hash)) }
        }
        guard case .none = match else {
            Issue.record("found another key's response")
            return
        }
    }

    @Test(arguments: [0, 1, 32_767, 32_768, 200_000], [true, false])
    func `small bodies lie behind the head, larger ones in a memory file`(
        _ count: Int, announced: Bool
    ) throws {
        let store = CacheStore(options: .small())
        for piece in [997, Int.max] {
            let content = body(count)
            store.put("http://a/", content, announced: announced, piece: piece)
            let response = try #require(store.inMemory("http://a/").first)
            #expect(store.bytes(response) == content)
            switch response.body {
            case .contiguous: #expect(count < 32_768)
            case .file(let file):
                #expect(count >= 32_768)
                #expect(file.count == count)
            case .heap, .disk, .arriving, .parts: Issue.record("elsewhere")
            }
        }
        #expect(store.statistics().queueBytes == 0)
    }

    @Test func `a memory file is closed when the last reader releases it`() throws {
        let store = CacheStore(options: .small())
        store.put("http://a/", body(40_000))
        var response = store.inMemory("http://a/").first
        #expect(store.statistics().memoryFiles == 1)
        store.drop("http://a/")
        #expect(store.statistics().memoryFiles == 1)
        #expect(response.flatMap { store.bytes($0) } == body(40_000))
        response = nil
        #expect(store.statistics().memoryFiles == 0)
    }

    @Test func `above the limit of memory files bodies are kept in the heap`() throws {
        var options = CacheStoreOptions.small()
        options.memoryFiles = 1
        let store = CacheStore(options: options)
        store.put("http://a/", body(40_000, seed: 1))
        store.put("http://b/", body(40_000, seed: 2))
        let second = try #require(store.inMemory("http://b/").first)
        guard case .heap(let heap) = second.body else {
            Issue.record("not in the heap")
            return
        }
        #expect([UInt8](heap.bytes) == body(40_000, seed: 2))
        #expect(store.statistics().memoryFiles == 1)
    }

    @Test func `the oldest response that was not looked up makes room`() throws {
        var options = CacheStoreOptions.small()
        options.memoryBytes = 100_000
        let store = CacheStore(options: options)
        // Eight of these fit.
        for number in 0..<8 { store.put("http://a/\(number)", body(12_000)) }
        #expect(store.statistics().memoryEntries == 8)
        _ = store.inMemory("http://a/0")
        store.put("http://a/8", body(12_000))
        #expect(!store.inMemory("http://a/0").isEmpty)
        #expect(store.inMemory("http://a/1").isEmpty)
        #expect(store.statistics().memoryEvictions == 1)
        #expect(store.statistics().memoryEntries == 8)
        // With all of them in use one has to go nevertheless.
        for number in 0...8 { _ = store.inMemory("http://a/\(number)") }
        store.put("http://a/9", body(12_000))
        #expect(store.statistics().memoryEvictions == 2)
        #expect(!store.inMemory("http://a/9").isEmpty)
    }

    @Test func `bytes are accounted for exactly, and are 0 when everything is removed`() throws {
        var options = CacheStoreOptions.small()
        options.memoryShards = 16
        let store = CacheStore(options: options)
        var generator = SeededRandom(seed: 3)
        for step in 0..<3000 {
            let key = "http://a/\(Int.random(in: 0..<200, using: &generator))"
            switch step % 5 {
            case 0: store.drop(key)
            default:
                let size = Int.random(in: 0..<60_000, using: &generator)
                store.put(key, [UInt8](repeating: 1, count: size))
            }
            #expect(store.statistics().memoryBytes <= 4 << 20)
        }
        let all = (0..<200).flatMap { store.inMemory("http://a/\($0)") }
        #expect(store.statistics().memoryBytes == all.reduce(0) { $0 + $1.memoryBytes })
        #expect(store.statistics().memoryEntries == all.count)
        #expect(store.statistics().memoryEvictions > 0)
        store.purgeAll()
        #expect(store.statistics().memoryBytes == 0)
        #expect(store.statistics().memoryEntries == 0)
    }

    @Test func `an object of an eighth of the memory is kept, one byte more is not`() throws {
        var options = CacheStoreOptions.small()
        options.memoryBytes = 1 << 20
        let store = CacheStore(options: options)
        let probe = try #require(store.put("http://a/", body(20_000)).response)
        let overhead = probe.memoryBytes - 20_000
        options.memoryFileBytes = 1 << 20
        let plain = CacheStore(options: options)
        #expect(plain.put("http://a/", body(131_072 - overhead)).response != nil)
        #expect(plain.put("http://a/", body(131_072 - overhead + 1)).refusal == .tooLarge)
        // And what was stored for the key before is no longer correct.
        #expect(plain.inMemory("http://a/").isEmpty)
        #expect(plain.put("http://a/", body(131_073)).refusal == .tooLarge)
        #expect(plain.statistics().queueBytes == 0)
    }

    @Test func `with no memory and no disk everything is refused`() {
        var options = CacheStoreOptions.small()
        options.memoryBytes = 0
        let store = CacheStore(options: options)
        #expect(store.put("http://a/", body(10)).refusal != nil)
        #expect(store.inMemory("http://a/").isEmpty)
    }

    @Test func `variants are kept side by side, and one replaces only the same`() throws {
        let store = CacheStore(options: .small())
        store.put("http://a/", body(10, seed: 1), vary: vary("de"))
        store.put("http://a/", body(10, seed: 2), vary: vary("fr"))
        store.put("http://a/", body(10, seed: 3), vary: vary(nil))
        #expect(store.inMemory("http://a/").count == 3)
        store.put("http://a/", body(10, seed: 4), vary: vary("fr"))
        let found = store.inMemory("http://a/")
        #expect(found.count == 3)
        let french = try #require(found.first { $0.varyKey == vary("fr") })
        #expect(store.bytes(french) == body(10, seed: 4))
        store.remove(french)
        #expect(Set(store.inMemory("http://a/").map(\.varyKey)) == [vary("de"), .none])
        store.drop("http://a/")
        #expect(store.inMemory("http://a/").isEmpty)
    }

    @Test func `of too many variants the oldest that was not looked up is removed`() throws {
        var options = CacheStoreOptions.small()
        options.variantsPerKey = 3
        let store = CacheStore(options: options)
        for value in ["a", "b", "c"] { store.put("http://a/", body(10), vary: vary(value)) }
        store.put("http://a/", body(10), vary: vary("d"))
        #expect(
            Set(store.inMemory("http://a/").map(\.varyKey)) == [vary("b"), vary("c"), vary("d")])
        store.put("http://a/", body(10), vary: vary("e"))
        #expect(
            Set(store.inMemory("http://a/").map(\.varyKey)) == [vary("c"), vary("d"), vary("e")])
    }

    @Test func `a refused or abandoned store leaves what was there`() throws {
        let store = CacheStore(options: .small())
        store.put("http://a/", body(10, seed: 1))
        do {
            let ticket = try store.begin("http://a/", length: 100)
            #expect(body(50).withUnsafeBytes { ticket.append($0) })
            guard case .refused(.lengthMismatch) = ticket.finish() else {
                Issue.record("a truncated body was stored")
                return
            }
        }
        do {
            let ticket = try store.begin("http://a/", length: 100)
            #expect(body(101).withUnsafeBytes { !ticket.append($0) })
            #expect(ticket.refusal == .lengthMismatch)
            #expect(ticket.finish().refusal == .lengthMismatch)
        }
        do {
            let ticket = try store.begin("http://a/", length: nil)
            #expect(body(50).withUnsafeBytes { ticket.append($0) })
            ticket.abandon()
            #expect(body(50).withUnsafeBytes { !ticket.append($0) })
            #expect(ticket.finish().refusal != nil)
        }
        do {
            let ticket = try store.begin("http://a/", length: nil)
            #expect(body(50_000).withUnsafeBytes { ticket.append($0) })
        }
        #expect(store.inMemory("http://a/").map { store.bytes($0) } == [body(10, seed: 1)])
        #expect(store.statistics().queueBytes == 0)
        #expect(store.statistics().memoryFiles == 0)
    }

    @Test
    func `a head, key and Vary key of the limit are taken, one byte more is refused`() throws {
        let store = CacheStore(options: .small())
        let text = "http://a/"
        func attempt(_ total: Int) -> StoreRefusalReason? {
            let bytes = [UInt8](repeating: 65, count: total - text.utf8.count)
            do {
                try store.key(text) { key in
                    try bytes.withUnsafeBytes {
                        _ = try store.beginStore(
                            key: key, vary: .none, head: $0, metadata: metadata(head()),
                            expectedLength: 0)
                    }
                }
                return nil
            } catch {
                return error as? StoreRefusalReason
            }
        }
        #expect(attempt(EntryRecord.maximumBytes) == nil)
        #expect(attempt(EntryRecord.maximumBytes + 1) == .headTooLarge)
    }

    @Test func `what is being received is counted, and refused at the limit`() throws {
        var options = CacheStoreOptions.small()
        options.gatheringBytes = 100_000
        let store = CacheStore(options: options)
        let first = try store.begin("http://a/", length: nil)
        #expect(body(60_000).withUnsafeBytes { first.append($0) })
        let second = try store.begin("http://b/", length: nil)
        #expect(body(60_000).withUnsafeBytes { !second.append($0) })
        #expect(second.refusal == .queueFull)
        let refused = try #require(StoreRefusalReason.allCases.firstIndex(of: .queueFull))
        #expect(store.statistics().refusals[refused] == 1)
        guard case .stored = first.finish() else {
            Issue.record("the first was not stored")
            return
        }
        #expect(store.put("http://b/", body(60_000)).refusal == nil)
        #expect(store.statistics().gatheringBytes == 0)
    }

    @Test func `a small response is refused before its body, or not for want of room`() throws {
        var options = CacheStoreOptions.small()
        options.gatheringBytes = 50_000
        let store = CacheStore(options: options)
        let tickets = try (0..<3).map { try store.begin("http://a/\($0)", length: 15_000) }
        #expect(throws: StoreRefusalReason.queueFull) {
            _ = try store.begin("http://a/3", length: 15_000)
        }
        for ticket in tickets {
            #expect(body(15_000).withUnsafeBytes { ticket.append($0) })
            #expect(ticket.finish().response != nil)
        }
        #expect(store.statistics().gatheringBytes == 0)
    }
}
