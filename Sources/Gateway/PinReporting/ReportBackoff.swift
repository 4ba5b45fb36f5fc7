/// When a failed destination is tried again: after a second, then twice as long each time.
package struct ReportBackoff: Sendable {
    private struct State {
        var failures: Int
        var retryAt: Int64
    }

    /// The first delay and the longest, in milliseconds.
    package static let firstMilliseconds: Int64 = 1000
    package static let longestMilliseconds: Int64 = 300_000
    /// The longest delay that a server may request (Retry-After), in milliseconds.
    package static let longestAskedMilliseconds: Int64 = 3_600_000

    private var states: [String: State] = [:]

    package init() {}

    /// When a destination may be tried, on the caller's clock, or `nil` for at once.
    package func retryAt(_ destination: String) -> Int64? { states[destination]?.retryAt }

    /// Called when a destination accepted a report, or rejected it permanently.
    package mutating func answered(_ destination: String) { states[destination] = nil }

    /// Called when a destination failed.
    ///
    /// - Parameters:
    ///   - now: milliseconds.
    ///   - asked: the delay that it requested, in milliseconds, or `nil` for none.
    /// - Returns: whether this is the first failure since it last answered.
    package mutating func failed(_ destination: String, now: Int64, asked: Int64?) -> Bool {
        let failures = states[destination]?.failures ?? 0
        let doubled = Self.firstMilliseconds << Int64(min(failures, 20))
        var wait = min(doubled, Self.longestMilliseconds)
        if let asked { wait = max(wait, min(asked, Self.longestAskedMilliseconds)) }
        states[destination] = State(failures: failures + 1, retryAt: now + wait)
        return failures == 0
    }

    /// Forgets all other destinations.
    package mutating func keep(only destinations: Set<String>) {
        states = states.filter { destinations.contains($0.key) }
    }
}
