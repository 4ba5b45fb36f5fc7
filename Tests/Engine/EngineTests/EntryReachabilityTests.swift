import Activity
import HTTPCore
import Testing

@testable import PinfoldEngine

@Suite("Reachability of a host entry's servers")
struct EntryReachabilityTests {
    private let entry = EntryReachability(label: "wild")
    private let some = IPAddress("192.0.2.1").map { IPNetwork(client: $0) }
    private let others = IPAddress("192.0.2.2").map { IPNetwork(client: $0) }
    private let maximum = EntryReachability.maximumServers

    /// What traffic of a client shows of a server to which there is no reference.
    @discardableResult
    private func meet(
        _ name: String, _ event: ReachabilityEvent, for client: IPNetwork? = nil
    ) -> ReachabilityChange? {
        entry.server(name).note(event, for: client)
    }

    private func counts() -> [Int] { ReachabilityState.allCases.map { entry.count(in: $0) } }

    @Test func `servers of a wildcard do not overwrite one another`() {
        meet("a.test", .responseReceived)
        for _ in 0..<5 { meet("b.test", .connectionFailed(.connect)) }
        meet("a.test", .responseReceived)
        #expect(entry.count(in: .reachable) == 1)
        #expect(entry.count(in: .notReachable) == 1)
        #expect(entry.count(in: .unknown) == 0)
        #expect(entry.transitions(to: .notReachable) == 1)
        #expect(entry.transitions(to: .reachable) == 1)
    }

    @Test func `names that clients make up push out no server that is down`() {
        meet("down.test", .connectionFailed(.connect))
        for number in 0..<1000 { meet("up\(number).test", .responseReceived) }
        #expect(entry.count(in: .notReachable) == 1)
        #expect(entry.count(in: .reachable) == maximum)
    }

    @Test
    func `a client that finds many servers down does not push out those that others have found`() {
        meet("down.test", .connectionFailed(.connect), for: others)
        for number in 0..<1000 {
            meet("down\(number).test", .connectionFailed(.connect), for: some)
        }
        #expect(entry.count(in: .notReachable) == maximum)
        let found = meet("down.test", .responseReceived, for: others)
        #expect(found?.from == .notReachable)
    }

    @Test func `a name of the configuration is never forgotten`() {
        entry.add(exactly: ["main.test"])
        #expect(counts() == [1, 0, 0])
        meet("main.test", .responseReceived)
        for number in 0..<1000 { meet("up\(number).test", .responseReceived) }
        for number in 0..<1000 { meet("down\(number).test", .connectionFailed(.connect)) }
        #expect(entry.server("main.test").state == .reachable)
        #expect(meet("main.test", .probeFailed)?.from == .reachable)
        #expect(counts() == [0, maximum + 1, maximum])
        #expect(meet("main.test", .probeSucceeded)?.from == .notReachable)
    }

    @Test func `a server that an origin has stays the same however many others there are`() {
        let held = entry.server("held.test")
        _ = held.note(.responseReceived, for: some)
        for number in 0..<1000 { meet("up\(number).test", .responseReceived, for: some) }
        #expect(entry.server("held.test").state == .reachable)
        #expect(counts() == [0, 0, maximum + 1])
        #expect(held.note(.connectionFailed(.connect), for: some)?.to == .notReachable)
        #expect(counts() == [0, 1, maximum])
        #expect(meet("held.test", .responseReceived, for: others)?.from == .notReachable)
        #expect(held.state == .reachable)
    }

    @Test func `what an origin learnt last outlasts it`() {
        do {
            let held = entry.server("held.test")
            _ = held.note(.responseReceived, for: some)
            for number in 0..<1000 { meet("up\(number).test", .responseReceived, for: some) }
            _ = held.note(.connectionFailed(.connect), for: some)
        }
        #expect(entry.count(in: .notReachable) == 1)
        #expect(entry.server("held.test").state == .notReachable)
    }

    @Test func `servers that return are counted and reported once`() {
        for _ in 0..<4 {
            for number in 0..<(maximum + 50) {
                let change = meet("n\(number).test", .responseReceived)
                #expect(number < maximum || change == nil)
            }
            #expect(entry.transitions(to: .reachable) == UInt64(maximum))
            #expect(entry.count(in: .reachable) == maximum)
        }
        // That one cannot be reached is news always.
        #expect(meet("n0.test", .connectionFailed(.connect))?.to == .notReachable)
    }

    @Test func `what nothing refers to is no longer counted`() {
        _ = entry.server("untried.test")
        #expect(counts() == [0, 0, 0])
        let held = entry.server("untried.test")
        #expect(counts() == [1, 0, 0])
        #expect(held.state == .unknown)
    }

    @Test func `a name that is no longer in the configuration is like any other`() {
        entry.add(exactly: ["a.test", "b.test"])
        meet("a.test", .connectionFailed(.connect))
        entry.keepOnly(["b.test"])
        #expect(counts() == [1, 1, 0])
        for number in 0..<maximum { meet("down\(number).test", .connectionFailed(.connect)) }
        #expect(entry.server("a.test").state == .unknown)
        entry.add(exactly: ["down0.test"])
        #expect(entry.server("down0.test").state == .notReachable)
        #expect(counts() == [1, maximum, 0])
    }
}
