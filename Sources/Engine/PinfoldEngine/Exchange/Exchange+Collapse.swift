import CachePolicy
import Clocks
import EventLoop
import HTTPCore

// Between phases 3 and 4: misses for the same key wait for the response to the first one (RFC 9111
// §4), so that a popular response that is missing or stale is requested once.
//
//                        ┌──────────────────── leader failed or left ───────┐
//                        ▼                                                  │
//     miss, stale ──► one under way? ── yes ──► waiting ── response stored ─┴─► look up again
//                        │ no                      ├────── not to be stored ──► all go alone
//                        ▼                         └────── timeouts.collapse ─► goes alone
//                  leads: forward                          without progress
//
// Of the exchanges that proceed alone because the response makes no progress, one may store its own
// response.
//
// An exchange waits for one response. If that does not help it (another variant, not storable,
// immediately stale), it is sent to the origin, and for a while the key's next misses are as well,
// so that responses that cannot be shared are not requested one after the other.
extension Exchange {
    /// How a leader's flight ends for its followers.
    enum FlightEnd {
        /// Its response is stored, or the stored response was confirmed.
        case stored
        /// Its response may not be stored.
        case notStored
        /// There is no complete response.
        case failed
    }

    /// The response of the flight that this exchange leads is not stored.
    func endFlight(unstoredBecause reason: NotStoredReason?) {
        switch reason {
        // The next response may be usable for the followers.
        case .invalidated: endFlight(.failed)
        // The response of a follower that stopped waiting is stored instead.
        case .duplicate: endFlight(.stored)
        default: endFlight(.notStored)
        }
    }

    /// How long misses of a key proceed alone after waiting did not help one.
    private static let aloneMilliseconds: Int64 = 30_000

    /// Sends the request to its origin, or waits for the response to another request for the same
    /// resource.
    func forwardOrWait() {
        guard isAdmitted() else { return }
        guard let reason = caching.forwardReason, let hash = caching.key?.hash,
            CacheDecision.mayCollapse(request.method, with: request.fields.present, reason)
        else { return forward() }
        // In a forwarding loop it would wait for itself.
        guard passes == 0 else { return forward() }
        let now = environment.loop.now
        switch collapsing.role {
        case .none: break
        case .answered:
            environment.flights.proceedAlone(
                hash: hash, until: now + Self.aloneMilliseconds, for: clientNetwork)
            return forward()
        case .leads, .follows, .gaveUp: return forward()
        }
        switch environment.flights.enter(self, hash: hash, now: now) {
        case .alone: forward()
        case .lead:
            collapsing.lead(hash)
            forward()
        case .follow(let leader):
            let patience = collapsing.patience ?? environment.policy.timeouts.collapseMilliseconds
            guard patience > 0, register() else { return forward() }
            follow(leader, patience, now)
        }
    }

    private func follow(_ leader: Exchange, _ patience: Int64, _ now: Int64) {
        guard goesOn(after: .decided(.follow)) else { return }
        let queue = leader.collapsing.followers ?? FollowerQueue(now: now)
        leader.collapsing.follow(in: queue)
        if case .responding = leader.state.step, !(leader.client?.isFlushed ?? true) {
            queue.hold(now: now)
        }
        queue.waiting.append(self)
        collapsing.follow(FollowerWait(in: queue, patience: patience, now: now))
        caching.forgetStored()
        environment.metrics.add(.cacheCollapseWaits)
        environment.loop.setDeadline(self, after: patience)
    }

    /// Data came from the server: the followers keep waiting.
    @inline(__always)
    func serverProgressed() {
        if let followers = collapsing.followers { followers.progress(now: environment.loop.now) }
    }

    /// The response of the flight that this exchange leads is available to others, or will not be.
    func endFlight(_ end: FlightEnd) {
        guard case .leads(let hash) = collapsing.role else { return }
        let followers = collapsing.stopLeading()
        environment.flights.leave(self, hash: hash)
        if end == .notStored {
            environment.flights.proceedAlone(
                hash: hash, until: environment.loop.now + Self.aloneMilliseconds,
                for: clientNetwork)
        }
        guard let queue = followers else { return }
        queue.end = end
        let loop = environment.loop
        loop.afterTurn { Self.release(queue, on: loop) }
    }

    /// Releases the followers, a portion in each turn: there may be thousands.
    private static func release(_ queue: FollowerQueue, on loop: EventLoop) {
        for _ in 0..<EventLoop.portion {
            guard let follower = queue.waiting.popFirst() else { return }
            follower.flightEnded(queue.end ?? .failed)
        }
        if !queue.waiting.isEmpty { loop.afterTurn { release(queue, on: loop) } }
    }

    private func flightEnded(_ end: FlightEnd) {
        // The rest of its patience is for the next response that it waits for.
        var patience: Int64?
        if case .follows(let wait) = collapsing.role {
            patience = max(0, wait.left(now: environment.loop.now))
        }
        collapsing.endWait(patience: patience, isAnswered: end != .failed)
        environment.loop.setDeadline(self, after: nil)
        lookUpAgain()
    }

    /// Its patience is used up and it proceeds alone, unless the response has arrived or made
    /// progress meanwhile.
    func waitTimedOut() {
        guard case .follows(let wait) = collapsing.role else { return }
        let queue = wait.queue
        if let end = queue.end {
            queue.waiting.remove(self)
            return flightEnded(end)
        }
        let left = wait.left(now: environment.loop.now)
        guard left <= 0 else { return environment.loop.setDeadline(self, after: left) }
        queue.waiting.remove(self)
        collapsing.giveUp(queue)
        lookUpAgain()
    }

    /// Whether another exchange's response of the same variant is stored in place of this one's:
    /// that of the leader it stopped waiting for or of a fellow follower, or, for a leader, that of
    /// a follower that stopped waiting.
    func isStoredByAnother(_ variant: VaryKey) -> Bool {
        if let followers = collapsing.followers {
            return followers.hasStored(variant, since: forwarding.sentAt)
        }
        guard case .gaveUp(let queue, let storing) = collapsing.role else { return false }
        if let storing { queue.release(storing) }
        let isClaimed = queue.claim(variant, sentAt: forwarding.sentAt)
        collapsing.giveUp(queue, storing: isClaimed ? variant : nil)
        return !isClaimed
    }

    /// This exchange's response has been stored.
    func noteStored(_ variant: VaryKey) {
        if case .gaveUp(let queue, _) = collapsing.role {
            queue.noteStored(variant, at: Clock.monotonicMicroseconds())
            collapsing.giveUp(queue)
        }
        if let followers = collapsing.followers {
            followers.noteStored(variant, at: Clock.monotonicMicroseconds())
        }
        endFlight(.stored)
    }

    /// This exchange's response is not stored: another one of the same variant may be.
    @inline(__always)
    func releaseVariant() {
        guard case .gaveUp(let queue, let storing?) = collapsing.role else { return }
        queue.release(storing)
        collapsing.giveUp(queue)
    }

    private func lookUpAgain() {
        guard goesOn(after: .flightEnded), let origin else { return }
        // Under another configuration the stored response may not be usable.
        origin.policy === environment.policy ? lookUp(at: origin) : forward()
    }

    /// The exchange ends, or stops waiting.
    func leaveFlight() {
        switch collapsing.role {
        case .none, .answered: break
        case .gaveUp:
            releaseVariant()
            collapsing.leave()
        case .leads: endFlight(.failed)
        case .follows(let wait):
            collapsing.leave()
            wait.queue.waiting.remove(self)
        }
    }
}
