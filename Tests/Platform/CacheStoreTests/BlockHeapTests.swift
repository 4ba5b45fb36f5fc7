import CLinux
import Dispatch
import Locking
import TestSupport
import Testing

@testable import CacheStore

/// A block of a heap, with contents that distinguish it from all others.
final class Marked: @unchecked Sendable {
    private var memory: BlockMemory
    private(set) var count: Int
    private let mark: UInt64

    init?(_ count: Int, _ heap: BlockHeap?, mark: UInt64) {
        guard let memory = BlockMemory(count, heap) else { return nil }
        self.memory = memory
        self.count = count
        self.mark = mark
        write(from: 0)
    }

    var capacity: Int { memory.capacity }
    var address: Int { Int(bitPattern: memory.base) }

    /// Each word holds the mark and its position.
    private func write(from word: Int) {
        let (base, first) = (memory.base, mark &* 0x9E37_79B9_7F4A_7C15)
        var index = word
        while index < count / 8 {
            base.storeBytes(
                of: first &+ UInt64(index), toByteOffset: index * 8, as: UInt64.self)
            index += 1
        }
    }

    /// Whether its first words, or all of them, are what was written.
    func isIntact(words: Int = .max) -> Bool {
        let (base, first) = (memory.base, mark &* 0x9E37_79B9_7F4A_7C15)
        let end = min(words, count / 8)
        var index = 0
        while index < end {
            let word = base.load(fromByteOffset: index * 8, as: UInt64.self)
            guard word == first &+ UInt64(index) else { return false }
            index += 1
        }
        return true
    }

    func resize(to count: Int) -> Bool {
        guard memory.resize(to: count) else { return false }
        let before = self.count
        self.count = count
        if count > before { write(from: before / 8) }
        return true
    }

    func trim(to count: Int) {
        memory.trim(to: count)
        self.count = min(self.count, count)
    }
}

@Suite("The heap of stored responses")
struct BlockHeapTests {
    private static let mib = 1 << 20

    @Test(
        arguments: [
            (0, 0), (1, 0), (4095, 0), (4096, 4096), (4097, 4608), (16_700, 16_896),
            (262_144, 262_144), (262_145, 0), (5_000_000, 0),
        ])
    func `blocks from 4 KiB to 256 KiB are the heap's, in whole units`(bytes: Int, used: Int) throws
    {
        let heap = BlockHeap(limit: 64 << 20)
        let block = try #require(Marked(bytes, heap, mark: 1))
        #expect(heap.usedBytes == used)
        #expect(heap.slabCount == (used > 0 ? 1 : 0))
        #expect(block.capacity == max(bytes, used))
        #expect(block.isIntact())
        withExtendedLifetime(block) {}
    }

    @Test func `without a heap all is malloc's`() throws {
        let block = try #require(Marked(20_000, nil, mark: 1))
        #expect(block.resize(to: 100))
        #expect(block.resize(to: 300_000))
        #expect(block.isIntact())
        #expect(block.capacity == 300_000)
    }

    @Test func `slabs begin at a huge page`() throws {
        let heap = BlockHeap(limit: 64 << 20)
        let blocks = try (0..<24).map { try #require(Marked(256 << 10, heap, mark: $0)) }
        #expect(heap.slabCount == 3)
        for block in blocks { #expect(block.address % (256 << 10) == 0) }
    }

    @Test func `a block shrinks and grows in place while there is room behind it`() throws {
        let heap = BlockHeap(limit: 64 << 20)
        let block = try #require(Marked(8192, heap, mark: 1))
        let place = block.address
        #expect(block.resize(to: 200_000))
        #expect(block.address == place)
        block.trim(to: 10_000)
        #expect(block.address == place)
        #expect(block.capacity == 10_240)
        #expect(heap.usedBytes == 10_240)
        let neighbour = try #require(Marked(4096, heap, mark: 2))
        #expect(neighbour.address == place + 10_240)
        #expect(block.resize(to: 10_240))
        #expect(block.address == place)
        #expect(block.resize(to: 10_241))
        #expect(block.address != place)
        #expect(heap.usedBytes == 10_752 + 4096)
        #expect(block.isIntact() && neighbour.isIntact())
    }

    @Test func `a block that leaves the heap's sizes moves to malloc and back`() throws {
        let heap = BlockHeap(limit: 64 << 20)
        let block = try #require(Marked(100, heap, mark: 1))
        #expect(heap.usedBytes == 0)
        for (bytes, used) in [(5000, 5120), (300_000, 0), (200_000, 200_192), (4095, 0)] {
            #expect(block.resize(to: bytes))
            #expect(heap.usedBytes == used)
            #expect(block.isIntact())
        }
    }

    @Test func `empty slabs go back to the system, but for one`() throws {
        let heap = BlockHeap(limit: 64 << 20)
        var blocks = try (0..<80).map { try #require(Marked(256 << 10, heap, mark: $0)) }
        #expect(heap.slabCount == 10)
        #expect(heap.residentBytes == 20 * Self.mib)
        blocks.removeFirst(40)
        #expect(heap.slabCount == 6)
        blocks = []
        #expect(heap.slabCount == 1)
        #expect(heap.usedBytes == 0)
        let block = try #require(Marked(4096, heap, mark: 1))
        #expect(heap.slabCount == 1)
        withExtendedLifetime(block) {}
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `whichever blocks are added, removed, shrunk and grown, each keeps its contents`(
        seed: UInt64
    ) throws {
        var generator = SeededRandom(seed: seed)
        let heap = BlockHeap(limit: 16 << 20)
        var blocks: [Marked] = []
        for round in 0..<20_000 {
            let most = Bool.random(using: &generator) ? 20_000 : 300_000
            let count = Int.random(in: 1...most, using: &generator) & ~7
            let index = blocks.indices.randomElement(using: &generator)
            switch (Int.random(in: 0..<8, using: &generator), index) {
            case (0..<3, _), (_, nil):
                blocks.append(try #require(Marked(count, heap, mark: UInt64(round))))
            case (3, let index?): #expect(blocks[index].resize(to: count))
            case (4, let index?):
                blocks[index].trim(to: min(count, blocks[index].count))
            case (5, _) where round % 8 == 0: heap.releaseIdlePages()
            case (_, let index?):
                let block = blocks.remove(at: index)
                #expect(block.isIntact(), "round \(round)")
            }
            if blocks.count > 200 {
                #expect(blocks.allSatisfy { $0.isIntact(words: 4) })
                blocks.removeFirst(100)
            }
        }
        #expect(blocks.allSatisfy { $0.isIntact() })
        let expected = blocks.reduce(0) {
            $0 + (BlockHeap.units($1.count) == nil ? 0 : $1.capacity)
        }
        #expect(heap.usedBytes == expected)
        blocks = []
        #expect(heap.usedBytes == 0)
        #expect(heap.slabCount == 1)
    }

    @Test func `blocks that one thread takes are freed by another`() {
        let heap = BlockHeap(limit: 16 << 20)
        let passed = Locked<[Marked]>([])
        let damaged = Locked(0)
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            var generator = SeededRandom(seed: UInt64(thread))
            for round in 0..<5000 {
                let count = Int.random(in: 4096...40_000, using: &generator)
                let mark = UInt64(thread) << 32 | UInt64(round)
                guard let block = Marked(count, heap, mark: mark) else { continue }
                let other = passed.withLock { passed -> Marked? in
                    passed.append(block)
                    guard passed.count > 100 else { return nil }
                    return passed.remove(at: Int.random(in: 0..<100, using: &generator))
                }
                if let other, !other.isIntact() { damaged.withLock { $0 += 1 } }
                if round % 500 == 0 { heap.releaseIdlePages() }
            }
        }
        #expect(damaged.withLock { $0 } == 0)
        #expect(passed.withLock { $0.allSatisfy { $0.isIntact() } })
        passed.withLock { $0 = [] }
        #expect(heap.usedBytes == 0)
        #expect(heap.slabCount == 1)
    }
}
