import HTTPCore

extension FieldIDSet {
    /// The request fields that can change the decision about a fresh stored response. A request
    /// with none of them takes the fast path.
    @usableFromInline static let consultedByCache = FieldIDSet([
        .cacheControl, .pragma, .authorization, .ifMatch, .ifNoneMatch, .ifModifiedSince,
        .ifUnmodifiedSince, .range,
    ])
}

extension CacheDecision {
    /// Why a request is not looked up at all; `nil` if it is.
    ///
    /// Such a request is forwarded, and its response is not stored (`StoreDecision` gives the same
    /// reason). Only the request itself is examined; `bypass` and `keyTooLong` are determined by
    /// the caller. QUERY has conditions of its own (`reasonAgainstLookup(ofQuery:)`).
    @inlinable public static func reasonAgainstLookup(
        of request: borrowing RequestHead
    ) -> ForwardReason? {
        switch request.method {
        case .get, .head: break
        case .post, .put, .delete, .connect, .options, .trace, .patch, .query, .other:
            return .method
        }
        guard case .none = request.framing else { return .requestContent }
        return request.wantsUpgrade ? .upgrade : nil
    }

    /// The most content, in bytes, that a QUERY may have to be looked up: it is collected first.
    public static let maximumQueryBytes = 64 << 10

    /// Why a QUERY is not looked up at all, as far as its head shows; `nil` if it is, once its
    /// content is there. The meaning of content without a single Content-Type is unknown, and
    /// ranges of the result are the origin's business.
    public static func reasonAgainstLookup(
        ofQuery request: borrowing RequestHead
    ) -> ForwardReason? {
        if request.wantsUpgrade { return .upgrade }
        guard let type = request.fields.only(.contentType)?.value, !type.isEmpty,
            !request.fields.contains(.range),
            request.framing.length ?? 0 <= UInt64(maximumQueryBytes)
        else { return .requestContent }
        return nil
    }

    /// What to do if no usable stored response was found.
    ///
    /// - Parameter reason: `uriMiss`; `varyMiss` if something is stored for the URI but no
    ///   `VaryKey` matches; or a reason against lookup.
    @inlinable public static func missing(
        _ reason: ForwardReason, for request: borrowing RequestHead, in requestBytes: Span<UInt8>
    ) -> CacheDecision {
        guard request.fields.contains(.cacheControl) else { return .forward(reason) }
        let requestDirectives = CacheDirectives(request: request.fields, in: requestBytes)
        // The client is given the same reason whether or not something is stored.
        let reported =
            requestDirectives.flags.contains(.noStore) ? ForwardReason.requestNoStore : reason
        return requestDirectives.flags.contains(.onlyIfCached)
            ? .gatewayTimeout(reported) : .forward(reason)
    }

    /// Whether a request that would be forwarded to the origin may instead wait for the response to
    /// another request for the same resource, and be answered with it (RFC 9111 §4): a plain GET
    /// for which nothing is stored, or only something stale.
    ///
    /// - Parameters:
    ///   - method: the request's method.
    ///   - present: the fields that it has.
    ///   - reason: why it would be forwarded.
    @inlinable public static func mayCollapse(
        _ method: Method, with present: FieldIDSet, _ reason: ForwardReason
    ) -> Bool {
        switch reason {
        case .uriMiss, .varyMiss, .policy, .stale: break
        case .method, .bypass, .bypassField, .requestContent, .keyTooLong, .upgrade,
            .requestNoCache,
            .requestNoStore, .requestMaxAge, .requestMinFresh, .requestPrecondition,
            .authorization, .responseNoCache, .clock, .damaged, .partial, .coding:
            return false
        }
        guard case .get = method else { return false }
        return !present.intersects(.consultedByCache)
    }

    /// Whether a request that may not be one of those (`mayCollapse`), because it asks for a part,
    /// may be answered with the response to one of them while that arrives.
    public static func mayFollow(
        _ method: Method, with present: FieldIDSet, _ reason: ForwardReason
    ) -> Bool {
        guard present.contains(.range) else { return false }
        var others = present
        others.remove(.range)
        others.remove(.ifRange)
        return mayCollapse(method, with: others, reason)
    }

    /// What to do with a request for which a complete stored response was found (RFC 9111 §4): the
    /// keys are equal, its `VaryKey` matches, and its status is the stored head's.
    ///
    /// For a plain GET, with none of the fields above, and a fresh response that needs no
    /// validation this takes a handful of comparisons; it never allocates.
    ///
    /// - Parameters:
    ///   - request: a request for which `reasonAgainstLookup` is `nil`.
    ///   - requestBytes: its bytes.
    ///   - stored: the stored response's metadata.
    ///   - storedHead: the stored head, into which `stored`'s ranges point.
    ///   - now: the current second.
    ///   - options: the policy; evaluated only where it matters.
    ///   - acceptsAnyStored: whether the requester wants the stored response whatever its age and
    /// whatever the origin requires. RFC 9111 has no such request: it is for a program's own cache,
    /// whose user knows what this means, and never for an intermediary's. Evaluated only where it
    /// matters.
    @inline(__always)
    @inlinable public static func decide(
        for request: borrowing RequestHead, in requestBytes: Span<UInt8>, stored: StoredMetadata,
        storedHead: Span<UInt8>, now: Int64, options: @autoclosure () -> PolicyOptions,
        acceptsAnyStored: @autoclosure () -> Bool = false
    ) -> CacheDecision {
        // A pattern instead of `==`, which for an enum of another module is a function call.
        if case .get = request.method, !request.fields.present.intersects(.consultedByCache),
            stored.isFresh(at: now), !stored.flags.contains(.noCache)
        {
            let age = stored.age(at: now)
            return .hit(
                CacheHit(form: .full, age: age, timeToLive: stored.lifetime - age, stale: nil))
        }
        return decideInFull(
            for: request, in: requestBytes, stored: stored, storedHead: storedHead, now: now,
            options: options(), acceptsAnyStored: acceptsAnyStored())
    }

    @inline(never)
    @usableFromInline static func decideInFull(
        for request: borrowing RequestHead, in requestBytes: Span<UInt8>, stored: StoredMetadata,
        storedHead: Span<UInt8>, now: Int64, options: PolicyOptions, acceptsAnyStored: Bool
    ) -> CacheDecision {
        var requestDirectives = CacheDirectives(request: request.fields, in: requestBytes)
        let decision: CacheDecision
        var anyStored = acceptsAnyStored ? StaleUse.maxStale : nil
        if let route = options.box?.options {
            if route.isOffline { anyStored = .offline }
            if route.overrides.contains(.requestNoCache) { requestDirectives.dropReload() }
        }
        var reuse = Reuse(
            of: stored, for: request.fields, requestDirectives: requestDirectives, now: now,
            anyStored: anyStored)
        // In the background its content would be missing.
        if case .query = request.method, reuse == .allowed(.whileRevalidating) {
            reuse = .needsValidation(.stale)
        }
        switch reuse {
        case .allowed(let stale):
            let age = stored.age(at: now)
            let form = HitForm(
                of: stored, storedHead: storedHead, for: request, in: requestBytes,
                options: options)
            return .hit(
                CacheHit(
                    form: form, age: age, timeToLive: stored.timeToLive(at: now), stale: stale))
        case .needsValidation(let reason) where stored.hasValidator:
            decision = .validate(
                ValidationRequest(
                    of: stored, storedHead: storedHead, reason: reason, for: request,
                    in: requestBytes))
        case .needsValidation(let reason), .refused(let reason):
            decision = .forward(reason)
        }
        guard requestDirectives.flags.contains(.onlyIfCached) else { return decision }
        switch decision {
        case .validate(let validation): return .gatewayTimeout(validation.reason)
        case .forward(let reason): return .gatewayTimeout(reason)
        case .hit, .gatewayTimeout: return decision
        }
    }
}

extension CacheDecision {
    /// How to revalidate a response that was served `whileRevalidating`.
    ///
    /// - Parameter request: the client's request as a GET, without the fields of
    ///   `clientPreferences`: it asks for what is stored, not for what this client is missing.
    @inlinable public static func inBackground(
        _ stored: StoredMetadata, storedHead: Span<UInt8>, for request: borrowing RequestHead,
        in requestBytes: Span<UInt8>
    ) -> CacheDecision {
        guard stored.hasValidator else { return .forward(.stale) }
        return .validate(
            ValidationRequest(
                of: stored, storedHead: storedHead, reason: .stale, for: request,
                in: requestBytes))
    }

    /// The request fields that describe which part of a response, and how fresh a one, a client
    /// wants.
    public static let clientPreferences = FieldIDSet([
        .cacheControl, .pragma, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince,
        .ifRange, .range,
    ])
}

/// Whether a stored response may be used for a request without contacting the origin.
enum Reuse: Equatable {
    /// Yes; if it is stale, the value is what permits that.
    case allowed(StaleUse?)
    /// Only if the origin confirms it.
    case needsValidation(ForwardReason)
    /// No, and revalidation would not help either.
    case refused(ForwardReason)

    /// RFC 9111 §4, in this order: does the request allow a cached response at all, does either
    /// side require validation, is the response recent enough for the request, is it fresh.
    init(
        of stored: StoredMetadata, for fields: FieldSection, requestDirectives: CacheDirectives,
        now: Int64, anyStored: StaleUse?
    ) {
        self =
            Self.refusal(fields, requestDirectives).map { .refused($0) }
            ?? anyStored.flatMap { Self.anyway($0, stored, fields, now) }
            ?? Self.demand(stored, fields, requestDirectives, now).map { .needsValidation($0) }
            ?? Self.freshness(stored, requestDirectives, now)
    }

    /// Any stored response is wanted, whatever its age. Offline, not one that must never be used
    /// without asking, nor that to an anonymous request for one with Authorization.
    private static func anyway(
        _ use: StaleUse, _ stored: StoredMetadata, _ fields: FieldSection, _ now: Int64
    ) -> Reuse? {
        if use == .offline {
            if stored.flags.contains(.noCache) { return nil }
            if fields.contains(.authorization), !stored.flags.contains(.sharedWithAuthorized) {
                return nil
            }
        }
        return .allowed(stored.isFresh(at: now) ? nil : use)
    }

    private static func refusal(
        _ fields: FieldSection, _ requestDirectives: CacheDirectives
    ) -> ForwardReason? {
        // no-store only forbids storing, but a client that sends it does not want a stored answer
        // either; Squid and others interpret it that way.
        if requestDirectives.flags.contains(.noStore) { return .requestNoStore }
        // RFC 9111 §4.3.2: these two are for the origin to evaluate.
        if fields.contains(.ifMatch) || fields.contains(.ifUnmodifiedSince) {
            return .requestPrecondition
        }
        return nil
    }

    private static func demand(
        _ stored: StoredMetadata, _ fields: FieldSection, _ requestDirectives: CacheDirectives,
        _ now: Int64
    ) -> ForwardReason? {
        if stored.flags.contains(.noCache) { return .responseNoCache }
        if requestDirectives.flags.contains(.noCache) { return .requestNoCache }
        // The response to an anonymous request is not used for this user unless the origin marked
        // it as shareable. RFC 9111 §3.5 forbids only the opposite direction.
        if fields.contains(.authorization), !stored.flags.contains(.sharedWithAuthorized) {
            return .authorization
        }
        // Small differences in the clock between threads are normal; a clock that was set back is
        // not.
        if stored.times.responseTime - now > clockToleranceSeconds { return .clock }
        let age = stored.age(at: now)
        let timeToLive = stored.timeToLive(at: now)
        if let maxAge = requestDirectives.maxAge, maxAge == 0 || age > maxAge {
            // RFC 8246 §2: a reload is no reason to revalidate what never changes.
            if timeToLive <= 0 || !stored.flags.contains(.immutable) { return .requestMaxAge }
        }
        if let minFresh = requestDirectives.minFresh, timeToLive < minFresh {
            return .requestMinFresh
        }
        return nil
    }

    private static func freshness(
        _ stored: StoredMetadata, _ requestDirectives: CacheDirectives, _ now: Int64
    ) -> Reuse {
        let timeToLive = stored.timeToLive(at: now)
        if timeToLive > 0 { return .allowed(nil) }
        // §5.2.1.2, unless the origin forbids it (§4.2.4).
        if let maxStale = requestDirectives.maxStale, !stored.flags.contains(.neverStale),
            -timeToLive <= maxStale || maxStale == CacheDirectives.maximumSeconds
        {
            return .allowed(.maxStale)
        }
        // A request with max-age or min-fresh and no max-stale wants nothing stale (§5.2.1.1).
        let window = stored.staleWhileRevalidateSeconds
        if window > 0, -timeToLive <= window, !stored.flags.contains(.neverStale),
            requestDirectives.maxAge == nil, requestDirectives.minFresh == nil
        {
            return .allowed(.whileRevalidating)
        }
        return .needsValidation(.stale)
    }

    /// How far `now` may precede a response's receipt before the clock counts as set back.
    static let clockToleranceSeconds: Int64 = 5
}
