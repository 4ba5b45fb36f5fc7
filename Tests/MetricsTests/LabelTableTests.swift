import Testing

@testable import PinfoldMetrics

@Suite("Label tables")
struct LabelTableTests {
    @Test func `a value keeps its index, and a new one gets the next`() {
        var table = LabelTable(["a", "b"])
        #expect(table.index(for: "a") == 0)
        #expect(table.index(for: "c") == 2)
        #expect(table.index(for: "b") == 1)
        #expect(table.labels == ["a", "b", "c"])
        #expect(table[2] == "c")
    }

    @Test
    func `the last value within the capacity has its own series, the next one shares other`() {
        var table = LabelTable((0..<99).map { "route\($0)" })
        #expect(table.index(for: "last") == 99)
        #expect(table.index(for: "beyond") == 100)
        #expect(table.index(for: "another") == 100)
        #expect(table.index(for: "last") == 99)
        #expect(table.labels.count == 100)
        #expect(table[100] == "other")
        #expect(table.seriesCapacity == 101)
    }

    @Test func `a value named other is the shared one, so that no series is there twice`() {
        var table = LabelTable(["other", "a"])
        #expect(table.index(for: "other") == table.overflowIndex)
        #expect(table.labels == ["a"])
    }

    @Test(arguments: [-1, 1, 99, 100, 1000])
    func `an index without a value reads other`(index: Int) {
        #expect(LabelTable(["a"])[index] == "other")
    }

    @Test func `a capacity of zero shares everything`() {
        var table = LabelTable(["a"], capacity: 0)
        #expect(table.index(for: "a") == 0)
        #expect(table[0] == "other")
        #expect(LabelTable(capacity: -3).capacity == 0)
    }
}
