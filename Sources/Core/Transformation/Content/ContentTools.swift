import PinfoldConfiguration

/// Content and the Content-Type that goes with it.
package struct TranslatedContent: Sendable, Equatable {
    package var bytes: [UInt8]
    package var contentType: String

    package init(bytes: [UInt8], contentType: String) {
        self.bytes = bytes
        self.contentType = contentType
    }
}

/// What decodes images. It may wait for another process: never called on an event loop's thread.
package protocol ImageTransforming: Sendable {
    /// What the rules make of an image; nil: it is fine as it is. Throws where it is no image, or
    /// one that the rules refuse (``TransformationProblem/responseImageRefused``).
    func transform(
        _ image: [UInt8], by rules: ImageRules
    ) throws(TransformationFailure) -> TranslatedContent?
}

/// What holds content to a JSON Schema.
package protocol JSONSchemaChecking: Sendable {
    /// Throws ``TransformationProblem/responseSchemaViolated`` with the path of what does not
    /// satisfy the schema. `json` is content that was parsed before, without content coding.
    func check(_ json: UnsafeRawBufferPointer) throws(TransformationFailure)
}

/// Compiles the text of a JSON Schema; throws what is wrong with it.
package typealias SchemaCompiling = @Sendable (_ text: [UInt8]) throws -> any JSONSchemaChecking
