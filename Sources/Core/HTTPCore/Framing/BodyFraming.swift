/// How the end of a message's body is found (RFC 9112 §6.3).
package enum BodyFraming: Sendable, Equatable {
    /// The message ends with its head.
    case none
    /// Exactly that many bytes follow.
    case length(UInt64)
    /// The chunked coding says.
    case chunked
    /// The connection's end says: responses only.
    case untilClose

    /// How many bytes follow; nil where that is not known before their end.
    package var length: UInt64? {
        switch self {
        case .none: 0
        case .length(let count): count
        case .chunked, .untilClose: nil
        }
    }

    /// Content that was cut off could not be told from content that is complete, but by TLS
    /// (RFC 9112 section 8).
    package var endsWithConnection: Bool { self == .untilClose }
}
