import TestSupport
import Testing

@testable import CacheStore

/// The order in which a full cache evicts.
enum Leaving: String, Sendable, CaseIterable {
    /// Whatever has been there the longest.
    case oldest
    /// Anything.
    case any
    /// The oldest, except that seven times out of ten it was requested in the meantime.
    case unused
}

/// Sizes of stored responses.
enum SizeMix: String, Sendable, CaseIterable {
    case even, fewLarge, powers, small, growing, alternating

    func size(_ store: Int, of stores: Int, _ generator: inout SeededRandom) -> Int {
        switch self {
        case .even: return Int.random(in: 4096...65_536, using: &generator)
        case .fewLarge: return Int.random(in: 0..<4, using: &generator) > 0 ? 4500 : 50_000
        case .powers: return 4096 << Int.random(in: 0..<5, using: &generator) + 300
        case .small: return Int.random(in: 4096...33_000, using: &generator)
        case .growing:
            return 4096 + 60_000 * store / stores + Int.random(in: 0..<4096, using: &generator)
        case .alternating:
            return store / (stores / 10) % 2 == 0
                ? Int.random(in: 4608..<8192, using: &generator)
                : Int.random(in: 32_768..<65_536, using: &generator)
        }
    }
}

@Suite("Memory of the heap beyond what its blocks take")
struct HeapFragmentationTests {
    private static let limit = 64 << 20

    /// Stores and evicts as a memory tier of `limit` bytes does, without contents. Returns the
    /// maximum size of the heap, in bytes. 64 MiB hold 2,000 to 15,000 of them.
    private func peak(
        _ mix: SizeMix, _ leaving: Leaving, _ heap: BlockHeap, stores: Int = 30_000
    ) throws -> Int {
        var generator = SeededRandom(seed: 7)
        var queue = BlockQueue()
        var peak = 0
        for store in 0..<stores {
            let bytes = mix.size(store, of: stores, &generator)
            queue.append(try #require(StoredBlock(bytes, heap)))
            while heap.usedBytes > Self.limit {
                switch leaving {
                case .oldest: queue.removeOldest()
                case .any: queue.remove(Int.random(in: 0..<queue.count, using: &generator))
                case .unused:
                    while Int.random(in: 0..<10, using: &generator) < 7 { queue.renewOldest() }
                    queue.removeOldest()
                }
            }
            peak = max(peak, heap.residentBytes)
        }
        return peak
    }

    @Test(
        arguments: [SizeMix.even, .fewLarge, .powers, .small], Leaving.allCases)
    func `sizes mixed at random leave little between the blocks`(mix: SizeMix, leaving: Leaving)
        throws
    {
        let heap = BlockHeap(limit: Self.limit)
        let peak = try peak(mix, leaving, heap)
        #expect(peak <= Self.limit * 9 / 8, "\(Double(peak) / Double(Self.limit))")
        #expect(heap.residentBytes == heap.slabCount * Slab.bytes)
    }

    @Test func `no more remains between them in the long run`() throws {
        let heap = BlockHeap(limit: Self.limit)
        #expect(try peak(.even, .any, heap, stores: 200_000) <= Self.limit * 9 / 8)
        #expect(heap.residentBytes == heap.slabCount * Slab.bytes)
    }

    @Test(arguments: [SizeMix.growing, .alternating], Leaving.allCases)
    func `when the sizes change, the heap stays within a quarter more`(
        mix: SizeMix, leaving: Leaving
    ) throws {
        let heap = BlockHeap(limit: Self.limit)
        let peak = try peak(mix, leaving, heap)
        #expect(
            peak <= Self.limit * 5 / 4 + 2 * Slab.bytes, "\(Double(peak) / Double(Self.limit))")
    }

    @Test func `what remains after many frees is returned on demand`() throws {
        let heap = BlockHeap(limit: Self.limit)
        var blocks: [StoredBlock] = []
        for _ in 0..<4096 { blocks.append(try #require(StoredBlock(16_384, heap))) }
        #expect(heap.residentBytes == Self.limit)
        // Of every eight one stays, so that no slab becomes empty.
        blocks = blocks.enumerated().filter { $0.offset % 8 == 0 }.map(\.element)
        #expect(heap.slabCount == 32)
        while heap.releaseIdlePages() {}
        #expect(heap.residentBytes <= heap.usedBytes + Self.limit / 4)
        #expect(heap.slabCount == 32)
        // And is available again for the next.
        for _ in 0..<3500 { blocks.append(try #require(StoredBlock(16_384, heap))) }
        #expect(heap.slabCount == 32)
    }
}

/// A block without contents.
private final class StoredBlock {
    private let memory: BlockMemory
    init?(_ bytes: Int, _ heap: BlockHeap) {
        guard let memory = BlockMemory(bytes, heap) else { return nil }
        self.memory = memory
    }
}

/// Blocks by age.
private struct BlockQueue {
    private var blocks: [StoredBlock?] = []
    private var first = 0
    private(set) var count = 0

    mutating func append(_ block: StoredBlock) {
        blocks.append(block)
        count += 1
    }

    /// Removes the oldest.
    @discardableResult
    mutating func removeOldest() -> StoredBlock? {
        let block = blocks[first]
        blocks[first] = nil
        first += 1
        count -= 1
        if first > 10_000 {
            blocks.removeFirst(first)
            first = 0
        }
        return block
    }

    mutating func renewOldest() {
        guard let block = removeOldest() else { return }
        append(block)
    }

    /// Removes the one at `index` by age, and puts the oldest in its position.
    mutating func remove(_ index: Int) {
        guard let oldest = removeOldest(), index > 0 else { return }
        blocks[first + index - 1] = oldest
    }
}
