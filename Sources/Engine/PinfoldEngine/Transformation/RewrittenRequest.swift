import Clocks
import ContentCoding
import Documents
import EventLoop
import HTTPCore
import PinfoldConfiguration
import Transformation

/// What the rules of its route have made of a request.
final class RewrittenRequest {
    enum Content {
        /// It is sent as it comes.
        case passed
        /// It is gathered, to be translated.
        case gathering(RequestJob.Kind)
        /// It is being translated.
        case working
    }

    var content = Content.passed
    /// What was gathered of it.
    var gathered: TransformationWork.Holding
    /// Where content lies that can be sent again: what was translated, or what came with the head
    /// that was replaced. nil: in the head's buffer, if anywhere.
    var buffer: Buffer?
    /// The head that was replaced first.
    var clientHead: ClientHead?

    init(_ work: TransformationWork) { gathered = TransformationWork.Holding(work) }

    /// The content, or the response to what goes out without, has to wait for a translation.
    var awaitsTranslation: Bool { if case .passed = content { false } else { true } }
}

/// The translation of one request's content, on whatever thread.
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

    /// What comes of it where that takes so little time that the loop's own thread does it; nil: it
    /// is for another (as ``ResponseJob/runAtOnce()``).
    func runAtOnce() -> Result<TranslatedRequest, TransformationFailure>? {
        guard codings.isEmpty, content.count <= ResponseFilter.bytesAtOnce else { return nil }
        let result = run(.brief)
        if case .failure(let failure) = result, failure.problem == .requestBodyTooLarge {
            return nil
        }
        return result
    }

    /// - Parameter interlude: what is done now and then meanwhile.
    func run(
        _ extent: WorkExtent = .full, interlude: Interlude? = nil
    ) -> Result<TranslatedRequest, TransformationFailure> {
        let began = Clock.monotonicMicroseconds()
        do throws(TransformationFailure) {
            let content = try translate(extent, interlude)
            let elapsed = UInt64(max(0, Clock.monotonicMicroseconds() - began))
            return .success(TranslatedRequest(content: content, microseconds: elapsed))
        } catch {
            return .failure(error)
        }
    }

    private func translate(
        _ extent: WorkExtent, _ interlude: Interlude?
    ) throws(TransformationFailure) -> RequestContent {
        let decoded = try decode(interlude)
        switch kind {
        case .translate:
            return .content(
                try translation.translate(
                    decoded, contentType: contentType, extent, interlude: interlude),
                removesQuery: false)
        case .moveToQuery:
            return .query(
                try translation.query(
                    from: decoded, contentType: contentType, extent, interlude: interlude))
        case .moveToContent(let query):
            return .content(try translation.content(fromQuery: query), removesQuery: true)
        }
    }

    private func decode(_ interlude: Interlude?) throws(TransformationFailure) -> [UInt8] {
        guard !codings.isEmpty else { return content }
        do throws(ContentCodingError) {
            return try ContentCodings.decode(
                content, codings: codings, maximum: translation.maximumBytes,
                interlude: interlude?.run)
        } catch {
            throw TransformationFailure(decoding: error, ofRequest: true)
        }
    }
}
