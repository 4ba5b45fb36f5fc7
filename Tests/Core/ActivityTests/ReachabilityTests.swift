import Testing

@testable import Activity

struct ReachabilityRow: Sendable, CustomTestStringConvertible {
    var state: ReachabilityState
    var event: ReachabilityEvent
    var next: ReachabilityState

    var testDescription: String { "\(state) + \(event)" }
}

@Suite("Reachability")
struct ReachabilityTests {
    static let outcomes: [(ReachabilityEvent, ReachabilityState)] =
        [
            (.responseReceived, .reachable),
            (.probeSucceeded, .reachable),
            (.probeFailed, .notReachable),
            (.reset, .unknown),
        ] + ConnectionStep.allCases.map { (.connectionFailed($0), .notReachable) }

    static let table = ReachabilityState.allCases.flatMap { state in
        outcomes.map { ReachabilityRow(state: state, event: $0.0, next: $0.1) }
    }

    @Test(arguments: table)
    func `the latest evidence decides, from every state`(row: ReachabilityRow) {
        #expect(row.state.next(after: row.event) == row.next)
        // The shared form makes the same transition and reports it if there is one.
        let counts = ReachabilityCounts()
        let host = HostReachability(host: "api", countedBy: counts)
        switch row.state {
        case .unknown: break
        case .notReachable: _ = host.note(.probeFailed)
        case .reachable: _ = host.note(.probeSucceeded)
        }
        let change = host.note(row.event)
        #expect(host.state == row.next)
        if row.next == row.state {
            #expect(change == nil)
        } else {
            #expect(change == ReachabilityChange(from: row.state, to: row.next, event: row.event))
        }
        for state in ReachabilityState.allCases {
            #expect(counts.hosts(in: state) == (state == row.next ? 1 : 0))
        }
    }

    @Test func `nothing is known of a new host`() {
        let counts = ReachabilityCounts()
        let host = HostReachability(host: "api", countedBy: counts)
        #expect(host.state == .unknown)
        for state in ReachabilityState.allCases {
            #expect(counts.hosts(in: state) == (state == .unknown ? 1 : 0))
            #expect(counts.transitions(to: state) == 0)
        }
    }

    @Test func `a host is counted as long as there is one`() {
        let counts = ReachabilityCounts()
        var host: HostReachability? = HostReachability(host: "api", countedBy: counts)
        _ = host?.note(.probeFailed)
        #expect(counts.hosts(in: .notReachable) == 1)
        host = nil
        for state in ReachabilityState.allCases { #expect(counts.hosts(in: state) == 0) }
    }

    @Test func `transitions are counted as they are reported`() {
        let counts = ReachabilityCounts()
        counts.countTransition(
            ReachabilityChange(from: .unknown, to: .reachable, event: .responseReceived))
        counts.countTransition(
            ReachabilityChange(from: .notReachable, to: .reachable, event: .probeSucceeded))
        #expect(counts.transitions(to: .reachable) == 2)
        #expect(counts.transitions(to: .notReachable) == 0)
    }

    @Test func `labels name states and steps`() {
        #expect(
            ReachabilityState.allCases.map { String(describing: $0.label) }
                == ["unknown", "not_reachable", "reachable"])
        #expect(
            ConnectionStep.allCases.map { String(describing: $0.label) }
                == ["dns", "connect", "tls"])
    }

    @Test func `of threads that report at once, exactly one sees each transition`() async {
        let counts = ReachabilityCounts()
        let host = HostReachability(host: "api", countedBy: counts)
        let changes = await withTaskGroup(of: [ReachabilityChange].self) { group in
            for task in 0..<4 {
                group.addTask {
                    (0..<5000).compactMap { step in
                        host.note((step + task) % 2 == 0 ? .responseReceived : .probeFailed)
                    }
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        for state in ReachabilityState.allCases {
            #expect(counts.hosts(in: state) == (state == host.state ? 1 : 0))
        }
        // Entered and left equally often, except for the first and the last state.
        let up = changes.count { $0.to == .reachable }
        let down = changes.count { $0.to == .notReachable }
        #expect(abs(up - down) <= 1)
        #expect(changes.count { $0.from == .unknown } == 1)
    }
}
