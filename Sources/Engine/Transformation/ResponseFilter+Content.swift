import Clocks
import ContentCoding
import EventLoop
import HTTPCore
import Notation
import Transformation

// What becomes of a response: by its head, and by its content.
extension ResponseFilter {
    /// Content that is looked at on the loop's own thread at most; more of it would keep others
    /// waiting.
    static let bytesAtOnce = 16 << 10

    /// Decides by the head.
    func judge(_ head: UnsafeRawBufferPointer) throws(TransformationFailure) {
        let bytes = head.octets
        if response.status != 304 { try checks.check(status: response.status) }
        let type = contentType(bytes)
        let hasContent = response.framing != .none && response.framing != .length(0)
        try checks.check(contentType: type, hasContent: hasContent)
        guard hasContent else { return passOn(head, as: headOfNoContent(type, bytes)) }
        guard let plan = try plan(type, bytes) else { return passOn(head, as: nil) }
        guard let codings = MessageFacts.codings(of: response.fields, in: bytes) else {
            throw TransformationFailure(
                .responseCodingUnknown, "its Content-Encoding is none of gzip, deflate and br")
        }
        if case .length(let count) = response.framing, count > UInt64(plan.maximumBytes) {
            guard plan.larger == .pass else { throw .tooLarge(plan) }
            return passOn(head, as: nil)
        }
        step = .gathering(
            HeldResponse(head, response, plan, codings, environment.shared.transformationWork))
    }

    /// The value of Content-Type; nil where there is none, and what is no type where lines
    /// contradict each other: who reads another line than we do would be given what was refused.
    private func contentType(_ bytes: Span<UInt8>) -> String? {
        let type = MessageFacts.mediaType(of: response.fields, in: bytes)
        if type == .malformed { return "malformed" }
        return response.fields.first(.contentType).map { bytes.text(at: $0.value) }
    }

    private func plan(
        _ type: String?, _ bytes: Span<UInt8>
    ) throws(TransformationFailure) -> ContentPlan? {
        try checks.plan(
            contentType: type,
            isPartial: response.status == 206 || response.fields.contains(.contentRange),
            noTransform: MessageFacts.noTransform(response: response, in: bytes))
    }

    /// The head of a response without content, where that of a GET would be changed (HEAD, 304);
    /// nil: it stays.
    private func headOfNoContent(_ type: String?, _ bytes: Span<UInt8>) -> [UInt8]? {
        guard let tags = rules.ask.entityTags, method == .head || response.status == 304,
            !MessageFacts.noTransform(response: response, in: bytes)
        else { return nil }
        var change = ResponseHeadChange(changesContent: true, length: nil)
        change.entityTags = tags
        let tag = response.fields.first(.etag).map {
            bytes.extracting($0.value.indices).withUnsafeBytes { Array($0) }
        }
        if response.status == 304 {
            if confirmsUnchanged(tag) { return nil }
            change.contentEncoding = .replaced(tags.coding(of: tag, among: conditions))
        } else {
            guard let codings = MessageFacts.codings(of: response.fields, in: bytes) else {
                return nil
            }
            if let changed = checks.changedContentType(type) {
                change.contentType = changed
                change.contentEncoding = .replaced(ResponseJob.coding(after: codings, accepted))
            } else {
                guard checks.mayChange(type) else { return nil }
                // Only the content tells, or what is stored, if it is still that. What nobody knows
                // is left out (RFC 9110, section 9.3.2).
                let stored = exchange?.storedTag
                if let stored, tags.original(stored) == nil, EntityTagMapping.same(stored, tag) {
                    return nil
                }
                if stored == nil { change.entityTags = nil }
                change.contentEncoding = .replaced(stored.flatMap(tags.coding) ?? .identity)
            }
            change.dependsOnAcceptEncoding = !codings.isEmpty
        }
        return change.head(of: response, in: bytes)
    }

    /// Tells of a head, and from now on of everything as it comes.
    private func passOn(_ head: UnsafeRawBufferPointer, as changed: [UInt8]?) {
        step = .passing
        guard let changed else {
            exchange?.response = response
            exchange?.upstreamHead(head)
            return
        }
        tell(ofHead: changed)
    }

    /// - Parameter head: the response's; nil: the one that is held.
    func refuse(_ failure: TransformationFailure, _ head: UnsafeRawBufferPointer? = nil) {
        let exchange = exchange.take()
        // What the request has changed at the server is changed, whatever the answer is worth.
        exchange?.response = response
        if let head {
            exchange?.invalidate(head.octets)
        } else if case .gathering(let held) = step {
            held.head.withUnsafeBytes { exchange?.invalidate($0.octets) }
        } else if case .working(let held) = step {
            held.head.withUnsafeBytes { exchange?.invalidate($0.octets) }
        }
        end()
        exchange?.upstreamFailed(.transformation(failure), responseStarted: true)
    }

    // MARK: Content

    /// Takes content in. False asks to pause.
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

    /// What is too large to be looked at goes on as it comes, after what was gathered.
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

    /// The content is complete: it is checked and translated.
    func work(on held: HeldResponse) {
        step = .working(held)
        let job = ResponseJob(held, accepted: accepted)
        if job.isShort {
            return worked(job.run())
        }
        guard register() else { return refuse(.overloaded) }
        let (token, mailbox) = (token, environment.mailbox)
        let isTaken = environment.shared.transformationWork.run { [claim = held.content.claim] in
            guard claim.isWanted else { return }
            mailbox.post(.transformed(token, .response(job.run())))
        }
        if !isTaken { refuse(.overloaded) }
    }

    private func register() -> Bool {
        if token != .none { return true }
        return (try? environment.loop.add(self)) != nil
    }

    /// What came of it.
    func worked(_ result: Result<ResponseContent, TransformationFailure>) {
        guard case .working(let held) = step else { return }
        switch result {
        case .failure(let failure): refuse(failure)
        case .success(let content): tell(of: content, held)
        }
    }

    /// Tells of the whole response.
    private func tell(of content: ResponseContent, _ held: HeldResponse) {
        guard let exchange else { return end() }
        exchange.note(
            response: .init(
                steps: content.steps, bytesIn: content.bytesIn, bytesOut: content.content.count,
                microseconds: content.microseconds))
        step = .passing
        if let change = content.change {
            tell(
                ofHead: held.head.withUnsafeBytes {
                    rules.head(
                        of: held.response, in: $0.octets, change, length: content.content.count)
                })
        } else {
            exchange.response = held.response
            held.head.withUnsafeBytes { exchange.upstreamHead($0) }
        }
        if self.exchange != nil, !content.content.isEmpty {
            let buffer = environment.loop.buffers.holding(content.content)
            _ = self.exchange?.upstreamBody(buffer.readable, owner: buffer, isLast: true)
        }
        let listener = self.exchange.take()
        end()
        listener?.upstreamEnded(trailers: content.change == nil ? held.trailers : nil)
    }

    /// Tells of a head that was written anew.
    private func tell(ofHead head: [UInt8]) {
        var parser = ResponseHeadParser(limits: .rewritten)
        head.withUnsafeBytes { bytes in
            guard let exchange else { return }
            do throws(WireError) {
                let progress = try parser.parse(
                    bytes.octets, answering: ResponseContext(method: method),
                    into: &exchange.response)
                guard progress == .complete(headBytes: bytes.count) else {
                    throw .malformedStatusLine
                }
            } catch {
                self.exchange = nil
                end()
                return exchange.upstreamFailed(.response(error), responseStarted: true)
            }
            exchange.upstreamHead(bytes)
        }
    }
}

/// The checks and the translation of one response's content, on whatever thread.
struct ResponseJob: Sendable {
    let content: [UInt8]
    let codings: [ContentCoding]
    let plan: ContentPlan
    /// What content that changes is encoded with again.
    let coding: ContentCoding

    init(_ held: ResponseFilter.HeldResponse, accepted: AcceptedCodings) {
        content = held.content.take()
        codings = held.codings
        plan = held.plan
        coding = Self.coding(after: codings, accepted)
    }

    /// What content is encoded with that came in these codings: again, if the client takes that.
    static func coding(
        after codings: [ContentCoding], _ accepted: AcceptedCodings
    ) -> ContentCoding {
        guard accepted.isPresent, !codings.isEmpty else { return .identity }
        return accepted.best(of: [.gzip, .identity]) ?? .identity
    }

    /// Whether it is over so soon that the loop's own thread does it. What is small may still be
    /// large when decoded.
    var isShort: Bool {
        !plan.isSlow && codings.isEmpty && content.count <= ResponseFilter.bytesAtOnce
    }

    func run() -> Result<ResponseContent, TransformationFailure> {
        let began = Clock.monotonicMicroseconds()
        do throws(TransformationFailure) {
            var result = try transform()
            result.bytesIn = content.count
            result.microseconds = UInt64(max(0, Clock.monotonicMicroseconds() - began))
            return .success(result)
        } catch {
            return .failure(error)
        }
    }

    private func transform() throws(TransformationFailure) -> ResponseContent {
        let planned: PlannedContent
        do throws(TransformationFailure) {
            planned = try plan.run(decode())
        } catch {
            guard error.problem == .responseBodyTooLarge, plan.larger == .pass else { throw error }
            planned = PlannedContent()
        }
        guard let changed = planned.changed else {
            return ResponseContent(content: content, change: nil, steps: planned.steps)
        }
        let encoded =
            coding == .gzip ? try? ContentCodings.encode(changed.bytes, as: .gzip) : nil
        return ResponseContent(
            content: encoded ?? changed.bytes,
            change: .init(
                contentType: changed.contentType, coding: encoded == nil ? .identity : .gzip,
                wasEncoded: !codings.isEmpty),
            steps: planned.steps)
    }

    private func decode() throws(TransformationFailure) -> [UInt8] {
        guard !codings.isEmpty else { return content }
        do throws(ContentCodingError) {
            return try ContentCodings.decode(content, codings: codings, maximum: plan.maximumBytes)
        } catch {
            throw TransformationFailure(decoding: error, ofRequest: false)
        }
    }
}

extension TransformationFailure {
    static let overloaded = TransformationFailure(
        .overloaded, "too much content is being checked or translated at the moment")

    static func tooLarge(_ plan: ContentPlan) -> TransformationFailure {
        TransformationFailure(
            .responseBodyTooLarge,
            "the content is larger than \(plan.maximumBytes) bytes, the most that is looked at")
    }

    /// Content that could not be decoded.
    init(decoding error: ContentCodingError, ofRequest: Bool) {
        let problem: TransformationProblem
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

extension HeadLimits {
    /// Of heads that the gateway has written anew: what it adds is not held to the limits that
    /// hold for what it is sent.
    static let rewritten = HeadLimits(
        headBytes: 1 << 24, fields: 4096, targetBytes: 1 << 23, methodBytes: 1 << 12,
        connectionOptions: 1 << 12)
}
