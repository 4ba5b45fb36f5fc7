import ContentCoding
import EventLoop
import HTTPCore
import Transformation

// Applies a route's rules to a request: to its head before the cache lookup, so that the key, Vary
// and the server all see the same head; to its content before there is a connection.
extension Exchange {
    // MARK: The head

    /// Applies the route's rules to the request. Returns false if it has been answered.
    @inline(never)
    func rewrite(by rules: RouteTransformation, for origin: Origin) -> Bool {
        do throws(TransformationError) {
            let isSecure = origin.key.isSecure
            let bytes = requestHead
            let head = try rules.requestHead.head(
                rewriting: request, in: bytes.octets, isSecure: isSecure,
                withoutAuthorization: caller.holdsConsumedField, user: identity?.userBytes)
            if let head {
                if caller.holdsConsumedField { caller.fieldRemoved() }
                try adopt(head, for: origin)
            }
            if let kind = try kindOfTranslation(by: rules) {
                rewritten(or: environment).content = .gathering(kind)
            }
            if let sentHead = rules.sentHead, let stream = client {
                client = ChangedHeads(of: stream, by: sentHead, environment.loop.buffers)
            }
            return true
        } catch {
            reply(with: .transformation(error), closing: false)
            return false
        }
    }

    /// Has the origin evaluate a condition about a form of what is stored (`Exchange+Forms`), whose
    /// tag it does not know, as one about what it was made of.
    @inline(never)
    func restoreEntityTags(for origin: Origin) {
        guard origin.passesUnchanged else { return }
        let head = withRequestHead {
            RequestHeads.head(of: request, in: $0, ifMatch: { EntityTagMapping.stored($0) ?? $0 })
        }
        // A head that is no request any more was none before, and is left to the origin.
        if let head { try? adopt(head, for: origin) }
    }

    private func rewritten(or environment: Environment) -> RewrittenRequest {
        if let rewritten = upload.rewritten { return rewritten }
        let made = RewrittenRequest(environment.shared.transformationWork)
        upload.rewrite(as: made)
        return made
    }

    /// Takes another head in place of the request's.
    private func adopt(_ head: [UInt8], for origin: Origin) throws(TransformationError) {
        let buffer = environment.loop.buffers.holding(head)
        var parsed = RequestHead()
        let version = request.version
        var parser = RequestHeadParser(limits: .rewritten, carrier: version.carrier)
        let progress = try? parser.parse(buffer.readable.octets, into: &parsed)
        guard progress == .complete(headBytes: head.count) else {
            throw TransformationError(
                .requestHeadInvalid, "with the route's rules the head is no request any more")
        }
        // Its fields say nothing of content whose length was never stated.
        if version.marksEnd, (try? parsed.decideContent(follows: intake.hasContent)) == nil {
            throw TransformationError(
                .requestHeadInvalid, "with the route's rules the head contradicts the content")
        }
        if origin.key.isFixed { parsed.endForwardingAliases(in: buffer.readable.octets) }
        let rewritten = rewritten(or: environment)
        if rewritten.clientHead == nil { rewritten.clientHead = ClientHead(request, requestHead) }
        if intake.replayable != nil, rewritten.buffer == nil { rewritten.buffer = intake.buffer }
        request = parsed
        if caller.consumedAuthorization { request.fields.countAsPresent(.authorization) }
        intake.takeHead(in: buffer)
        if origin.endsFields { endFields(for: origin) }
    }

    // MARK: The content

    /// The translation that the request's content or query needs; `nil` if none.
    private func kindOfTranslation(
        by rules: RouteTransformation
    ) throws(TransformationError) -> RequestJob.Kind? {
        guard let translation = rules.requestContent, request.method != .connect,
            !asksForUpgrade
        else { return nil }
        let byMethod = rules.requestRules.parameters == .byMethod
        if !intake.hasContent {
            guard request.method.hasParametersInContent else { return nil }
            if byMethod, let query = withRequestHead({ request.query(in: $0) }) {
                return .moveToContent(query: query)
            }
            // In these formats, empty content means that there are no parameters.
            guard translation.acceptsEmptyContent else { return nil }
        }
        let (type, noTransform) = withRequestHead { bytes in
            (
                MessageFacts.contentType(of: request.fields, in: bytes),
                MessageFacts.noTransform(request: request, in: bytes)
            )
        }
        guard try translation.applies(toContentType: type) else { return nil }
        if noTransform {
            guard rules.requestRules.body?.noTransform == .refuse else { return nil }
            throw TransformationError(
                .requestNoTransform, "its sender wants it unchanged (no-transform)")
        }
        return byMethod && request.method.hasParametersInQuery ? .moveToQuery : .translate
    }

    /// Collects the content and has it translated before a connection is requested. Returns true if
    /// the request may be sent.
    @inline(never)
    func contentIsTranslated(at origin: Origin) -> Bool {
        guard let rewritten = upload.rewritten else { return true }
        switch rewritten.content {
        case .passed: return true
        case .working: return false
        case .gathering(let kind):
            guard goesOn(after: .decided(.gather)) else { return false }
            if intake.contentHasEnded {
                translate(kind, of: rewritten)
            } else {
                askForContent()
                client?.resumeContent()
            }
            return false
        }
    }

    /// Sends 100 (Continue) to a client that waits for it (RFC 9110, section 10.1.1). Otherwise
    /// that would be up to the server, but the server does not see the request before the content
    /// is complete.
    func askForContent() {
        guard request.expectsContinue, intake.replayable == nil, let client,
            client.takesInterimResponses
        else { return }
        client.sendInterim(client.makeHead(status: 100, phrase: nil, room: 0))
        _ = client.flush()
    }

    /// Collects content that is to be translated. Returns false if no more is accepted.
    func gatherForTranslation(
        _ bytes: UnsafeRawBufferPointer, _ rewritten: RewrittenRequest
    ) -> Bool {
        let maximum = rules?.requestContent?.maximumBytes ?? 0
        guard rewritten.gathered.bytes.count + bytes.count <= maximum else {
            fail(
                .transformation(
                    TransformationError(
                        .requestBodyTooLarge,
                        "the content is larger than the maximum of \(maximum) bytes"))
            )
            return true
        }
        if !rewritten.gathered.append(bytes) { fail(.transformation(.overloaded)) }
        return true
    }

    private func translate(_ kind: RequestJob.Kind, of rewritten: RewrittenRequest) {
        rewritten.content = .working
        guard let translation = rules?.requestContent else { return fail(.gateway(.superseded)) }
        let (type, codings) = withRequestHead { bytes in
            (
                MessageFacts.contentType(of: request.fields, in: bytes),
                MessageFacts.codings(of: request.fields, in: bytes)
            )
        }
        guard let codings else {
            return fail(
                .transformation(
                    TransformationError(
                        .requestCodingUnknown,
                        "its Content-Encoding is not gzip, deflate, br or zstd")))
        }
        let job = RequestJob(
            kind: kind, translation: translation, content: rewritten.gathered.take(),
            contentType: type, codings: codings)
        if let result = job.runAtOnce() { return translated(result) }
        guard register() else { return fail(.gateway(.descriptorsExhausted)) }
        let (token, mailbox) = (token, environment.mailbox)
        let claim = rewritten.gathered.claim
        let isTaken = environment.shared.transformationWork.run {
            guard claim.isWanted else { return }
            mailbox.post(.transformed(token, .request(job.run(yieldPoint: .yielding()))))
        }
        if !isTaken { fail(.transformation(.overloaded)) }
    }

    /// What came of it.
    func translated(_ result: Result<TranslatedRequest, TransformationError>) {
        guard case .gathering = state.step, let rewritten = upload.rewritten,
            case .working = rewritten.content,
            let origin
        else { return }
        do throws(TransformationError) {
            let translated = try result.get()
            noteChange(to: translated)
            try replaceContent(by: translated.content, rewritten, origin)
        } catch {
            return fail(.transformation(error))
        }
        rewritten.content = .passed
        forward()
    }

    private func noteChange(to translated: TranslatedRequest) {
        let (step, bytes) =
            switch translated.content {
            case .content(let made, false): ("request-translated", made.bytes.count)
            case .content(let made, true): ("query-to-content", made.bytes.count)
            case .query: ("content-to-query", 0)
            }
        remarks.changed(
            request: .init(
                steps: [step], bytesIn: Int(intake.receivedBytes), bytesOut: bytes,
                microseconds: translated.microseconds))
    }

    private func replaceContent(
        by content: RequestContent, _ rewritten: RewrittenRequest, _ origin: Origin
    ) throws(TransformationError) {
        // What it changes at its server is stored under the target that the server sees.
        defer { if !request.isSafe { makeKey(origin) } }
        switch content {
        case .content(let translated, let removesQuery):
            let head = withRequestHead {
                RequestHeads.head(
                    replacingContentOf: request, in: $0, contentType: translated.contentType,
                    length: translated.bytes.count, queryRemoved: removesQuery)
            }
            let buffer = environment.loop.buffers.holding(translated.bytes)
            rewritten.buffer = buffer
            intake.replaceContent(count: buffer.count)
            try adopt(head, for: origin)
        case .query(let query):
            let head = withRequestHead {
                RequestHeads.head(
                    replacingContentOf: request, in: $0, contentType: nil, length: nil,
                    query: query)
            }
            rewritten.buffer = nil
            intake.replaceContent(count: nil)
            try adopt(head, for: origin)
        }
    }
}

extension Method {
    /// Whether requests with this method carry their parameters in the query instead of the content
    /// (AFNetworking's HTTPMethodsEncodingParametersInURI).
    fileprivate var hasParametersInQuery: Bool {
        self == .get || self == .head || self == .delete
    }

    /// Whether requests with this method can carry parameters in their content.
    fileprivate var hasParametersInContent: Bool {
        self == .post || self == .put || self == .patch
    }
}

extension RequestHead {
    /// The target's query without the question mark; `nil` if it is absent or empty.
    fileprivate borrowing func query(in bytes: Span<UInt8>) -> String? {
        let path = bytes.extracting(path.indices)
        let mark = path.firstIndex(of: UInt8(ascii: "?"), from: 0)
        guard mark + 1 < path.count else { return nil }
        return path.text(at: ByteRange(from: mark + 1, to: path.count))
    }
}
