/// Why bytes that should be the beginning of a TLS connection cannot be followed.
package enum TLSWireError: Error, Hashable, Sendable {
    /// They are not TLS: no record of version 3.x where one should begin.
    case notTLS
    /// A length, a list or a field has an invalid structure; names it.
    case malformed(StaticText)
    /// Longer, or more numerous, than the limit; names what exceeded it.
    case tooLong(StaticText)
    /// Well-formed, but not allowed at this point; names it.
    case unexpected(StaticText)
    /// One side answers with something that the other did not offer; names it.
    case notOffered(StaticText)
    /// A second ClientHello differs from the first in something that a client must not change;
    /// names it.
    case changed(StaticText)
    /// What was negotiated does not prove the server's identity, or is not known to; names it.
    case unprovable(StaticText)
}

/// A literal that can be compared.
package struct StaticText: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The text.
    package let description: String

    /// Creates it from a literal.
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
