import HTTPCore
import PinfoldConfiguration

/// The permits that a connection takes from the limits of the process.
struct Permits: OptionSet {
    let rawValue: UInt8
    /// Of the limit on connections to its origin.
    static let origin = Permits(rawValue: 1)
    /// Of the limit on all connections to origins.
    static let total = Permits(rawValue: 2)
}

// The limits of the process, as one worker's pool sees them.
//
//     a permit is free ──► connect
//     none: close an idle connection (of the same origin, or the longest idle of all)
//     none: queue for a permit, and ask the other workers for an idle connection
//     a permit is given back anywhere ──► the first in the queue gets it ──► connect
//
// A worker with waiters gives up a connection only for a worker that has less than its share.
extension UpstreamPool {
    /// The limit on an origin's connections.
    package func limit(of origin: Origin) -> SharedLimit {
        if let carrier = origin.carrier { return limit(of: carrier) }
        if let limit = origin.limit { return limit }
        let limit = environment.shared.originLimits.limit(of: origin.key)
        origin.limit = limit
        return limit
    }

    private var total: SharedLimit { environment.shared.upstreamLimit }
    private var workers: Int { environment.shared.workerCount }
    /// The current limits, whatever policy a connection was made under.
    private var limits: LimitsConfiguration { environment.policy.configuration.limits }
    /// The most connections to an origin.
    private func size(of origin: Origin) -> Int {
        min(limits.upstreamPerHost, origin.maxConnections)
    }

    /// Takes the permits for one more connection. Returns false if there are none: permits that
    /// were held are given back, and the worker is queued for the missing one.
    /// - Parameter client: for whom it is made; `nil` for the first one who waits.
    func takePermits(
        _ origin: Origin, holding held: Permits = [], for client: IPNetwork? = nil
    ) -> Bool {
        let own = limit(of: origin)
        byLimit[ObjectIdentifier(own), default: LimitedOrigins()]
            .add(origin, for: client ?? origin.waiters.first?.client)
        if !held.contains(.origin), !own.take(limit: size(of: origin)) {
            if let victim = (origin.sharesLimit ? limited(like: origin).idle : origin)?.idle.first {
                if held.contains(.total) { giveBack(total, limits.connections) }
                takeOver([.origin, .total], of: victim)
                return true
            }
            guard waitForPermit(origin, own, size(of: origin)) else {
                if held.contains(.total) { giveBack(total, limits.connections) }
                return false
            }
        }
        if !held.contains(.total), !total.take(limit: limits.connections) {
            if let victim = idleOrder.longestIdle()?.connection {
                takeOver(.total, of: victim)
                return true
            }
            guard waitForTotal(origin, limits.connections) else {
                giveBack(own, size(of: origin))
                return false
            }
        }
        return true
    }

    /// Closes an idle connection, whose permits go to the new one.
    private func takeOver(_ permits: Permits, of victim: any PooledConnection) {
        isMakingRoom = true
        victim.permits.subtract(permits)
        discardIdle(victim, .makesRoom)
        isMakingRoom = false
    }

    /// Returns true if a permit has become free meanwhile and was taken.
    private func waitForPermit(_ origin: Origin, _ limit: SharedLimit, _ size: Int) -> Bool {
        let share = FairShare(limit: size, workers: workers)
        let isStarved = share.isStarved(connections(like: origin))
        switch limit.take(limit: size, orWaitAs: environment.index, isStarved: isStarved) {
        case .taken: return true
        case .waits(let isNew):
            origin.isQueued = true
            if isNew { requestIdleConnection(limit) }
            return false
        }
    }

    private func waitForTotal(_ origin: Origin, _ size: Int) -> Bool {
        let share = FairShare(limit: size, workers: workers)
        let isStarved = share.isStarved(open + establishing)
        switch total.take(limit: size, orWaitAs: environment.index, isStarved: isStarved) {
        case .taken: return true
        case .waits(let isNew):
            if !origin.isStarved { starved.append(origin) }
            origin.isStarved = true
            if isNew { requestIdleConnection(total) }
            return false
        }
    }

    // MARK: Giving permits back

    /// Gives back the permits of a connection that is gone or was not established.
    func giveBack(_ permits: Permits, of origin: Origin) {
        if permits.contains(.origin) { giveBack(limit(of: origin), size(of: origin)) }
        if permits.contains(.total) { giveBack(total, limits.connections) }
    }

    private func giveBack(_ limit: SharedLimit, _ size: Int) {
        guard let next = limit.giveBack(limit: size) else { return }
        environment.shared.mailboxes[next].post(.permitGranted(limit))
    }

    /// This worker was first in a limit's queue and has been granted a permit.
    func permitGranted(_ limit: SharedLimit) {
        if limit === total { return totalPermitGranted() }
        guard let latest = byLimit[ObjectIdentifier(limit)]?.latest else {
            return giveBack(limit, limits.upstreamPerHost)
        }
        guard let origin = byLimit[ObjectIdentifier(limit)]?.next else {
            leaveQueue(of: limit)
            giveBack(limit, size(of: latest))
            for origin in byLimit[ObjectIdentifier(limit)]?.all ?? [] { forgetIfUnused(origin) }
            return
        }
        guard takePermits(origin, holding: .origin) else { return starve(allWith: limit) }
        if environment.traces { tracePermit(origin, .origin) }
        connect(origin)
        // By now this worker is in the queue only if it does not get all that it needs.
        connectForAll(with: limit)
        if byLimit[ObjectIdentifier(limit)]?.next == nil { leaveQueue(of: limit) }
    }

    /// Makes the connections that the exchanges need which wait at any of the origins with a limit.
    /// One that fails at once does not make the next, as in ``connectForAll(_:)``.
    func connectForAll(with limit: SharedLimit) {
        let key = ObjectIdentifier(limit)
        guard byLimit[key]?.isConnectingForAll == false else { return }
        byLimit[key]?.isConnectingForAll = true
        while let next = byLimit[key]?.next {
            if connectForWaiters(next) { continue }
            if next.isStarved { starve(allWith: limit) }
            break
        }
        byLimit[key]?.isConnectingForAll = false
    }

    /// None of the limit on all connections is free: all origins with another limit wait for it,
    /// rather than for that one, of which the permit is given back.
    private func starve(allWith limit: SharedLimit) {
        for origin in byLimit[ObjectIdentifier(limit)]?.all ?? []
        where origin.needsConnection && !origin.isStarved {
            origin.isStarved = true
            starved.append(origin)
        }
    }

    private func totalPermitGranted() {
        while let next = starved.popFirst() {
            guard next.isStarved else { continue }
            next.isStarved = false
            guard next.needsConnection else { continue }
            if takePermits(next, holding: .total) {
                if environment.traces { tracePermit(next, .total) }
                connect(next)
            }
            return connectForStarved()
        }
        total.leave(environment.index)
        giveBack(total, limits.connections)
    }

    /// The limits have changed: makes the connections that they allow, and closes idle ones that
    /// they do not. Those in use are closed when they are returned.
    func limitsChanged(_ origins: [Origin]) {
        total.adapt(to: limits.connections)
        while total.isOver, let idle = idleOrder.longestIdle()?.connection {
            discardIdle(idle, .overLimit)
        }
        for origin in origins {
            if let limit = origin.limit {
                limit.adapt(to: size(of: origin))
                while limit.isOver, let idle = origin.idle.first { discardIdle(idle, .overLimit) }
            }
            while connectForWaiters(origin) {}
        }
    }

    /// Whether there are more connections than allowed, to the origin or in total.
    func isOverLimit(_ origin: Origin) -> Bool { limit(of: origin).isOver || total.isOver }

    /// Whether a connection that could be kept idle should be closed for another worker or origin.
    func isWaitedFor(_ origin: Origin) -> Bool {
        (origin.limit?.isWaitedFor ?? false) || total.isWaitedFor
    }

    /// Whether to give up a connection that one of this worker's waiters could use: for another
    /// worker, or because there are more than allowed.
    func givesWay(_ origin: Origin) -> Bool {
        if isOverLimit(origin) { return true }
        if origin.sharesLimit, limited(like: origin).givesWay(origin) { return true }
        guard workers > 1 else { return false }
        return givesWay(
            limit(of: origin), size(of: origin), own: connections(like: origin))
            || givesWay(total, limits.connections, own: open + establishing)
    }

    private func givesWay(_ limit: SharedLimit, _ size: Int, own: Int) -> Bool {
        limit.hasStarved && FairShare(limit: size, workers: workers).givesWay(own)
            && limit.hasStarved(otherThan: environment.index)
    }

    /// Leaves the queue if nobody waits here.
    func leaveQueueIfNobodyWaits(_ origin: Origin) {
        guard origin.isQueued, origin.waiters.isEmpty, let limit = origin.limit else { return }
        origin.isQueued = false
        if origin.sharesLimit, limited(like: origin).all.contains(where: \.isQueued) { return }
        limit.leave(environment.index)
    }

    /// Leaves a queue for all origins with the limit.
    private func leaveQueue(of limit: SharedLimit) {
        for origin in byLimit[ObjectIdentifier(limit)]?.all ?? [] { origin.isQueued = false }
        limit.leave(environment.index)
    }

    /// Connections that count towards the limit of an origin here, those on their way included.
    private func connections(like origin: Origin) -> Int {
        origin.sharesLimit ? limited(like: origin).connections : origin.connections
    }

    /// The origins that have the same limit as this one.
    func limited(like origin: Origin) -> LimitedOrigins {
        byLimit[ObjectIdentifier(limit(of: origin))] ?? LimitedOrigins()
    }

    /// Removes an origin from `byLimit` if it is unused.
    func forgetIfUnused(_ origin: Origin) {
        guard origin.isUnused, let limit = origin.limit, origin.isAmongLimited else { return }
        byLimit[ObjectIdentifier(limit)]?.remove(origin)
        if byLimit[ObjectIdentifier(limit)]?.isEmpty ?? false {
            byLimit[ObjectIdentifier(limit)] = nil
        }
        environment.origins.becameUnused(origin)
        // It was in use as long as this one was.
        if let elder = origin.http2.elder { forgetIfUnused(elder) }
    }

    // MARK: Idle connections of other workers

    private func requestIdleConnection(_ limit: SharedLimit) {
        guard workers > 1 else { return }
        let request = IdleConnectionRequest(
            limit, requester: environment.index, others: workers - 1)
        idleRequests[ObjectIdentifier(limit)] = request
        for (other, mailbox) in environment.shared.mailboxes.enumerated()
        where other != environment.index {
            mailbox.post(.connectionWanted(request))
        }
    }

    /// Another worker waits: closes an idle connection for it.
    func connectionWanted(_ request: IdleConnectionRequest) {
        let limit = request.limit
        if limit.isWaitedFor {
            let idle =
                limit === total
                ? idleOrder.longestIdle()?.connection
                : byLimit[ObjectIdentifier(limit)]?.idle?.idle.first
            if let idle { discardIdle(idle, .waitedForElsewhere) }
        }
        if request.answer() {
            environment.shared.mailboxes[request.requester].post(.connectionAnswered(request))
        }
    }

    /// Whether a request to the other workers that could help an exchange of this origin is still
    /// open.
    func hasIdleRequest(for origin: Origin) -> Bool {
        guard !idleRequests.isEmpty else { return false }
        if let limit = origin.limit, idleRequests[ObjectIdentifier(limit)] != nil { return true }
        return origin.isStarved && idleRequests[ObjectIdentifier(total)] != nil
    }

    /// No other worker has an idle connection left. With `pending: 0`, exchanges wait for this
    /// answer only.
    func connectionAnswered(_ request: IdleConnectionRequest) {
        let limit = request.limit
        // A permit may have been granted since then, and another request been made.
        guard idleRequests[ObjectIdentifier(limit)] === request else { return }
        idleRequests[ObjectIdentifier(limit)] = nil
        guard limits.pending == 0 else { return }
        guard limit === total else {
            for origin in byLimit[ObjectIdentifier(limit)]?.all ?? [] { refuseWaiters(origin) }
            return
        }
        total.leave(environment.index)
        while let origin = starved.popFirst() {
            guard origin.isStarved else { continue }
            origin.isStarved = false
            refuseWaiters(origin)
        }
    }

    /// Refuses the waiters for which no connection is being established, unless a request to other
    /// workers is still open.
    private func refuseWaiters(_ origin: Origin) {
        guard !hasIdleRequest(for: origin) else { return }
        while origin.needsConnection,
            let consumer = takeWaiter(origin, isFresh: true, .refused)
        {
            environment.metrics.add(.poolWaitRefusals)
            consumer.upstreamFailed(StreamError(.gateway(.tooManyPending)))
        }
        leaveQueueIfNobodyWaits(origin)
        forgetIfUnused(origin)
    }
}
