import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

/// A disk that is slower than the arrivals: its writer waits for a minute before each batch, unless
/// configured not to.
@Suite("When the disk is behind")
struct DiskBehindTests {
    private let folder = TemporaryFolder()

    private func options() -> CacheStoreOptions {
        var options = CacheStoreOptions.small(folder)
        options.queueBytes = 200_000
        options.batchMilliseconds = 60_000
        return options
    }

    @Test func `memory accepts a response whatever is queued for the disk`() {
        let store = CacheStore(options: options()).ready()
        for number in 0..<40 {
            #expect(store.put("http://a/\(number)", body(30_000, seed: number)).response != nil)
        }
        for number in 0..<40 {
            let kept = store.inMemory("http://a/\(number)")
            #expect(kept.map { store.bytes($0) } == [body(30_000, seed: number)])
        }
        let figures = store.statistics()
        #expect(figures.refusals.allSatisfy { $0 == 0 })
        #expect(figures.queueBytes <= 200_000)
        #expect(figures.diskEntries == figures.queueDepth)
        #expect(figures.diskSkipped == UInt64(40 - figures.queueDepth))
        #expect(figures.gatheringBytes == 0)
        store.close()
    }

    @Test func `what was passed over is written when the disk has caught up`() {
        var options = options()
        options.batchMilliseconds = 100
        let store = CacheStore(options: options).ready()
        for number in 0..<40 { store.put("http://a/\(number)", body(30_000, seed: number)) }
        #expect(store.statistics().diskSkipped > 0)
        #expect(eventually { store.statistics().diskEntries == 40 })
        // What waits for the writer counts, and closing waits only so long.
        store.flushNow()
        store.close()
        let again = CacheStore(options: options).ready()
        for number in 0..<40 {
            let found = again.loaded("http://a/\(number)")
            #expect(found.map { again.bytes($0) } == [body(30_000, seed: number)])
        }
        again.close()
    }

    @Test func `a large body is kept in memory alone when its stream is given up`() throws {
        var options = options()
        options.memoryBytes = 32 << 20
        options.wholeBodyBytes = 100_000
        let store = CacheStore(options: options).ready()
        let content = body(900_000)
        let ticket = try store.begin("http://a/", length: 900_000)
        #expect(content.withUnsafeBytes { ticket.append($0) })
        guard case .stored = ticket.finish() else {
            Issue.record("not stored")
            return
        }
        #expect(store.inMemory("http://a/").map { store.bytes($0) } == [content])
        #expect(store.statistics().diskSkipped == 1)
        store.flushNow()
        #expect(store.statistics().queueBytes == 0)
        #expect(store.statistics().diskEntries == 0)
        #expect(store.statistics().stagingBytes == 0)
        store.close()
    }

    @Test func `without a disk a store is refused for that, and nothing counts as passed over`() {
        var options = options()
        options.memoryBytes = 32 << 20
        options.wholeBodyBytes = 100_000
        let store = CacheStore(withoutThreads: options, onEvent: { _ in })
        #expect(throws: StoreRefusalReason.diskOff) {
            try store.begin("http://a/", length: 20 << 20)
        }
        let ticket = try? store.begin("http://a/", length: nil)
        let piece = body(1 << 20)
        while piece.withUnsafeBytes({ ticket?.append($0) ?? false }) {}
        #expect(ticket?.refusal == .diskOff)
        for number in 0..<40 { store.put("http://a/\(number)", body(30_000, seed: number)) }
        #expect(store.statistics().diskSkipped == 0)
        store.close()
    }

    @Test func `what memory alone has is written when it leaves memory`() {
        var options = options()
        options.memoryBytes = 1 << 20
        let store = CacheStore(options: options).ready()
        for number in 0..<20 { store.put("http://a/\(number)", body(30_000, seed: number)) }
        let behind = store.statistics()
        #expect(behind.diskSkipped > 0 && behind.memoryEvictions == 0)
        store.flushNow()
        let early = store.statistics().diskEntries
        // They leave memory one after the other, and the disk keeps up.
        for number in 0..<40 {
            store.put("http://b/\(number)", body(30_000, seed: 100 + number))
            store.flushNow()
        }
        #expect(store.statistics().memoryEvictions > 0)
        #expect(store.statistics().diskEntries > early)
        for number in 0..<20 {
            let url = "http://a/\(number)"
            let found = store.inMemory(url).isEmpty ? store.loaded(url) : store.inMemory(url)
            #expect(found.map { store.bytes($0) } == [body(30_000, seed: number)])
        }
        store.close()
    }

    @Test func `what leaves memory for the disk is found by an invalidation and by a store`() {
        var options = options()
        options.memoryBytes = 1 << 20
        options.queueBytes = 4 << 20
        options.diskBytes = 0
        // At first without a disk: what is stored has no row.
        options.diskBytes = 64 << 20
        let store = CacheStore(withoutThreads: options, onEvent: { _ in })
        for number in 0..<20 { store.put("http://a/\(number)", body(30_000, seed: number)) }
        #expect(store.statistics().diskEntries == 0)
        store.disk.start()
        _ = store.ready()
        for number in 0..<40 { store.put("http://b/\(number)", body(30_000)) }
        let left = (0..<20).filter { store.inMemory("http://a/\($0)").isEmpty }
        #expect(left.count > 2)
        for number in left { #expect(store.key("http://a/\(number)") { store.diskMayHold($0) }) }
        store.drop("http://a/\(left[0])")
        store.put("http://a/\(left[1])", body(100, seed: 9))
        store.flushNow()
        #expect(!store.key("http://a/\(left[0])") { store.diskMayHold($0) })
        #expect(store.loaded("http://a/\(left[0])").isEmpty)
        #expect(
            store.loaded("http://a/\(left[1])").map { store.bytes($0) } == [body(100, seed: 9)])
        #expect(query(folder.database, "SELECT count(*) FROM entry WHERE id > 0") ?? 0 > 0)
        #expect(store.statistics().queueBytes == 0)
        store.close()
    }
}
