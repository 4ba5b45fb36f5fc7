import TestSupport
import Testing

@testable import CacheStore

@Suite("The index of the disk")
struct IndexTableTests {
    private func entry(_ id: Int64, _ hash: UInt64, bytes: Int64 = 256) -> IndexSlot {
        var entry = IndexSlot()
        entry.id = id
        entry.keyHash = hash
        entry.units = UInt32(bytes / IndexSlot.unitBytes)
        return entry
    }

    @Test func `an entry takes 48 bytes`() { #expect(MemoryLayout<IndexSlot>.stride == 48) }

    @Test func `the table does what a plain list does, through thousands of random steps`() {
        struct Known {
            let id: Int64
            let hash: UInt64
            let bytes: Int64
            let token: IndexToken
        }
        var table = IndexTable()
        // Least recently used first.
        var model: [Known] = []
        var generator = SeededRandom(seed: 1)
        var nextID: Int64 = 1
        for _ in 0..<20_000 {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<5:
                let hash = UInt64.random(in: 0..<300, using: &generator)
                let bytes = Int64.random(in: 0..<20, using: &generator) * 256
                let token = table.insert(entry(nextID, hash, bytes: bytes))
                model.append(Known(id: nextID, hash: hash, bytes: bytes, token: token))
                nextID += 1
            case 5..<8 where !model.isEmpty:
                let known = model.remove(
                    at: Int.random(in: 0..<model.count, using: &generator))
                #expect(table.isLive(known.token))
                table.touch(known.token.slot)
                model.append(known)
            case _ where model.count > 200 || (!model.isEmpty && Bool.random(using: &generator)):
                let known = model.remove(
                    at: Int.random(in: 0..<model.count, using: &generator))
                #expect(table.remove(known.token.slot).id == known.id)
                #expect(!table.isLive(known.token))
            default: break
            }
            var isRight = table.count == model.count
            isRight = isRight && table.bytes == model.reduce(0) { $0 + $1.bytes }
            if let oldest = model.first, let newest = model.last {
                isRight = isRight && table[table.oldest].id == oldest.id
                isRight = isRight && table[table.newest].id == newest.id
            }
            guard isRight else {
                Issue.record("differs from the model")
                return
            }
        }
        for hash in 0..<300 as Range<UInt64> {
            var found: Set<Int64> = []
            var slot = table.first(hash)
            while slot >= 0 {
                found.insert(table[slot].id)
                slot = table.next(slot)
            }
            #expect(found == Set(model.filter { $0.hash == hash }.map(\.id)))
        }
        var order: [Int64] = []
        var slot = table.oldest
        while slot >= 0 {
            order.append(table[slot].id)
            slot = table.newer(slot)
        }
        #expect(order == model.map(\.id))
    }

    @Test func `a token does not name the entry that took over its slot`() {
        var table = IndexTable()
        let first = table.insert(entry(1, 5))
        table.remove(first.slot)
        let second = table.insert(entry(2, 5))
        #expect(second.slot == first.slot)
        #expect(!table.isLive(first))
        #expect(table.isLive(second))
        #expect(!table.isLive(.none))
    }
}
