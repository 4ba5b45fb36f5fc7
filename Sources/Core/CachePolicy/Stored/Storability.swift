import HTTPCore

extension StoreDecision {
    /// Whether a response to a request may be stored (RFC 9111 §3); every refusal has a reason.
    ///
    /// - Parameters:
    ///   - response: the final response's head as received from upstream.
    ///   - responseBytes: its bytes.
    ///   - request: the client's request.
    ///   - requestBytes: its bytes.
    ///   - requestTime: when the request was sent upstream.
    ///   - responseTime: when the response's head was complete.
    ///   - key: the request's key, without which no response to POST is stored.
    ///   - options: the policy.
    public static func decide(
        on response: ResponseHead, in responseBytes: Span<UInt8>,
        to request: borrowing RequestHead, in requestBytes: Span<UInt8>, requestTime: Int64,
        responseTime: Int64, key: CacheKey? = nil, options: PolicyOptions
    ) -> StoreDecision {
        // Checks that need no field value come first.
        if let reason = reasonAgainst(request) ?? reasonAgainst(status: response.status) {
            return .doNotStore(reason)
        }
        let isPost = request.method == .post
        if isPost {
            guard let key, response.representsTarget(of: key, in: responseBytes) else {
                return .doNotStore(.method)
            }
        }
        var part: ContentRange?
        if response.status == 206 {
            part = storablePart(response, in: responseBytes, to: request)
            if part == nil { return .doNotStore(.partialContent) }
        } else if response.fields.contains(.contentRange), request.fields.contains(.range) {
            // Content-Range has no meaning in a response that is not 206 (RFC 9110 §14.4), unless
            // the request asked for a range: then the response may well be partial.
            return .doNotStore(.partialContent)
        }
        // Most responses that are not stored are excluded by Cache-Control: the other fields are
        // read after it.
        let directives = CacheDirectives(response: response.fields, in: responseBytes)
        if options.isShared,
            !(options.box?.mayStoreDespiteCacheControl(response.fields) ?? false),
            let reason = directives.reasonAgainstStoring(status: response.status)
        {
            return .doNotStore(reason)
        }
        var facts = ResponseFacts(
            response, in: responseBytes, directives: directives, responseTime: responseTime)
        if let box = options.box {
            if box.mayBeTargeted(response.fields) {
                facts.target(
                    TargetedDirectives.first(
                        of: box.options.targetedFields, in: response, responseBytes))
            }
            if let reason = facts.reasonAgainstOverriding(for: request, options: options) {
                return .doNotStore(reason)
            }
        }
        let isPersonal = facts.isPersonal(options)
        facts.settle(options)
        var unstored: QualifiedFields?
        if options.setCookie == .stripped, facts.present.contains(.setCookie) {
            unstored = .cookies
            facts.present.remove(.setCookie)
        }
        if !facts.directives.flags.isDisjoint(with: [.privateFields, .noCacheFields]) {
            let named = unstoredFields(&facts, response, in: responseBytes, options)
            unstored = named.map { $0.union(unstored) } ?? unstored
        }
        let requestDirectives = CacheDirectives(request: request.fields, in: requestBytes)
        if requestDirectives.flags.contains(.noStore) { return .doNotStore(.requestNoStore) }
        let isAuthorized = request.fields.contains(.authorization)
        if let reason = facts.reasonAgainstStoring(isAuthorized: isAuthorized, options: options) {
            return .doNotStore(reason)
        }
        let times = StoredTimes(
            requestTime: requestTime, responseTime: responseTime,
            initialAge: facts.initialAge(requestTime: requestTime))
        let hasQuery =
            key?.hasQuery
            ?? requestBytes.extracting(request.path.indices).contains(UInt8(ascii: "?"))
        let (lifetime, source) = facts.lifetime(hasQuery: hasQuery, options: options)
        // The response to POST needs explicit freshness (RFC 9110 §9.3.3).
        if isPost, !source.isExplicit || lifetime <= times.initialAge {
            return .doNotStore(.notCacheableByDefault)
        }
        if let reason = options.reasonAgainstSharing(lifetime, source, for: request) {
            return .doNotStore(reason)
        }
        guard facts.couldBeReused(lifetime: lifetime, age: times.initialAge, options) else {
            return .doNotStore(.uselessWithoutValidator)
        }
        do throws(NotStoredReason) {
            let vary = try facts.vary.key(
                in: responseBytes, for: request, in: requestBytes, options: options)
            var storable = Storable(
                times: times, lifetime: lifetime, source: source, vary: vary,
                hasDate: facts.date != nil && !response.fields.repeated.contains(.date),
                unstored: unstored, part: part)
            storable.isPersonal = isPersonal
            return .store(storable)
        } catch {
            return .doNotStore(error)
        }
    }

    /// The fields that are not stored because the response's directives name them. The response
    /// has no cookie for the store if all are among them.
    @inline(never)
    private static func unstoredFields(
        _ facts: inout ResponseFacts, _ response: borrowing ResponseHead,
        in bytes: Span<UInt8>, _ options: PolicyOptions
    ) -> QualifiedFields? {
        let fields = response.fields
        let unstored = facts.directives.unstoredFields(options) {
            QualifiedFields(fields, in: bytes, of: $0)
        }
        if let unstored, !fields.hasCookie(in: bytes, besides: unstored) {
            facts.present.remove(.setCookie)
        }
        return unstored
    }

    /// Which part of its representation a 206 has (RFC 9111 §3.3); `nil` if it cannot be stored: it
    /// has several parts, of unknown place or length, more content than it says, or too few fields,
    /// because the client has the others (RFC 9110 §15.3.7).
    @inline(never)
    private static func storablePart(
        _ response: borrowing ResponseHead, in bytes: Span<UInt8>, to request: borrowing RequestHead
    ) -> ContentRange? {
        guard request.method == .get, !request.fields.contains(.ifRange),
            let value = response.fields.only(.contentRange)?.value,
            let range = ContentRange(value, in: bytes)
        else { return nil }
        if let length = response.framing.length, length > range.count { return nil }
        return range
    }

    /// Why no response to the request is stored, whatever it is. `no-store` is checked elsewhere.
    private static func reasonAgainst(_ request: borrowing RequestHead) -> NotStoredReason? {
        // A response to HEAD updates a stored response to GET (`HeadUpdate`); on its own it is of
        // no use.
        switch request.method {
        case .get:
            if case .none = request.framing { return nil }
            return .requestContent
        case .post: return nil
        case .query:
            return CacheDecision.reasonAgainstLookup(ofQuery: request) == nil
                ? nil : .requestContent
        case .head, .put, .delete, .connect, .options, .trace, .patch, .other: return .method
        }
    }

    /// Why no response with this status is stored, whatever its fields.
    private static func reasonAgainst(status: UInt16) -> NotStoredReason? {
        switch status {
        case ..<200: .notFinal
        case 304: .notModified
        default:
            StatusRules.isAboutThisRequestOnly(status) ? .aboutThisRequestOnly : nil
        }
    }
}

extension ResponseHead {
    /// Whether its content is a representation of the request's target, so that a GET would get it
    /// (RFC 9110 §8.7, §9.3.3): it succeeded, and Content-Location is the target's URI.
    ///
    /// - Parameter key: that of the request.
    fileprivate func representsTarget(of key: CacheKey, in bytes: Span<UInt8>) -> Bool {
        // These have no content that would represent anything.
        guard (200..<300).contains(status), status != 204, status != 205,
            let location = fields.only(.contentLocation)?.value, !location.isEmpty
        else { return false }
        let target = key.along(.direct).bytes
        return TargetReference.resolve(bytes.extracting(location.indices), against: target)
            == target
    }
}

extension FreshnessSource {
    /// Whether the response states its lifetime.
    fileprivate var isExplicit: Bool {
        switch self {
        case .sharedMaxAge, .maxAge, .expires: true
        case .heuristic, .rule, .none: false
        }
    }

    /// Whether the server has not said that it may be used for so long.
    var isGuess: Bool { self == .heuristic || self == .rule }
}

extension FieldSection {
    /// Whether some field sets a cookie and is not among these.
    fileprivate func hasCookie(in bytes: Span<UInt8>, besides fields: QualifiedFields) -> Bool {
        for index in 0..<endIndex where self[index].id == .setCookie {
            if !fields.contains(self[index].name, in: bytes) { return true }
        }
        return false
    }
}

extension CacheDirectives {
    /// Why a response with these directives is not stored, whatever its other fields.
    func reasonAgainstStoring(status: UInt16) -> NotStoredReason? {
        if flags.contains(.malformed) { return .malformedCacheControl }
        if flags.contains(.mustUnderstand) {
            // It overrides no-store if the status is understood (§5.2.2.3).
            if !StatusRules.isUnderstood(status) { return .statusNotUnderstood }
        } else if flags.contains(.noStore) {
            return .responseNoStore
        }
        return flags.contains(.isPrivate) ? .responsePrivate : nil
    }
}

extension ResponseFacts {
    /// Why a response with these fields is not stored (RFC 9111 §3, §3.5); used both for a response
    /// from upstream and for a stored one that a 304 has updated.
    func reasonAgainstStoring(isAuthorized: Bool, options: PolicyOptions) -> NotStoredReason? {
        if let reason = directives.reasonAgainstStoring(status: status) { return reason }
        if isAuthorized, options.isShared, !directives.allowsSharingAuthorized,
            !options.allowsEachUserOwn
        {
            return .authorization
        }
        if vary.isAny { return .varyAny }
        if present.contains(.setCookie), !allowsSetCookie(options.setCookie) { return .setCookie }
        guard
            StatusRules.isHeuristicallyCacheable(status) || hasExplicitCacheability
                || options.hasLifetime(for: status)
        else { return .notCacheableByDefault }
        if let contentLength, contentLength > options.maximumObjectBytes { return .tooLarge }
        return nil
    }

    /// Whether some field states that the response may be stored (RFC 9111 §3, last condition).
    private var hasExplicitCacheability: Bool {
        directives.flags.contains(.isPublic) || directives.maxAge != nil
            || directives.sharedMaxAge != nil || expires != .absent
    }

    /// Whether a response with these directives may be stored with a cookie.
    func allowsSetCookie(_ policy: SetCookiePolicy) -> Bool {
        switch policy {
        case .never: false
        case .whenShared:
            directives.flags.contains(.isPublic) || directives.sharedMaxAge != nil
        case .always: true
        // They are removed before.
        case .stripped: false
        }
    }

    /// Whether a stored copy could ever answer anything: without validation while it is fresh,
    /// while it is being revalidated or in place of an error; or with validation at any time.
    func couldBeReused(lifetime: Int64, age: Int64, _ options: PolicyOptions) -> Bool {
        if !entityTag.isEmpty || !lastModified.isEmpty { return true }
        if directives.flags.contains(.noCache) { return false }
        let staleUse = max(
            directives.staleIfError ?? 0, directives.staleWhileRevalidate ?? 0,
            options.staleWhenUnreachableSeconds)
        return lifetime > age || staleUse > 0 && !options.forbidsStale(directives)
            || options.box?.options.isOffline ?? false
    }
}
