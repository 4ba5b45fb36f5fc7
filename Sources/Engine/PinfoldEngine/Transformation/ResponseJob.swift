import Clocks
import ContentCoding
import Documents
import EventLoop
import HTTPCore
import Transformation

/// A response whose content is being processed.
final class HeldResponse {
    let head: [UInt8]
    let response: ResponseHead
    let plan: ContentPlan
    let codings: [ContentCoding]
    var content: TransformationWork.Holding
    var trailers: TrailerSection?

    init(
        _ head: [UInt8], _ response: ResponseHead, _ plan: ContentPlan,
        _ codings: [ContentCoding], _ work: TransformationWork
    ) {
        self.head = head
        self.response = response
        self.plan = plan
        self.codings = codings
        var expected = 0
        if case .length(let count) = response.framing { expected = Int(clamping: count) }
        content = TransformationWork.Holding(
            work, expecting: min(expected, plan.maximumBytes))
    }
}

/// The checks and the translation of one response's content, on any thread.
struct ResponseJob: Sendable {
    let content: [UInt8]
    let codings: [ContentCoding]
    let plan: ContentPlan
    /// The coding for changed content.
    let coding: ContentCoding

    init(_ held: HeldResponse, accepted: AcceptedCodings) {
        content = held.content.take()
        codings = held.codings
        plan = held.plan
        coding = Self.coding(after: codings, accepted)
    }

    /// The coding for content that arrived with these codings: the same, if the client accepts it.
    static func coding(
        after codings: [ContentCoding], _ accepted: AcceptedCodings
    ) -> ContentCoding {
        guard accepted.isPresent, !codings.isEmpty else { return .identity }
        return accepted.best(of: [.gzip, .identity]) ?? .identity
    }

    /// The result, if the work takes so little time that the loop's own thread does it; `nil` if it
    /// is for another thread. Small content may still be large when decoded or parsed.
    func runAtOnce() -> Result<ResponseContent, TransformationFailure>? {
        guard !plan.isSlow, codings.isEmpty, content.count <= ResponseFilter.bytesAtOnce else {
            return nil
        }
        let result = run(.brief)
        if case .failure(let failure) = result, failure.problem == .responseBodyTooLarge {
            return nil
        }
        return result
    }

    /// - Parameter interlude: called from time to time during the work.
    func run(
        _ extent: WorkExtent = .full, interlude: Interlude? = nil
    ) -> Result<ResponseContent, TransformationFailure> {
        let began = Clock.monotonicMicroseconds()
        do throws(TransformationFailure) {
            var result = try transform(extent, interlude)
            result.origin = content
            result.microseconds = UInt64(max(0, Clock.monotonicMicroseconds() - began))
            return .success(result)
        } catch {
            return .failure(error)
        }
    }

    private func transform(
        _ extent: WorkExtent, _ interlude: Interlude?
    ) throws(TransformationFailure) -> ResponseContent {
        let planned: PlannedContent
        do throws(TransformationFailure) {
            planned = try plan.run(decode(interlude), extent, interlude: interlude)
        } catch {
            guard error.problem == .responseBodyTooLarge, plan.larger == .pass, extent == .full
            else { throw error }
            planned = PlannedContent()
        }
        guard let changed = planned.changed else {
            return ResponseContent(content: content, change: nil, steps: planned.steps)
        }
        let encoded =
            coding == .gzip
            ? try? ContentCodings.encode(changed.bytes, as: .gzip, interlude: interlude?.run)
            : nil
        return ResponseContent(
            content: encoded ?? changed.bytes,
            change: .init(
                contentType: changed.contentType, coding: encoded == nil ? .identity : .gzip,
                wasEncoded: !codings.isEmpty),
            steps: planned.steps)
    }

    private func decode(_ interlude: Interlude?) throws(TransformationFailure) -> [UInt8] {
        guard !codings.isEmpty else { return content }
        do throws(ContentCodingError) {
            return try ContentCodings.decode(
                content, codings: codings, maximum: plan.maximumBytes, interlude: interlude?.run)
        } catch {
            throw TransformationFailure(decoding: error, ofRequest: false)
        }
    }
}

extension ResponseChecks {
    /// What is done with the content of a response; `nil` if it is forwarded without processing.
    func plan(
        for response: borrowing ResponseHead, in bytes: Span<UInt8>, answering method: Method
    ) throws(TransformationFailure) -> ContentPlan? {
        // In a 416 it gives the length of the representation, of which no content follows (RFC 9110
        // §14.4).
        let hasRange = response.fields.contains(.contentRange) && response.status != 416
        return try plan(
            contentType: MessageFacts.contentType(of: response.fields, in: bytes),
            isPartial: response.status == 206 || hasRange,
            noTransform: MessageFacts.noTransform(response: response, in: bytes),
            needsContent: needsContent(answering: method, status: response.status))
    }
}

extension Environment {
    /// Has another thread do the work on content; the result is delivered to the handler with the
    /// token. Returns false if too much work is waiting.
    func start(_ job: ResponseJob, for token: Token, claim: TransformationWork.Claim) -> Bool {
        let mailbox = mailbox
        return shared.transformationWork.run {
            guard claim.isWanted else { return }
            let result = job.run(interlude: .yielding()).map { $0.detaching() }
            if case .success(let content) = result { claim.add(content.count) }
            mailbox.post(.transformed(token, .response(result)))
        }
    }
}
