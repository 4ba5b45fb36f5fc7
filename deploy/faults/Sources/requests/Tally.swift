import Glibc

/// How calls have ended, by their fault. What must not be is printed at once.
final class Tally: Sendable {
    private struct State {
        var ends: [String: [Kind: Int]] = [:]
        var total = 0
        var problemCount = 0
        var excused = 0
    }

    private let state = Locked(State())

    /// - Parameters:
    ///   - text: What the error says.
    ///   - isExcused: Whether a kind that is not expected is none of the library's faults.
    func add(_ plan: Plan, _ kind: Kind, _ text: String, isExcused: Bool) {
        let isExpected = plan.expected.contains(kind)
        state.withLock { state in
            state.ends[plan.fault.name + " " + plan.protocolName, default: [:]][kind, default: 0] +=
                1
            state.total += 1
            if isExcused { state.excused += 1 }
            if !isExpected, !isExcused {
                Self.note("\(plan.text): ended with \(kind) \(text)", &state)
            }
        }
    }

    func problem(_ text: String) { state.withLock { Self.note(text, &$0) } }

    private static func note(_ text: String, _ state: inout State) {
        state.problemCount += 1
        guard state.problemCount <= mostPrinted else { return }
        print("wrong: \(text)")
        fflush(nil)
    }

    /// More say nothing new.
    private static let mostPrinted = 200

    var total: Int { state.withLock { $0.total } }
    /// The number of calls that ended otherwise because the machine stood still.
    var excused: Int { state.withLock { $0.excused } }
    var problemCount: Int { state.withLock { $0.problemCount } }

    /// A line for each fault.
    var lines: [String] {
        state.withLock { $0.ends }.sorted { $0.key < $1.key }.map { name, ends in
            let counts = ends.sorted { $0.value > $1.value }.map { "\($0.value) \($0.key)" }
            return "\(name): \(counts.joined(separator: ", "))"
        }
    }

    /// The number of calls of each kind.
    var kinds: [String] {
        var kinds: [Kind: Int] = [:]
        for ends in state.withLock({ $0.ends.values }) { kinds.merge(ends) { $0 + $1 } }
        return kinds.sorted { $0.value > $1.value }.map { "\($0.value) \($0.key)" }
    }
}

extension Plan {
    /// What is spoken on the port.
    var protocolName: String {
        switch role {
        case .plain, .fickle: "http/1"
        case .tls, .fickleTLS: "https/1"
        case .h2, .lossy: "h2"
        default: "\(role)"
        }
    }
}
