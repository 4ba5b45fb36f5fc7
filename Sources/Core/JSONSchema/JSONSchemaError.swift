/// Why a schema is refused.
package struct JSONSchemaError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A clause: what is wrong, and what was expected.
    package var reason: String
    /// Where in the schema, as a JSON Pointer behind `#` (RFC 6901, section 6), or as line and
    /// column where the text is no JSON; nil: of the whole.
    package var place: String?

    init(_ reason: String, at place: String? = nil) {
        self.reason = reason
        self.place = place
    }

    package var description: String { place.map { "\(reason) (\($0))" } ?? reason }
}
