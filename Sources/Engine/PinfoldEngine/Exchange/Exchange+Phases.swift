import Clocks
import PinfoldMetrics

// What an exchange spends its time on. The clock is read where something is waited for, and never
// for a hit in memory or on the way to a connection that is there.
//
//     request's head ─┬─ waits ──────────────── sent ─────── final head ─────────── last byte
//                     │  queue, dns, connect, tls  │ first_byte │ body
//                     └─ the gateway's own time is in none of them
//
// A wait in the gateway begins with the decision to wait, and ends with the event that leads out of
// that state. A wait for a connection is divided by what was done to make it
// (``ConnectionTimeline``).
extension Exchange {
    /// It has been decided to wait.
    @inline(never)
    func beginWait() { waits.begin(at: environment.turnMicroseconds()) }

    /// An event has come while it waited.
    @inline(never)
    func goOnWaiting() {
        switch state.step {
        case .authenticating, .delayed, .loading, .waiting, .gathering, .connecting, .opening:
            return
        case .ended, .routing, .requesting, .discarding, .responding, .serving, .finishing,
            .tunnelling:
            waits.end(
                at: environment.turnMicroseconds(), isBehindHead: forwarding.answeredAt != 0)
        }
    }

    /// It waits for a connection, which is being made or not.
    func beginWaitForConnection() { waits.begin(at: Clock.monotonicMicroseconds()) }

    /// The wait for a connection is over, one way or the other.
    /// - Parameter timeline: how it was made; `nil` if it was there, or if there is none.
    func endWait(by timeline: ConnectionTimeline?) {
        guard waits.since != 0 else { return }
        waits.end(by: timeline, at: Clock.monotonicMicroseconds())
    }

    /// There is a connection. Returns whether it was there before it was asked for.
    @inline(never)
    func endWait(with upstream: any UpstreamStream, at time: Int64) -> Bool {
        waits.end(with: upstream, at: time)
    }

    /// It gives up waiting for a connection.
    func abandonWait(_ origin: Origin) {
        guard waits.since != 0 else { return }
        let timeline = environment.upstreams.timeline(origin, self)
        waits.gaveUp(trying: timeline?.tried)
        endWait(by: timeline)
    }

    package func upstreamTook(_ timeline: ConnectionTimeline?) { endWait(by: timeline) }

    package func upstreamWaits() { beginWaitForConnection() }

    /// It gives up opening a tunnel.
    func abandonOpening() {
        guard let opening = tunnel?.takeOpening() else { return }
        waits.add(opening.phases(now: Clock.monotonicMicroseconds()))
        waits.gaveUp(trying: opening.tried)
        opening.cancel()
    }

    /// The server has not answered, and will not.
    func attemptFailed() {
        guard forwarding.askedAt != 0, forwarding.answeredAt == 0 else { return }
        endAttempt()
    }

    /// What came of an attempt is of no use, and another one follows.
    func endAttempt() {
        guard let begun = forwarding.takeAttempt() else { return }
        waits.attemptEnded(UInt64(max(0, Clock.monotonicMicroseconds() - begun)))
    }

    /// What its phases have taken so far, with what it is waiting for at the moment.
    package var phasesUntilNow: PhaseTimes {
        let now = environment.readClock()
        var waits = waits
        if waits.since != 0 {
            var timeline: ConnectionTimeline?
            if case .connecting = state.step, let origin = connectionOrigin {
                timeline = environment.upstreams.timeline(origin, self)
            }
            waits.end(by: timeline, at: now, isBehindHead: forwarding.answeredAt != 0)
        }
        if let opening = tunnel?.opening { waits.add(opening.phases(now: now)) }
        return phases(waits, at: now, of: UInt64(max(0, now - report.began)))
    }

    /// The phases of an exchange that ends.
    /// - Parameters:
    ///   - waits: what it has waited for.
    ///   - end: in microseconds of the monotonic clock.
    ///   - duration: of all of it, in microseconds.
    @inline(__always)
    func phases(_ waits: Waits, at end: Int64, of duration: UInt64) -> PhaseTimes {
        var phases = waits.phases
        if forwarding.askedAt != 0 {
            let answered = forwarding.answeredAt
            let head = answered != 0 ? answered : end
            phases.add(.firstByte, UInt64(max(0, head - forwarding.askedAt)))
        }
        if forwarding.answeredAt != 0 {
            let body = UInt64(max(0, end - forwarding.answeredAt))
            phases.add(.body, body - min(body, waits.behindHead))
        } else if phases.haveWaits || environment.reportsExchanges || environment.debugs {
            addRest(of: duration, to: &phases)
        }
        return phases
    }

    /// From the cache, and in a tunnel, the body is all of the rest.
    @inline(never)
    private func addRest(of duration: UInt64, to phases: inout PhaseTimes) {
        switch report.cacheResult {
        case .hit, .hitStale, .revalidated, .collapsed: guard report.status != 0 else { return }
        case .none, .miss, .uncacheable, .bypass: guard tunnel?.isRelayed ?? false else { return }
        }
        phases.add(.body, duration - min(duration, phases.sum))
    }
}
