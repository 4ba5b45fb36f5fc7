import Documents
import PinfoldConfiguration

/// Translates the content of a route's requests, and their parameters. Large content must be
/// processed on a thread other than an event loop's.
package struct RequestTranslation: Sendable {
    /// The maximum size of content in bytes, before and after translation; larger content is
    /// refused.
    package let maximumBytes: Int
    private let source: DocumentFormat
    private let target: DocumentFormat
    private let arrays: FormArrayStyle

    /// `nil` if there are rules neither for content nor for the place of parameters.
    package init?(_ rules: RequestRules) {
        guard rules.body != nil || rules.parameters == .byMethod else { return nil }
        source = rules.body?.from.document ?? .form
        target = rules.body?.to.document ?? .form
        arrays = rules.body?.arrays == .indices ? .indices : .brackets
        maximumBytes = rules.body?.maximumBytes ?? Self.standardMaximumBytes
    }

    private static let standardMaximumBytes = 1 << 20

    /// Whether content is translated, or moved to the query, according to its Content-Type (`nil`
    /// if it has none; it then is not).
    ///
    /// - Throws: ``TransformationReason/requestBodyInvalid`` for an invalid type that a server
    ///   could nevertheless read as the format.
    package func applies(
        toContentType value: String?
    ) throws(TransformationError) -> Bool {
        guard let type = ContentType(value) else { return false }
        if let unclear = TransformationError(.requestBodyInvalid, unclear: type, source) {
            throw unclear
        }
        return source.isFormat(of: type.essence)
    }

    /// Whether empty content means something in the format: a form without pairs, or nothing, where
    /// JSON or a property list is expected.
    package var acceptsEmptyContent: Bool {
        switch source {
        case .form, .json, .plist: true
        case .xml, .multipart: false
        }
    }

    /// Translates content. Without a rule that changes its format it stays as it is.
    ///
    /// - Parameters:
    ///   - content: without content coding.
    ///   - extent: if exceeded, ``TransformationReason/requestBodyTooLarge`` is thrown.
    ///   - yieldPoint: called from time to time during the work.
    /// - Throws: a request's error; ``TransformationReason/requestFileRefused`` if a part of
    ///   multipart content is a file.
    package func translate(
        _ content: [UInt8], contentType: String?, _ extent: WorkExtent = .full,
        yieldPoint: YieldPoint? = nil
    ) throws(TransformationError) -> TranslatedContent {
        guard source != target else {
            return TranslatedContent(
                bytes: content, contentType: contentType ?? source.mediaTypes[0])
        }
        return try made(
            by: translation(from: source, to: target), of: content, contentType, extent,
            yieldPoint)
    }

    /// Converts a request's content into query pairs such as `a=1&b=2`: for methods whose
    /// parameters are sent in the query.
    package func query(
        from content: [UInt8], contentType: String?, _ extent: WorkExtent = .full,
        yieldPoint: YieldPoint? = nil
    ) throws(TransformationError) -> String {
        let made = try made(
            by: translation(from: source, to: .form), of: content, contentType, extent,
            yieldPoint)
        return String(decoding: made.bytes, as: UTF8.self)
    }

    /// Converts a request's query (without `?`) into content: for methods whose parameters are sent
    /// in the content.
    package func content(
        fromQuery query: String
    ) throws(TransformationError) -> TranslatedContent {
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
        _ extent: WorkExtent, _ yieldPoint: YieldPoint?
    ) throws(TransformationError) -> TranslatedContent {
        var bytes = content
        do throws(DocumentError) {
            let isEmptyContent = SourceContent.isEmptyContent(content, translation.from)
            if !isEmptyContent {
                let source = try SourceContent(
                    content, translation.from, contentType: contentType)
                bytes = source.bytes
                bytes = try translation.translate(
                    source, limits: extent.limits(bytes: maximumBytes, yieldPoint)
                ).bytes
            }
            return TranslatedContent(
                bytes: isEmptyContent ? [] : bytes, contentType: translation.contentType)
        } catch {
            throw TransformationError(error, .request, source: translation.from, content: bytes)
        }
    }
}
