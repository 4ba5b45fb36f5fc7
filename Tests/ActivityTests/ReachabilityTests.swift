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
        ] + ConnectionFailure.allCases.map { (.connectionFailed($0), .notReachable) }

    static let table = ReachabilityState.allCases.flatMap { state in
        outcomes.map { ReachabilityRow(state: state, event: $0.0, next: $0.1) }
    }

    @Test(arguments: table)
    func `the latest evidence decides, from every state`(row: ReachabilityRow) {
        #expect(row.state.next(after: row.event) == row.next)
        // The shared form takes the same step and reports it if it is one.
        let transitions = ReachabilityTransitions()
        let host = HostReachability(host: "api", entry: "e", transitions: transitions)
        switch row.state {
        case .unknown: break
        case .notReachable: _ = host.note(.probeFailed)
        case .reachable: _ = host.note(.probeSucceeded)
        }
        let before = transitions.count(to: row.next)
        let change = host.note(row.event)
        #expect(host.state == row.next)
        if row.next == row.state {
            #expect(change == nil)
            #expect(transitions.count(to: row.next) == before)
        } else {
            #expect(change == ReachabilityChange(from: row.state, to: row.next, event: row.event))
            #expect(transitions.count(to: row.next) == before + 1)
        }
    }

    @Test func `nothing is known of a new host`() {
        let transitions = ReachabilityTransitions()
        let host = HostReachability(host: "api", entry: "e", transitions: transitions)
        #expect(host.state == .unknown)
        for state in ReachabilityState.allCases { #expect(transitions.count(to: state) == 0) }
    }

    @Test func `labels name states and steps`() {
        #expect(
            ReachabilityState.allCases.map { String(describing: $0.label) }
                == ["unknown", "not_reachable", "reachable"])
        #expect(
            ConnectionFailure.allCases.map { String(describing: $0.label) }
                == ["dns", "connect", "tls"])
    }

    @Test func `of threads that report at once, exactly one sees each transition`() async {
        let transitions = ReachabilityTransitions()
        let host = HostReachability(host: "api", entry: "e", transitions: transitions)
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
            #expect(UInt64(changes.count { $0.to == state }) == transitions.count(to: state))
        }
        // Entered and left equally often, but for the first and the last state.
        let up = Int(transitions.count(to: .reachable))
        let down = Int(transitions.count(to: .notReachable))
        #expect(abs(up - down) <= 1)
        #expect(changes.count { $0.from == .unknown } == 1)
    }
}
