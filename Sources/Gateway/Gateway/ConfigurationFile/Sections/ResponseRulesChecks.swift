import Documents
import PinfoldConfiguration

extension SnapshotReader {
    /// Reports contradictions between the rules for responses.
    ///
    /// - Parameter field: The key `response`, whose parts are valid by themselves.
    func check(response field: Field, _ rules: ResponseRules) {
        if let headers = field.key("headers") {
            let steps = NamedStep.all(in: headers)
            checkConsistency(steps, by: HeaderRules.grammar)
            checkFields(steps) {
                GatewayField.reason(ofResponse: $0, translation: rules.translation)
            }
        }
        if rules.schema != nil, rules.validate != .json {
            field.key("schema")?.fail(
                "applies to JSON only, but validate is \(rules.validate?.rawValue ?? "not set")",
                expected: "validate: json")
        }
        if let body = rules.body { check(body, rules, in: field) }
        if let image = rules.image { check(image, rules, in: field) }
        checkTypes(rules, in: field)
        warnOfIdleKeys(rules, in: field)
    }

    private func check(
        _ body: ResponseBodyRules, _ rules: ResponseRules, in field: Field
    ) {
        guard let place = field.key("body") else { return }
        let propertyList = place.key("propertyList")
        if body.to != .plist {
            propertyList?.fail(
                "applies to property lists only, but to is \(body.to.rawValue)",
                expected: "to: plist")
        } else if body.from == .plist, propertyList == nil, !body.removesKeysWithNullValues {
            place.fail(
                "from and to are both plist",
                expected: "two different formats, propertyList or removesKeysWithNullValues: true")
        }
        if body.from == body.to, body.to != .plist, !body.removesKeysWithNullValues {
            place.fail(
                "from and to are both \(body.from.rawValue)",
                expected: "two different formats, or removesKeysWithNullValues: true")
        }
        guard let validated = rules.validate, validated.rawValue != body.from.rawValue else {
            return
        }
        field.key("validate")?.fail(
            "is \(validated.rawValue), but body translates from \(body.from.rawValue)",
            expected: "validate: \(body.from.rawValue), the format that the server sends")
    }

    private func check(_ image: ImageRules, _ rules: ResponseRules, in field: Field) {
        guard let place = field.key("image") else { return }
        if rules.body != nil {
            place.fail(
                "applies to images, but body applies to other content",
                expected: "only one of the two")
        }
        if let validated = rules.validate, validated != .image {
            place.fail(
                "applies to images, but validate is \(validated.rawValue)",
                expected: "validate: image")
        }
        guard let accepted = image.accept else { return }
        if !accepted.contains(.png), !accepted.contains(.jpeg) {
            place.key("scale")?.fail(
                "produces PNG or JPEG, but accept lists neither",
                expected: "image/png or image/jpeg in accept")
        }
        for conversion in image.convert where !accepted.contains(conversion.to) {
            place.key("convert")?.key(conversion.from.rawValue)?.fail(
                "converts to \(conversion.to.rawValue), which accept does not list",
                expected: "one of the types in accept")
        }
    }

    /// Reports a list of types that excludes all content that the other rules apply to.
    private func checkTypes(_ rules: ResponseRules, in field: Field) {
        guard let types = rules.contentTypes?.map(WrittenType.init(text:)), !types.isEmpty else {
            return
        }
        let asked: (key: String, format: ValidatedFormat)
        let isPossible: Bool
        // Content is translated only if its type is of the format, but validated whatever its type.
        if let format = rules.body?.from.validated {
            asked = ("body", format)
            isPossible = types.contains { $0.format == format || $0.isOpen }
        } else if let format = rules.validate {
            asked = ("validate", format)
            isPossible = types.contains { $0.mayBe(format) }
        } else if rules.image != nil {
            asked = ("image", .image)
            isPossible = types.contains { $0.format == .image }
        } else {
            return
        }
        guard !isPossible else { return }
        field.key("contentTypes")?.fail(
            "refuses all content that \(asked.key) applies to: no type in the list is one of "
                + asked.format.rawValue,
            expected: "at least one type of \(asked.format.rawValue)")
    }

    /// Warns of keys without effect.
    private func warnOfIdleKeys(_ rules: ResponseRules, in field: Field) {
        if !rules.looksAtContent {
            for key in ["maximum", "larger"] {
                field.key(key)?.warn("has no effect without validate, body or image")
            }
        }
        if !rules.changesContent {
            field.key("noTransform")?.warn("has no effect without body or image")
        }
    }
}

extension BodyFormat {
    /// The format as one that can be validated, or `nil` for formats of requests only.
    fileprivate var validated: ValidatedFormat? {
        switch self {
        case .json: .json
        case .plist: .plist
        case .xml: .xml
        case .form, .multipart: nil
        }
    }
}

/// An element of `contentTypes`.
private struct WrittenType {
    /// The media type in lower case. The subtype may be `*`.
    let text: String

    /// Whether it includes content of any format.
    var isOpen: Bool { text == "application/*" || text == "text/*" }

    /// The format of the type, or `nil` if it has none or is open.
    var format: ValidatedFormat? {
        let documents: [(DocumentFormat, ValidatedFormat)] = [
            (.json, .json), (.xml, .xml), (.plist, .plist),
        ]
        if let known = documents.first(where: { $0.0.isFormat(of: text) }) { return known.1 }
        return text.hasPrefix("image/") ? .image : nil
    }

    /// Whether content of the type may have a format.
    func mayBe(_ asked: ValidatedFormat) -> Bool {
        if let format {
            return format == asked || format == .xml && asked == .plist
        }
        let others = ["text/html", "text/css", "text/csv", "text/event-stream"]
        let otherTypes = ["audio/", "video/", "font/", "multipart/"]
        return !others.contains(text) && !otherTypes.contains(where: text.hasPrefix)
    }
}
