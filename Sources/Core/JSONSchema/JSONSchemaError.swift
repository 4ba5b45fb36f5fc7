/// Why a schema is refused.
package struct JSONSchemaError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A clause: what is wrong, and what was expected.
    package var reason: String
    /// The location in the schema, as a JSON Pointer after `#` (RFC 6901 §6), or as line and column
    /// if the text is not JSON; `nil` for the whole schema.
    package var location: String?

    init(_ reason: String, at location: String? = nil) {
        self.reason = reason
        self.location = location
    }

    package var description: String { location.map { "\(reason) (\($0))" } ?? reason }
}
