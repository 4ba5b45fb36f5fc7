import CachePolicy
import CacheStore
import EventLoop
import HTTPCore
import PinfoldMetrics

// Phase 3: the cache lookup.
extension Exchange {
    /// Looks the request up: answers from memory immediately, asks the disk tier, or forwards.
    /// `origin` is the exchange's own, passed by its owner.
    func lookUp(at origin: Origin) {
        if let reason = CacheDecision.reasonAgainstLookup(of: request) {
            let origin = chooseRules(at: origin)
            if case .query = request.method { return gatherForKey(at: origin) }
            if !request.isSafe {
                if case .other = request.method, answersPurge(at: origin) { return }
                if request.fields.contains(.ifMatch) { restoreEntityTags(for: origin) }
                makeKey(origin)
            }
            return missed(reason)
        }
        guard origin.usesCachePlainly, store != nil else { return lookUpByRules(at: origin) }
        if bypassesCache(origin) { return missed(.bypassField) }
        guard let view = writeKey(origin) else { return missed(.keyTooLong) }
        // Neither the store nor its result is bound to a name: that would count references for each
        // hit.
        switch store?.lookup(view) {
        case nil, .some(.none): lookUpOnDisk(view, beside: [])
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

    @inline(__always)
    func found(_ response: CachedResponse, _ view: CacheKeyView, _ origin: Origin) {
        metrics.add(.cacheMemoryHits)
        answer(from: response, view, origin)
    }

    /// No response in memory can be used: asks the disk tier, or forwards.
    func lookUpOnDisk(
        _ view: CacheKeyView, beside responses: [CachedResponse]
    ) {
        guard let store else { return missed(.bypass) }
        caching.identify(by: CacheKey(view))
        let onDisk = store.levelVariants(view) { names in
            withRequestHead { VaryKey(names: names, for: request, in: $0) }.map(variant)
        }
        if case .candidates(let variants) = onDisk, register() {
            load(view, variants, from: store)
        } else if !responses.isEmpty {
            answerOtherwise(from: responses, view)
        } else if onDisk == .others {
            if let variants = variantsInOtherCodings(view), register() {
                load(view, variants, from: store)
            } else {
                missed(.varyMiss)
            }
        } else {
            missed(.uriMiss)
        }
    }

    /// Answers from responses in memory that cannot be used as they are, or forwards.
    @inline(never)
    private func answerOtherwise(from responses: [CachedResponse], _ view: CacheKeyView) {
        if let origin, let response = reread(responses, at: origin) {
            return found(response, view, origin)
        }
        guard !answersDecoded(from: responses, counting: .cacheMemoryHits) else { return }
        missed(reason(of: responses))
    }

    /// Whether something in the request that is not part of the key may affect the response.
    func bypassesCache(_ origin: Origin) -> Bool {
        if let forwardedFields, forwardedFields.bypassesCache(request) { return true }
        return withRequestHead { origin.caching.bypassFields.occur(in: request.fields, of: $0) }
    }

    /// Why none of the responses stored for the URI can be used.
    private func reason(of responses: [CachedResponse]) -> ForwardReason {
        responses.contains { $0.policy == origin?.fingerprint } ? .varyMiss : .policy
    }

    private func load(_ key: CacheKeyView, _ variants: [VaryKey], from store: CacheStore) {
        guard goesOn(after: .decided(.load)) else { return }
        let (token, mailbox) = (token, environment.mailbox)
        let ownLoop = ObjectIdentifier(environment.loop)
        let options = cacheOptions
        let accepted = store.load(
            key, variants, policy: options, trust: origin?.fingerprint,
            fetches: fetchesForFleet(from: store), wakes: false
        ) { result in
            // A level that this thread has asked itself answers here.
            guard let loop = EventLoop.current, ObjectIdentifier(loop) == ownLoop else {
                return mailbox.post(.loaded(token, result))
            }
            (loop.handler(for: token) as? Exchange)?.loaded(result)
        }
        if accepted {
            environment.wakeReadersAfterTurn()
        } else if goesOn(after: .loaded) {
            hasAskedFleet()
            missed(.uriMiss)
        }
    }

    /// Handles the disk tier's answer.
    package func loaded(_ result: LoadResult) {
        if let reader = serving.reader { return reader.loaded(result) }
        guard goesOn(after: .loaded) else { return }
        hasAskedFleet()
        if let stale = caching.takeAskedFor() { return askedForFresh(insteadOf: stale, result) }
        switch result {
        case .found(let responses, let isShared):
            let hits = isShared ? WorkerCounter.cacheSharedHits : .cacheDiskHits
            guard let origin,
                let response = select(from: responses, origin) ?? reread(responses, at: origin)
            else {
                guard !answersDecoded(from: responses, counting: hits) else { return }
                return missed(reason(of: responses))
            }
            environment.metrics.add(hits)
            caching.key?.withView { answer(from: response, $0, origin, isShared: isShared) }
        case .nothing: missed(.uriMiss)
        case .lead(let lease):
            collapsing.hold(lease)
            missed(.uriMiss)
        }
    }

    /// The caching policy of the route.
    var cacheOptions: PolicyOptions {
        origin?.caching.options ?? environment.policy.cacheOptions
    }

    // MARK: The key

    /// `scheme://host:port/path?query`, valid until the next one is written.
    @inline(__always)
    func writeKey(_ origin: Origin) -> CacheKeyView? {
        let path = requestHead.octets.extracting(request.path.indices)
        return origin.keyStart.key(path: path, into: environment.keyMemory)
            ?? writeKeyByRules(origin)
    }

    func makeKey(_ origin: Origin) {
        let key = writeKey(origin).map { CacheKey($0) }
        caching.identify(by: request.method == .query ? key?.ofQuery : key)
    }

    // MARK: The decision

    /// Whether the stored response was obtained under the policy of this request.
    @inline(__always)
    func isUsable(_ response: CachedResponse, _ origin: Origin) -> Bool {
        response.policy == origin.fingerprint
    }

    /// Whether the stored response can be used for this request at all: same policy, same variant.
    @inline(__always)
    func answers(_ response: CachedResponse, _ origin: Origin) -> Bool {
        guard isUsable(response, origin) else { return false }
        if response.varyKey.isEmpty { return true }
        if withRequestHead({ response.varyKey.matches(request, in: $0) }) { return true }
        return request.method == .query && answersQuery(response)
    }

    /// The most recent of those that match (RFC 9111 §4.1).
    func select(from responses: [CachedResponse], _ origin: Origin) -> CachedResponse? {
        responses.filter { answers($0, origin) }.max { $0.metadata.date < $1.metadata.date }
    }

    /// - Parameter view: the key, which is valid until the response is served.
    func answer(
        from response: CachedResponse, _ view: CacheKeyView, _ origin: Origin,
        isShared: Bool = false
    ) {
        let decision = withRequestHead { bytes in
            CacheDecision.decide(
                for: request, in: bytes, stored: response.metadata,
                storedHead: response.head.octets,
                now: environment.wallSeconds, options: origin.caching.options,
                acceptsAnyStored: ingress?.acceptsAnyStored ?? false)
        }
        debug("looked up", ["decision": "\(decision.logToken)"])
        switch decision {
        case .hit(var hit):
            hit.isShared = isShared
            if !response.metadata.flags.isDisjoint(with: .hasOtherForms) {
                return answerFromForms(response, hit, view, origin)
            }
            report.used(cache: hit.stale == nil ? .hit : .hitStale)
            if hit.stale == .whileRevalidating { revalidateInBackground(response, view) }
            if case .answered = collapsing.role { return serveCollapsed(response, hit) }
            serve(response, hit)
        case .validate(let validation):
            if caching.key == nil { caching.identify(by: CacheKey(view)) }
            if asksForFresh(insteadOf: response, because: validation.reason) { return }
            caching.validate(response, by: validation)
            caching.forward(because: validation.reason)
            report.used(cache: .miss)
            forwardOrWait()
        case .forward(let reason):
            if caching.key == nil { caching.identify(by: CacheKey(view)) }
            if asksForFresh(insteadOf: response, because: reason) { return }
            // It may be served in place of an error, or be updated by the response to a HEAD.
            caching.found(response)
            report.used(cache: .miss)
            caching.forward(because: reason)
            forwardOrWait()
        case .gatewayTimeout(let reason):
            caching.forward(because: reason)
            reply(with: .gateway(.onlyIfCached), closing: false)
        }
    }

    /// Serves the response that it has waited for.
    func serveCollapsed(_ response: CachedResponse, _ hit: CacheHit) {
        report.used(cache: .collapsed)
        serve(response, hit, as: nil, cacheStatus: statusOfCollapsed)
    }

    /// The Cache-Status of a response that was waited for.
    var statusOfCollapsed: CacheStatus {
        .forwarded(.init(reason: caching.forwardReason ?? .uriMiss, isCollapsed: true))
    }

    /// No stored response can be used.
    func missed(_ reason: ForwardReason) {
        caching.forward(because: reason)
        debug("looked up", ["decision": "\(reason.token)"])
        switch withRequestHead({ CacheDecision.missing(reason, for: request, in: $0) }) {
        case .gatewayTimeout: reply(with: .gateway(.onlyIfCached), closing: false)
        case .hit, .validate, .forward:
            switch reason {
            case .uriMiss, .varyMiss, .policy, .coding: report.used(cache: .miss)
            default: report.used(cache: .bypass)
            }
            forwardOrWait()
        }
    }
}
