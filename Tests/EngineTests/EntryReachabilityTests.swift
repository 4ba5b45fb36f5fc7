import Activity
import Testing

@testable import Engine

@Suite("Reachability of a host entry's servers")
struct EntryReachabilityTests {
    @Test func `servers of a wildcard do not overwrite one another`() {
        let entry = EntryReachability(label: "wild")
        _ = entry.server("a.test").note(.responseReceived)
        for _ in 0..<5 { _ = entry.server("b.test").note(.connectionFailed(.connect)) }
        _ = entry.server("a.test").note(.responseReceived)
        #expect(entry.count(in: .reachable) == 1)
        #expect(entry.count(in: .notReachable) == 1)
        #expect(entry.count(in: .unknown) == 0)
        #expect(entry.transitions(to: .notReachable) == 1)
        #expect(entry.transitions(to: .reachable) == 1)
    }

    @Test func `names that clients make up push out no server that is down`() {
        let entry = EntryReachability(label: "wild")
        _ = entry.server("down.test").note(.connectionFailed(.connect))
        for number in 0..<1000 { _ = entry.server("up\(number).test").note(.responseReceived) }
        #expect(entry.count(in: .notReachable) == 1)
        #expect(entry.count(in: .reachable) == EntryReachability.maximumServers - 1)
    }
}
