/// Why bytes that should be the beginning of a TLS connection cannot be followed.
package enum TLSWireError: Error, Hashable, Sendable {
    /// They are not TLS: no record of version 3.x where one should begin.
    case notTLS
    /// A length, a list or a field is not as its structure has it; what it was.
    case malformed(StaticText)
    /// Longer, or more of it, than is taken; what it was.
    case tooLong(StaticText)
    /// Well-formed, and not what may come at this point; what it was.
    case unexpected(StaticText)
    /// One side answers what the other did not ask for; what it was.
    case notOffered(StaticText)
    /// A second ClientHello is not the first, but for what a client is to change; what differs.
    case changed(StaticText)
    /// What was agreed on does not prove who the server is, or is not known to; what it was.
    case unprovable(StaticText)
}

/// A literal that can be compared.
package struct StaticText: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The text.
    package let description: String

    /// The literal.
    package init(stringLiteral text: String) { description = text }
}

extension TLSWireError: CustomStringConvertible {
    /// A few words, for the log.
    package var description: String {
        switch self {
        case .notTLS: "not TLS"
        case .malformed(let what): "malformed: \(what)"
        case .tooLong(let what): "too long: \(what)"
        case .unexpected(let what): "unexpected: \(what)"
        case .notOffered(let what): "not offered by the client: \(what)"
        case .changed(let what): "changed since the first ClientHello: \(what)"
        case .unprovable(let what): "proves nothing about the server: \(what)"
        }
    }
}
