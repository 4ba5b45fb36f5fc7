import PinfoldConfiguration

/// Content with its Content-Type.
package struct TranslatedContent: Sendable, Equatable {
    package var bytes: [UInt8]
    package var contentType: String

    package init(bytes: [UInt8], contentType: String) {
        self.bytes = bytes
        self.contentType = contentType
    }
}

/// Decodes images. It may wait for another process, and must never be called on an event loop's
/// thread.
package protocol ImageTransforming: Sendable {
    /// Applies the rules to an image; returns `nil` if it may stay as it is. Throws if it is not an
    /// image, or one that the rules refuse (``TransformationReason/responseImageRefused``).
    func transform(
        _ image: [UInt8], by rules: ImageRules
    ) throws(TransformationError) -> TranslatedContent?
}

/// Checks content against a JSON Schema.
package protocol JSONSchemaChecking: Sendable {
    /// Throws ``TransformationReason/responseSchemaViolated`` with the path of whatever does not
    /// satisfy the schema. `json` is content without content coding that has already been parsed.
    func check(_ json: UnsafeRawBufferPointer) throws(TransformationError)
}

/// Compiles the text of a JSON Schema; throws what is wrong with it.
package typealias SchemaCompiling = @Sendable (_ text: [UInt8]) throws -> any JSONSchemaChecking
