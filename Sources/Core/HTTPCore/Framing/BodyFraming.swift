/// How the end of a message's body is found (RFC 9112 §6.3, RFC 9113 §8.1).
public enum BodyFraming: Sendable, Equatable {
    /// The message ends with its head.
    case none
    /// Exactly that many bytes follow.
    case length(UInt64)
    /// The end is marked where it is: by the chunked coding, or, in a message that came over
    /// HTTP/2, by the end of its stream (RFC 9113 §8.1). Such a message is forwarded to HTTP/1.1 in
    /// chunks.
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
