import Documents
import Transformation

/// A JSON Schema, compiled: draft-04, draft-06 or draft-07, as its `$schema` says, and draft-07
/// where it says nothing. It may be used by several threads at once.
///
/// Nothing is ever fetched: `$ref` names places in the schema itself, by a JSON Pointer or by an
/// identifier that is there. What would be passed over in silence is refused: keywords of other
/// drafts, and regular expressions that cannot be followed in linear time. Numbers are compared
/// exactly. Of `format`, ``TextFormat`` is checked; `contentEncoding`, `contentMediaType` and
/// unknown keywords are remarks, as the drafts have it.
///
/// The work of a check is bounded by the size of what is checked, and so is its memory.
package final class JSONSchema: JSONSchemaChecking {
    /// What a schema may be.
    private static let schemaLimits = DocumentLimits(bytes: 1 << 20, depth: 128, values: 1 << 17)
    /// Of content, its reader has checked the rest before.
    private static let contentLimits = DocumentLimits(bytes: 1 << 30, depth: 128, values: 1 << 22)

    private let nodes: [SchemaNode]

    /// Compiles a schema.
    ///
    /// - Parameter text: JSON.
    /// - Throws: a ``JSONSchemaError`` with the place in the schema.
    package init(_ text: [UInt8]) throws(JSONSchemaError) {
        let root: DocumentValue
        do throws(DocumentError) {
            root = try JSONDocument.value(of: text, limits: Self.schemaLimits)
        } catch {
            throw JSONSchemaError(
                "it is not read: \(error.reason.text)", at: error.place?.description)
        }
        nodes = try SchemaCompiler(root).nodes
    }

    /// The compiler of schemas that the engine is given.
    package static let compile: SchemaCompiling = { try JSONSchema($0) }

    /// Holds content to the schema.
    ///
    /// - Throws: ``TransformationProblem/responseSchemaViolated`` with the path of the first value,
    ///   in the order of the text, that does not satisfy it, what the schema asked for, and that
    ///   value, cut off; also where finding that out would take too much work.
    ///   ``TransformationProblem/responseBodyInvalid`` where the content is no JSON, or deeper than
    ///   128 levels.
    package func check(_ json: UnsafeRawBufferPointer) throws(TransformationFailure) {
        let instance: Instance
        do throws(DocumentError) {
            instance = try Instance(json, limits: Self.contentLimits)
        } catch {
            throw TransformationFailure(
                .responseBodyInvalid, "it is not JSON that could be held to a schema",
                at: error.place?.description)
        }
        var check = SchemaCheck(nodes, instance, bytes: json.count)
        guard !check.holds(0, 0) else { return }
        if check.isExhausted {
            throw TransformationFailure(
                .responseSchemaViolated, "holding it to the schema takes too much work")
        }
        guard let violation = check.violation else { return }
        throw TransformationFailure(violation, nodes, instance)
    }
}
