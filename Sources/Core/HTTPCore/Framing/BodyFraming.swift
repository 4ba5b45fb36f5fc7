/// How the end of a message's body is found (RFC 9112 §6.3).
public enum BodyFraming: Sendable, Equatable {
    /// The message ends with its head.
    case none
    /// Exactly that many bytes follow.
    case length(UInt64)
    /// The chunked coding marks the end.
    case chunked
    /// The body ends with the connection: responses only.
    case untilClose

    /// The number of bytes that follow; `nil` if it is not known in advance.
    public var length: UInt64? {
        switch self {
        case .none: 0
        case .length(let count): count
        case .chunked, .untilClose: nil
        }
    }

    /// Whether truncated content cannot be distinguished from complete content, except by TLS (RFC
    /// 9112 §8).
    public var endsWithConnection: Bool { self == .untilClose }
}
