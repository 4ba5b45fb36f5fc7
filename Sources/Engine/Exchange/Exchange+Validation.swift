import CachePolicy
import CacheStore
import EventLoop
import HTTPCore
import Notation

// What the origin's answer means for the response that is stored: it confirms it, brings it up to
// date, outdates it, or is a failure that the stored one may stand in for.
extension Exchange {
    /// Reads the origin's answer to a request for which something is stored. False: it is an
    /// ordinary response, to be passed on.
    func answersForStored(_ bytes: Span<UInt8>) -> Bool {
        guard let stored else { return false }
        guard let validation else {
            if revalidated != nil, ValidationOutcome.outdatesStored(status: response.status) {
                outdated = stored
            }
            // The stored response was no use, but a stale one is better than an error to those who
            // allow it.
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
        self.validation = nil
        switch outcome {
        case .freshen(let form):
            freshen(stored, form, bytes)
            return true
        case .forwardNotModified: return false
        case .retryWithoutConditions:
            outdated = stored
            self.stored = nil
            handle(.answered(.discarded(then: .forwardAgain)))
            return true
        case .replace(let outdates):
            // The fields of a response to HEAD tell whether the stored one still holds.
            if request.method == .head, response.status == 200 { return false }
            if outdates { outdated = stored }
            self.stored = nil
            return false
        case .serveStale(let hit):
            replaceByStale(stored, hit)
            return true
        }
    }

    /// The origin confirmed what is stored: update it and answer from it.
    private func freshen(_ stored: CachedResponse, _ form: HitForm, _ bytes: Span<UInt8>) {
        cacheResult = .revalidated
        guard let (current, freshened) = update(stored, with: bytes) else {
            // The stored head cannot be read: it is of no use to anyone.
            environment.shared.store?.remove(stored)
            self.stored = nil
            handle(.answered(.discarded(then: .forwardAgain)))
            return
        }
        let told = CacheStatus.forwarded(
            .init(reason: forwardReason ?? .stale, status: 304, isStored: true))
        endFlight(.stored)
        confirmed = ConfirmedResponse(
            stored: current, freshened: freshened,
            hit: freshened.hit(form, at: environment.wallSeconds), cacheStatus: told)
        handle(.answered(.discarded(then: .serveConfirmed)))
    }

    /// Brings a stored response up to date with the head at hand, or drops it if that says so.
    /// nil: the stored head cannot be read.
    private func update(
        _ stored: CachedResponse, with bytes: Span<UInt8>
    ) -> (CachedResponse, FreshenedResponse)? {
        let freshened = withRequestHead {
            FreshenedResponse(
                merging: stored.metadata,
                storedHead: stored.head.octets,
                with: response,
                in: bytes, request: request, in: $0, requestTime: requestTime,
                responseTime: environment.wallSeconds, hasQuery: key?.hasQuery ?? false,
                options: cacheOptions)
        }
        guard let freshened else { return nil }
        var current = stored
        if case .remove = freshened.storage {
            environment.shared.store?.remove(stored)
        } else if case .replaceHead = freshened.storage, let store = environment.shared.store {
            let updated = try? freshened.head.withUnsafeBytes { head throws(StoreRefusal) in
                try store.update(
                    stored, vary: freshened.vary, head: head, metadata: freshened.metadata,
                    policy: origin?.fingerprint ?? 0)
            }
            if let updated { current = updated }
        }
        return (current, freshened)
    }

    /// A response to HEAD is news about the response to GET that is stored (RFC 9111 §4.3.5).
    func updateStored(byHead bytes: Span<UInt8>) {
        guard let stored, request.method == .head else { return }
        switch HeadUpdate.of(
            response, in: bytes, stored: stored.metadata,
            storedHead: stored.head.octets)
        {
        case .none: break
        case .invalidate: environment.shared.store?.remove(stored)
        case .freshen: _ = update(stored, with: bytes)
        }
        self.stored = nil
    }

    // MARK: Stale answers

    /// What is stored and may be sent where the origin failed, if anyone allows it.
    func staleAnswer(insteadOf fault: ExchangeFault) -> (CachedResponse, CacheHit)? {
        guard fault.allowsStaleAnswer, let stored,
            let hit = staleHit(stored, insteadOf: .unreachable)
        else { return nil }
        return (stored, hit)
    }

    private func staleHit(
        _ stored: CachedResponse, insteadOf failure: UpstreamFailure
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

    /// The response that has begun is a failure, and the stored one is sent instead.
    private func replaceByStale(_ stored: CachedResponse, _ hit: CacheHit) {
        guard case .nothing = handle(.answered(.replaced)) else { return }
        serveStale(stored, hit)
    }

    func serveStale(_ stored: CachedResponse, _ hit: CacheHit) {
        validation = nil
        endFlight(.stored)
        cacheResult = .hitStale
        serve(stored, hit)
    }
}

extension ExchangeFault {
    /// Whether the origin was away, which a stale response may bridge. A trust failure never is.
    fileprivate var allowsStaleAnswer: Bool {
        switch self {
        case .connectFailed, .connectTimeout, .upstreamClosed, .upstreamReset, .firstByteTimeout,
            .poolWaitTimeout, .tooManyPending, .tlsTimeout:
            true
        case .nameNotResolved(let failure): failure != .badName
        default: false
        }
    }
}
