import Clocks
import HTTPCore

// Exchanges that wait for a connection, or for a stream. Clients take turns; if as many wait as
// allowed, the last one of the client with the most gives way.
extension UpstreamPool {
    /// Queues a consumer. Returns false if it has been refused.
    /// - Parameter isCounted: whether it waits, rather than for a connection of its own.
    func wait(
        _ origin: Origin, _ consumer: any UpstreamConsumer, fresh: Bool, isCounted: Bool
    ) -> Bool {
        var surplus: (waiter: WaiterQueue.Waiter, origin: Origin)?
        let isAllowed = !isCounted || mayWait(origin, inPlaceOf: &surplus, for: consumer)
        if isAllowed {
            origin.waiters.append(
                consumer, wantsFresh: fresh,
                since: isCounted ? Clock.monotonicMicroseconds() : nil)
            environment.metrics.adjust(.waiting, host: origin.route, by: 1)
            if isCounted {
                environment.metrics.add(.poolWaits)
                if environment.traces { traceWait(origin, consumer) }
            }
        } else {
            leaveQueueIfNobodyWaits(origin)
            forgetIfUnused(origin)
        }
        if let surplus { refuse(surplus.waiter.consumer, at: surplus.origin) }
        if !isAllowed { refuse(consumer, at: origin) }
        return isAllowed
    }

    private func refuse(_ consumer: any UpstreamConsumer, at origin: Origin) {
        environment.metrics.add(.poolWaitRefusals)
        if environment.traces { traceRefusal(origin, consumer) }
        consumer.upstreamFailed(StreamError(.gateway(.tooManyPending)))
    }

    /// The same as ``mayWait(_:)``; if as many wait as allowed, one of a client that has more of
    /// them at this worker gives way, and is to be refused.
    private func mayWait(
        _ origin: Origin, inPlaceOf surplus: inout (waiter: WaiterQueue.Waiter, origin: Origin)?,
        for consumer: any UpstreamConsumer
    ) -> Bool {
        if mayWait(origin) { return true }
        surplus = takeSurplus(origin, for: consumer.clientNetwork)
        guard let surplus else { return false }
        waitEnded(surplus.waiter, surplus.origin, .refused)
        if surplus.origin !== origin {
            leaveQueueIfNobodyWaits(surplus.origin)
            forgetIfUnused(surplus.origin)
        }
        // Another worker may have been faster.
        return mayWait(origin)
    }

    /// Takes the waiter that gives way to one of a client, of all origins with the same limit.
    private func takeSurplus(
        _ origin: Origin, for client: IPNetwork?
    ) -> (waiter: WaiterQueue.Waiter, origin: Origin)? {
        guard origin.sharesLimit else {
            return origin.waiters.takeSurplus(for: client).map { ($0, origin) }
        }
        guard let found = limited(like: origin).surplus(for: client) else { return nil }
        return found.origin.waiters.takeLast(of: found.client).map { ($0, found.origin) }
    }

    /// Counts one more waiting exchange; returns false if as many are waiting as allowed.
    private func mayWait(_ origin: Origin) -> Bool {
        let limit = limit(of: origin)
        let pending = origin.policy.configuration.limits.pending
        if limit.waitingExchanges.add(1, ordering: .relaxed).newValue <= pending { return true }
        // Even if none may wait, exchanges wait for the answer of the other workers.
        if pending == 0, hasIdleRequest(for: origin) { return true }
        limit.waitingExchanges.subtract(1, ordering: .relaxed)
        return false
    }

    /// The consumer no longer waits.
    package func abandon(_ origin: Origin, _ consumer: any UpstreamConsumer) {
        if origin.ways != nil, abandonSearch(of: consumer) { return }
        abandonByWay(origin, consumer)
    }

    /// The same for a way that has been chosen.
    func abandonByWay(_ origin: Origin, _ consumer: any UpstreamConsumer) {
        if let carrier = origin.carrier { return abandonByWay(carrier, consumer) }
        guard let waiter = origin.waiters.remove(consumer) else {
            if let sibling = origin.http2.sibling { abandonByWay(sibling, consumer) }
            return
        }
        waitEnded(waiter, origin, .abandoned)
        if origin.waiters.isEmpty { origin.http2.isAwaitedByNobody() }
        leaveQueueIfNobodyWaits(origin)
        forgetIfUnused(origin)
    }

    package func timeline(
        _ origin: Origin, _ consumer: any UpstreamConsumer
    ) -> ConnectionTimeline? {
        if origin.ways != nil, let search = searches[ObjectIdentifier(consumer)] {
            return search.timeline
        }
        return timelineByWay(origin, consumer)
    }

    /// The same for a way that has been chosen.
    func timelineByWay(
        _ origin: Origin, _ consumer: any UpstreamConsumer
    ) -> ConnectionTimeline? {
        if let carrier = origin.carrier { return timelineByWay(carrier, consumer) }
        guard let waiter = origin.waiters.waiter(consumer) else {
            return origin.http2.sibling.flatMap { timelineByWay($0, consumer) }
        }
        // Whoever waits for a place gets no connection that was begun for those before.
        guard let since = waiter.since else { return origin.underWay.first }
        return origin.underWay.first { ($0.begin ?? 0) >= since }
    }

    /// Counts a wait that has ended, in whatever way: unsuccessful ones are the longest.
    func waitEnded(
        _ waiter: WaiterQueue.Waiter, _ origin: Origin, _ end: PoolWaitEnd
    ) {
        environment.metrics.adjust(.waiting, host: origin.route, by: -1)
        guard let since = waiter.since else { return }
        limit(of: origin).waitingExchanges.subtract(1, ordering: .relaxed)
        let microseconds = UInt64(max(0, Clock.monotonicMicroseconds() - since))
        environment.metrics.record(.poolWait, microseconds: microseconds)
        if environment.traces { traceWaitEnd(waiter, origin, end, microseconds: microseconds) }
    }

    /// Takes the first waiter that can use the connection; `end` is how its wait ends.
    func takeWaiter(
        _ origin: Origin, isFresh: Bool, _ end: PoolWaitEnd
    ) -> (any UpstreamConsumer)? {
        guard let waiter = origin.waiters.take(isFresh: isFresh) else { return nil }
        waitEnded(waiter, origin, end)
        return waiter.consumer
    }

    // MARK: Connections for those who wait

    /// Permits have become free: serves the origins that could not connect because of the total
    /// limit.
    func connectForStarved() {
        while let next = starved.popFirst() {
            guard next.isStarved else { continue }
            next.isStarved = false
            // Its waiters may have given up. If there is no room for it, it is starved again, and
            // the worker in the queue: until then it need not be.
            connectForWaiters(next)
            if next.isStarved { return }
        }
    }

    /// A connection of an origin is gone: makes one for whoever is next.
    func connectForNext(after origin: Origin) {
        guard origin.sharesLimit else {
            connectForWaiters(origin)
            return
        }
        if let next = limited(like: origin).next { connectForWaiters(next) }
    }

    // MARK: Reloads

    /// The rules have changed: those who wait for a server to which rules name the ways have to ask
    /// them again, and so have those who wait by ways that a rule has named.
    func rulesChanged() {
        // Those that begin meanwhile have asked.
        let begun = searches.values.filter(\.dependsOnRules)
        sendBackWaiters(environment.origins.all.filter(\.mayBeRuled))
        for search in begun {
            guard searches.values.contains(where: { $0 === search }) else { continue }
            search.end()
        }
    }

    /// Sends those who wait for origins back to find them again.
    func sendBackWaiters(_ origins: [Origin]) {
        let waiting = origins.map { ($0, $0.waiters.takeAll()) }
        // Before they continue, because this worker may then be in the same queues again.
        for origin in origins { leaveQueueIfNobodyWaits(origin) }
        for (origin, waiters) in waiting {
            for waiter in waiters {
                waitEnded(waiter, origin, .superseded)
                waiter.consumer.upstreamFailed(StreamError(.gateway(.superseded)))
            }
            forgetIfUnused(origin)
        }
    }

    /// Makes a connection for a waiting exchange that has none on its way; returns false if there
    /// is no such exchange or no room.
    @discardableResult
    func connectForWaiters(_ origin: Origin) -> Bool {
        guard origin.needsConnection, takePermits(origin) else { return false }
        if environment.traces { tracePermit(origin, .origin) }
        connect(origin)
        return true
    }

    /// Makes the connections that waiting exchanges need. One that fails at once does not make the
    /// next: the calls would be as deep as there are exchanges.
    func connectForAll(_ origin: Origin) {
        if origin.sharesLimit { return connectForAll(with: limit(of: origin)) }
        guard !origin.isConnectingForAll else { return }
        origin.isConnectingForAll = true
        while connectForWaiters(origin) {}
        origin.isConnectingForAll = false
    }
}
