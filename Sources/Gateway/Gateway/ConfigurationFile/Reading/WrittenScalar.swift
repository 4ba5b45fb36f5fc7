/// A scalar with variables, `${NAME}`, as it was written.
package struct WrittenScalar: Sendable, Equatable {
    /// The text, in which a literal `${` is `$${`.
    package var text: String
    /// The variables' names with their values, which no message may show.
    package var values: [String: String]
}
