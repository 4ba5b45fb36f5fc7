import CachePolicy
import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

/// What two threads do to one response, step by step: the test is the writer, and does itself what
/// follows a change when the lock of the key is free.
@Suite("Changes of the disk tier, and what follows them without the lock")
struct DiskIntakeTests {
    /// A disk tier without threads and without entries.
    private func tier(_ change: (inout CacheStoreOptions) -> Void = { _ in }) -> DiskTier {
        var options = CacheStoreOptions.small()
        options.diskBytes = 64 << 20
        options.queueBytes = 100_000
        options.batchMilliseconds = 0
        change(&options)
        let tier = DiskTier(options: options) { _ in }
        tier.queue.open()
        _ = tier.index.begin(
            DiskIndex.Contents(seed: 1, table: IndexTable(), lastID: 0))
        return tier
    }

    /// Responses of one variant, which no level has.
    private func responses(_ count: Int) throws -> [CachedResponse] {
        let store = CacheStore(options: .small())
        defer { store.close() }
        return try (0..<count).map {
            try #require(store.put("http://a/", body(100, seed: $0)).response)
        }
    }

    /// Takes what is queued; as if the rows had been written.
    private func write(_ tier: DiskTier) -> [DiskOperation] {
        guard case .operations(let operations) = tier.queue.take(until: 0) else { return [] }
        for case .row(let response, _, let reserved) in operations {
            tier.index.committed([response.token])
            tier.budget.release(reserved)
        }
        return operations
    }

    @Test func `a response that leaves memory while its storing is carried out has one row`()
        throws
    {
        let (tier, responses) = (tier(), try responses(2))
        let (old, new) = (responses[0], responses[1])
        var first = LevelWork()
        #expect(tier.store(old, isInMemory: true, &first) == nil)
        first.perform()
        #expect(write(tier).count == 1)
        // One thread stores it while the queue is full,
        #expect(tier.budget.reserve(tier.budget.limit))
        var storing = LevelWork()
        #expect(tier.store(new, isInMemory: true, &storing) == .queueFull)
        tier.budget.release(tier.budget.limit)
        // and another evicts it before that one continues.
        var leaving = LevelWork()
        tier.leaveMemory(new, wasUsed: true, &leaving)
        leaving.perform()
        storing.perform()
        var (written, removed) = (0, [Removal]())
        for operation in write(tier) {
            switch operation {
            case .row(let response, let superseded, _):
                #expect(response === new)
                written += 1
                removed += superseded
            case .remove(let removals): removed += removals
            default: Issue.record("\(operation)")
            }
        }
        #expect(written == 1)
        #expect(removed == [Removal(id: old.token.id, body: .none)])
        #expect(tier.holds(new))
        #expect(tier.budget.bytes == 0)
    }

    @Test func `a purge while the database is being closed empties it when it is back`() {
        let tier = tier()
        _ = tier.queue.reset()
        tier.purge()
        tier.index.turnOff(.locked)
        let contents = DiskIndex.Contents(seed: 1, table: IndexTable(), lastID: 5)
        #expect(tier.index.begin(contents) == nil)
    }

    @Test func `a 304 that arrives while the tier is being closed takes nothing away`() throws {
        let folder = TemporaryFolder()
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 0
        options.wholeBodyBytes = 100_000
        options.batchMilliseconds = 60_000
        var store = CacheStore(options: options).ready()
        store.put("http://a/", body(400_000))
        store.flushNow()
        let old = try #require(store.found("http://a/").first)
        // Its row is still queued when the tier is closed.
        let current = try store.confirm(old, policy: 1)
        store.disk.index.stopAdmitting()
        #expect(throws: StoreRefusalReason.superseded) {
            _ = try store.confirm(current, policy: 2)
        }
        store.close()
        #expect(store.statistics().queueBytes == 0)
        store = CacheStore(options: options).ready()
        #expect(store.found("http://a/").map(\.policy) == [1])
        #expect(store.foundBodies("http://a/") == [body(400_000)])
        store.close()
    }
}
