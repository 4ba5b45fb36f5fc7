import Clocks
import ContentCoding
import EventLoop
import HTTPCore
import Transformation

// Processes a response, by its head and by its content.
extension ResponseFilter {
    /// The most content that is processed on the loop's own thread; more would keep others waiting.
    static let bytesAtOnce = 16 << 10

    /// Decides by the head.
    func decide(by head: UnsafeRawBufferPointer) throws(TransformationError) {
        let bytes = head.octets
        if response.status == 304 { return confirm(head) }
        try checks.check(status: response.status)
        let type = MessageFacts.contentType(of: response.fields, in: bytes)
        let hasContent = response.framing != .none && response.framing != .length(0)
        // What a HEAD response says about content applies to the stored response (RFC 9111, section
        // 4.3.5).
        let declaresContent = method == .head && type != nil
        try checks.check(contentType: type, hasContent: hasContent || declaresContent)
        guard hasContent else {
            if checks.needsContent(answering: method, status: response.status) {
                try checks.refuseEmptyContent(contentType: type)
            }
            return passOn(head, as: headOfNoContent(type, bytes))
        }
        guard let plan = try checks.plan(for: response, in: bytes, answering: method) else {
            return passOn(head, as: nil)
        }
        guard let codings = MessageFacts.codings(of: response.fields, in: bytes) else {
            throw TransformationError(
                .responseCodingUnknown,
                "its Content-Encoding is none of gzip, deflate, br and zstd")
        }
        if case .length(let count) = response.framing, count > UInt64(plan.maximumBytes) {
            guard plan.larger == .pass else { throw .tooLarge(plan) }
            return passOn(head, as: nil)
        }
        reportChange(head, to: exchange)
        step = .gathering(
            HeldResponse(
                Array(head), response, plan, codings, environment.shared.transformationWork))
    }

    /// Passes on that the stored response, or the client's, is still valid. What the server says
    /// about its type is not new: the checks or the translation have already handled it (RFC 9110,
    /// section 15.4.5).
    private func confirm(_ head: UnsafeRawBufferPointer) {
        guard response.fields.contains(.contentType) else {
            return passOn(head, as: headOfNotModified(head.octets))
        }
        var change = ResponseHeadChange(changesContent: false, length: nil)
        change.leavesOutContentType = true
        let untyped = change.head(of: response, in: head.octets)
        guard let parsed = parse(untyped, replacing: response) else { return }
        response = parsed
        untyped.withUnsafeBytes { passOn($0, as: headOfNotModified($0.octets)) }
    }

    /// The head of a 304 about changed content; `nil` to leave it unchanged.
    private func headOfNotModified(_ bytes: Span<UInt8>) -> [UInt8]? {
        let tag = entityTag(bytes)
        guard let tags = rules.ask.entityTags, !confirmsUnchanged(tag),
            !MessageFacts.noTransform(response: response, in: bytes)
        else { return nil }
        let coding = tags.coding(of: tag, among: conditions)
        var change = ResponseHeadChange(changesContent: true, length: nil)
        change.entityTags = tags
        change.contentEncoding = .replaced(coding)
        // Its Vary replaces the stored one.
        change.dependsOnAcceptEncoding = coding != .identity && response.fields.contains(.vary)
        return change.head(of: response, in: bytes)
    }

    /// The head of a response without content (HEAD), if that of a GET would be changed; `nil` to
    /// leave it unchanged.
    private func headOfNoContent(_ type: String?, _ bytes: Span<UInt8>) -> [UInt8]? {
        guard let tags = rules.ask.entityTags, method == .head,
            !MessageFacts.noTransform(response: response, in: bytes),
            let codings = MessageFacts.codings(of: response.fields, in: bytes)
        else { return nil }
        var change = ResponseHeadChange(changesContent: true, length: nil)
        change.dependsOnAcceptEncoding = !codings.isEmpty
        if let changed = checks.changedContentType(type) {
            change.contentType = changed
            change.entityTags = tags
            change.contentEncoding = .replaced(ResponseJob.coding(after: codings, accepted))
            return change.head(of: response, in: bytes)
        }
        guard checks.mayChange(type) else { return nil }
        // Only the content determines this, or what was made from it, if that is still valid. What
        // is unknown is left out (RFC 9110, section 9.3.2).
        let tag = entityTag(bytes)
        let made = rules.storesOrigin ? nil : exchange?.storedTag
        if let made, tags.original(made) == nil, EntityTagMapping.areSame(made, tag) { return nil }
        // A tag that differs from the stored one outdates the stored response, and nothing else
        // follows from it.
        change.entityTags = made == nil ? nil : tags
        change.contentEncoding = .replaced(made.flatMap(tags.coding) ?? .identity)
        return change.head(of: response, in: bytes)
    }

    private func entityTag(_ bytes: Span<UInt8>) -> [UInt8]? {
        response.fields.first(.etag).map {
            bytes.extracting($0.value.indices).withUnsafeBytes { Array($0) }
        }
    }

    /// Passes on a head, and from now on everything as it arrives.
    private func passOn(_ head: UnsafeRawBufferPointer, as changed: [UInt8]?) {
        step = .passing
        deliver(head: head, response, changed: changed)
    }

    /// - Parameter head: The response's head, or `nil` if `decide(by:)` has reported it already.
    func refuse(_ failure: TransformationError, _ head: UnsafeRawBufferPointer? = nil) {
        let exchange = exchange.take()
        if let head { reportChange(head, to: exchange) }
        end()
        exchange?.upstreamFailed(
            StreamError(.transformation(failure), responseStarted: true))
    }

    /// Reports what the request has changed on the server, whatever the response is worth and
    /// whether or not anybody waits for it.
    private func reportChange(_ head: UnsafeRawBufferPointer, to exchange: Exchange?) {
        exchange?.response = response
        exchange?.invalidate(head.octets)
    }

    // MARK: Content

    /// Collects content. Returns false to pause.
    func gather(
        _ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool, of held: HeldResponse
    ) -> Bool {
        guard held.content.bytes.count + bytes.count <= held.plan.maximumBytes else {
            guard held.plan.larger == .pass else {
                refuse(.tooLarge(held.plan))
                return true
            }
            return passUnchecked(held, followedBy: bytes, owner: owner, isLast: isLast)
        }
        if !held.content.append(bytes) { refuse(.overloaded) }
        return true
    }

    /// Passes on content that is too large to be processed as it arrives, after what was collected.
    private func passUnchecked(
        _ held: HeldResponse, followedBy bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool
    ) -> Bool {
        step = .passing
        exchange?.response = held.response
        held.head.withUnsafeBytes { exchange?.upstreamHead($0) }
        let gathered = held.content.take()
        if !gathered.isEmpty {
            let buffer = environment.loop.buffers.holding(gathered)
            _ = exchange?.upstreamBody(buffer.readable, owner: buffer, isLast: false)
        }
        return exchange?.upstreamBody(bytes, owner: owner, isLast: isLast) ?? true
    }

    /// The content is complete: has it checked and translated.
    func work(on held: HeldResponse) {
        step = .working(held)
        let job = ResponseJob(held, accepted: accepted)
        if let result = job.runAtOnce() { return worked(result) }
        guard register() else { return refuse(.overloaded) }
        workBegan = Clock.monotonicMicroseconds()
        if !environment.start(job, for: token, claim: held.content.claim) { refuse(.overloaded) }
    }

    private func register() -> Bool {
        if token != .none { return true }
        return (try? environment.loop.add(self)) != nil
    }

    /// What came of it.
    func worked(_ result: Result<ResponseContent, TransformationError>) {
        guard case .working(let held) = step else { return }
        if workBegan != 0 {
            exchange?.waits.translated(
                in: UInt64(max(0, Clock.monotonicMicroseconds() - workBegan)))
        }
        switch result {
        case .failure(let failure): refuse(failure)
        case .success(let content): deliver(content, held)
        }
    }

    /// Passes on the whole response.
    private func deliver(_ content: ResponseContent, _ held: HeldResponse) {
        guard let exchange else { return end() }
        exchange.remarks.changed(response: .init(content))
        exchange.forwarding.wasGathered(
            toTheEnd: held.response.framing.endsWithConnection)
        step = .passing
        let changed = content.change.map { change in
            held.head.withUnsafeBytes {
                rules.head(
                    of: held.response, in: $0.octets, change, length: content.count)
            }
        }
        held.head.withUnsafeBytes { deliver(head: $0, held.response, changed: changed) }
        deliverBody(content)
        let listener = self.exchange.take()
        end()
        listener?.upstreamEnded(trailers: content.change == nil ? held.trailers : nil)
    }

    private func deliverBody(_ content: ResponseContent) {
        guard let exchange else { return }
        let buffer = content.buffer(from: environment.loop.buffers)
        guard content.change == nil || !rules.storesOrigin else {
            return exchange.upstreamBody(content.origin, sentAs: buffer)
        }
        guard !buffer.isEmpty else { return }
        _ = exchange.upstreamBody(buffer.readable, owner: buffer, isLast: true)
    }

    /// Passes on a head.
    /// - Parameter changed: the changed head; `nil` if it stays as it is. It is sent to clients,
    ///   and also passed to the exchange and the store, unless the store keeps what the server
    ///   sent.
    private func deliver(
        head: UnsafeRawBufferPointer, _ response: ResponseHead, changed: [UInt8]?
    ) {
        guard let exchange else { return }
        guard let changed else {
            exchange.response = response
            return exchange.upstreamHead(head)
        }
        guard let parsed = parse(changed, replacing: response) else { return }
        guard rules.storesOrigin else {
            exchange.response = parsed
            return changed.withUnsafeBytes { exchange.upstreamHead($0) }
        }
        exchange.response = response
        exchange.upstreamHead(head, sentAs: SentHead(bytes: changed, response: parsed))
    }

    /// Parses a rewritten head; returns `nil` if it is invalid, in which case the exchange has been
    /// notified.
    private func parse(_ head: [UInt8], replacing response: ResponseHead) -> ResponseHead? {
        do throws(WireError) {
            return try response.rewritten(as: head, answering: method)
        } catch {
            let exchange = exchange.take()
            end()
            exchange?.upstreamFailed(StreamError(.response(error), responseStarted: true))
            return nil
        }
    }
}

extension TransformationError {
    static let overloaded = TransformationError(
        .overloaded, "too much content is being checked or translated at the moment")

    static func tooLarge(_ plan: ContentPlan) -> TransformationError {
        TransformationError(
            .responseBodyTooLarge,
            "the content is larger than the maximum of \(plan.maximumBytes) bytes")
    }

    /// The failure for content that could not be decoded.
    init(decoding error: ContentCodingError, ofRequest: Bool) {
        let problem: TransformationReason
        switch error {
        case .tooLarge: problem = ofRequest ? .requestBodyTooLarge : .responseBodyTooLarge
        case .outOfMemory: problem = .overloaded
        case .tooManyCodings:
            problem = ofRequest ? .requestCodingUnknown : .responseCodingUnknown
        case .truncated, .corrupt, .trailingData:
            problem = ofRequest ? .requestBodyInvalid : .responseBodyInvalid
        }
        self.init(problem, error.detail, at: error.offset.map { "byte \($0)" })
    }
}

extension ResponseHead {
    /// Parses what the gateway has made of the head.
    func rewritten(as head: [UInt8], answering method: Method) throws(WireError) -> ResponseHead {
        var changed = try ResponseHead(
            rewritten: head, answering: method, from: version.carrier)
        if version.marksEnd { try changed.decideContent(follows: framing != .length(0)) }
        return changed
    }

    /// Parses a head that the gateway has written.
    init(
        rewritten head: [UInt8], answering method: Method, from carrier: HTTPCarrier = .http1
    ) throws(WireError) {
        self.init()
        var parser = ResponseHeadParser(limits: .rewritten, carrier: carrier)
        let progress = try parser.parse(
            head.span, answering: ResponseContext(method: method, repairsLines: false), into: &self)
        guard progress == .complete(headBytes: head.count) else { throw .malformedStatusLine }
    }
}

extension HeadLimits {
    /// The limits for heads that the gateway has rewritten: what it adds is not subject to the
    /// limits for received heads.
    static let rewritten = HeadLimits(
        headBytes: 1 << 24, fields: 4096, targetBytes: 1 << 23, methodBytes: 1 << 12,
        connectionOptions: 1 << 12)
}
