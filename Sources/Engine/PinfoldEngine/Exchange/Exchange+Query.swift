import CachePolicy
import CacheStore
import EventLoop
import HTTPCore

// Phase 3 for QUERY, whose content is part of its key: it is collected before the lookup, and kept
// until the end, so that it can be sent again.
//
//     routing ──► gathering ── all there ──► routing: looked up by its digest
//                    └── too much, trailers ──► routing: forwarded, and not stored
extension Exchange {
    /// Collects the content of a QUERY, and then looks it up (``contentIsGathered()``); forwards
    /// one that cannot be looked up.
    @inline(never)
    func gatherForKey(at origin: Origin) {
        if let reason = CacheDecision.reasonAgainstLookup(ofQuery: request) {
            return missed(reason)
        }
        guard origin.cacheStores, store != nil else { return missed(.bypass) }
        if bypassesCache(origin) { return missed(.bypassField) }
        if bypassesByRules(origin) { return missed(.bypass) }
        // What rules do to a response may depend on more than the content as received.
        guard origin.passesUnchanged else { return missed(.requestContent) }
        guard isAdmitted() else { return }
        let gathered = GatheredContent(environment.loop.buffers, of: self)
        gathered.isKept = true
        upload.gather(into: gathered)
        if intake.contentHasEnded { return lookUp(by: gathered) }
        guard goesOn(after: .decided(.gather)), holds(gathered) else { return }
        askForContent()
        // The server need not ask for what is there.
        request.expectsContinue = false
        intake.gatherContent()
        client?.resumeContent()
    }

    /// The content that is collected is complete, or as much as may be.
    func contentIsGathered() {
        if upload.awaited != nil { return contentOfSiteIsGathered() }
        guard let gathered = upload.gathered, gathered.isKept, gathered.digest == nil else {
            return forward()
        }
        if goesOn(after: .decided(.lookUp)) { lookUp(by: gathered) }
    }

    private func lookUp(by gathered: GatheredContent) {
        guard intake.contentHasEnded, gathered.trailers == nil,
            gathered.count <= CacheDecision.maximumQueryBytes,
            // What held before the content came, another configuration may have changed.
            let origin, origin.policy === environment.policy, origin.cacheStores, let store,
            origin.passesUnchanged, !bypassesCache(origin),
            let digest = withRequestHead({
                ContentDigest(of: gathered.content.readable.octets, describedBy: request, in: $0)
            })
        else {
            gathered.isKept = false
            return missed(.requestContent)
        }
        gathered.digest = digest
        guard let key = writeKey(origin).map({ CacheKey($0).ofQuery }) else {
            return missed(.keyTooLong)
        }
        key.withView { view in
            let responses: [CachedResponse] =
                switch store.lookup(view) {
                case .none: []
                case .one(let response): [response]
                case .several(let responses): responses
                }
            if let response = select(from: responses, origin) {
                found(response, view, origin)
            } else {
                lookUpOnDisk(view, beside: responses)
            }
        }
    }

    /// Whether the stored response is that to a QUERY with this content, of this variant.
    @inline(never)
    func answersQuery(_ response: CachedResponse) -> Bool {
        guard let digest = upload.gathered?.digest else { return false }
        return withRequestHead { response.varyKey.matches(request, in: $0, content: digest) }
    }

    /// The variant to which a response belongs: of a QUERY, it includes the content.
    @inline(__always)
    func variant(_ vary: VaryKey) -> VaryKey {
        guard case .query = request.method, let digest = upload.gathered?.digest else {
            return vary
        }
        return vary.of(content: digest)
    }
}
