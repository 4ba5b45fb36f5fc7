import CachePolicy
import CacheStore
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
// Of the exchanges that proceed alone, one at a time stores its own response.
//
// With a cookie unlike the first one's, it waits for an exchange with the same cookies, unless the
// response is known to be one for all (`Exchange+Groups`).
//
// An exchange waits for one response. If that does not help it (another variant, not storable,
// immediately stale), it is sent to the origin, and for a while the key's next misses are as well,
// so that responses that cannot be shared are not requested one after the other.
extension Exchange {
    /// How a leader's flight ends for its followers.
    package enum FlightEnd: Sendable {
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
        guard let reason = caching.forwardReason, let key = caching.key else { return forward() }
        let present = request.fields.present
        let mayLead = CacheDecision.mayCollapse(request.method, with: present, reason)
        guard mayLead || CacheDecision.mayFollow(request.method, with: present, reason) else {
            if present.contains(.ifMatch), request.isSafe, let origin {
                restoreEntityTags(for: origin)
            }
            return forward()
        }
        // In a forwarding loop it would wait for itself.
        guard passes == 0 else { return forward() }
        var hash = collapsing.group ?? key.hash
        var isOfRange = false
        if !mayLead || origin?.caching.sliceBytes != nil, !isLed(hash) {
            let patience = environment.policy.timeouts.collapseMilliseconds
            if fetchesSlice(key, reason, patience) { return }
            if !mayLead {
                // Those who ask for the same part wait for each other.
                guard let own = groupOfRange(in: hash) else { return forward() }
                hash = own
                isOfRange = true
            }
        }
        let now = environment.loop.now
        switch collapsing.role {
        case .none: break
        case .answered:
            // That a part was not there yet says nothing about other requests.
            if mayLead {
                environment.flights.proceedAlone(
                    hash: hash, until: now + Self.aloneMilliseconds, for: clientNetwork)
            }
            return forward()
        case .leads, .follows, .followsRemotely, .gaveUp, .gaveUpRemotely, .alone:
            return forward()
        }
        switch environment.flights.enter(self, hash: hash, now: now) {
        case .alone: forward()
        case .lead:
            if let place = placeOfLeader(hash) {
                environment.flights.leave(self, hash: hash)
                return wait(for: nil, at: place, hash, now)
            }
            collapsing.lead(hash)
            // What was being fetched has just arrived or failed.
            if !mayLead, !isOfRange { endFlight(.failed) }
            forward()
        case .follow(let leader): wait(for: leader, at: environment.index, hash, now)
        }
    }

    /// Waits for the response to another exchange, or to one with the same cookies if that may be
    /// for its own client only.
    /// - Parameter leader: `nil` if it is of another environment.
    private func wait(for leader: Exchange?, at place: Int, _ hash: UInt64, _ now: Int64) {
        let patience = collapsing.patience ?? environment.policy.timeouts.collapseMilliseconds
        guard patience > 0, register() else { return forward() }
        if isKnownToBeShared || collapsing.isOfCookies || sharesCookies(with: leader) {
            guard let leader else { return follow(at: place, hash, patience) }
            return follow(leader, patience, now)
        }
        collapsing.regroup(Self.group(in: hash, cookies), isOfCookies: true)
        forwardOrWait()
    }

    /// Whether the response is being fetched, here or in another environment.
    private func isLed(_ hash: UInt64) -> Bool {
        if environment.flights.leader(hash) != nil { return true }
        guard environment.shared.workerCount > 1, let place = store?.leader(hash) else {
            return false
        }
        return place != environment.index
    }

    /// The environment that fetches the same response; `nil` if this one leads from now on.
    func placeOfLeader(_ hash: UInt64) -> Int? {
        guard environment.shared.workerCount > 1, let store else { return nil }
        let place = store.lead(hash, at: environment.index)
        return place == environment.index ? nil : place
    }

    func follow(at place: Int, _ hash: UInt64, _ patience: Int64) {
        guard goesOn(after: .decided(.follow)) else { return }
        endClaim()
        collapsing.followRemotely(at: place, hash)
        caching.forgetStored()
        environment.metrics.add(.cacheCollapseWaits)
        environment.loop.setDeadline(self, after: patience)
        environment.shared.mailboxes[place].post(.follow(asRemoteFollower, hash: hash))
    }

    private var asRemoteFollower: RemoteFollower {
        RemoteFollower(place: environment.index, token: token)
    }

    /// An exchange of another environment waits for this one's response.
    func follow(_ follower: RemoteFollower) {
        let queue = collapsing.followers ?? FollowerQueue(now: environment.loop.now)
        collapsing.follow(in: queue)
        queue.remote.insert(follower)
        shareWithFollowers()
    }

    func unfollow(_ follower: RemoteFollower) { collapsing.followers?.remote.remove(follower) }

    func follow(_ leader: Exchange, _ patience: Int64, _ now: Int64) {
        guard goesOn(after: .decided(.follow)) else { return }
        endClaim()
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
        leader.shareWithFollowers()
    }

    /// Whether the response goes on without the client: others read it or wait for it.
    var isWanted: Bool {
        if let followers = collapsing.followers, !followers.isEmpty { return true }
        if let run = storing.parts?.run, run.body.readers > 0 { return true }
        return (storing.shared?.readers ?? 0) > 0
    }

    /// Data came from the server: the followers keep waiting.
    @inline(__always)
    func serverProgressed() {
        if let followers = collapsing.followers { followers.progress(now: environment.loop.now) }
    }

    /// The response of the flight that this exchange leads is available to others, or will not be.
    func endFlight(_ end: FlightEnd) {
        if collapsing.lease != nil { endLease(end) }
        guard case .leads(let hash) = collapsing.role else { return }
        let followers = collapsing.stopLeading()
        environment.flights.leave(self, hash: hash)
        if environment.shared.workerCount > 1 {
            store?.stopLeading(hash, at: environment.index)
        }
        if end == .notStored {
            environment.flights.proceedAlone(
                hash: hash, until: environment.loop.now + Self.aloneMilliseconds,
                for: clientNetwork)
        }
        guard let queue = followers else { return }
        queue.end = end
        for follower in queue.remote {
            environment.shared.mailboxes[follower.place].post(.flightEnded(follower.token, end))
        }
        queue.remote = []
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
        if collapsing.lease != nil { endLease(end) }
        collapsing.endWait(patience: patience, isAnswered: end != .failed)
        environment.loop.setDeadline(self, after: nil)
        lookUpAgain()
    }

    /// Of the exchange of another environment that it waits for.
    func remoteFlightEnded(_ end: FlightEnd) {
        guard case .followsRemotely = collapsing.role else { return }
        if collapsing.lease != nil { endLease(end) }
        collapsing.endWait(patience: nil, isAnswered: end != .failed)
        environment.loop.setDeadline(self, after: nil)
        lookUpAgain()
    }

    /// Its patience is used up and it proceeds alone, unless the response has arrived or made
    /// progress meanwhile.
    func waitTimedOut() {
        if case .followsRemotely(let place, let hash) = collapsing.role {
            let stores = store?.claim(hash) ?? false
            collapsing.giveUpRemotely(hash, stores: stores)
            environment.shared.mailboxes[place].post(.unfollow(asRemoteFollower, hash: hash))
            return lookUpAgain()
        }
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
    /// that of the leader it stopped waiting for or of a fellow follower, for a leader that of a
    /// follower that stopped waiting, or for one that has not waited that of another such.
    /// - Parameter isPart: whether the response is a part of a representation.
    func isStoredByAnother(_ variant: VaryKey, isPart: Bool) -> Bool {
        if let followers = collapsing.followers {
            return followers.hasStored(variant, since: forwarding.sentAt)
        }
        switch collapsing.role {
        case .none, .answered, .alone: return !isPart && !claims(variant)
        case .gaveUpRemotely(_, let stores): return !stores
        case .gaveUp(let queue, let storing):
            if let storing { queue.release(storing) }
            let isClaimed = queue.claim(variant, sentAt: forwarding.sentAt)
            collapsing.giveUp(queue, storing: isClaimed ? variant : nil)
            return !isClaimed
        case .leads, .follows, .followsRemotely: return false
        }
    }

    /// This exchange's response has been stored.
    func noteStored(_ variant: VaryKey) {
        if case .gaveUp(let queue, _) = collapsing.role {
            queue.noteStored(variant, at: Clock.monotonicMicroseconds())
            collapsing.giveUp(queue)
        }
        releaseClaim()
        if let followers = collapsing.followers {
            followers.noteStored(variant, at: Clock.monotonicMicroseconds())
        }
        endFlight(.stored)
    }

    /// This exchange's response is not stored: another one of the same variant may be.
    @inline(__always)
    func releaseVariant() {
        releaseClaim()
        guard case .gaveUp(let queue, let storing?) = collapsing.role else { return }
        queue.release(storing)
        collapsing.giveUp(queue)
    }

    /// Whether it stores its response, of those that have not waited for each other: others store
    /// other variants. A request that asks for a new response stores it in any case.
    private func claims(_ variant: VaryKey) -> Bool {
        releaseClaim()
        guard client != nil, let store, let key = caching.key, let reason = caching.forwardReason,
            CacheDecision.mayCollapse(request.method, with: request.fields.present, reason)
        else { return true }
        let hash = Self.group(in: key.hash, variant)
        guard store.claim(hash) else { return false }
        collapsing.goAlone(storing: hash)
        return true
    }

    /// Another that has not waited may store.
    private func releaseClaim() {
        guard case .alone(let claim) = collapsing.role else { return }
        store?.endClaim(claim)
        collapsing.leave()
    }

    private func lookUpAgain() {
        guard goesOn(after: .flightEnded), let origin else { return }
        // Under another configuration the stored response may not be usable.
        origin.policy === environment.policy ? lookUp(at: origin) : forward()
    }

    /// Another may store in place of what it stopped waiting for: it ends, or waits for a part.
    private func endClaim() {
        guard case .gaveUpRemotely(let hash, let stores) = collapsing.role else { return }
        if stores { store?.endClaim(hash) }
        collapsing.leave()
    }

    /// The exchange ends, or stops waiting.
    func leaveFlight() {
        switch collapsing.role {
        case .none, .answered: break
        case .gaveUpRemotely: endClaim()
        case .followsRemotely(let place, let hash):
            collapsing.leave()
            environment.shared.mailboxes[place].post(.unfollow(asRemoteFollower, hash: hash))
        case .gaveUp, .alone:
            releaseVariant()
            collapsing.leave()
        case .leads: endFlight(.failed)
        case .follows(let wait):
            collapsing.leave()
            wait.queue.waiting.remove(self)
        }
    }
}
