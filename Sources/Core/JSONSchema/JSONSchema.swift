import Documents
import Transformation

/// A compiled JSON Schema: draft-04, draft-06 or draft-07, according to its `$schema`; draft-07 by
/// default. It may be used by several threads at the same time.
///
/// Nothing is ever fetched: `$ref` refers to locations in the schema itself, by a JSON Pointer or
/// by an identifier in it. Whatever would be ignored silently is refused: keywords of other drafts,
/// and regular expressions that cannot be matched in linear time. Numbers are compared exactly.
/// ``TextFormat`` lists the values of `format` that are checked; `contentEncoding`,
/// `contentMediaType` and unknown keywords are annotations, as the drafts specify.
///
/// The work and memory of a check are bounded by the size of the content.
package final class JSONSchema: JSONSchemaChecking {
    /// The limits for a schema.
    private static let schemaLimits = DocumentLimits(bytes: 1 << 20, depth: 128, values: 1 << 17)
    /// The limits for content, which its reader has already checked against others.
    private static let contentLimits = DocumentLimits(bytes: 1 << 30, depth: 128, values: 1 << 22)

    private let nodes: [SchemaNode]

    /// Compiles a schema.
    ///
    /// - Parameter text: JSON.
    /// - Throws: a ``JSONSchemaError`` with the location in the schema.
    package init(_ text: [UInt8]) throws(JSONSchemaError) {
        let root: DocumentValue
        do throws(DocumentError) {
            root = try JSONDocument.value(of: text, limits: Self.schemaLimits)
        } catch {
            throw JSONSchemaError(
                "it cannot be parsed: \(error.reason.text)", at: error.location?.description)
        }
        nodes = try SchemaCompiler(root).nodes
    }

    /// The compiler of schemas that the gateway gives to its engine.
    package static let compile: SchemaCompiling = { try JSONSchema($0) }

    /// Checks content against the schema.
    ///
    /// - Throws: ``TransformationReason/responseSchemaViolated`` with the path of the first value,
    ///   in the order of the text, that does not satisfy the schema, what the schema requires, and
    ///   that value, truncated; also if finding that out would take too much work.
    ///   ``TransformationReason/responseBodyInvalid`` if the content is not JSON, or deeper than
    ///   128 levels.
    package func check(_ json: UnsafeRawBufferPointer) throws(TransformationError) {
        let instance: Instance
        do throws(DocumentError) {
            instance = try Instance(json, limits: Self.contentLimits)
        } catch {
            throw TransformationError(
                .responseBodyInvalid, "it is not JSON that can be checked against a schema",
                at: error.location?.description)
        }
        var check = SchemaCheck(nodes, instance, bytes: json.count)
        guard !check.holds(0, 0) else { return }
        if check.isExhausted {
            throw TransformationError(
                .responseSchemaViolated, "checking it against the schema takes too much work")
        }
        guard let violation = check.violation else { return }
        throw TransformationError(violation, nodes, instance)
    }
}
