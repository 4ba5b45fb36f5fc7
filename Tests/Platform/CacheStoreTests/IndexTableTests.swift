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

    @Test func `an entry takes 40 bytes`() { #expect(MemoryLayout<IndexSlot>.stride == 40) }

    @Test func `what shares a word in an entry does not change what is beside it`() {
        var generator = SeededRandom(seed: 3)
        for _ in 0..<1000 {
            var slot = IndexSlot()
            let id = Int64.random(in: 0...IndexSlot.largestID, using: &generator)
            let flags = IndexFlags(rawValue: UInt8.random(in: 0..<16, using: &generator))
            let uses = SlotUses(bits: UInt8.random(in: 0..<8, using: &generator))
            let names = UInt16.random(in: 0...VaryNamesTable.unknown, using: &generator)
            for step in [0, 1, 2, 3].shuffled(using: &generator) {
                switch step {
                case 0: slot.id = id
                case 1: slot.flags = flags
                case 2: slot.uses = uses
                default: slot.names = names
                }
            }
            #expect(slot.id == id && slot.flags == flags && slot.names == names)
            #expect(slot.uses.bits == uses.bits)
        }
    }

    @Test func `what was read in the order of ids is evicted in that of the last use`() {
        var table = IndexTable()
        var generator = SeededRandom(seed: 9)
        var model: [(accessed: UInt32, id: Int64)] = []
        for id in 1...5000 as ClosedRange<Int64> {
            var slot = entry(id, UInt64.random(in: 0 ... .max, using: &generator))
            // Many in the same second, and all of the number's digits.
            slot.accessed = UInt32.random(in: 0..<700, using: &generator) &* 6_135_667
            slot.flags = .committed
            model.append((slot.accessed, id))
            Array("accept".utf8).withUnsafeBytes {
                table.insertUnordered(slot, varyNames: $0)
            }
        }
        table.orderByAge()
        #expect(table.count == 5000 && table.varyNames.count == 1)
        var evicted: [Int64] = []
        while case let slot = table.victim(), slot >= 0 { evicted.append(table.remove(slot).id) }
        model.sort { ($0.accessed, $0.id) < ($1.accessed, $1.id) }
        #expect(evicted == model.map(\.id))
        var empty = IndexTable()
        empty.orderByAge()
        #expect(empty.victim() == -1)
    }

    @Test func `the table does what a plain list does, through thousands of random steps`() {
        struct Known {
            let id: Int64
            let hash: UInt64
            let bytes: Int64
            let token: IndexToken
        }
        var table = IndexTable()
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
                let known = model[Int.random(in: 0..<model.count, using: &generator)]
                #expect(table.isLive(known.token))
                table.countUse(of: known.token.slot)
            case _ where model.count > 200 || (!model.isEmpty && Bool.random(using: &generator)):
                let known = model.remove(
                    at: Int.random(in: 0..<model.count, using: &generator))
                #expect(table.remove(known.token.slot).id == known.id)
                #expect(!table.isLive(known.token))
            default: break
            }
            let isRight =
                table.count == model.count
                && table.bytes == model.reduce(0) { $0 + $1.bytes }
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
        // Each is evicted once, and nothing that is not committed.
        let committed = model.filter { $0.id % 3 > 0 }
        for known in committed { table.setFlags(known.token.slot, .committed) }
        var evicted: [Int64] = []
        while case let slot = table.victim(), slot >= 0 { evicted.append(table.remove(slot).id) }
        #expect(evicted.sorted() == committed.map(\.id).sorted())
        #expect(table.count == model.count - committed.count)
    }

    @Test func `what memory has is spared as long as there is something else`() {
        var table = IndexTable()
        let tokens = (1...20).map { table.insert(entry($0, UInt64($0))) }
        for (number, token) in tokens.enumerated() {
            table.setFlags(token.slot, number % 2 == 0 ? .committed : [.committed, .resident])
        }
        var evicted: [Int64] = []
        while case let slot = table.victim(), slot >= 0 { evicted.append(table.remove(slot).id) }
        #expect(evicted.prefix(10).allSatisfy { $0 % 2 == 1 })
        #expect(evicted.count == 20)
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
