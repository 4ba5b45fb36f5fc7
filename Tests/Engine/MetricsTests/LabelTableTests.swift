import Testing

@testable import PinfoldMetrics

@Suite("Label tables")
struct LabelTableTests {
    private func labels(_ prefix: String, _ count: Int) -> [String] {
        (0..<count).map { "\(prefix)\($0)" }
    }

    @Test func `there is room for all names of a configuration`() {
        var table = LabelTable()
        let names = labels("host", 3000)
        let indexes = table.indexes(for: names)
        table.activate(names)
        #expect(Set(indexes).count == 3000)
        #expect(!indexes.contains(.other))
        #expect(table.inForce.map(\.label) == names)
        #expect(zip(indexes, names).allSatisfy { table[$0] == $1 })
    }

    @Test func `a name keeps its index over a reload, wherever it stands`() {
        var table = LabelTable(["a", "b"])
        let before = table.indexes(for: ["a", "b"])
        let after = table.indexes(for: ["c", "b", "a"])
        table.activate(["c", "b", "a"])
        #expect([after[2], after[1]] == before)
        #expect(table.inForce.map(\.label) == ["a", "b", "c"])
    }

    @Test func `equal names are one`() {
        var table = LabelTable()
        let indexes = table.indexes(for: ["a", "a", "b"])
        #expect(indexes[0] == indexes[1])
        #expect(indexes[0] != indexes[2])
    }

    @Test func `a name that is removed is no longer in force, and continues if it is back`() {
        var table = LabelTable(["a", "b"])
        let index = table.indexes(for: ["a"])[0]
        table.activate(["b"])
        #expect(table.inForce.map(\.label) == ["b"])
        #expect(table[index] == "a")
        #expect(table.indexes(for: ["a", "b"])[0] == index)
        table.activate(["a", "b"])
        #expect(table.inForce.map(\.label) == ["a", "b"])
    }

    @Test func `however often all names change, twice as many slots are enough`() {
        var table = LabelTable(labels("round0-", 100))
        var slots: Set<UInt32> = []
        for round in 1...50 {
            let names = labels("round\(round)-", 100)
            slots.formUnion(table.indexes(for: names).map(\.slot))
            table.activate(names)
            #expect(table.inForce.count == 100)
        }
        #expect(slots.count <= 200)
        #expect(table.names.count <= 201)
    }

    @Test func `a configuration that does not come into force keeps no slots`() {
        var table = LabelTable(["a"])
        for round in 0..<100 { _ = table.indexes(for: labels("refused\(round)-", 50)) }
        #expect(table.inForce.map(\.label) == ["a"])
        #expect(table.names.count <= 2 + 50 + LabelTable.retainedLabels + 50)
    }

    @Test func `a slot that is given to another name no longer counts for the former one`() throws {
        var table = LabelTable(["first"])
        let first = table.indexes(for: ["first"])[0]
        var successor: LabelIndex?
        for round in 0..<10 where successor == nil {
            let names = labels("round\(round)-", LabelTable.retainedLabels)
            successor = table.indexes(for: names).first { $0.slot == first.slot }
            table.activate(names)
        }
        let index = try #require(successor)
        #expect(index.use == first.use + 1)
        #expect(table[first] == "other")
        #expect(table[index] != "first")
        // The name gets another slot when it returns.
        let again = table.indexes(for: ["first"])[0]
        #expect(again != first)
        #expect(table[again] == "first")
    }

    @Test func `no reload removes permanent names, nor reuses what is still needed`() {
        var table = LabelTable(["a"], permanent: ["none", "default"])
        let none = table.indexes(for: ["none"])[0]
        #expect(none == LabelIndex(slot: 1, use: 0))
        let kept = table.indexes(for: ["a"])[0]
        for round in 0..<5 {
            let names = labels("round\(round)-", 200) + ["a"]
            _ = table.indexes(for: names)
            table.activate(names)
        }
        #expect(table.indexes(for: ["none", "a"]) == [none, kept])
        #expect(table.inForce.prefix(2).map(\.label) == ["none", "default"])
    }

    @Test func `a name other is the shared one, so that no series is there twice`() {
        var table = LabelTable()
        #expect(table.indexes(for: ["other", "a"])[0] == .other)
        table.activate(["other", "a"])
        #expect(table.inForceAndOther.map(\.label) == ["a", "other"])
    }

    @Test(arguments: [0, 1, 99, UInt32.max])
    func `an index without a value reads other`(slot: UInt32) {
        let table = LabelTable(["a"])
        #expect(table[LabelIndex(slot: slot, use: 7)] == "other")
        #expect(table[LabelIndex(slot: slot == 1 ? 2 : slot, use: 0)] == "other")
    }
}
