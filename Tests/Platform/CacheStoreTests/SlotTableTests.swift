import TestSupport
import Testing

@testable import CacheStore

private struct Slot: TableSlot {
    var keyHash: UInt64 = 0
    var number = -1
    var weight: Int64 = 1
    var uses = SlotUses()
    var newer: Int32 = -1
    var older: Int32 = -1
    var chain: Int32 = -1

    init() {}
    init(_ keyHash: UInt64, _ number: Int) {
        self.keyHash = keyHash
        self.number = number
    }
}

@Suite("A table that grows step by step")
struct SlotTableTests {
    private func numbers(_ hash: UInt64, in table: SlotTable<Slot>) -> [Int] {
        var found: [Int] = []
        var slot = table.start(hash)
        while slot >= 0 {
            if table[slot].keyHash == hash { found.append(table[slot].number) }
            slot = table[slot].chain
        }
        return found
    }

    @Test(arguments: [0, 63, 64, 1000, 50_000])
    func `finds what was inserted and not removed, the latest first`(_ expected: Int) {
        var table = SlotTable<Slot>(expecting: expected)
        var model: [UInt64: [(number: Int, slot: Int32)]] = [:]
        var generator = SeededRandom(seed: 5)
        for number in 0..<30_000 {
            // Few hashes with many slots each, and many with one.
            let hash =
                number % 3 == 0
                ? UInt64.random(in: 0..<50, using: &generator) : generator.next()
            if number % 7 == 6, var same = model[hash] ?? model.randomElement()?.value {
                let removed = same.remove(at: Int.random(in: 0..<same.count, using: &generator))
                let slot = table.remove(removed.slot)
                #expect(slot.number == removed.number)
                model[slot.keyHash] = same.isEmpty ? nil : same
            } else {
                let slot = table.insert(Slot(hash, number))
                model[hash, default: []].insert((number, slot), at: 0)
            }
        }
        #expect(table.count == model.values.reduce(0) { $0 + $1.count })
        for (hash, same) in model {
            let isRight = numbers(hash, in: table) == same.map(\.number)
            guard isRight else {
                Issue.record("differs from the model")
                return
            }
        }
        var evicted = 0
        while case let slot = table.victim(of: 1, except: { _ in false }), slot >= 0 {
            _ = table.remove(slot)
            evicted += 1
        }
        #expect(evicted == model.values.reduce(0) { $0 + $1.count } && table.count == 0)
    }

    @Test func `has short chains at every size`() {
        var table = SlotTable<Slot>()
        var generator = SeededRandom(seed: 6)
        var hashes: [UInt64] = []
        var checkAt = 100
        for number in 0..<100_000 {
            let hash = generator.next()
            hashes.append(hash)
            _ = table.insert(Slot(hash, number))
            guard number == checkAt else { continue }
            checkAt = checkAt * 5 / 4
            var steps = 0
            for hash in hashes {
                var slot = table.start(hash)
                while slot >= 0, table[slot].keyHash != hash {
                    slot = table[slot].chain
                    steps += 1
                }
            }
            // Half a step more than to the first one, as with three slots in four buckets.
            #expect(Double(steps) / Double(hashes.count) < 0.6, "\(hashes.count)")
        }
    }
}
