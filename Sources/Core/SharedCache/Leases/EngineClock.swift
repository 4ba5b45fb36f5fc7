import CachePolicy

/// How far a gateway's clock is from the engine's, which all gateways have in common: a response's
/// times are stored on the engine's clock, so that its age is right on a gateway whose own clock is
/// an hour off.
///
/// Measured by asking for the time (`TIME`): the engine has answered at some moment between the
/// question and the answer, which bounds the error. The shortest question counts.
package struct EngineClock: Sendable, Hashable {
    private struct Sample: Sendable, Hashable {
        /// Engine's less own time, in milliseconds, and by how much that may be wrong.
        var offset: Int64
        var error: Int64
        var at: Int64
    }

    private var best: Sample?

    /// A measurement counts for so long against shorter ones, in milliseconds: clocks drift.
    package static let lifetimeMilliseconds: Int64 = 600_000
    /// One that took longer says too little.
    package static let longestMilliseconds: Int64 = 2000

    /// A clock of which nothing is known.
    package init() {}

    /// Notes a measurement.
    /// - Parameters:
    ///   - asked: when it was asked, on the own clock, in milliseconds since 1970.
    ///   - answered: when the answer came, on the same clock.
    ///   - engine: what the engine answered, in milliseconds since 1970.
    package mutating func measured(asked: Int64, answered: Int64, engine: Int64) {
        // The own clock was set meanwhile, or the answer took too long.
        guard answered >= asked, answered - asked <= Self.longestMilliseconds,
            (0...StoredTimes.maximumTime).contains(engine)
        else { return }
        let half = (answered - asked) / 2
        let sample = Sample(
            offset: engine - (asked + half), error: answered - asked - half, at: answered)
        if let best, best.error < sample.error, isConsistent(best, sample),
            answered - best.at < Self.lifetimeMilliseconds, answered >= best.at
        {
            return
        }
        best = sample
    }

    /// Whether both can be right. If not, a clock was set.
    private func isConsistent(_ one: Sample, _ other: Sample) -> Bool {
        abs(one.offset - other.offset) <= one.error + other.error + 10
    }

    /// Whether times can be converted.
    package var isKnown: Bool { best != nil }

    /// Seconds on the engine's clock for seconds on the own one; `nil` if that is not known.
    package func engineSeconds(_ own: Int64) -> Int64? { seconds.map { own + $0 } }

    /// Seconds on the own clock for seconds on the engine's; `nil` if that is not known.
    package func ownSeconds(_ engine: Int64) -> Int64? { seconds.map { engine - $0 } }

    /// The offset, rounded to seconds.
    private var seconds: Int64? {
        best.map { ($0.offset >= 0 ? $0.offset + 500 : $0.offset - 500) / 1000 }
    }

    /// Times as they are stored.
    package func toEngine(_ times: StoredTimes) -> StoredTimes? {
        seconds.map { times.moved(by: $0) }
    }

    /// Times as they were stored.
    package func toOwn(_ times: StoredTimes) -> StoredTimes? {
        seconds.map { times.moved(by: -$0) }
    }
}

extension StoredTimes {
    fileprivate func moved(by seconds: Int64) -> StoredTimes {
        StoredTimes(
            requestTime: requestTime + seconds, responseTime: responseTime + seconds,
            initialAge: initialAge)
    }
}
