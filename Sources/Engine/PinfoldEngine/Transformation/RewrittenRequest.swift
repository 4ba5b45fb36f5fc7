import Clocks
import ContentCoding
import Documents
import EventLoop
import HTTPCore
import PinfoldConfiguration
import Transformation

/// A request as rewritten by its route's rules.
final class RewrittenRequest {
    enum Content {
        /// It is sent as it arrives.
        case passed
        /// It is being collected for translation.
        case gathering(RequestJob.Kind)
        /// It is being translated.
        case working
    }

    var content = Content.passed
    /// What has been collected.
    var gathered: TransformationWork.Holding
    /// Content that can be sent again: translated content, or content that arrived with the
    /// replaced head. `nil` if it is in the head's buffer, if anywhere.
    var buffer: Buffer?
    /// The original head, before the first replacement.
    var clientHead: ClientHead?

    init(_ work: TransformationWork) { gathered = TransformationWork.Holding(work) }

    /// Whether the content, or the response to a request sent without it, must wait for a
    /// translation.
    var awaitsTranslation: Bool { if case .passed = content { false } else { true } }
}

/// The translation of one request's content, on any thread.
struct RequestJob: Sendable {
    enum Kind: Sendable {
        /// Content becomes other content.
        case translate
        /// Content becomes the query.
        case moveToQuery
        /// The query becomes content.
        case moveToContent(query: String)
    }

    let kind: Kind
    let translation: RequestTranslation
    let content: [UInt8]
    let contentType: String?
    let codings: [ContentCoding]

    /// The result, if the job is so short that the loop's own thread can do it; otherwise `nil`,
    /// and another thread has to (like ``ResponseJob/runAtOnce()``).
    func runAtOnce() -> Result<TranslatedRequest, TransformationError>? {
        guard codings.isEmpty, content.count <= ResponseFilter.bytesAtOnce else { return nil }
        let result = run(.brief)
        if case .failure(let failure) = result, failure.reason == .requestBodyTooLarge {
            return nil
        }
        return result
    }

    /// - Parameter yieldPoint: called from time to time during the work.
    func run(
        _ extent: WorkExtent = .full, yieldPoint: YieldPoint? = nil
    ) -> Result<TranslatedRequest, TransformationError> {
        let began = Clock.monotonicMicroseconds()
        do throws(TransformationError) {
            let content = try translate(extent, yieldPoint)
            let elapsed = UInt64(max(0, Clock.monotonicMicroseconds() - began))
            return .success(TranslatedRequest(content: content, microseconds: elapsed))
        } catch {
            return .failure(error)
        }
    }

    private func translate(
        _ extent: WorkExtent, _ yieldPoint: YieldPoint?
    ) throws(TransformationError) -> RequestContent {
        let decoded = try decode(yieldPoint)
        switch kind {
        case .translate:
            return .content(
                try translation.translate(
                    decoded, contentType: contentType, extent, yieldPoint: yieldPoint),
                removesQuery: false)
        case .moveToQuery:
            return .query(
                try translation.query(
                    from: decoded, contentType: contentType, extent, yieldPoint: yieldPoint))
        case .moveToContent(let query):
            return .content(try translation.content(fromQuery: query), removesQuery: true)
        }
    }

    private func decode(_ yieldPoint: YieldPoint?) throws(TransformationError) -> [UInt8] {
        guard !codings.isEmpty else { return content }
        do throws(ContentCodingError) {
            return try ContentCodings.decode(
                content, codings: codings, maximum: translation.maximumBytes,
                yieldPoint: yieldPoint?.run)
        } catch {
            throw TransformationError(decoding: error, ofRequest: true)
        }
    }
}
