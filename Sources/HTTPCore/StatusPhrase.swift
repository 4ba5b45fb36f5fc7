/// The reason phrases of the registered status codes (RFC 9110 §15 and the IANA registry).
package enum StatusPhrase {
    /// The phrase of `status`; empty when it is not registered.
    package static func of(_ status: UInt16) -> StaticString { "" }
}
