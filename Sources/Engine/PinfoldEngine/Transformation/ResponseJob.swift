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

    /// The result, if the job is so short that the loop's own thread can do it; otherwise `nil`,
    /// and another thread has to. Small content may be large once it is decoded or parsed.
    func runAtOnce() -> Result<ResponseContent, TransformationError>? {
        guard !plan.isSlow, codings.isEmpty, content.count <= ResponseFilter.bytesAtOnce else {
            return nil
        }
        let result = run(.brief)
        if case .failure(let failure) = result, failure.reason == .responseBodyTooLarge {
            return nil
        }
        return result
    }

    /// - Parameter yieldPoint: called from time to time during the work.
    func run(
        _ extent: WorkExtent = .full, yieldPoint: YieldPoint? = nil
    ) -> Result<ResponseContent, TransformationError> {
        let began = Clock.monotonicMicroseconds()
        do throws(TransformationError) {
            var result = try transform(extent, yieldPoint)
            result.origin = content
            result.microseconds = UInt64(max(0, Clock.monotonicMicroseconds() - began))
            return .success(result)
        } catch {
            return .failure(error)
        }
    }

    private func transform(
        _ extent: WorkExtent, _ yieldPoint: YieldPoint?
    ) throws(TransformationError) -> ResponseContent {
        let planned: PlannedContent
        do throws(TransformationError) {
            planned = try plan.run(decode(yieldPoint), extent, yieldPoint: yieldPoint)
        } catch {
            guard error.reason == .responseBodyTooLarge, plan.larger == .pass, extent == .full
            else { throw error }
            planned = PlannedContent()
        }
        guard let changed = planned.changed else {
            return ResponseContent(content: content, change: nil, steps: planned.steps)
        }
        let encoded =
            coding == .gzip
            ? try? ContentCodings.encode(changed.bytes, as: .gzip, yieldPoint: yieldPoint?.run)
            : nil
        return ResponseContent(
            content: encoded ?? changed.bytes,
            change: .init(
                contentType: changed.contentType, coding: encoded == nil ? .identity : .gzip,
                wasEncoded: !codings.isEmpty),
            steps: planned.steps)
    }

    private func decode(_ yieldPoint: YieldPoint?) throws(TransformationError) -> [UInt8] {
        guard !codings.isEmpty else { return content }
        do throws(ContentCodingError) {
            return try ContentCodings.decode(
                content, codings: codings, maximum: plan.maximumBytes, yieldPoint: yieldPoint?.run)
        } catch {
            throw TransformationError(decoding: error, ofRequest: false)
        }
    }
}

extension ResponseChecks {
    /// What is done with the content of a response; `nil` if it is forwarded without processing.
    func plan(
        for response: borrowing ResponseHead, in bytes: Span<UInt8>, answering method: Method
    ) throws(TransformationError) -> ContentPlan? {
        // In a 416, it only gives the representation's length (RFC 9110 §14.4).
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
            let result = job.run(yieldPoint: .yielding()).map { $0.detaching() }
            if case .success(let content) = result { claim.add(content.count) }
            mailbox.post(.transformed(token, .response(result)))
        }
    }
}
