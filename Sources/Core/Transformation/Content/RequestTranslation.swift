import Documents
import PinfoldConfiguration

/// What becomes of the content of the requests of a route, and of their parameters. What is large
/// is for another thread than an event loop's.
package struct RequestTranslation: Sendable {
    /// Bytes of content, of what came and of what is made of it, beyond which it is refused.
    package let maximumBytes: Int
    private let source: DocumentFormat
    private let target: DocumentFormat
    private let arrays: FormArrayStyle

    /// Nil where there are rules neither for content nor for where parameters stand.
    package init?(_ rules: RequestRules) {
        guard rules.body != nil || rules.parameters == .byMethod else { return nil }
        source = rules.body?.from.document ?? .form
        target = rules.body?.to.document ?? .form
        arrays = rules.body?.arrays == .indices ? .indices : .brackets
        maximumBytes = rules.body?.maximumBytes ?? Self.standardMaximumBytes
    }

    private static let standardMaximumBytes = 1 << 20

    /// Whether content is translated, or moved to the query, by its Content-Type (nil: it has
    /// none, and is not).
    ///
    /// - Throws: ``TransformationProblem/requestBodyInvalid`` for what is no type, where a server
    ///   may read it as the format all the same.
    package func applies(
        toContentType value: String?
    ) throws(TransformationFailure) -> Bool {
        guard let type = ContentType(value) else { return false }
        if let unclear = TransformationFailure(.requestBodyInvalid, unclear: type, source) {
            throw unclear
        }
        return source.isFormat(of: type.essence)
    }

    /// Whether no content at all is something in the format: a form without pairs, or, where JSON
    /// or a property list is expected, nothing.
    package var readsNothing: Bool {
        switch source {
        case .form, .json, .plist: true
        case .xml, .multipart: false
        }
    }

    /// What takes the place of content. Without a rule that makes another format of it
    /// it stays as it is.
    ///
    /// - Parameters:
    ///   - content: without content coding.
    ///   - extent: beyond which it ends with ``TransformationProblem/requestBodyTooLarge``.
    ///   - interlude: what is done now and then meanwhile.
    /// - Throws: a failure of a request's; ``TransformationProblem/requestFileRefused`` where a
    ///   part of multipart content is a file.
    package func translate(
        _ content: [UInt8], contentType: String?, _ extent: WorkExtent = .full,
        interlude: Interlude? = nil
    ) throws(TransformationFailure) -> TranslatedContent {
        guard source != target else {
            return TranslatedContent(
                bytes: content, contentType: contentType ?? source.mediaTypes[0])
        }
        return try made(
            by: translation(from: source, to: target), of: content, contentType, extent,
            interlude)
    }

    /// The query pairs, as in `a=1&b=2`, that take the place of a request's content: for methods
    /// whose parameters stand in the query.
    package func query(
        from content: [UInt8], contentType: String?, _ extent: WorkExtent = .full,
        interlude: Interlude? = nil
    ) throws(TransformationFailure) -> String {
        let made = try made(
            by: translation(from: source, to: .form), of: content, contentType, extent,
            interlude)
        return String(decoding: made.bytes, as: UTF8.self)
    }

    /// The content that takes the place of a request's query (without `?`): for methods whose
    /// parameters stand in the content.
    package func content(
        fromQuery query: String
    ) throws(TransformationFailure) -> TranslatedContent {
        try made(
            by: translation(from: .form, to: target),
            of: Array(query.utf8), nil, .full, nil)
    }

    private func translation(
        from source: DocumentFormat, to target: DocumentFormat
    ) -> DocumentTranslation {
        var translation = DocumentTranslation(from: source, to: target)
        translation.arrays = arrays
        return translation
    }

    private func made(
        by translation: DocumentTranslation, of content: [UInt8], _ contentType: String?,
        _ extent: WorkExtent, _ interlude: Interlude?
    ) throws(TransformationFailure) -> TranslatedContent {
        var bytes = content
        do throws(DocumentError) {
            let isNothing = SourceContent.isNothing(content, translation.from)
            if !isNothing {
                let source = try SourceContent(
                    content, translation.from, contentType: contentType)
                bytes = source.bytes
                bytes = try translation.translate(
                    source, limits: extent.limits(bytes: maximumBytes, interlude)
                ).bytes
            }
            return TranslatedContent(
                bytes: isNothing ? [] : bytes, contentType: translation.contentType)
        } catch {
            throw TransformationFailure(error, .request, source: translation.from, content: bytes)
        }
    }
}
