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
        var surplus: WaiterQueue.Waiter?
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
        if let surplus { refuse(surplus.consumer, at: origin) }
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
        _ origin: Origin, inPlaceOf surplus: inout WaiterQueue.Waiter?,
        for consumer: any UpstreamConsumer
    ) -> Bool {
        if mayWait(origin) { return true }
        surplus = origin.waiters.takeSurplus(for: consumer.clientNetwork)
        guard let surplus else { return false }
        waitEnded(surplus, origin, .refused)
        // Another worker may have been faster.
        return mayWait(origin)
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
        if let carrier = origin.carrier { return abandon(carrier, consumer) }
        guard let waiter = origin.waiters.remove(consumer) else {
            if let sibling = origin.http2.sibling { abandon(sibling, consumer) }
            return
        }
        waitEnded(waiter, origin, .abandoned)
        if origin.waiters.isEmpty { origin.http2.isAwaitedByNobody() }
        leaveQueueIfNobodyWaits(origin)
        forgetIfUnused(origin)
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
}
