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
}
