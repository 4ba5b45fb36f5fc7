import HTTPCore

// What a route's rules make of what a response says about itself.
extension ResponseFacts {
    /// The directives of a field that is meant for this cache take the place of those of
    /// Cache-Control, and of Expires (RFC 9213 §2.2).
    /// - Parameter directives: `nil` if the response has no such field.
    mutating func target(_ directives: CacheDirectives?) {
        guard let directives else { return }
        self.directives = directives
        expires = .absent
        hasPragmaNoCache = false
    }

    /// Why a response is not stored although a directive that forbids that does not count on the
    /// route: it may be for the one who sent the request only, which nothing in the key tells.
    /// To be called before ``settle(_:)``.
    func reasonAgainstOverriding(
        for request: borrowing RequestHead, options: PolicyOptions
    ) -> NotStoredReason? {
        guard let overrides = options.box?.options.overrides, options.isShared else { return nil }
        let isFromOne =
            request.fields.contains(.authorization) && !options.isKeyed(by: "authorization")
            || request.fields.contains(.cookie) && !options.isKeyed(by: "cookie")
        guard isFromOne else { return nil }
        let flags = directives.flags
        if overrides.contains(.noStore), flags.contains(.noStore) { return .responseNoStore }
        if overrides.contains(.isPrivate), flags.contains(.isPrivate) { return .responsePrivate }
        if overrides.contains(.noCache), flags.contains(.noCache) || hasPragmaNoCache {
            return request.fields.contains(.cookie) ? .cookie : .authorization
        }
        return nil
    }

    /// Whether the response says that it is for one user only, or must not be stored at all, which
    /// does not count on the route.
    func isPersonal(_ options: PolicyOptions) -> Bool {
        guard let overrides = options.box?.options.overrides, options.isShared else { return false }
        return overrides.contains(.isPrivate) && directives.flags.contains(.isPrivate)
            || overrides.contains(.noStore) && directives.flags.contains(.noStore)
            || overrides.contains(.noCache) && directives.flags.contains(.noCache)
    }

    /// Removes what does not count. What names single fields counts always: they are for one client
    /// whatever the route says.
    mutating func override(_ overrides: PolicyOverrides) {
        if overrides.contains(.noStore) { directives.flags.remove(.noStore) }
        if overrides.contains(.isPrivate) { directives.flags.remove(.isPrivate) }
        if overrides.contains(.noCache) {
            directives.flags.remove(.noCache)
            hasPragmaNoCache = false
        }
    }

    /// The lifetime under a route's rules.
    /// - Parameter standard: that of RFC 9111.
    func lifetime(
        _ standard: (seconds: Int64, source: FreshnessSource), by rules: FreshnessRules
    ) -> (seconds: Int64, source: FreshnessSource) {
        var lifetime = standard
        let ofStatus = rules.byStatus?.seconds(for: status)
        switch standard.source {
        case .sharedMaxAge, .maxAge, .expires: break
        case .heuristic, .rule, .none:
            if let ofStatus {
                lifetime = (ofStatus, .rule)
            } else if let seconds = rules.defaultSeconds, !hasPragmaNoCache,
                StatusRules.isHeuristicallyCacheable(status) || directives.flags.contains(.isPublic)
            {
                lifetime = (seconds, .rule)
            }
        }
        if let least = rules.minimumSeconds, least > lifetime.seconds, status < 400, ofStatus == nil
        {
            lifetime = (least, .rule)
        }
        if let most = rules.maximumSeconds { lifetime.seconds = min(lifetime.seconds, most) }
        return lifetime
    }
}

extension PolicyOptions {
    /// Whether a response may be given a lifetime that it does not state although the request has a
    /// cookie.
    var allowsGuessesForCookies: Bool {
        isKeyed(by: "cookie") || box?.options.overrides.contains(.requestCookie) ?? false
    }

    /// Whether the route has responses used without asking the server that do not allow that
    /// themselves.
    var usesUnasked: Bool {
        guard let route = box?.options else { return staleWhenUnreachableSeconds > 0 }
        return route.isOffline || route.staleIfErrorSeconds > 0 || staleWhenUnreachableSeconds > 0
    }

    /// Why a response is not stored that others would get for a time, or in a case, that it does
    /// not state: a client that sends a cookie, or proves who it is, may get one of its own. The
    /// stored head does not describe the request, so that the response could not be stored without
    /// that.
    func reasonAgainstSharing(
        _ lifetime: Int64, _ source: FreshnessSource, for request: borrowing RequestHead
    ) -> NotStoredReason? {
        guard isShared, source.isGuess || lifetime == 0 && usesUnasked else { return nil }
        if request.fields.contains(.cookie), !allowsGuessesForCookies { return .cookie }
        // The heuristic is RFC 9111's, which says when such a response may be shared.
        guard source != .heuristic, request.fields.contains(.authorization),
            !isKeyed(by: "authorization")
        else { return nil }
        return .authorization
    }

    /// Whether a response may answer requests with Authorization. Some directives allow that only
    /// because the server is asked once its own lifetime is over (RFC 9111 §3.5).
    func sharesWithAuthorized(_ directives: CacheDirectives, _ source: FreshnessSource) -> Bool {
        if !isShared || allowsEachUserOwn { return true }
        guard source == .rule else { return directives.allowsSharingAuthorized }
        return directives.flags.contains(.isPublic) || directives.sharedMaxAge ?? 0 > 0
    }

    /// Whether responses to requests with Authorization may be stored, since each user has their
    /// own: `private` does not count, and the key has the field.
    var allowsEachUserOwn: Bool {
        guard let route = box?.options else { return false }
        return route.overrides.contains(.isPrivate) && isKeyed(by: "authorization")
    }

    /// Whether the route gives responses with this status a lifetime.
    func hasLifetime(for status: UInt16) -> Bool {
        box?.options.freshness.byStatus?.seconds(for: status) ?? 0 > 0
    }

    /// Whether a response with these directives must never be served stale.
    func forbidsStale(_ directives: CacheDirectives) -> Bool {
        directives.forbidsStale
            && !(box?.options.overrides.contains(.mustRevalidate) ?? false)
    }
}

extension TargetedDirectives {
    /// The directives of the first of these fields that a received response has (RFC 9213 §2.2);
    /// `nil` if it has none of them, or only such as are empty or malformed.
    /// - Parameter names: in lower case.
    static func first(
        of names: [[UInt8]], in response: borrowing ResponseHead, _ bytes: Span<UInt8>
    ) -> CacheDirectives? {
        for name in names {
            let id = FieldID(lowercaseName: name)
            guard id == .other || response.fields.contains(id) else { continue }
            var targeted = TargetedDirectives()
            for index in 0..<response.fields.endIndex {
                let field = response.fields[index]
                guard Int(field.name.count) == name.count,
                    bytes.extracting(field.name.indices).equals(lowercase: name.span)
                else { continue }
                targeted.add(field.value, in: bytes)
            }
            if let directives = targeted.directives { return directives }
        }
        return nil
    }

    /// The same for a stored head.
    static func first(of names: [[UInt8]], inStoredHead head: Span<UInt8>) -> CacheDirectives? {
        for name in names {
            var targeted = TargetedDirectives()
            var lines = StoredLines(head)
            while let line = lines.next(in: head) {
                guard Int(line.name.count) == name.count,
                    head.extracting(line.name.indices).equals(lowercase: name.span)
                else { continue }
                targeted.add(line.value, in: head)
            }
            if let directives = targeted.directives { return directives }
        }
        return nil
    }
}
