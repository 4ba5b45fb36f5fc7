import HTTPCore
import PinfoldMetrics

/// What is done to make a connection, and since when: whoever waits for it learns what it has
/// waited for. Times are in microseconds of the monotonic clock.
package final class ConnectionTimeline {
    /// A step on the way to a connection.
    enum Stage {
        case dns
        case connect
        /// Opening a tunnel through a proxy, with TLS with the proxy itself.
        case tunnel
        case tls
        /// The library's user reviews the server.
        case review

        var phase: Phase {
            switch self {
            case .dns: .dns
            case .connect, .tunnel: .connect
            case .tls, .review: .tls
            }
        }
    }

    /// When each stage began. A few, and for every way that is tried once more.
    private var marks: [(stage: Stage, time: Int64)] = []
    /// When the connection was made, or given up; `nil` before that.
    private(set) var end: Int64?
    /// The address that was tried last.
    package var tried: Endpoint?

    package init() {}

    /// When it began; `nil` if it has not.
    var begin: Int64? { marks.first?.time }

    /// A stage begins, and so the one before has ended.
    func enter(_ stage: Stage, at time: Int64) {
        end = nil
        if let last = marks.last, last.stage == stage { return }
        marks.append((stage, time))
    }

    /// There is a connection, or it is given up.
    func finish(at time: Int64) { if end == nil { end = time } }

    /// Whether there was a connection before a time.
    func isOver(before time: Int64) -> Bool { end.map { $0 <= time } ?? false }

    /// Adds what was waited for to phases. Whoever began to wait before the connection was begun
    /// waited for a place; the last stage lasts until the wait is over.
    func divide(_ wait: Range<Int64>, among phases: inout PhaseTimes) {
        guard let begin, !isOver(before: wait.lowerBound) else {
            return phases.add(.queue, UInt64(wait.count))
        }
        if begin > wait.lowerBound {
            phases.add(.queue, UInt64(min(begin, wait.upperBound) - wait.lowerBound))
        }
        for (index, mark) in marks.enumerated() {
            let next = index + 1 < marks.count ? marks[index + 1].time : wait.upperBound
            let took = min(next, wait.upperBound) - max(mark.time, wait.lowerBound)
            if took > 0 { phases.add(mark.stage.phase, UInt64(took)) }
        }
    }

    /// What each stage took until the end, or until now if there is none yet.
    package func phases(now: Int64) -> PhaseTimes {
        var phases = PhaseTimes()
        if let begin { divide(begin..<max(begin, end ?? now), among: &phases) }
        return phases
    }

    /// How long the steps to a connection took.
    package var times: ConnectionTimes {
        var times = ConnectionTimes()
        guard let end else { return times }
        for (index, mark) in marks.enumerated() {
            let next = index + 1 < marks.count ? marks[index + 1].time : end
            let took = max(0, next - mark.time)
            switch mark.stage {
            case .dns: times.lookup = (times.lookup ?? 0) + took
            case .connect: times.connect = (times.connect ?? 0) + took
            case .tunnel: times.tunnel = (times.tunnel ?? 0) + took
            case .tls: times.handshake = (times.handshake ?? 0) + took
            case .review: break
            }
        }
        return times
    }
}

/// How long the steps to a connection took, in microseconds; `nil` if there was no such step.
package struct ConnectionTimes: Sendable, Equatable {
    /// DNS; `nil` if the answer was cached or the name needs no lookup.
    package var lookup: Int64?
    /// From the first address to an established connection.
    package var connect: Int64?
    /// The time that a proxy took to open a tunnel, including TLS with the proxy.
    package var tunnel: Int64?
    /// TLS.
    package var handshake: Int64?

    package init() {}
}
