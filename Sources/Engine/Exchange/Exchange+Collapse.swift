import CachePolicy
import EventLoop
import HTTPCore

// Between phases 3 and 4: misses for the same key wait for the response to the first one
// (RFC 9111 §4), so that a popular response that is not there, or stale, is asked for once.
//
//                        ┌──────────────────── leader failed or left ───────┐
//                        ▼                                                  │
//     miss, stale ──► one under way? ── yes ──► waiting ── response stored ─┴─► look up again
//                        │ no                      ├────── not to be stored ──► all go alone
//                        ▼                         └────── timeouts.collapse ─► goes alone
//                  leads: forward
//
// An exchange waits for one response. Whoever was not helped by it (another variant, nothing that
// may be stored, stale at once) asks for itself and lets the key's next misses do so at once for a
// while, so that what cannot be shared is not asked for one by one.
extension Exchange {
    /// How an exchange takes part.
    enum Collapsing {
        case none
        /// Others wait for its response.
        case leads(hash: UInt64)
        /// It waits in this line for the response to another one.
        case follows(FollowerLine)
        /// The response it waited for has come.
        case answered
        /// It has waited long enough.
        case gaveUp
    }

    /// How a leader's flight ends for those who wait.
    enum FlightEnd {
        /// Its response is stored, or what was stored is confirmed.
        case stored
        /// Its response may not be stored.
        case notStored
        /// There is no response, or not all of it.
        case failed
    }

    /// Those who wait for one response. It outlives the exchange that they wait for, so that they
    /// can be let go in portions.
    final class FollowerLine {
        let waiting = LinkedLine<Exchange>()
        /// How the flight ended, once it has.
        var end: FlightEnd?
    }

    /// How long misses of a key go alone after one was not helped by another's response.
    private static let aloneMilliseconds: Int64 = 30_000

    /// Sends the request to its origin, or waits for the response to another for the same.
    func forwardOrWait() {
        guard isAdmitted() else { return }
        guard let reason = forwardReason, let hash = key?.hash,
            CacheDecision.mayCollapse(request.method, with: request.fields.present, reason)
        else { return forward() }
        // In a loop it would wait for itself.
        guard passes == 0 else { return forward() }
        let now = environment.loop.now
        switch collapsing {
        case .none: break
        case .answered:
            environment.flights.goAlone(
                hash: hash, until: now + Self.aloneMilliseconds, for: clientNetwork)
            return forward()
        case .leads, .follows, .gaveUp: return forward()
        }
        switch environment.flights.enter(self, hash: hash, now: now) {
        case .alone: forward()
        case .lead:
            collapsing = .leads(hash: hash)
            forward()
        case .follow(let leader):
            if waitEnds == 0 { waitEnds = now + environment.policy.timeouts.collapseMilliseconds }
            guard waitEnds > now, register() else { return forward() }
            follow(leader, for: waitEnds - now)
        }
    }

    private func follow(_ leader: Exchange, for milliseconds: Int64) {
        handle(.decided(.follow))
        let line = leader.followers ?? FollowerLine()
        leader.followers = line
        line.waiting.append(self)
        collapsing = .follows(line)
        stored = nil
        validation = nil
        environment.metrics.add(.cacheCollapseWaits)
        environment.loop.setDeadline(self, after: milliseconds)
    }

    /// The response of the flight that the exchange leads is there for others, or will not be.
    func endFlight(_ end: FlightEnd) {
        guard case .leads(let hash) = collapsing else { return }
        collapsing = .none
        environment.flights.leave(self, hash: hash)
        if end == .notStored {
            environment.flights.goAlone(
                hash: hash, until: environment.loop.now + Self.aloneMilliseconds,
                for: clientNetwork)
        }
        guard let line = followers else { return }
        followers = nil
        line.end = end
        let loop = environment.loop
        loop.afterTurn { Self.release(line, on: loop) }
    }

    /// Lets those who wait go on, a portion in each turn: there may be thousands.
    private static func release(_ line: FollowerLine, on loop: EventLoop) {
        for _ in 0..<EventLoop.portion {
            guard let follower = line.waiting.popFirst() else { return }
            follower.flightEnded(line.end ?? .failed)
        }
        if !line.waiting.isEmpty { loop.afterTurn { release(line, on: loop) } }
    }

    private func flightEnded(_ end: FlightEnd) {
        collapsing = end == .failed ? .none : .answered
        environment.loop.setDeadline(self, after: nil)
        lookUpAgain()
    }

    /// It has waited long enough, and goes alone; unless the response is there by now.
    func waitTimedOut() {
        guard case .follows(let line) = collapsing else { return }
        line.waiting.remove(self)
        if let end = line.end { return flightEnded(end) }
        collapsing = .gaveUp
        lookUpAgain()
    }

    private func lookUpAgain() {
        guard case .nothing = handle(.flightEnded), let origin else { return }
        // Under another configuration what is stored may not be used.
        origin.policy === environment.policy ? lookUp(at: origin) : forward()
    }

    /// The exchange ends, or waits no longer.
    func leaveFlight() {
        switch collapsing {
        case .none, .answered, .gaveUp: break
        case .leads: endFlight(.failed)
        case .follows(let line):
            collapsing = .none
            line.waiting.remove(self)
        }
    }
}
