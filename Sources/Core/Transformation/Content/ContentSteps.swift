import Documents
import PinfoldConfiguration

/// The processing steps for a response's content, in order: it is parsed, checked against a schema,
/// translated, decoded as an image.
struct ContentSteps: Sendable {
    /// What the content must parse as.
    private var validate: ValidatedFormat?
    private var needsSchema: Bool
    private(set) var translation: DocumentTranslation?
    /// The rules for an image; it is checked against them even if they change nothing.
    private(set) var image: ImageRules?
    /// Whether an image that would be changed is refused.
    private var refusesImageChanges = false
    /// Whether empty content is refused if it cannot be what the content must be.
    var needsContent = true
    private let schema: (any JSONSchemaChecking)?
    private let images: (any ImageTransforming)?

    init(
        _ rules: ResponseRules, schema: (any JSONSchemaChecking)?,
        images: (any ImageTransforming)?
    ) {
        validate = rules.validate
        needsSchema = rules.schema != nil
        translation = rules.body.flatMap { DocumentTranslation($0) }
        image = rules.image ?? (rules.validate == .image ? ImageRules() : nil)
        self.schema = schema
        self.images = images
    }

    /// Removes the steps that do not apply to content of a type. Validation applies whatever the
    /// type; a translation applies to the types of its format, and to content without a type that
    /// is validated as that format; images are recognized by `image/`.
    func forContent(ofType type: ContentType?) -> ContentSteps {
        var steps = self
        if let from = translation?.from {
            let fits = type.map { from.isFormat(of: $0.essence) } ?? (validate?.document == from)
            if !fits { steps.translation = nil }
        }
        let mayBeImage = type?.mayBe { $0.hasPrefix("image/") } == true
        if validate != .image, !mayBeImage { steps.image = nil }
        return steps
    }

    /// Throws if a type is invalid, and content that is to be translated could be read as what it
    /// would be without that error: it would pass unprocessed.
    func refuseUnclear(_ type: ContentType?) throws(TransformationError) {
        guard let from = translation?.from,
            let failure = TransformationError(.responseTypeRefused, unclear: type, from)
        else { return }
        throw failure
    }

    var isEmpty: Bool { !checks && translation == nil }
    /// Whether there is any step other than a translation.
    var checks: Bool { validate != nil || needsSchema || image != nil }

    var changes: Bool {
        translation != nil || image.map { !$0.convert.isEmpty || $0.scaleTo != nil } ?? false
    }

    /// Throws if empty content cannot be what the content must be: it satisfies no schema, and is
    /// not an image.
    func refuseEmptyContent() throws(TransformationError) {
        guard needsContent else { return }
        if needsSchema {
            throw TransformationError(
                .responseSchemaViolated, "there is no content that could satisfy the schema")
        }
        guard image == nil else {
            throw TransformationError(.responseImageRefused, "there is no content")
        }
    }

    /// Removes the changes.
    ///
    /// - Parameter refuses: whether an image that would have been changed is refused, which is
    ///   known only once it is decoded.
    mutating func removeChanges(refuses: Bool) {
        translation = nil
        refusesImageChanges = refuses
        guard !refuses else { return }
        image?.convert = []
        image?.scaleTo = nil
    }

    // MARK: - Running

    func run(
        _ content: [UInt8], contentType: String?, limits: DocumentLimits
    ) throws(TransformationError) -> PlannedContent {
        guard content.count <= limits.bytes else {
            throw TransformationError(
                .responseBodyTooLarge, "it has more than \(limits.bytes) bytes")
        }
        // Whatever the framing: with `Content-Length: 0` nothing is gathered.
        if content.isEmpty, !needsContent { return PlannedContent() }
        if let format = validate?.document ?? (needsSchema ? .json : nil) {
            // A translation of the same format finds the same errors.
            if needsSchema || translation?.from != format {
                try check(content, format, contentType, limits)
            }
        }
        if image != nil { return try transformImage(content) }
        guard let translation else { return PlannedContent() }
        return try translate(content, by: translation, contentType, limits)
    }

    private func check(
        _ content: [UInt8], _ format: DocumentFormat, _ contentType: String?,
        _ limits: DocumentLimits
    ) throws(TransformationError) {
        guard !SourceContent.isEmptyContent(content, format) else {
            return try refuseEmptyContent()
        }
        var bytes = content
        do throws(DocumentError) {
            let source = try SourceContent(content, format, contentType: contentType)
            bytes = source.bytes
            try source.check(limits: limits)
        } catch {
            throw TransformationError(error, .response, source: format, content: bytes)
        }
        guard needsSchema else { return }
        guard let schema else {
            throw TransformationError(
                .responseSchemaViolated, "there is no validator for its schema")
        }
        let outcome: Result<Void, TransformationError> = bytes.withUnsafeBytes { bytes in
            Result { () throws(TransformationError) in try schema.check(bytes) }
        }
        try outcome.get()
    }

    private func translate(
        _ content: [UInt8], by translation: DocumentTranslation, _ contentType: String?,
        _ limits: DocumentLimits
    ) throws(TransformationError) -> PlannedContent {
        let type = ContentType(contentType)
        var bytes = content
        do throws(DocumentError) {
            var planned = PlannedContent()
            let isEmptyContent = SourceContent.isEmptyContent(content, translation.from)
            if !isEmptyContent {
                let source = try SourceContent(
                    content, translation.from, contentType: contentType)
                bytes = source.bytes
                let product = try translation.translate(source, limits: limits)
                let hasNulls = product.removedNulls > 0
                if translation.keeps(content, ofType: type) {
                    guard hasNulls else { return planned }
                } else {
                    planned.steps.append(translation.name)
                }
                if hasNulls { planned.steps.append("removes-nulls") }
                bytes = product.bytes
            }
            let changesType = translation.changesType(of: type)
            guard changesType || !isEmptyContent else { return planned }
            planned.changed = TranslatedContent(
                bytes: isEmptyContent ? [] : bytes,
                contentType: changesType
                    ? translation.contentType : contentType ?? translation.contentType)
            return planned
        } catch {
            throw TransformationError(
                error, .response, source: translation.from, content: bytes)
        }
    }

    private func transformImage(
        _ content: [UInt8]
    ) throws(TransformationError) -> PlannedContent {
        if content.isEmpty { try refuseEmptyContent() }
        guard let images, let image else {
            throw TransformationError(.overloaded, "there is no image decoder")
        }
        guard let changed = try images.transform(content, by: image) else {
            return PlannedContent()
        }
        guard !refusesImageChanges else { throw .wantsNoTransformation }
        let type = ImageType(beginningOf: content)?.rawValue ?? "image"
        let step =
            type == changed.contentType ? "\(type)-scaled" : "\(type)-to-\(changed.contentType)"
        return PlannedContent(changed: changed, steps: [step])
    }
}

extension ValidatedFormat {
    /// `nil` for images.
    fileprivate var document: DocumentFormat? {
        switch self {
        case .json: .json
        case .xml: .xml
        case .plist: .plist
        case .image: nil
        }
    }
}

extension ImageType {
    /// The type that the first bytes of an image indicate.
    fileprivate init?(beginningOf image: [UInt8]) {
        let head = image.prefix(12)
        let brand = String(decoding: head.dropFirst(8), as: UTF8.self)
        if head.starts(with: [0x89, 0x50, 0x4E, 0x47]) {
            self = .png
        } else if head.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if head.starts(with: "GIF8".utf8) {
            self = .gif
        } else if head.starts(with: "RIFF".utf8), brand == "WEBP" {
            self = .webp
        } else if head.dropFirst(4).starts(with: "ftyp".utf8), ["avif", "avis"].contains(brand) {
            self = .avif
        } else {
            return nil
        }
    }
}
