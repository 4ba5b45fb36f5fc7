import CachePolicy
import CacheStore
import ContentCoding
import EventLoop
import HTTPCore
import PinfoldMetrics
import Transformation

// Stored responses that are not sent as they are stored: decoded for a client that does not accept
// their coding, or compressed for one that does, where the route asks for it. What is made is kept
// beside the stored response (`Renditions`); conditions and ranges refer to the form that is sent.
//
//     stored ──► ready? ── yes ──► finishing
//                  │ no ── compressed ──► made meanwhile; the stored form is sent
//                  └─ decoded ──► loading: made ──► routing ──► finishing
//                                    └──► it cannot be: the origin is asked
extension Exchange {
    /// Serves a response of which parts or forms are stored.
    @inline(never)
    func answerFromForms(
        _ response: CachedResponse, _ hit: CacheHit, _ view: CacheKeyView, _ origin: Origin
    ) {
        if response.metadata.flags.contains(.parts) {
            return answerFromParts(response, hit, view, origin)
        }
        report.used(cache: hit.stale == nil ? .hit : .hitStale)
        if hit.stale == .whileRevalidating { revalidateInBackground(response, view) }
        if case .answered = collapsing.role { return serveCollapsed(response, hit) }
        serve(response, hit, as: nil)
    }

    /// Sends a stored response in the form that the client accepts. Returns false if it is to be
    /// sent as it is stored.
    @inline(never)
    func servesInForm(
        _ stored: CachedResponse, _ hit: CacheHit, as fresh: FreshenedResponse?,
        _ cacheStatus: CacheStatus?
    ) -> Bool {
        let flags = (fresh?.metadata ?? stored.metadata).flags
        guard flags.isDisjoint(with: [.parts, .hasTrailers]) else { return false }
        // The origin has just been asked, or is not to be.
        let isFinal =
            switch hit.stale {
            case .staleIfError, .unreachable, .offline: true
            case .maxStale, .whileRevalidating, nil: fresh != nil
            }
        guard
            let form = form(
                stored, hit, fresh, cacheStatus, orAskBecause: isFinal ? nil : .coding)
        else { return false }
        form.choose(for: acceptedCodings)
        switch form.form {
        case .stored: serveAsStored(form)
        case .decoded: serveDecoded(form)
        case .encoded: serveCompressed(form)
        }
        return true
    }

    /// Whether stored responses are sent in other forms: rules about content decide about its
    /// coding, too.
    var sendsOtherForms: Bool {
        guard request.method == .get || request.method == .head else { return false }
        // A program decodes what it gets itself.
        return isIntermediary && (origin?.passesUnchanged ?? false)
    }

    private var acceptedCodings: AcceptedCodings {
        withRequestHead { MessageFacts.acceptedCodings(of: request, in: $0) }
    }

    /// `nil` if the response has no other forms here.
    private func form(
        _ stored: CachedResponse, _ hit: CacheHit, _ fresh: FreshenedResponse?,
        _ cacheStatus: CacheStatus?, orAskBecause reason: ForwardReason?
    ) -> StoredForm? {
        guard sendsOtherForms, let origin else { return nil }
        return StoredForm(
            stored, hit, fresh, cacheStatus, orAskBecause: reason,
            maximumBytes: origin.formBytes, environment.shared)
    }

    // MARK: The stored form

    /// Sends the stored form. Others may be sent another one: it says on what that depends.
    private func serveAsStored(_ form: StoredForm) {
        let (stored, hit) = (form.stored, form.hit)
        guard let head = form.headOfStored(cacheOptions) else {
            return serveAsStored(stored, hit, as: form.fresh, cacheStatus: form.cacheStatus)
        }
        if hit.isMultipart {
            return head.bytes.withUnsafeBytes {
                serveRanges(of: stored, hit, form.cacheStatus, head: $0)
            }
        }
        let content = hit.content(of: stored.contentCount)
        guard let client = beginServing(stored, content) else { return }
        send(head, hit, content, of: form, to: client)
        send(content, of: stored, to: client)
    }

    private func send(
        _ head: FormHead, _ hit: CacheHit, _ content: Range<UInt64>, of form: StoredForm,
        to client: any DownstreamStream
    ) {
        head.bytes.withUnsafeBytes {
            guard let fresh = form.fresh else {
                return sendHead(hit, head.metadata, $0, content, form.cacheStatus, to: client)
            }
            sendHead(
                hit, confirmed: head.metadata, $0, content, form.cacheStatus,
                fresh.personalFields, to: client)
        }
    }

    // MARK: Compressing

    /// Sends the compressed form, or the stored one until that is made.
    private func serveCompressed(_ form: StoredForm) {
        let stored = form.stored
        // Whoever knows the stored form, or has a part of it, goes on with it.
        if case .notModified = form.hit.form { return serveAsStored(form) }
        // So does whoever asks for a part without saying of what: the other parts of it may have
        // come before there was another form.
        if request.fields.contains(.range),
            form.hit.form.isOfRange || !request.fields.contains(.ifRange)
        {
            return serveAsStored(form)
        }
        // What is not the same for everyone may contain secrets, which the length of what is
        // compressed together with them may give away (BREACH).
        guard stored.hasContentInMemory, form.isWorthCompressing, stored.varyKey.isForEveryone
        else { return serveAsStored(form) }
        if isKnown(form) { return }
        guard let rendition = form.form.rendition else { return serveAsStored(form) }
        let renditions = stored.forms.renditions
        switch renditions.state(rendition) {
        case .ready(let body): return send(body, form)
        case .none: make(form, rendition)
        case .underWay, .impossible: break
        }
        serveAsStored(form)
    }

    /// Has a rendition made for those who ask next.
    private func make(_ form: StoredForm, _ rendition: Renditions.Form) {
        let stored = form.stored
        // What is not kept would be made for nobody.
        guard let store, store.keepsInMemory(stored),
            case .none = stored.forms.renditions.begin(rendition)
        else { return }
        let isTaken = environment.start(
            form.job(), for: client?.account, claim: form.content.claim
        ) { store.endRendition(rendition, of: stored, with: $0, isOfUseOnce: false) }
        if !isTaken { store.endRendition(rendition, of: stored, with: .givenUp) }
    }

    // MARK: Decoding

    /// Answers from a variant that was selected by another Accept-Encoding and by nothing else, if
    /// the client wants content without any coding: what the origin would send it is what comes of
    /// decoding that variant. Returns false if there is none, or it is not fresh.
    @inline(never)
    func answersDecoded(from responses: [CachedResponse], counting hits: WorkerCounter) -> Bool {
        guard let origin, acceptedCodings.isForIdentity,
            let stored = decodable(from: responses, origin)
        else { return false }
        let decision = withRequestHead { bytes in
            CacheDecision.decide(
                for: request, in: bytes, stored: stored.metadata,
                storedHead: stored.head.octets, now: environment.wallSeconds,
                options: origin.caching.options)
        }
        // The origin would be asked about the variant that this client selects.
        guard case .hit(let hit) = decision, hit.stale == nil else { return false }
        var status: CacheStatus?
        if case .answered = collapsing.role { status = statusOfCollapsed }
        // Whoever has waited for this response does not wait for the next one.
        let reason = status == nil ? ForwardReason.varyMiss : .coding
        guard let form = form(stored, hit, nil, status, orAskBecause: reason),
            form.chooseDecoded(), mayDecode(form)
        else { return false }
        metrics.add(hits)
        report.used(cache: status == nil ? .hit : .collapsed)
        serveDecoded(form)
        return true
    }

    /// The most recent of the variants that differ from what the request selects in their coding
    /// alone.
    private func decodable(
        from responses: [CachedResponse], _ origin: Origin
    ) -> CachedResponse? {
        responses.filter { response in
            guard isUsable(response, origin),
                let others = response.varyKey.ignoring("accept-encoding"),
                withRequestHead({ others.matches(request, in: $0) })
            else { return false }
            return StoredCoding.mayBeDecoded(response.head.octets)
        }.max { $0.metadata.date < $1.metadata.date }
    }

    /// Variants in levels below memory that differ from what the request selects in nothing but a
    /// common value of Accept-Encoding, if the client wants content without any coding; `nil` if
    /// there are none. Only what one value selects is read: there may be many variants.
    @inline(never)
    func variantsInOtherCodings(_ view: CacheKeyView) -> [VaryKey]? {
        guard sendsOtherForms, acceptedCodings.isForIdentity, let store else { return nil }
        for index in VaryKey.commonCodings.indices {
            let others = store.levelVariants(view) { names in
                let own = withRequestHead { VaryKey(names: names, for: request, in: $0) }
                return own?.ofOtherCoding(index)
            }
            if case .candidates(let variants) = others { return variants }
        }
        return nil
    }

    private func mayDecode(_ form: StoredForm) -> Bool {
        guard form.stored.metadata.flags.isDisjoint(with: [.parts, .hasTrailers]),
            !form.isCompressedFile([UInt8](requestHead[request.path.indices]))
        else { return false }
        let count = form.stored.contentCount
        return count <= UInt64(form.maximumBytes) || form.stored.metadata.bodyBytes == nil
    }

    /// Sends the content without its coding.
    private func serveDecoded(_ form: StoredForm) {
        guard mayDecode(form), let rendition = form.form.rendition else {
            return serveAsStored(form)
        }
        if isKnown(form) { return }
        let renditions = form.stored.forms.renditions
        switch renditions.state(rendition) {
        case .ready(let body): return send(body, form)
        case .impossible: return giveUp(form)
        case .none, .underWay: break
        }
        guard isAdmitted() else { return }
        guard register() else { return fail(.gateway(.descriptorsExhausted)) }
        guard goesOn(after: .decided(.load)) else { return }
        serving.wait(for: form)
        guard form.stored.hasContentInMemory else { return read(form) }
        let (token, mailbox) = (token, environment.mailbox)
        let state = renditions.begin(rendition) { mailbox.post(.formMade(token, $0)) }
        switch state {
        case .none: make(form, rendition, waking: token)
        case .underWay: break
        case .ready(let body): formMade(body)
        case .impossible: formMade(nil)
        }
    }

    /// Has a rendition made for which this exchange waits.
    private func make(_ form: StoredForm, _ rendition: Renditions.Form, waking token: Token) {
        let (stored, mailbox) = (form.stored, environment.mailbox)
        guard let store else { return formMade(nil) }
        let isTaken = environment.start(
            form.job(), for: nil, claim: form.content.claim
        ) { result in
            mailbox.post(
                .formMade(token, store.endRendition(rendition, of: stored, with: result)))
        }
        guard !isTaken else { return }
        store.endRendition(rendition, of: stored, with: .givenUp)
        formMade(nil)
    }

    /// Reads content that is not in memory.
    private func read(_ form: StoredForm) {
        let all = 0..<form.stored.contentCount
        switch form.stored.body {
        case .disk(let body): read(all, from: .disk(body))
        case .arriving(let body): read(all, from: .arriving(body))
        case .contiguous, .heap, .file, .parts: formMade(nil)
        }
    }

    /// Collects content. Returns false if it is too much.
    func gather(_ part: UnsafeRawBufferPointer, for form: StoredForm) -> Bool {
        if form.content.bytes.count + part.count <= form.maximumBytes,
            form.content.append(part)
        {
            return true
        }
        serving.endReading()
        formMade(nil)
        return false
    }

    /// The content is complete.
    func work(on form: StoredForm) {
        serving.endReading()
        guard let store else { return formMade(nil) }
        let (token, mailbox) = (token, environment.mailbox)
        let isTaken = environment.start(
            form.jobWithContent(), for: nil, claim: form.content.claim
        ) { result in
            guard case .made(let content) = result else {
                return mailbox.post(.formMade(token, nil))
            }
            mailbox.post(.formMade(token, store.body(of: content)))
        }
        if !isTaken { formMade(nil) }
    }

    /// The form that it waits for is there, or cannot be had.
    package func formMade(_ body: HeapBody?) {
        guard case .loading = state.step, let form = serving.takeForm(), goesOn(after: .loaded)
        else { return }
        if let body { send(body, form) } else { giveUp(form) }
    }

    /// The form cannot be made: the origin is asked, unless it has just been.
    private func giveUp(_ form: StoredForm) {
        guard let reason = form.reasonToAsk else { return serveAsStored(form) }
        if caching.key == nil { caching.identify(by: CacheKey(bytes: Array(form.stored.key))) }
        // It may be served in place of an error.
        if !form.isOfOtherVariant, !form.stored.isArriving { caching.found(form.stored) }
        missed(reason)
    }

    // MARK: Sending

    /// Answers 304 if the client already has the form, which then need not be made.
    private func isKnown(_ form: StoredForm) -> Bool {
        guard request.fields.contains(.ifNoneMatch) || request.fields.contains(.ifModifiedSince),
            let head = form.head(cacheOptions, count: nil)
        else { return false }
        let hitForm = hitForm(of: head)
        guard case .notModified = hitForm else { return false }
        send(nil, head, hitForm, form)
        return true
    }

    private func hitForm(of head: FormHead) -> HitForm {
        let bytes = head.bytes
        let form = withRequestHead {
            HitForm(
                of: head.metadata, storedHead: bytes.span, for: request, in: $0,
                options: cacheOptions)
        }
        // All of it is sent in place of several ranges.
        if case .several = form { return .full }
        return form
    }

    private func send(_ body: HeapBody, _ form: StoredForm) {
        guard let head = form.head(cacheOptions, count: body.count) else { return giveUp(form) }
        send(body, head, hitForm(of: head), form)
    }

    private func send(
        _ body: HeapBody?, _ head: FormHead, _ hitForm: HitForm, _ form: StoredForm
    ) {
        guard goesOn(after: .decided(.respond)), let client else { return }
        let hit = CacheHit(
            form: hitForm, age: form.hit.age, timeToLive: form.hit.timeToLive,
            stale: form.hit.stale)
        let range = hit.content(of: UInt64(body?.count ?? 0))
        send(head, hit, range, of: form, to: client)
        if let body {
            metrics.add(form.form == .decoded ? .cacheDecodedHits : .cacheCompressedHits)
            remarks.changed(
                response: .init(
                    steps: [form.form.step],
                    bytesIn: Int(clamping: form.stored.metadata.bodyBytes ?? 0),
                    bytesOut: range.count, microseconds: 0))
            if !range.isEmpty {
                let part = Int(range.lowerBound)..<Int(range.upperBound)
                client.send(UnsafeRawBufferPointer(rebasing: body.bytes[part]), owner: body)
            }
        }
        endStored(client)
    }
}

extension StoredForm {
    /// The making of the form of content that is in memory.
    fileprivate func job() -> RenditionJob {
        RenditionJob(
            stored: stored, content: nil, codings: codings, form: form, maximumBytes: maximumBytes)
    }

    /// The making of the form of content that has been read.
    fileprivate func jobWithContent() -> RenditionJob {
        RenditionJob(
            stored: stored, content: content.take(), codings: codings, form: form,
            maximumBytes: maximumBytes)
    }
}

extension HitForm {
    /// Whether it answers a Range.
    fileprivate var isOfRange: Bool {
        switch self {
        case .partial, .several, .rangeNotSatisfiable: true
        case .full, .headOnly, .notModified: false
        }
    }
}
