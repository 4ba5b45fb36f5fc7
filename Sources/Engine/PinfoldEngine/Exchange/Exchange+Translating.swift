import CachePolicy
import CacheStore
import ContentCoding
import EventLoop
import HTTPCore
import Transformation

// Responses from a cache that keeps the origins' form, on routes whose rules translate it for
// clients: the stored response is read, translated, and then sent as if it were stored in that
// form. Conditions and ranges refer to the translated form.
//
//     stored ──► loading: read, translated ──► routing ──► finishing
//                   └──► refused: a reply; what was stored is removed
extension Exchange {
    /// Begins to translate a stored response. Returns false if it is sent unchanged.
    @inline(never)
    func translate(
        _ stored: CachedResponse, _ hit: CacheHit, as fresh: FreshenedResponse?,
        _ cacheStatus: CacheStatus?, by rules: RouteTransformation
    ) -> Bool {
        guard let checks = rules.response else { return false }
        let held: HeldResponse?
        do throws(StoredTranslationError) {
            held = try HeldResponse(
                storedHead: fresh?.head ?? Array(stored.head), count: stored.contentCount,
                checks: checks, environment.shared.transformationWork)
        } catch {
            guard goesOn(after: .decided(.load)) else { return true }
            switch error {
            case .unreadable:
                environment.shared.store?.remove(stored)
                report.used(cache: .none)
                fail(.gateway(.storedBodyUnreadable), .storedBodyUnreadable)
            case .refused(let failure): refuse(stored, failure)
            }
            return true
        }
        guard let held else { return false }
        let translation = StoredTranslation(
            stored, hit, fresh, cacheStatus, by: rules,
            accepted: withRequestHead { MessageFacts.acceptedCodings(of: request, in: $0) },
            held: held)
        if isKnown(translation) { return true }
        guard isAdmitted(), goesOn(after: .decided(.load)) else { return true }
        serving.translate(translation)
        read(stored, for: translation)
        return true
    }

    /// Answers 304 if the client already has the result of the translation, which is then not
    /// needed. Only content changed by these rules was given a tag of these rules.
    private func isKnown(_ translation: StoredTranslation) -> Bool {
        guard request.fields.contains(.ifNoneMatch), let tags = translation.rules.ask.entityTags,
            withRequestHead({ !tags.conditions(in: $0).isEmpty }),
            let head = translation.headOfNotModified(options: cacheOptions)
        else { return false }
        let form = form(of: head)
        guard case .notModified = form else { return false }
        send(translation, head, form, content: nil)
        return true
    }

    private func form(of head: StoredTranslation.Head) -> HitForm {
        let form = withRequestHead {
            HitForm(
                of: head.metadata, storedHead: head.bytes.span, for: request, in: $0,
                options: cacheOptions)
        }
        // A translation is small: all of it is sent in place of several ranges.
        if case .several = form { return .full }
        return form
    }

    // MARK: Reading

    private func read(_ stored: CachedResponse, for translation: StoredTranslation) {
        let all = 0..<stored.contentCount
        switch stored.body {
        case .contiguous(let body): gatherAll(body.bytes, for: translation)
        case .heap(let heap): gatherAll(heap.bytes, for: translation)
        case .file, .disk:
            guard register() else { return fail(.gateway(.descriptorsExhausted)) }
            if case .file(let file) = stored.body { read(all, from: .file(file)) }
            if case .disk(let body) = stored.body { read(all, from: .disk(body)) }
        // Only a complete body is translated.
        case .arriving, .parts: fail(.gateway(.storedBodyUnreadable), .storedBodyUnreadable)
        }
    }

    private func gatherAll(_ bytes: UnsafeRawBufferPointer, for translation: StoredTranslation) {
        if gather(bytes, for: translation) { work(on: translation) }
    }

    /// Collects content. Returns false if too much is held already; the client has then been
    /// answered.
    func gather(_ part: UnsafeRawBufferPointer, for translation: StoredTranslation) -> Bool {
        if translation.held.content.append(part) { return true }
        refuse(translation.stored, .overloaded)
        return false
    }

    // MARK: Translating

    /// The content is complete.
    func work(on translation: StoredTranslation) {
        serving.endReading()
        let job = ResponseJob(translation.held, accepted: translation.accepted)
        if let result = job.runAtOnce() { return translatedStored(result) }
        guard register() else { return fail(.gateway(.descriptorsExhausted)) }
        if !environment.start(job, for: token, claim: translation.held.content.claim) {
            refuse(translation.stored, .overloaded)
        }
    }

    /// What came of it.
    func translatedStored(_ result: Result<ResponseContent, TransformationError>) {
        guard case .loading = state.step, let translation = serving.takeTranslation()
        else { return }
        switch result {
        case .failure(let failure): refuse(translation.stored, failure)
        case .success(let content):
            remarks.changed(response: .init(content))
            if goesOn(after: .loaded) { respond(with: content, translation) }
        }
    }

    /// The rules refuse what is stored. The next request for it asks the server: it may have
    /// something else by then. No cache has answered this one.
    private func refuse(_ stored: CachedResponse, _ failure: TransformationError) {
        if failure.reason != .overloaded { environment.shared.store?.remove(stored) }
        report.used(cache: .none)
        fail(.transformation(failure))
    }

    private func respond(with content: ResponseContent, _ translation: StoredTranslation) {
        guard let change = content.change else {
            return serveAsStored(
                translation.stored, translation.hit, as: translation.fresh,
                cacheStatus: translation.cacheStatus)
        }
        guard
            let head = translation.head(
                change, length: content.count, options: cacheOptions)
        else { return fail(.gateway(.storedBodyUnreadable)) }
        send(
            translation, head, form(of: head),
            content: content.buffer(from: environment.loop.buffers))
    }

    /// Sends a translation in the form that the client asks for.
    private func send(
        _ translation: StoredTranslation, _ head: StoredTranslation.Head, _ form: HitForm,
        content: Buffer?
    ) {
        guard goesOn(after: .decided(.respond)), let client else { return }
        let hit = CacheHit(
            form: form, age: translation.hit.age, timeToLive: translation.hit.timeToLive,
            stale: translation.hit.stale)
        let range = hit.content(of: UInt64(content?.count ?? 0))
        head.bytes.withUnsafeBytes {
            guard let fresh = translation.fresh else {
                return sendHead(
                    hit, head.metadata, $0, range, translation.cacheStatus, to: client)
            }
            sendHead(
                hit, confirmed: head.metadata, $0, range, translation.cacheStatus,
                fresh.personalFields, to: client)
        }
        if let content, !range.isEmpty {
            let part = Int(range.lowerBound)..<Int(range.upperBound)
            client.send(
                UnsafeRawBufferPointer(rebasing: content.readable[part]), owner: content)
        }
        endStored(client)
    }
}
