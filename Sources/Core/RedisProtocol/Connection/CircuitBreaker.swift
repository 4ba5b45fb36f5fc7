/// Whether a server is asked at all: not while it only costs time.
///
///     closed ──(failures, and many of all)──► open ──(a delay)──► halfOpen
///        ▲                                      ▲                    │
///        └───────────(enough probes succeed)────┼────────────────────┤
///                                               └──(a probe fails)───┘
///
/// In `halfOpen` one operation at a time passes, as a probe. A value without locks or a clock.
package struct CircuitBreaker: Sendable, Hashable {
    /// When it opens and closes.
    package struct Options: Sendable, Hashable {
        /// Failures within a window, and the share of all operations in it that they are, in
        /// percent, at which it opens: both.
        package var failures = 5
        package var failurePercent = 50
        package var windowMilliseconds: Int64 = 10_000
        /// How long it is open at first, and at most: it doubles while probes fail.
        package var openMilliseconds: Int64 = 500
        package var longestOpenMilliseconds: Int64 = 10_000
        /// Probes that have to succeed one after the other.
        package var probes = 3
        /// A probe of which nothing has been heard for so long is given up.
        package var probeMilliseconds: Int64 = 1000

        package init() {}
    }

    /// Where it is in the diagram.
    package enum State: Sendable, Hashable {
        /// - Parameter since: when the window began.
        case closed(since: Int64, failures: Int, successes: Int)
        case open(until: Int64)
        /// - Parameter probeSince: when the probe under way began; `nil` if there is none.
        case halfOpen(probeSince: Int64?, successes: Int)
    }

    /// What an operation may do.
    package enum Admission: Sendable, Hashable {
        case pass
        /// It is sent to find out whether the server is back: its outcome has to be told.
        case probe
        /// It is not sent: a miss.
        case reject
    }

    /// What kind of operation an outcome is of.
    package enum Kind: Sendable, Hashable {
        case ordinary
        case probe
    }

    private let options: Options
    package private(set) var state: State
    /// How often it has opened since it was closed.
    private var openings = 0

    /// A closed one.
    package init(options: Options = Options(), now: Int64) {
        self.options = options
        state = .closed(since: now, failures: 0, successes: 0)
    }

    /// Whether it lets everything pass.
    package var isClosed: Bool { if case .closed = state { true } else { false } }

    /// Asks whether an operation may be sent.
    package mutating func admit(now: Int64) -> Admission {
        switch state {
        case .closed: return .pass
        case .open(let until):
            guard now >= until else { return .reject }
            state = .halfOpen(probeSince: now, successes: 0)
            return .probe
        case .halfOpen(let since, let successes):
            if let since, now - since < options.probeMilliseconds { return .reject }
            // One that was given up counts as none.
            state = .halfOpen(probeSince: now, successes: since == nil ? successes : 0)
            return .probe
        }
    }

    /// An operation was answered in time.
    /// - Parameter kind: as it was admitted.
    package mutating func succeeded(_ kind: Kind, now: Int64) {
        switch (state, kind) {
        case (.closed(let since, let failures, let successes), _):
            state =
                now - since < options.windowMilliseconds
                ? .closed(since: since, failures: failures, successes: successes + 1)
                : .closed(since: now, failures: 0, successes: 1)
        case (.halfOpen(_, let successes), .probe):
            guard successes + 1 < options.probes else { return close(now: now) }
            state = .halfOpen(probeSince: nil, successes: successes + 1)
        // One that was sent before it opened says nothing about now.
        case (.halfOpen, .ordinary), (.open, .ordinary), (.open, .probe): break
        }
    }

    /// An operation was not answered in time, or its connection failed.
    /// - Parameters:
    ///   - kind: as it was admitted.
    ///   - random: any 64 bits.
    /// - Returns: whether it opens now.
    package mutating func failed(_ kind: Kind, now: Int64, random: UInt64) -> Bool {
        switch (state, kind) {
        case (.closed(let since, let failures, let successes), _):
            guard now - since < options.windowMilliseconds else {
                state = .closed(since: now, failures: 1, successes: 0)
                return options.failures <= 1 && open(now: now, random: random)
            }
            let total = failures + 1 + successes
            if failures + 1 >= options.failures,
                (failures + 1) * 100 >= total * options.failurePercent
            {
                return open(now: now, random: random)
            }
            state = .closed(since: since, failures: failures + 1, successes: successes)
            return false
        case (.halfOpen, .probe): return open(now: now, random: random)
        case (.halfOpen, .ordinary), (.open, .ordinary), (.open, .probe): return false
        }
    }

    private mutating func close(now: Int64) {
        openings = 0
        state = .closed(since: now, failures: 0, successes: 0)
    }

    private mutating func open(now: Int64, random: UInt64) -> Bool {
        var backoff = ReconnectBackoff(
            firstMilliseconds: options.openMilliseconds,
            longestMilliseconds: options.longestOpenMilliseconds)
        var delay: Int64 = 0
        openings = min(openings + 1, 32)
        for _ in 0..<openings { delay = backoff.failed(random: random) }
        state = .open(until: now + delay)
        return true
    }
}
