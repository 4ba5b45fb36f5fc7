import CachePolicy
import CacheStore
import EventLoop
import HTTPCore
import PinfoldMetrics

// Of the gateways that share a level of the cache, one asks the server (`FetchLease`).
extension Exchange {
    /// Whether its response may be one for all, so that one gateway of a fleet should ask for it. A
    /// request with a cookie is not compared with those of other gateways: where the response is
    /// not known to be shared it might be personal.
    var mayFetchForFleet: Bool {
        let present = request.fields.present
        guard case .none = collapsing.role, passes == 0, !present.contains(.cookie), let origin
        else { return false }
        return CacheDecision.mayCollapse(request.method, with: present, .uriMiss)
            && origin.cacheStores && origin.caching.sliceBytes == nil
    }

    /// Whether one gateway of the fleet is to fetch what it asks a store for, and the others are to
    /// wait. For how long it waits then is taken from its patience with exchanges of its own
    /// gateway: both together are no longer than `timeouts.collapse`, unless another gateway alone
    /// is waited for longer. Whoever has no patience left does not wait for another one either.
    func fetchesForFleet(from store: CacheStore) -> Bool {
        guard mayFetchForFleet, collapsing.patience != 0 else { return false }
        if store.isShared { collapsing.asksFleet(at: environment.loop.now) }
        return true
    }

    /// The store has answered.
    func hasAskedFleet() {
        collapsing.hasAskedFleet(
            at: environment.loop.now, of: environment.policy.timeouts.collapseMilliseconds)
    }

    /// Before a server is asked about a stale response: asks once whether another gateway has had
    /// it confirmed, and waits for one that does so, unless the response might be for its own
    /// client only. All gateways have stored it with the same age, so that it becomes stale in all
    /// of them at the same moment.
    ///
    /// Whatever else is the reason to ask the server, the request demands it, or the response.
    /// - Returns: whether it goes on when the answer is there, or has ended.
    @inline(never)
    func asksForFresh(insteadOf stale: CachedResponse, because reason: ForwardReason) -> Bool {
        guard !caching.hasAskedForFresh, case .stale = reason, let store,
            store.mayHaveFresh(insteadOf: stale), register()
        else { return false }
        guard goesOn(after: .decided(.load)) else { return true }
        caching.asksForFresh(insteadOf: stale)
        let (token, mailbox) = (token, environment.mailbox)
        let isAccepted = store.loadFresh(
            insteadOf: stale, policy: cacheOptions, fetches: fetchesForFleet(from: store)
        ) {
            mailbox.post(.loaded(token, $0))
        }
        if isAccepted {
            environment.wakeReadersAfterTurn()
            return true
        }
        hasAskedFleet()
        _ = caching.takeAskedFor()
        return !goesOn(after: .loaded)
    }

    /// Goes on with the answer, or with the stale response if there is none.
    func askedForFresh(insteadOf stale: CachedResponse, _ result: LoadResult) {
        if case .found(let responses, _) = result, let origin,
            let response = select(from: responses, origin)
        {
            // In the background that is all that was wanted: the stale one is replaced.
            guard caching.revalidated == nil else { return endSilently() }
            environment.metrics.add(.cacheSharedHits)
            caching.key?.withView { answer(from: response, $0, origin, isShared: true) }
            return
        }
        if case .lead(let lease) = result { collapsing.hold(lease) }
        guard caching.revalidated == nil, let origin else { return forward() }
        guard let store, store.holds(stale) else {
            // It was replaced or purged meanwhile. Nobody need wait for this exchange.
            if collapsing.lease != nil { _ = collapsing.takeLease() }
            return origin.policy === environment.policy ? lookUp(at: origin) : forward()
        }
        caching.key?.withView { answer(from: stale, $0, origin) }
    }

    /// The response that all gateways wait for is stored, or will not be. If there is none, another
    /// exchange of this gateway may have the lease as well, and asks for the next one.
    @inline(never)
    func endLease(_ end: FlightEnd) {
        guard let lease = collapsing.takeLease() else { return }
        switch end {
        case .stored: lease.end(.stored)
        case .notStored: lease.end(.notStored)
        case .failed: break
        }
    }
}
