import CachePolicy
import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

/// A body that streams into several levels, each of which may refuse it.
@Suite("The streams of one body into the levels")
struct LevelStreamsTests {
    /// A level for bodies of up to 1 MB whose queue of 300 kB is more than half full, and a large
    /// one; without threads.
    private func levels() -> (small: DiskTier, large: DiskTier) {
        func tier(largest: Int64, queue: Int) -> DiskTier {
            var options = CacheStoreOptions.small()
            options.diskBytes = 2 * largest
            options.queueBytes = queue
            options.batchMilliseconds = 0
            let tier = DiskTier(options: options) { _ in }
            tier.queue.open()
            _ = tier.index.begin(
                DiskIndex.Contents(seed: 1, table: IndexTable(), lastID: 0))
            return tier
        }
        let small = tier(largest: 1_000_000, queue: 300_000)
        #expect(small.budget.reserve(200_000))
        return (small, tier(largest: 32_000_000, queue: 32_000_000))
    }

    private func begin(_ streams: inout LevelStreams, bytes: UInt64) {
        let key = CacheKeyView(
            bytes: UnsafeRawBufferPointer(start: nil, count: 0), hash: 0)
        let arriving = ArrivingResponse(
            key: key, varyKey: .none, textBytes: 100, expectedLength: bytes)
        streams.begin(arriving, atLeast: bytes) { _ in }
    }

    @Test func `a level that would refuse the body at its end does not receive it`() {
        let (small, large) = levels()
        var streams = LevelStreams([small, large])
        begin(&streams, bytes: 2_000_000)
        #expect(!streams.isEmpty)
        #expect(small.queue.depth == 0)
        #expect(large.queue.depth == 1)
        #expect(streams.refusal == .tooLarge)
        #expect(!streams.canBegin)
        streams.abandon()
    }

    @Test func `only a level that receives the body can be too far behind for it`() {
        let (small, large) = levels()
        var streams = LevelStreams([small, large])
        #expect(streams.isCongested)
        begin(&streams, bytes: 2_000_000)
        #expect(!streams.isCongested)
        streams.abandon()
        streams = LevelStreams([small, large])
        begin(&streams, bytes: 900_000)
        #expect(streams.isCongested)
        streams.abandon()
    }

    @Test func `that one level is too small for it is no reason if another is full`() {
        let (small, large) = levels()
        #expect(large.budget.reserve(32_000_000))
        var streams = LevelStreams([small, large])
        begin(&streams, bytes: 2_000_000)
        #expect(streams.isEmpty)
        #expect(streams.refusal == .queueFull)
    }
}
