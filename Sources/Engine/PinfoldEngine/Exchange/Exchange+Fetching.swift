import CachePolicy
import CacheStore
import Clocks
import EventLoop
import HTTPCore

// Fetching what is missing of a representation of which parts are stored, or the first slice of
// one: an exchange without a client, whose response those read who want it.
extension Exchange {
    /// Fetches a run that has been announced, for this exchange and others that read it.
    func fetch(_ run: PartsUnderWay, of stored: CachedResponse) {
        guard let fetcher = makeFetcher(of: run, stored) else { return }
        metrics.add(.cachePartFetches)
        environment.loop.afterTurn { fetcher.forward() }
    }

    /// Whether the rest of a response can be fetched for the client, once it has got something of
    /// it.
    var mayFetchRest: Bool {
        guard client != nil, serving.translation == nil, request.method == .get,
            caching.key != nil, let origin
        else { return false }
        return origin.policy === environment.policy && origin.passesUnchanged
    }

    private func makeFetcher(of run: PartsUnderWay, _ stored: CachedResponse) -> Exchange? {
        let fetcher = environment.takeExchange()
        if fetcher.prepare(toFetch: run, of: stored, for: self) { return fetcher }
        store?.abandonRun(run)
        fetcher.endUnsent()
        return nil
    }

    /// What becomes of a request for which something is missing.
    enum Missing {
        /// It waits until the server has confirmed that what is stored is still a part of the same
        /// representation.
        case waits
        /// What is missing is under way.
        case underWay
        case impossible
    }

    /// Has what is missing at a position fetched, before anything of the response is sent: if the
    /// representation has changed, the client gets the new one.
    func fetchMissing(
        of stored: CachedResponse, at offset: UInt64, before limit: UInt64
    ) -> Missing {
        guard case .parts(let parts) = stored.body, let key = caching.key, let store else {
            return .impossible
        }
        let patience = environment.policy.timeouts.collapseMilliseconds
        guard patience > 0, register() else { return .underWay }
        let slices = StoredParts(stored, parts)
        let (run, isNew) = store.joinRun(of: parts, at: offset) {
            slices.missing(
                from: offset, before: limit, wholeSlices: asksForSlices, in: store)
        }
        slices.join(run)
        serving.await(slices)
        let hash = Self.group(in: key.hash, [parts.set, run.range.lowerBound])
        guard isNew else {
            collapsing.noteFetch()
            if let leader = environment.flights.leader(hash) {
                follow(leader, patience, environment.loop.now)
            } else if let place = placeElsewhere(hash) {
                follow(at: place, hash, patience)
            } else {
                return .underWay
            }
            return .waits
        }
        collapsing.noteFetch()
        // It may have arrived since it was looked for.
        if case .inMemory(let slice) = store.slice(of: parts, key: key, at: offset),
            slice.range.contains(offset)
        {
            store.abandonRun(run)
            return .underWay
        }
        guard let fetcher = makeFetcher(of: run, stored) else { return .impossible }
        return waits(for: fetcher, hash, patience) ? .waits : .impossible
    }

    /// Whether requests for parts ask for whole slices.
    var asksForSlices: Bool { origin?.caching.sliceBytes != nil }

    /// Where else the response is awaited.
    private func placeElsewhere(_ hash: UInt64) -> Int? {
        guard environment.shared.workerCount > 1, let place = store?.leader(hash),
            place != environment.index
        else { return nil }
        return place
    }

    /// Waits for the head of the response that another exchange, which is prepared, asks for.
    private func waits(for fetcher: Exchange, _ hash: UInt64, _ patience: Int64) -> Bool {
        let now = environment.loop.now
        guard case .lead = environment.flights.enter(fetcher, hash: hash, now: now) else {
            fetcher.endUnsent()
            return false
        }
        if let place = placeOfLeader(hash) {
            environment.flights.leave(fetcher, hash: hash)
            fetcher.endUnsent()
            follow(at: place, hash, patience)
            return true
        }
        fetcher.leads(hash)
        // The head may have been stored since it was looked for.
        if !collapsing.hasFetched, caching.forwardReason == .uriMiss, let origin,
            let key = caching.key, let store,
            !key.withView({ store.responses($0) }).isEmpty
        {
            fetcher.endUnsent()
            collapsing.noteFetch()
            lookUp(at: origin)
            return true
        }
        follow(fetcher, patience, now)
        metrics.add(.cachePartFetches)
        environment.loop.afterTurn { fetcher.forward() }
        return true
    }

    private func prepare(
        toFetch run: PartsUnderWay, of stored: CachedResponse, for other: Exchange
    ) -> Bool {
        guard
            let part = PartRequest(
                first: run.range.lowerBound, last: run.range.upperBound - 1, of: stored.metadata,
                storedHead: stored.head.octets),
            let key = other.caching.key,
            prepare(toAskFor: SubstituteRequest(part: part), key, .partial, for: other)
        else { return false }
        caching.found(stored)
        storing.announce(run)
        return true
    }

    /// Takes the request over from another exchange, without its client.
    func prepare(
        toAskFor substitute: SubstituteRequest, _ key: CacheKey, _ reason: ForwardReason,
        for other: Exchange
    ) -> Bool {
        guard copyRequest(of: other), let origin = other.origin,
            goesOn(
                after: .begin(.init(hasContent: false, isIdempotent: true, hasClient: false)))
        else { return false }
        intake.begin(onBehalfOf: other)
        report.begin(environment.nextExchangeID(), at: Clock.monotonicMicroseconds())
        forwarding.go(to: origin)
        forwarding.ask(for: substitute)
        caching.identify(by: key)
        caching.forward(because: reason)
        return true
    }

    /// Handles the final head of the response to a request for what is missing.
    func takePart(_ bytes: Span<UInt8>, _ part: PartRequest) {
        guard goesOn(after: .answered(.passedOn)) else { return }
        switch part.answer(response, in: bytes) {
        case .part, .whole: if !beginRun(bytes, part) { endSilently() }
        case .changed:
            if let stored = caching.stored { store?.remove(stored) }
            endSilently()
        case .unusable: endSilently()
        }
    }

    private func beginRun(_ bytes: Span<UInt8>, _ part: PartRequest) -> Bool {
        guard let stored = caching.stored, case .parts(let parts) = stored.body,
            let run = storing.takePartial()?.run, let key = caching.key, let store, let origin,
            let complete = part.complete
        else { return false }
        let decision = StoreDecision.decide(
            on: response, in: bytes, to: request, in: requestHead.octets,
            requestTime: forwarding.requestTime, responseTime: environment.wallSeconds,
            options: origin.caching.options)
        guard case .store(let storable) = decision, storable.vary == stored.varyKey,
            origin.fingerprint == stored.policy
        else {
            store.abandonRun(run)
            return false
        }
        var range = part.first..<complete
        if let received = storable.part {
            range = received.first..<(received.last + 1)
        } else if complete <= cacheOptions.maximumObjectBytes {
            // The server sends what precedes the part as well.
            range = 0..<complete
        } else {
            forwarding.skip(part.first)
        }
        storing.open(
            store.beginParts(
                parts, of: key, range: range, run: run, times: stored.metadata.times,
                options: cacheOptions))
        endFlight(.stored)
        return true
    }

    // MARK: The first slice

    /// Has the slice fetched that has what the client wants first, and waits for its head. Returns
    /// `false` if that is not possible.
    func fetchesSlice(_ key: CacheKey, _ reason: ForwardReason, _ patience: Int64) -> Bool {
        guard let origin, let bytes = origin.caching.sliceBytes, origin.passesUnchanged,
            patience > 0, case .none = collapsing.role, let first = firstWanted
        else { return false }
        let parts = PartsBody(sliceBytes: bytes)
        let slice = parts.slice(at: first)
        let hash = Self.group(in: key.hash, slice)
        if let leader = environment.flights.leader(hash) {
            guard register() else { return false }
            follow(leader, patience, environment.loop.now)
            return true
        }
        let fetcher = environment.takeExchange()
        let part = PartRequest(first: slice.lowerBound, last: slice.upperBound - 1)
        guard register(),
            fetcher.prepare(toAskFor: SubstituteRequest(part: part), key, reason, for: self)
        else {
            fetcher.endUnsent()
            return false
        }
        return waits(for: fetcher, hash, patience)
    }

    private func leads(_ hash: UInt64) { collapsing.lead(hash) }

    /// It was prepared and is not needed.
    private func endUnsent() {
        if case .ended = state.step { return environment.recycle(self) }
        endSilently()
    }

    /// The position of the first byte that the client wants; `nil` if that is not known without the
    /// length, or it wants several parts.
    private var firstWanted: UInt64? {
        guard let range = request.fields.only(.range) else {
            return request.fields.contains(.range) ? nil : 0
        }
        return withRequestHead { RangeRequest.firstPosition(range.value, in: $0) }
    }
}
