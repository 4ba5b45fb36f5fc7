import CachePolicy
import CacheStore
import EventLoop
import HTTPCore

// Storing a response while it is forwarded.
extension Exchange {
    /// Begins to store the response if the policy and the store allow it.
    func beginStore(_ bytes: Span<UInt8>) -> Bool {
        storing.decide(nil)
        if mayBeTruncated {
            notStored(because: .incomplete)
            return false
        }
        guard let origin, origin.cacheStores, let store = environment.shared.store,
            let key = caching.key, caching.forwardReason != .method
        else {
            storing.decide(reasonKeptOut)
            return false
        }
        return beginStore(bytes, key, in: store, from: origin)
    }

    /// A response that ends with a clear-text connection is complete according to RFC 9112 §8, but
    /// cannot be distinguished from a truncated one: it is forwarded and not stored.
    private var mayBeTruncated: Bool {
        (response.framing.endsWithConnection || forwarding.wasGatheredToTheEnd)
            && origin?.tls == nil
    }

    /// Begins to store the response to a POST if it says that a GET would get it (RFC 9110 §9.3.3),
    /// after what it invalidates has been removed.
    @inline(never)
    func beginStoreOfPost(_ bytes: Span<UInt8>) -> Bool {
        storing.decide(.method)
        // What rules do to a response may depend on the request's content.
        guard client != nil, response.fields.contains(.contentLocation), !request.wantsUpgrade,
            let origin, origin.cacheStores, origin.passesUnchanged,
            let store = environment.shared.store, let key = caching.key, !mayBeTruncated
        else { return false }
        guard !bypassesCache(origin), !bypassesByRules(origin) else {
            storing.decide(.bypassField)
            return false
        }
        invalidate(bytes)
        return beginStore(bytes, key, in: store, from: origin)
    }

    private func beginStore(
        _ bytes: Span<UInt8>, _ key: CacheKey, in store: CacheStore, from origin: Origin
    ) -> Bool {
        let now = environment.wallSeconds
        let decision = StoreDecision.decide(
            on: response, in: bytes, to: request, in: requestHead.octets,
            requestTime: forwarding.requestTime, responseTime: now, key: key,
            options: origin.caching.options)
        switch decision {
        case .doNotStore(let reason):
            notStored(because: reason)
            return false
        // What proves who is asking is kept nowhere, not even as a digest: the server does not see
        // it.
        case .store(let storable)
        where caller.holdsConsumedField && storable.vary.hasValue(of: "authorization"):
            notStored(because: .authorization)
            return false
        // Where users are known, none gets what is for another.
        case .store(let storable)
        where storable.isPersonal && identity != nil && !isKeyedByUser:
            notStored(because: .responsePrivate)
            return false
        case .store(let storable)
        where isStoredByAnother(storable.vary, isPart: storable.part != nil):
            notStored(because: .duplicate)
            return false
        case .store(let storable):
            origin.describeTrust(in: store)
            if let part = storable.part {
                return beginParts(part, storable, bytes, key, origin, in: store)
            }
            let head = StoredHead.bytes(of: response, in: bytes, for: storable)
            guard
                let metadata = StoredMetadata(
                    storedHead: head.span, times: storable.times, hasQuery: key.hasQuery,
                    options: cacheOptions)
            else {
                notStored(because: .storeUnavailable)
                return false
            }
            return openTicket(
                store, key, variant(storable.vary), head, metadata, origin.fingerprint)
        }
    }

    /// Whether each user has responses of their own.
    private var isKeyedByUser: Bool {
        let fields = cacheOptions.nominatedFields
        return fields.contains { $0.span.equals("x-forwarded-user") }
    }

    /// Why the response to a request that was not looked up is not stored.
    private var reasonKeptOut: NotStoredReason {
        switch caching.forwardReason {
        case .bypassField: .bypassField
        case .requestContent: .requestContent
        case .keyTooLong: .keyTooLong
        default: request.method == .get ? .disabled : .method
        }
    }

    /// The request is about to be sent, perhaps again.
    @inline(__always)
    func beginStoreFlight() {
        if storing.flight != nil { endStoreFlight() }
        switch request.method {
        // What HEAD says may confirm what is stored.
        case .get, .head, .post, .query: break
        case .put, .delete, .connect, .options, .trace, .patch, .other: return
        }
        guard let key = caching.key, let store else { return }
        storing.begin(key.withView { store.beginFlight(of: $0) })
    }

    /// The response will not be stored, unless that has begun.
    func endStoreFlight() {
        guard let flight = storing.takeFlight() else { return }
        store?.endFlight(flight)
    }

    /// Adds content to the response being stored, or stops storing it.
    func store(_ bytes: UnsafeRawBufferPointer) {
        if storing.shared != nil { return storeShared(bytes) }
        guard let ticket = storing.ticket else {
            storing.parts?.append(bytes)
            return
        }
        if !ticket.append(bytes) { giveUp(ticket) }
    }

    @inline(never)
    private func storeShared(_ bytes: UnsafeRawBufferPointer) {
        if let ticket = storing.ticket, !ticket.append(bytes) { giveUp(ticket) }
        // Those who read it go on in any case.
        storing.shared?.append(bytes, from: storing.ticket)
    }

    private func giveUp(_ ticket: StoreTicket) {
        ticket.abandon()
        storing.close()
        gaveUp(ticket.refusal ?? .lengthMismatch)
    }

    /// How long a response that nobody else reads waits for the disk in total, and at a time. If
    /// the disk needs longer, the response is forwarded at its origin's pace, and is not stored if
    /// the queue overflows. If others read it, it waits as long at a time as it otherwise does in
    /// total.
    private static let storePatienceMilliseconds: Int64 = 30_000
    private static let longestStoreWaitMilliseconds: Int64 = 1000

    /// Whether to pause reading so that the disk can catch up. An origin is often faster; without
    /// this, a large response would be requested over and over and never be stored.
    func waitsForStore() -> Bool {
        guard storing.ticket?.isCongested ?? storing.parts?.isCongested ?? false else {
            return false
        }
        guard storing.pausedAt == nil else { return true }
        guard !storing.diskHasStalled,
            storing.paused < Self.storePatienceMilliseconds || hasReaders,
            let store = environment.shared.store, register()
        else { return false }
        storing.pause(at: environment.loop.now)
        let (token, mailbox) = (token, environment.mailbox)
        store.whenStoresDrain { mailbox.post(.storesDrained(token)) }
        setDeadline(ofStoreWait: Self.longestStoreWaitMilliseconds)
        return true
    }

    /// The disk has caught up, or a deadline has been reached: it has stalled, and is not waited
    /// for again, unless there is time left.
    func storeWaitEnded(hasDrained: Bool) {
        guard let began = storing.pausedAt else { return }
        let waited = environment.loop.now - began
        if !hasDrained {
            let longest =
                hasReaders ? Self.storePatienceMilliseconds : Self.longestStoreWaitMilliseconds
            guard waited >= longest else {
                // They may leave meanwhile.
                return setDeadline(
                    ofStoreWait: min(longest - waited, Self.longestStoreWaitMilliseconds))
            }
        }
        storing.resume(after: waited, hasStalled: !hasDrained)
        guard upstream != nil else { return }
        setDeadline(ofStoreWait: nil)
        // A client that reads what others read as well does not hold it up.
        if serving.reader != nil || client?.isFlushed ?? true { upstream?.resume() }
    }

    /// Whether others read the response while it is being stored, and would be cut off if it were
    /// stored no further.
    private var hasReaders: Bool {
        guard storing.ticket != nil, let body = storing.shared else { return false }
        return body.readers > (serving.reader == nil ? 0 : 1)
    }

    /// A reader that tries again has the same deadline, and always the earlier one.
    private func setDeadline(ofStoreWait milliseconds: Int64?) {
        let next = serving.reader?.retryMilliseconds ?? milliseconds
        environment.loop.setDeadline(self, after: next)
    }

    private func openTicket(
        _ store: CacheStore, _ key: CacheKey, _ vary: VaryKey, _ head: [UInt8],
        _ metadata: StoredMetadata, _ fingerprint: UInt64
    ) -> Bool {
        let begun = key.withView { view in
            head.withUnsafeBytes { bytes in
                Result { () throws(StoreRefusalReason) in
                    try store.beginStore(
                        key: view, vary: vary, head: bytes, metadata: metadata,
                        policy: fingerprint, expectedLength: response.framing.length,
                        flight: storing.flight)
                }
            }
        }
        // The store has taken it, whatever the result.
        storing.flightIsTaken()
        switch begun {
        case .success(let ticket):
            ticket.limit = cacheOptions.maximumObjectBytes
            let others = metadata.flags.intersection(.dependsOnCoding)
            storing.open(ticket, dependsOnCoding: !others.isEmpty && sendsOtherForms)
            return true
        case .failure(let refusal):
            notStored(because: NotStoredReason(refusal))
            return false
        }
    }

    /// The response is complete: it is stored if it was to be.
    @inline(__always)
    func finishStore(_ trailers: TrailerSection?) {
        if storing.ticket != nil, let ticket = storing.takeTicket() { finish(ticket, trailers) }
        if storing.shared != nil { endSharing()?.end(with: nil) }
        if storing.partial != nil { finishPart() }
    }

    private func finish(_ ticket: StoreTicket, _ trailers: TrailerSection?) {
        // Those of a rest are about the rest.
        let outcome = ticket.finish(trailers: forwarding.rest == nil ? trailers : nil)
        endSharing()?.end(with: outcome)
        switch outcome {
        case .stored, .storedOnDisk:
            environment.metrics.add(.cacheStores)
            noteStored(ticket.varyKey)
            caching.isReplaced(by: ticket.varyKey)
        case .refused(let refusal): gaveUp(refusal)
        }
    }

    /// The store, which had begun, was refused.
    private func gaveUp(_ refusal: StoreRefusalReason) {
        notStored(because: NotStoredReason(refusal))
        environment.metrics.add(.cacheStoresAborted)
        endFlight(unstoredBecause: storing.refusal)
    }

    /// A response that was to be stored is not: it is treated like one that cannot be stored.
    func notStored(because reason: NotStoredReason) {
        storing.decide(reason)
        releaseVariant()
        report.notStored()
    }

    /// Removes an outdated response, now that its replacement is complete. Until then it was kept,
    /// because a response that breaks off replaces nothing.
    func removeOutdated() {
        guard caching.outdated != nil, let outdated = caching.takeOutdated() else { return }
        environment.shared.store?.remove(outdated)
    }

    func abandonStore() {
        if storing.shared != nil { endSharing()?.breakOff() }
        if storing.partial?.ticket != nil { abandonPart() }
        guard storing.ticket != nil, let ticket = storing.takeTicket() else { return }
        ticket.abandon()
        notStored(because: .incomplete)
        environment.metrics.add(.cacheStoresAborted)
    }

    /// An unsafe request was sent and its outcome is unknown, because the server closed the
    /// connection or nobody waited. It may have changed something on the server.
    func invalidateUnanswered() {
        guard let key = caching.key, let store = environment.shared.store,
            request.method != .connect
        else { return }
        invalidate(key, in: store)
        environment.metrics.add(.cacheInvalidations)
    }

    /// Invalidates what is stored for the target of an unsafe request that succeeded.
    func invalidate(_ bytes: Span<UInt8>) {
        guard !request.isSafe, let key = caching.key, let store = environment.shared.store
        else { return }
        for outdated in Invalidation.keys(for: request, key: key, response: response, in: bytes) {
            invalidate(keyed(outdated), in: store)
            environment.metrics.add(.cacheInvalidations)
        }
        // Once is enough; nothing else is stored under this key.
        caching.forgetKey()
    }

    /// Invalidates what is stored for a URI, on all routes: what answers GET and HEAD, and what
    /// answers QUERY.
    private func invalidate(_ key: CacheKey, in store: CacheStore) {
        invalidate(key, by: nil, in: store)
        for ways in environment.policy.numbersOfRuleWays { invalidate(key, by: ways, in: store) }
    }

    private func invalidate(_ key: CacheKey, by ways: UInt64?, in store: CacheStore) {
        for route in CacheRoute.all {
            let key = key.along(route, by: ways)
            key.withView { store.invalidate($0, except: storing.flight) }
            key.ofQuery.withView { store.invalidate($0) }
        }
    }
}

extension NotStoredReason {
    /// What the log and Cache-Status say of the store's refusal.
    init(_ refusal: StoreRefusalReason) {
        switch refusal {
        case .tooLarge: self = .tooLarge
        case .invalidated, .superseded: self = .invalidated
        case .lengthMismatch: self = .incomplete
        case .queueFull, .diskOff, .headTooLarge, .memory, .noRoom, .closed:
            self = .storeUnavailable
        }
    }
}
