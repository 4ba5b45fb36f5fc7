import Testing

@testable import PinfoldMetrics

@Suite("Counts of what has a name")
struct EventCountsTests {
    @Test func `each kind of event has a count of its own`() {
        let counts = EventCounts<RuleEvent>()
        counts.add(to: .matched)
        counts.add(to: .paced)
        counts.add(40, to: .paced)
        #expect(RuleEvent.allCases.map { counts[$0] } == [1, 0, 0, 41])
        #expect(RuleEvent.ofRates == RuleEvent.allCases.filter { $0 != .matched })
    }

    @Test func `threads that count at the same time lose nothing`() async {
        let counts = EventCounts<GroupEvent>()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<10_000 {
                        counts.add(to: .exchanges)
                        counts.add(3, to: .bytesSent)
                    }
                }
            }
        }
        #expect(GroupEvent.allCases.map { counts[$0] } == [40_000, 0, 120_000])
    }

    @Test func `a name keeps its counts as long as it is in force`() {
        var table = CounterTable<PinEvent>()
        func values() -> [String: UInt64] {
            Dictionary(uniqueKeysWithValues: table.inForce.map { ($0.name, $0.counts[.matched]) })
        }
        table.counts(for: ["b", "a"])[1].add(to: .matched)
        #expect(values() == [:])
        table.activate(["b", "a", "b"])
        #expect(table.inForce.map(\.name) == ["a", "b"])
        #expect(values() == ["a": 1, "b": 0])

        // Another configuration, which does not come into force.
        table.counts(for: ["c", "a"])[1].add(to: .matched)
        #expect(values() == ["a": 2, "b": 0])

        let next = table.counts(for: ["a", "d", "d"])
        #expect(next[1] === next[2])
        table.activate(["a", "d"])
        next[0].add(to: .matched)
        #expect(values() == ["a": 3, "d": 0])

        // What was forgotten begins at zero.
        table.activate(["d"])
        table.counts(for: ["a"])[0].add(to: .matched)
        table.activate(["a"])
        #expect(values() == ["a": 1])
    }
}
