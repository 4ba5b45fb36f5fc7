import Documents
import HTTPCore
import PinfoldConfiguration

/// How the responses to a route's requests are checked and changed.
package struct ResponseChecks: Sendable {
    private let rules: ResponseRules
    private let steps: ContentSteps

    /// `nil` if there is nothing to check or change.
    ///
    /// - Parameters:
    ///   - schema: checks content against the rules' schema.
    ///   - images: decodes images.
    package init?(
        _ rules: ResponseRules, schema: (any JSONSchemaChecking)?,
        images: (any ImageTransforming)?
    ) {
        self.rules = rules
        steps = ContentSteps(rules, schema: schema, images: images)
        guard rules.statusCodes != nil || rules.contentTypes != nil || examinesContent else {
            return nil
        }
    }

    /// Throws ``TransformationReason/responseStatusRefused`` for a status that is not accepted.
    package func check(status: UInt16) throws(TransformationError) {
        guard let accepted = rules.statusCodes,
            !accepted.contains(where: { $0.contains(status) })
        else { return }
        let expected = accepted.map { range in
            range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound)-\(range.upperBound)"
        }
        throw TransformationError(
            .responseStatusRefused,
            "the status is \(status); expected \(expected.joined(separator: ", "))")
    }

    /// Throws ``TransformationReason/responseTypeRefused`` for content whose type is not accepted,
    /// and for content that might have to be translated but whose type does not say so. Without
    /// content the type does not matter.
    ///
    /// - Parameter contentType: the field's value; `nil` if it is absent.
    package func check(
        contentType: String?, hasContent: Bool
    ) throws(TransformationError) {
        guard hasContent else { return }
        try steps.refuseUnclear(ContentType(contentType))
        guard let accepted = rules.contentTypes else { return }
        let type = ContentType(contentType)?.essence
        guard !accepted.contains(where: { Self.fits(type, $0) }) else { return }
        let found = type.map { "the content is \(Self.quotable($0))" } ?? "the content has no type"
        throw TransformationError(
            .responseTypeRefused, "\(found); expected \(accepted.joined(separator: ", "))")
    }

    /// Whether a response must have content if that is checked against a schema or must be an
    /// image: it must if it is the representation that was asked for (RFC 9110 §15.3.1, §15.3.4,
    /// §15.3.7), or a success that the rules name. Redirects, challenges and errors are described
    /// by their heads, as is success for OPTIONS, PUT, PATCH and DELETE. For POST content is
    /// required: an origin that has nothing to return answers 204 or 201.
    package func needsContent(answering method: Method = .get, status: UInt16) -> Bool {
        switch (method, status) {
        case (.head, _), (.options, _), (.put, _), (.patch, _), (.delete, _): false
        case (_, 204), (_, 205): false
        case (_, 200), (_, 203), (_, 206): true
        default:
            (200..<300).contains(status)
                && rules.statusCodes?.contains { $0.contains(status) } == true
        }
    }

    /// Throws ``TransformationReason/responseSchemaViolated`` or
    /// ``TransformationReason/responseImageRefused`` for a response without content if content is
    /// checked against a schema or must be an image, unless it needs none
    /// (``needsContent(answering:status:)``). Content that only has to parse may be absent.
    ///
    /// - Parameter contentType: the field's value; `nil` if it is absent.
    package func refuseEmptyContent(contentType: String?) throws(TransformationError) {
        try steps.forContent(ofType: ContentType(contentType)).refuseEmptyContent()
    }

    private static func fits(_ type: String?, _ accepted: String) -> Bool {
        guard let type else { return false }
        guard accepted.hasSuffix("/*") else { return type == accepted }
        return accepted == "*/*" || type.hasPrefix(accepted.dropLast())
    }

    /// The part of a type that is valid, for errors.
    private static func quotable(_ type: String) -> String {
        String(decoding: type.utf8.prefix(80).filter { $0 > 0x20 && $0 < 0x7F }, as: UTF8.self)
    }

    /// What is done with content; `nil` if it is passed on unexamined.
    ///
    /// - Parameters:
    ///   - isPartial: whether it is part of a representation (206, Content-Range).
    ///   - noTransform: whether its sender wants it unchanged (RFC 9111 §5.2.2.6).
    ///   - needsContent: see ``needsContent(answering:status:)``.
    /// - Throws: ``TransformationReason/responsePartial`` for a part of something that would have
    ///   to be checked, ``TransformationReason/responseNoTransform`` if the rules refuse it.
    package func plan(
        contentType: String?, isPartial: Bool, noTransform: Bool, needsContent: Bool = true
    ) throws(TransformationError) -> ContentPlan? {
        var steps = steps.forContent(ofType: ContentType(contentType))
        steps.needsContent = needsContent
        guard !steps.isEmpty else { return nil }
        if isPartial {
            guard steps.checks || rules.noTransform == .refuse else { return nil }
            throw TransformationError(
                .responsePartial,
                "it is part of a representation, which can be neither checked nor changed")
        }
        if noTransform {
            guard rules.noTransform == .pass || steps.translation == nil else {
                throw .wantsNoTransformation
            }
            steps.removeChanges(refuses: rules.noTransform == .refuse)
            guard !steps.isEmpty else { return nil }
        }
        return ContentPlan(
            maximumBytes: rules.maximumBytes, larger: rules.larger, contentType: contentType,
            steps: steps)
    }

    /// The new Content-Type of changed content with this type, for responses without content; `nil`
    /// if it does not change.
    package func changedContentType(_ contentType: String?) -> String? {
        let type = ContentType(contentType)
        let steps = steps.forContent(ofType: type)
        if let translation = steps.translation {
            return translation.changesType(of: type) ? translation.contentType : nil
        }
        return steps.image?.convert.first { $0.from.rawValue == type?.essence }?.to.rawValue
    }

    /// Whether content may be changed although its type stays the same: it may contain null, a
    /// property list may have the other form, an image may be too large. Only the content shows
    /// this.
    package func mayChange(_ contentType: String?) -> Bool {
        let steps = steps.forContent(ofType: ContentType(contentType))
        return steps.translation != nil || steps.image?.scaleTo != nil
    }

    /// Whether content of any type is examined: it is then requested as a whole.
    package var examinesContent: Bool { !steps.isEmpty }

    /// Identifies the rules that change content: eight hex digits, the same in every process, for
    /// entity tags. It differs for different rules.
    package var identity: String {
        var text = "1"
        if let body = rules.body {
            text += ";\(body.from.rawValue)>\(body.to.rawValue)"
            text += body.removesKeysWithNullValues ? ";nulls" : ""
            text += body.writesBinaryPropertyLists ? ";binary" : ""
        }
        for conversion in rules.image?.convert ?? [] {
            text += ";\(conversion.from.rawValue)>\(conversion.to.rawValue)"
        }
        if let size = rules.image?.scaleTo { text += ";\(size.width)x\(size.height)" }
        return String(hexadecimal: FNV1a.hash32(text), digits: 8)
    }
}

extension TransformationError {
    static let wantsNoTransformation = TransformationError(
        .responseNoTransform, "its sender wants it unchanged (no-transform)")
}
