import CachePolicy
import CacheStore
import EventLoop
import HTTPCore

// What becomes of a response in the cache while it is passed on.
extension Exchange {
    /// Begins to store the response if policy and store allow it.
    func beginStore(_ bytes: Span<UInt8>) -> Bool {
        notStoredReason = nil
        // What ends with a clear-text connection is complete by RFC 9112 §8, but cannot be told
        // from what was cut off: it is passed on and not kept.
        if response.framing.endsWithConnection || wasGatheredToTheEnd, origin?.tls == nil {
            notStored(because: .incomplete)
            return false
        }
        guard let origin, origin.cacheStores, let store = environment.shared.store, let key,
            forwardReason != .method
        else {
            notStoredReason = reasonKeptOut
            return false
        }
        let now = environment.wallSeconds
        let decision = withRequestHead {
            StoreDecision.decide(
                on: response, in: bytes, to: request, in: $0, requestTime: requestTime,
                responseTime: now, options: cacheOptions)
        }
        switch decision {
        case .doNotStore(let reason):
            notStored(because: reason)
            return false
        case .store(let storable) where leavesStoringToOthers(storable.vary):
            notStored(because: .duplicate)
            return false
        case .store(let storable):
            var head: [UInt8] = []
            StoredHead.append(response, in: bytes, responseTime: now, to: &head)
            guard
                let metadata = StoredMetadata(
                    storedHead: head.span, times: storable.times, hasQuery: key.hasQuery,
                    options: cacheOptions)
            else { return false }
            return openTicket(store, key, storable.vary, head, metadata, origin.fingerprint)
        }
    }

    /// Why the response to a request that was not looked up is not stored.
    private var reasonKeptOut: NotStoredReason {
        switch forwardReason {
        case .bypassField: .bypassField
        case .requestContent: .requestContent
        case .keyTooLong: .keyTooLong
        default: request.method == .get ? .disabled : .method
        }
    }

    /// The request is about to go out, maybe another time.
    @inline(__always)
    func beginStoreFlight() {
        if storeFlight != nil { endStoreFlight() }
        guard request.method == .get, let key, let store else { return }
        storeFlight = key.withView { store.beginFlight(of: $0) }
    }

    /// Nothing will be stored of the response, unless that has begun.
    func endStoreFlight() {
        guard let flight = storeFlight else { return }
        storeFlight = nil
        store?.endFlight(flight)
    }

    /// Adds content to what is being stored, or gives the store up.
    func store(_ bytes: UnsafeRawBufferPointer) {
        guard let ticket, !ticket.append(bytes) else { return }
        ticket.abandon()
        self.ticket = nil
        gaveUp(ticket.refusal ?? .lengthMismatch)
    }

    /// How long one response waits for the disk in all, and at a time. When the disk needs longer
    /// the response is passed on at its origin's pace, and not stored if the queue overflows.
    private static let storePatienceMilliseconds: Int64 = 30_000
    private static let longestStoreWaitMilliseconds: Int64 = 1000

    /// Whether no more is read for now, so that the disk can follow: an origin is often faster, and
    /// a large response would else be asked for again and again and never be stored.
    func waitsForStore() -> Bool {
        guard let ticket, ticket.isCongested else { return false }
        guard storeWaitBegan == nil else { return true }
        guard storeWaited < Self.storePatienceMilliseconds, let store = environment.shared.store,
            register()
        else { return false }
        storeWaitBegan = environment.loop.now
        let (token, mailbox) = (token, environment.mailbox)
        store.whenStoresDrain { mailbox.post(.storesDrained(token)) }
        environment.loop.setDeadline(self, after: Self.longestStoreWaitMilliseconds)
        return true
    }

    /// The disk has followed, or stands still and is not waited for again.
    func storeWaitEnded(hasDrained: Bool) {
        guard let began = storeWaitBegan else { return }
        storeWaitBegan = nil
        storeWaited += hasDrained ? environment.loop.now - began : Self.storePatienceMilliseconds
        guard upstream != nil else { return }
        environment.loop.setDeadline(self, after: nil)
        if client?.isFlushed ?? true { upstream?.resume() }
    }

    private func openTicket(
        _ store: CacheStore, _ key: CacheKey, _ vary: VaryKey, _ head: [UInt8],
        _ metadata: StoredMetadata, _ fingerprint: UInt64
    ) -> Bool {
        let begun = key.withView { view in
            head.withUnsafeBytes { bytes in
                Result { () throws(StoreRefusal) in
                    try store.beginStore(
                        key: view, vary: vary, head: bytes, metadata: metadata,
                        policy: fingerprint, expectedLength: response.framing.length,
                        flight: storeFlight)
                }
            }
        }
        // It was the store's, whatever came of it.
        storeFlight = nil
        switch begun {
        case .success(let ticket):
            self.ticket = ticket
            return true
        case .failure(let refusal):
            notStored(because: NotStoredReason(refusal))
            return false
        }
    }

    func finishStore() {
        guard let ticket else { return }
        self.ticket = nil
        switch ticket.finish() {
        case .stored, .storedOnDisk:
            environment.metrics.add(.cacheStores)
            noteStored(ticket.varyKey)
        case .refused(let refusal): gaveUp(refusal)
        }
    }

    /// The store, which had begun, was refused.
    private func gaveUp(_ refusal: StoreRefusal) {
        notStored(because: NotStoredReason(refusal))
        environment.metrics.add(.cacheStoresAborted)
        endFlight(unstoredBecause: notStoredReason)
    }

    /// What was to be stored is not: it counts as what cannot be stored does.
    func notStored(because reason: NotStoredReason) {
        notStoredReason = reason
        releaseVariant()
        if cacheResult == .miss { cacheResult = .uncacheable }
    }

    /// The response that takes the place of an outdated one is complete: until then the outdated
    /// one stayed, for a response that breaks off replaces nothing.
    func removeOutdated() {
        guard let outdated else { return }
        self.outdated = nil
        environment.shared.store?.remove(outdated)
    }

    func abandonStore() {
        guard let ticket else { return }
        self.ticket = nil
        ticket.abandon()
        notStored(because: .incomplete)
        environment.metrics.add(.cacheStoresAborted)
    }

    /// An unsafe request was sent, and what came of it is not known: its server closed, or nobody
    /// waited. What it has changed there is changed.
    func invalidateUnanswered() {
        guard let key, let store = environment.shared.store, request.method != .connect else {
            return
        }
        for route in CacheRoute.all { key.along(route).withView { store.invalidate($0) } }
        environment.metrics.add(.cacheInvalidations)
    }

    /// An unsafe request's success makes what is stored about its target doubtful.
    func invalidate(_ bytes: Span<UInt8>) {
        guard !request.isSafe, let key, let store = environment.shared.store else { return }
        for outdated in Invalidation.keys(for: request, key: key, response: response, in: bytes) {
            for route in CacheRoute.all {
                outdated.along(route).withView { store.invalidate($0) }
            }
            environment.metrics.add(.cacheInvalidations)
        }
        // Once is enough; nothing else is stored under it.
        self.key = nil
    }
}

extension NotStoredReason {
    /// What the log and Cache-Status say of the store's refusal.
    init(_ refusal: StoreRefusal) {
        switch refusal {
        case .tooLarge: self = .tooLarge
        case .invalidated, .superseded: self = .invalidated
        case .lengthMismatch: self = .incomplete
        case .queueFull, .diskOff, .headTooLarge, .memory, .noRoom, .closed:
            self = .storeUnavailable
        }
    }
}
