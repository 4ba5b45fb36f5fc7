import CachePolicy
import CacheStore
import EventLoop
import HTTPCore

// Partial content (RFC 9111 §3.3 and §3.4): the parts that 206s have are stored in slices, and
// combined under a strong entity tag. A request is answered from the slices; what is missing is
// fetched by another exchange (`Exchange+Fetching`) and read while it arrives.

/// The head of a representation of which there is one part, which cannot be combined with others:
/// it is stored when that is complete.
struct SinglePart {
    let part: ContentRange
    let head: [UInt8]
    let storable: Storable
    let fingerprint: UInt64
}

extension Exchange {
    // MARK: Storing

    /// Begins to store the part that a 206 has.
    func beginParts(
        _ part: ContentRange, _ storable: Storable, _ bytes: Span<UInt8>, _ key: CacheKey,
        _ origin: Origin, in store: CacheStore
    ) -> Bool {
        guard origin.passesUnchanged else { return refusePart() }
        let head = StoredHead.bytes(of: response, in: bytes, for: storable)
        var whole = head
        StoredHead.append(completeLength: part.complete, to: &whole)
        guard let metadata = makeMetadata(whole, storable, key) else { return refusePart() }
        var parts = PartsBody(sliceBytes: origin.caching.sliceBytes ?? Self.defaultSliceBytes)
        let range = part.first..<(part.last + 1)
        guard metadata.hasStrongEntityTag else {
            guard parts.slice(at: part.first).contains(part.last) else { return refusePart() }
            let ticket = store.beginParts(
                parts, of: key, range: range, run: nil, times: storable.times,
                options: cacheOptions)
            storing.open(
                ticket,
                SinglePart(
                    part: part, head: head, storable: storable, fingerprint: origin.fingerprint))
            return true
        }
        // Of several that begin at the same time, all go on with the set of the first.
        let isPublished = store.withParts {
            if let known = known(as: metadata, whole, storable.vary, key, origin, in: store) {
                // What is complete is not replaced by a part.
                guard case .parts(let stored) = known.body else {
                    notStored(because: .duplicate)
                    return false
                }
                parts = stored
            }
            return publish(
                parts, whole, metadata, storable.vary, key, origin.fingerprint, in: store)
        }
        guard isPublished else { return false }
        let run = store.joinRun(of: parts, at: part.first) { range }
        storing.open(
            store.beginParts(
                parts, of: key, range: range, run: run.isNew ? run.run : nil,
                times: storable.times, options: cacheOptions))
        endFlight(.stored)
        return true
    }

    /// Bytes of a slice where the configuration does not say.
    static let defaultSliceBytes = 1 << 20

    private func refusePart() -> Bool {
        notStored(because: .partialContent)
        return false
    }

    private func makeMetadata(
        _ head: [UInt8], _ storable: Storable, _ key: CacheKey
    ) -> StoredMetadata? {
        StoredMetadata(
            storedHead: head.span, times: storable.times, hasQuery: key.hasQuery,
            options: cacheOptions)
    }

    /// The stored response of the same representation; `nil` if there is none.
    private func known(
        as metadata: StoredMetadata, _ head: [UInt8], _ vary: VaryKey, _ key: CacheKey,
        _ origin: Origin, in store: CacheStore
    ) -> CachedResponse? {
        // What it found itself may have been purged since.
        let own = caching.stored.flatMap { store.isCurrent($0) ? $0 : nil }
        let found = key.withView { store.responses($0) } + (own.map { [$0] } ?? [])
        return found.first {
            $0.policy == origin.fingerprint && $0.varyKey == vary
                && $0.contentCount == metadata.bodyBytes
                && $0.metadata.hasSameStrongTag(
                    in: $0.head.octets, as: metadata, in: head.span)
        }
    }

    private func publish(
        _ parts: PartsBody, _ head: [UInt8], _ metadata: StoredMetadata, _ vary: VaryKey,
        _ key: CacheKey, _ fingerprint: UInt64, in store: CacheStore
    ) -> Bool {
        let flight = storing.flight
        storing.flightIsTaken()
        do throws(StoreRefusalReason) {
            let result = key.withView { view in
                head.withUnsafeBytes { bytes in
                    Result { () throws(StoreRefusalReason) in
                        try store.publish(
                            parts, key: view, vary: vary, head: bytes, metadata: metadata,
                            policy: fingerprint, flight: flight)
                    }
                }
            }
            try result.get()
        } catch {
            notStored(because: NotStoredReason(error))
            return false
        }
        environment.metrics.add(.cacheStores)
        caching.isReplaced(by: vary)
        return true
    }

    /// The part has arrived completely.
    @inline(never)
    func finishPart() {
        guard let partial = storing.takePartial(), let ticket = partial.ticket else { return }
        ticket.close(isComplete: true)
        guard let single = partial.single, let key = caching.key, let store else { return }
        let received = ticket.position - single.part.first
        var complete = single.part.complete
        if received != single.part.count {
            // Fewer bytes than announced, in a message that is complete: where the announced range
            // goes to the end, the end is where the content ended.
            guard single.part.last == complete - 1, received > 0 else {
                return endFlight(.notStored)
            }
            complete = ticket.position
        }
        var head = single.head
        StoredHead.append(completeLength: complete, to: &head)
        guard let metadata = makeMetadata(head, single.storable, key),
            publish(
                ticket.parts, head, metadata, single.storable.vary, key, single.fingerprint,
                in: store)
        else { return endFlight(.notStored) }
        endFlight(.stored)
    }

    /// The part does not arrive, or breaks off.
    @inline(never)
    func abandonPart() {
        guard let partial = storing.takePartial() else { return }
        if let run = partial.run { store?.abandonRun(run) }
        partial.ticket?.close(isComplete: false)
        if partial.single != nil { notStored(because: .incomplete) }
    }

    // MARK: Serving

    /// Answers from the stored parts, or asks the origin if that is not possible.
    @inline(never)
    func answerFromParts(
        _ response: CachedResponse, _ hit: CacheHit, _ view: CacheKeyView, _ origin: Origin
    ) {
        if caching.key == nil { caching.identify(by: CacheKey(view)) }
        if case .several(_, let boundary) = hit.form {
            // Of a part to which nothing can be added, what is on disk is not known to suffice.
            let trusting = response.metadata.hasStrongEntityTag
            let isComplete = ranges(of: response, boundary)?.parts.allSatisfy {
                firstMissing(in: $0.range, of: response, trustingLevels: trusting) == nil
            }
            if isComplete ?? false {
                report.used(cache: .hit)
                return serve(response, hit)
            }
            // Servers answer several ranges at once; what they send is not combined.
            report.used(cache: .miss)
            caching.forward(because: .partial)
            return forwardOrWait()
        }
        let content = hit.content(of: response.contentCount)
        guard let missing = firstMissing(in: content, of: response) else {
            if collapsing.hasFetched {
                report.used(cache: .miss)
                return serveParts(response, hit)
            }
            if case .answered = collapsing.role { return serveCollapsed(response, hit) }
            report.used(cache: hit.stale == nil ? .hit : .hitStale)
            if hit.stale == .whileRevalidating { revalidateInBackground(response, view) }
            return serve(response, hit)
        }
        report.used(cache: .miss)
        // What it has waited for is under way.
        if case .answered = collapsing.role {
            return collapsing.hasFetched
                ? serveParts(response, hit) : serveCollapsed(response, hit)
        }
        caching.forward(because: .partial)
        if case .gatewayTimeout = withRequestHead({
            CacheDecision.missing(.partial, for: request, in: $0)
        }) {
            return reply(with: .gateway(.onlyIfCached), closing: false)
        }
        guard response.metadata.hasStrongEntityTag, !collapsing.hasFetched else {
            return forwardOrWait()
        }
        switch fetchMissing(of: response, at: missing, before: content.upperBound) {
        case .waits: break
        case .underWay: serveParts(response, hit)
        case .impossible: forwardOrWait()
        }
    }

    private func serveParts(_ response: CachedResponse, _ hit: CacheHit) {
        serve(
            response, hit, as: nil,
            cacheStatus: .forwarded(.init(reason: .partial, status: 206, isStored: true)))
    }

    /// The first of these positions of which nothing is stored, as far as that is known without
    /// reading the disk; `nil` if there is none. Of very much only the beginning is looked at.
    /// - Parameter trustingLevels: whether a slice in a level counts as a whole one; how much of it
    ///   there is shows only once it is read.
    private func firstMissing(
        in content: Range<UInt64>, of response: CachedResponse, trustingLevels: Bool = true
    ) -> UInt64? {
        guard case .parts(let parts) = response.body, let key = caching.key, let store else {
            return nil
        }
        var offset = content.lowerBound
        for _ in 0..<Self.mostSlices {
            guard offset < content.upperBound else { return nil }
            let end = min(parts.slice(at: offset).upperBound, content.upperBound)
            switch store.slice(of: parts, key: key, at: offset) {
            case .inMemory(let slice):
                guard slice.range.contains(offset) else { return offset }
                guard slice.range.upperBound >= end else { return slice.range.upperBound }
            case .inLevel: guard trustingLevels else { return offset }
            case .nothing: return offset
            }
            offset = end
        }
        return offset < content.upperBound ? offset : nil
    }

    private static let mostSlices = 1024

    /// From now on the client reads the slices and what arrives, at its own speed: because others
    /// read what arrives as well, or because it broke off and the rest is fetched.
    func readsParts() -> Bool {
        guard let ticket = storing.parts, ticket.position < ticket.end, let key = caching.key,
            let store, register(),
            let response = key.withView({ store.responses($0) }).first(where: {
                if case .parts(ticket.parts) = $0.body {
                    $0.metadata.hasStrongEntityTag
                } else {
                    false
                }
            })
        else { return false }
        upstream?.leaveBuffer()
        serving.read(
            with: StoredBodyReader(
                exchange: self, source: .parts(StoredParts(response, ticket.parts)), of: nil,
                content: ticket.position..<ticket.end))
        return true
    }

    /// Reads the slices, and what is under way of others.
    func readParts(_ content: Range<UInt64>, of response: CachedResponse, _ parts: PartsBody) {
        if let slices = serving.takeAwaited(), slices.parts == parts {
            return read(content, from: .parts(slices))
        }
        let slices = StoredParts(response, parts)
        // So that it goes on until this client gets to it.
        if let run = store?.run(of: parts, within: content) { slices.join(run) }
        read(content, from: .parts(slices))
    }

    // MARK: Pace

    /// Whether it is of use to receive more of the part without a client.
    func isOfUse(_ ticket: PartsTicket) -> Bool {
        if let run = ticket.run, run.body.readers > 0 { return true }
        return ticket.end - ticket.position <= ticket.parts.sliceBytes
    }

    /// How far a part that is received for others may be ahead of them.
    private static let mostAhead: UInt64 = 6 << 20

    /// Whether to pause until those who read the part have caught up.
    func waitsForReaders() -> Bool {
        guard let run = storing.parts?.run, register() else { return false }
        let (token, mailbox) = (token, environment.mailbox)
        return run.body.isAhead(by: Self.mostAhead) { mailbox.post(.progressed(token)) }
    }
}
