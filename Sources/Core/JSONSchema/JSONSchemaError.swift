/// Why a schema is refused.
package struct JSONSchemaError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A clause: what is wrong, and what was expected.
    package var reason: String
    /// The location in the schema, as a JSON Pointer after `#` (RFC 6901 §6), or as line and column
    /// if the text is not JSON; `nil` for the whole schema.
    package var place: String?

    init(_ reason: String, at place: String? = nil) {
        self.reason = reason
        self.place = place
    }

    package var description: String { place.map { "\(reason) (\($0))" } ?? reason }
}
