import CachePolicy
import CacheStore
import HTTPCore

// Phase 3 where an entry of hosts has rules for the cache: which of them apply to the request's
// path. For such a request its origin is another one, with these rules, and the same connections.
extension Exchange {
    /// Looks a request up by the rules of its path.
    ///
    /// First by its URI as it is sent. A response that is stored under that tells by itself which
    /// rules it was stored under: then they are those of the path, which need not be compared with
    /// any pattern. The key of a key is that key: what is stored under a URI as it is sent is
    /// stored under the key that the rules make of it.
    @inline(never)
    func lookUpByRules(at base: Origin) {
        guard base.usesRules else { return missed(.bypass) }
        let view = base.keyStart.keyByRules(
            path: requestHead.octets.extracting(request.path.indices),
            into: environment.keyMemory)
        guard let view, let stored = store?.lookup(view) else {
            let origin = chooseRules(at: base)
            return isKeptAway(by: origin) ? () : lookUp(at: origin)
        }
        if case .one(let response) = stored,
            let origin = base.byRules?.origin(storing: response.policy)
        {
            go(byRulesOf: origin)
            return isKeptAway(by: origin) ? () : use(stored, view, origin)
        }
        let origin = chooseRules(at: base)
        if isKeptAway(by: origin) { return }
        guard origin.usesCachePlainly, origin.caching.query == nil || !view.hasQuery else {
            return lookUp(at: origin)
        }
        use(stored, view, origin)
    }

    /// Goes on with what is in memory under a key.
    @inline(__always)
    private func use(_ stored: MemoryMatch, _ view: CacheKeyView, _ origin: Origin) {
        switch stored {
        case .none: lookUpOnDisk(view, beside: [])
        case .one(let response):
            guard answers(response, origin) else {
                return lookUpOnDisk(view, beside: [response])
            }
            found(response, view, origin)
        case .several(let responses):
            guard let response = select(from: responses, origin) else {
                return lookUpOnDisk(view, beside: responses)
            }
            found(response, view, origin)
        }
    }

    /// Whether the rules keep the request away from the cache. If so, it has been forwarded.
    @inline(__always)
    private func isKeptAway(by origin: Origin) -> Bool {
        if bypassesByRules(origin) {
            missed(.bypass)
            return true
        }
        if bypassesCache(origin) {
            missed(.bypassField)
            return true
        }
        return false
    }

    /// Goes on by the rules of the request's path.
    /// - Returns: the origin with these rules; the one given if it has them already, or has none.
    func chooseRules(at base: Origin) -> Origin {
        guard let rules = base.ruleSet else { return base }
        let index = rules.index(of: requestHead.octets.extracting(request.path.indices))
        let origin = origins.ruled(base, route: index, of: rules)
        go(byRulesOf: origin)
        return origin
    }

    @inline(__always)
    private func go(byRulesOf origin: Origin) {
        forwarding.go(to: origin)
        guard let sentHead = origin.caching.sentHead, let stream = client else { return }
        client = ChangedHeads(of: stream, by: sentHead, environment.loop.buffers)
    }

    /// Whether a condition of the route keeps the request away from the cache, besides those that
    /// concern its fields.
    @inline(__always)
    func bypassesByRules(_ origin: Origin) -> Bool {
        origin.hasConditions && meetsConditions(of: origin)
    }

    @inline(never)
    private func meetsConditions(of origin: Origin) -> Bool {
        guard let conditions = origin.caching.conditions else { return false }
        return withRequestHead { bytes in
            if conditions.areMet(byQueryOf: bytes.extracting(request.path.indices)) { return true }
            guard request.fields.contains(.cookie) else { return false }
            for index in 0..<request.fields.endIndex {
                let field = request.fields[index]
                if field.id == .cookie,
                    conditions.areMet(byCookies: bytes.extracting(field.value.indices))
                {
                    return true
                }
            }
            return false
        }
    }

    // MARK: The key

    /// The key under rules; `nil` if it is too long.
    @inline(never)
    func writeKeyByRules(_ origin: Origin) -> CacheKeyView? {
        guard origin.keyStart.isByRules else { return nil }
        let origin = chooseRules(at: origin)
        let path = requestHead.octets.extracting(request.path.indices)
        guard let query = origin.caching.query else {
            return origin.keyStart.keyByRules(path: path, into: environment.keyMemory)
        }
        let keyed = query.applied(to: path)
        return origin.keyStart.keyByRules(path: keyed.span, into: environment.keyMemory)
    }

    /// The key of another URI of the same origin, given without rules.
    func keyed(_ key: CacheKey) -> CacheKey {
        guard let origin, let rules = origin.policy.cacheRules(entryIndex: origin.entryIndex) else {
            return key
        }
        return rules.keyed(key)
    }

    // MARK: What was stored under other rules

    /// The response among some that can be used once it is read by the route's present rules, which
    /// have changed since it was stored. It is kept so from now on.
    @inline(never)
    func reread(_ responses: [CachedResponse], at origin: Origin) -> CachedResponse? {
        guard let store else { return nil }
        let candidates = responses.filter { isUnderOtherRules($0, origin) }
        guard let response = candidates.max(by: { $0.metadata.date < $1.metadata.date }) else {
            return nil
        }
        // It was made stale, and is used as that: its head says nothing of it.
        if response.staleSince > 0 { return response }
        switch response.metadata.reread(
            response.head.octets, hasQuery: caching.key?.hasQuery ?? false,
            options: origin.caching.options)
        {
        case .kept(let metadata):
            origin.describeTrust(in: store)
            return try? store.update(
                response, vary: response.varyKey, head: response.head, metadata: metadata,
                policy: origin.fingerprint)
        case .outdated:
            store.remove(response)
            return nil
        case .unknown: return nil
        }
    }

    /// Whether a response would answer the request, but was stored under other rules that can be
    /// changed.
    private func isUnderOtherRules(_ response: CachedResponse, _ origin: Origin) -> Bool {
        let difference = response.policy ^ origin.fingerprint
        guard difference != 0, difference & ~CacheRuleSet.changeable == 0 else { return false }
        if response.varyKey.isEmpty { return true }
        if withRequestHead({ response.varyKey.matches(request, in: $0) }) { return true }
        return request.method == .query && answersQuery(response)
    }
}
