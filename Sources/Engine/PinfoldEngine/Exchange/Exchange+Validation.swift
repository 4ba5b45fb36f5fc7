import CachePolicy
import CacheStore
import EventLoop
import HTTPCore

// What the origin's response means for the stored one: it confirms, updates or outdates it, or is a
// failure in place of which the stored response may be served.
extension Exchange {
    /// Interprets the origin's response to a request for which a response is stored. Returns false
    /// if it is an ordinary response to be forwarded.
    func answersForStored(_ bytes: Span<UInt8>) -> Bool {
        guard let stored = caching.stored else { return false }
        guard let validation = caching.validation else {
            if caching.revalidated != nil,
                ValidationOutcome.outdatesStored(status: response.status)
            {
                caching.outdateStored()
            }
            // The stored response could not be used, but where it is allowed, a stale response is
            // better than an error.
            guard response.status >= 500,
                let hit = staleHit(stored, insteadOf: .status(response.status))
            else { return false }
            replaceByStale(stored, hit)
            return true
        }
        let outcome = withRequestHead {
            ValidationOutcome.of(
                response, in: bytes, to: validation, stored: stored.metadata,
                storedHead: stored.head.octets,
                request: request, in: $0,
                now: environment.wallSeconds, options: cacheOptions)
        }
        caching.endValidation()
        switch outcome {
        case .freshen(let form):
            freshen(stored, form, bytes)
            return true
        case .forwardNotModified: return false
        case .retryWithoutConditions:
            caching.outdateStored()
            caching.dropStored()
            discard(then: .forwardAgain)
            return true
        case .replace(let outdates):
            // The fields of a response to HEAD show whether the stored one is still valid.
            if request.method == .head, response.status == 200 { return false }
            if outdates { caching.outdateStored() }
            caching.dropStored()
            return false
        case .serveStale(let hit):
            replaceByStale(stored, hit)
            return true
        }
    }

    /// The origin confirmed the stored response: updates it and serves it.
    private func freshen(_ stored: CachedResponse, _ form: HitForm, _ bytes: Span<UInt8>) {
        report.used(cache: .revalidated)
        guard let (current, freshened, notStored) = update(stored, with: bytes) else {
            // The stored head cannot be read, so the response cannot be used.
            environment.shared.store?.remove(stored)
            caching.dropStored()
            return discard(then: .forwardAgain)
        }
        storing.decide(notStored)
        let forwarded = CacheStatus.forwarded(
            .init(
                reason: caching.forwardReason ?? .stale, status: 304, isStored: notStored == nil,
                notStored: notStored))
        if let notStored {
            endFlight(unstoredBecause: notStored)
        } else {
            noteStored(current.varyKey)
        }
        caching.confirm(
            ConfirmedResponse(
                stored: current, freshened: freshened,
                hit: freshened.hit(form, at: environment.wallSeconds), cacheStatus: forwarded))
        discard(then: .serveConfirmed)
    }

    /// Reads the response to its end, and continues then.
    private func discard(then continuation: State.Continuation) {
        handle(.answered(.discarded(then: continuation)))
    }

    /// The response that confirms the stored one has ended: serves that.
    func serveConfirmed() {
        removeOutdated()
        guard let confirmed = caching.takeConfirmed() else { return }
        serve(
            confirmed.stored, confirmed.hit, as: confirmed.freshened,
            cacheStatus: confirmed.cacheStatus)
    }

    /// Updates a stored response with the new head, or drops it if the head requires that. The
    /// result has the reason if the updated response is not stored. `nil` if the stored head cannot
    /// be read.
    private func update(
        _ stored: CachedResponse, with bytes: Span<UInt8>
    ) -> (CachedResponse, FreshenedResponse, NotStoredReason?)? {
        let freshened = withRequestHead {
            FreshenedResponse(
                merging: stored.metadata,
                storedHead: stored.head.octets,
                with: response,
                in: bytes, request: request, in: $0, requestTime: forwarding.requestTime,
                responseTime: environment.wallSeconds, hasQuery: caching.key?.hasQuery ?? false,
                options: cacheOptions)
        }
        guard let freshened else { return nil }
        switch freshened.storage {
        case .leave(let reason): return (stored, freshened, reason)
        case .remove(let reason):
            environment.shared.store?.remove(stored)
            return (stored, freshened, reason)
        case .replaceHead:
            guard let store else { return (stored, freshened, .disabled) }
            origin?.describeTrust(in: store)
            let result = freshened.head.withUnsafeBytes { head in
                Result { () throws(StoreRefusalReason) in
                    try store.update(
                        stored, vary: variant(freshened.vary), head: head,
                        metadata: freshened.metadata,
                        policy: origin?.fingerprint ?? 0, flight: storing.flight)
                }
            }
            switch result {
            case .success(let updated): return (updated, freshened, nil)
            case .failure(let refusal): return (stored, freshened, NotStoredReason(refusal))
            }
        }
    }

    /// Updates the stored response to GET from a response to HEAD (RFC 9111 §4.3.5).
    func updateStored(byHead bytes: Span<UInt8>) {
        guard let stored = caching.stored, request.method == .head else { return }
        switch HeadUpdate.of(
            response, in: bytes, stored: stored.metadata,
            storedHead: stored.head.octets)
        {
        case .none: break
        case .invalidate: environment.shared.store?.remove(stored)
        case .freshen: _ = update(stored, with: bytes)
        }
        caching.dropStored()
    }

    // MARK: Stale answers

    /// The stored response that may be served because the origin failed, if that is allowed.
    func staleAnswer(insteadOf fault: ExchangeError) -> (CachedResponse, CacheHit)? {
        guard let stored = caching.stored, let failure = fault.failure(ofResponse: response.status),
            let hit = staleHit(stored, insteadOf: failure)
        else { return nil }
        return (stored, hit)
    }

    /// Whether there is a stale response that would have to be confirmed by the server, which
    /// cannot be reached: a client is told that with 504 (RFC 9111 §5.2.2.2). A program of its own
    /// is told why it cannot be reached.
    func mustBeConfirmed(despite fault: ExchangeError) -> Bool {
        guard let stored = caching.stored, isIntermediary,
            stored.metadata.flags.contains(.neverStale),
            !stored.metadata.isFresh(at: environment.wallSeconds)
        else { return false }
        return fault.failure(ofResponse: response.status) == .unreachable
    }

    private func staleHit(
        _ stored: CachedResponse, insteadOf failure: OriginErrorReason
    ) -> CacheHit? {
        guard client != nil else { return nil }
        return withRequestHead {
            CacheHit.inPlaceOfFailure(
                failure, stored: stored.metadata,
                storedHead: stored.head.octets,
                for: request,
                in: $0, now: environment.wallSeconds, options: cacheOptions)
        }
    }

    /// The response that has begun is an error, and the stored one is served instead.
    private func replaceByStale(_ stored: CachedResponse, _ hit: CacheHit) {
        guard goesOn(after: .answered(.replaced)) else { return }
        serveStale(stored, hit)
    }

    func serveStale(_ stored: CachedResponse, _ hit: CacheHit) {
        if caching.validation != nil { caching.endValidation() }
        endFlight(.stored)
        report.used(cache: .hitStale)
        serve(stored, hit, as: nil)
    }
}

extension ExchangeError {
    /// What a stale response may stand in for: that the origin was away, that it sent no response
    /// that can be read, or a server error that the route's rules refuse (RFC 5861 §4: what would
    /// come to a 500, 502, 503 or 504). A trust failure never is.
    /// - Parameter status: of the response that was refused.
    fileprivate func failure(ofResponse status: UInt16) -> OriginErrorReason? {
        switch self {
        case .connectFailed, .unixSocketFailed, .connectTimeout, .server(.upstreamClosed),
            .upstreamReset, .upstreamUnanswered, .server(.firstByteTimeout),
            .gateway(.poolWaitTimeout), .gateway(.tooManyPending), .tlsTimeout,
            .upstreamStreamReset, .server(.upstreamNotProcessed), .server(.noServer):
            .unreachable
        case .nameNotResolved(let failure): failure == .badName ? nil : .unreachable
        case .response, .upstreamMalformed, .upstreamHTTP2: .status(502)
        case .transformation(let failure):
            failure.reason == .responseStatusRefused ? .status(status) : nil
        default: nil
        }
    }
}
