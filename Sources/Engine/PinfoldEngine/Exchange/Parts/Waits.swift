import HTTPCore
import PinfoldMetrics

extension Exchange {
    /// What an exchange has waited for, and since when it waits. Times are in microseconds of the
    /// monotonic clock.
    struct Waits {
        /// When its wait began; 0 while it does not wait.
        private(set) var since: Int64 = 0
        /// What it has waited for.
        private(set) var phases = PhaseTimes()
        /// How much of that was after the head of the response, and is no part of the body.
        private(set) var behindHead: UInt64 = 0
        /// The address that was being tried when it gave up; usually `nil`.
        private(set) var tried: Endpoint?

        /// It waits from now on, if it did not yet.
        mutating func begin(at time: Int64) { if since == 0 { since = time } }

        /// It does not wait any more.
        /// - Parameters:
        ///   - timeline: the connection that it waited for; `nil` for anything else.
        ///   - isBehindHead: whether the server's head has arrived.
        mutating func end(
            by timeline: ConnectionTimeline? = nil, at time: Int64, isBehindHead: Bool = false
        ) {
            guard since != 0 else { return }
            let wait = since..<max(since, time)
            since = 0
            if isBehindHead { behindHead += UInt64(wait.count) }
            guard let timeline else { return phases.add(.queue, UInt64(wait.count)) }
            timeline.divide(wait, among: &phases)
        }

        /// The wait has brought a stream. Returns whether its connection was there before.
        mutating func end(with upstream: any UpstreamStream, at time: Int64) -> Bool {
            let timeline = upstream.timeline
            let isReused = upstream.wasReused || timeline.isOver(before: since)
            end(by: isReused ? nil : timeline, at: time)
            return isReused
        }

        /// It gives up waiting for a connection to this address.
        mutating func gaveUp(trying endpoint: Endpoint?) { tried = endpoint ?? tried }

        /// What was waited for elsewhere.
        mutating func add(_ phases: PhaseTimes) { self.phases.add(phases) }

        mutating func add(_ phase: Phase, _ microseconds: UInt64) {
            phases.add(phase, microseconds)
        }

        /// The server's response was held for a translation.
        mutating func translated(in microseconds: UInt64) {
            phases.add(.queue, microseconds)
            behindHead += microseconds
        }

        /// An attempt is over, and another follows: what came after its head was in vain.
        mutating func attemptEnded(_ microseconds: UInt64) {
            phases.add(.firstByte, microseconds - min(microseconds, behindHead))
            behindHead = 0
        }
    }
}
