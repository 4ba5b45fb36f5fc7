public import HTTPTypes

/// The kind of a response that lasts as long as both ends wish.
enum StreamKind: Sendable {
    /// Content that is read for as long as it arrives.
    ///
    /// - Parameter idleMilliseconds: How long nothing may arrive after the head, or `nil` for no
    ///   limit.
    case content(idleMilliseconds: Int64?)
    /// Another protocol on the same connection, after a 101.
    ///
    /// - Parameter output: What is sent after the 101.
    case upgrade(output: any ContentFeed)

    /// How long nothing may arrive after the head, or `nil` for no limit.
    var idleMilliseconds: Int64? {
        if case .content(let milliseconds) = self { milliseconds } else { nil }
    }

    /// What is sent after a 101, or `nil` if no upgrade is requested.
    var output: (any ContentFeed)? {
        if case .upgrade(let output) = self { output } else { nil }
    }
}

/// A response that does not begin the requested stream. It is the ``ClientError/underlying`` error
/// of ``ClientError/Reason/unexpectedResponse``.
public struct UnexpectedResponseError: Error, Sendable, CustomStringConvertible {
    /// What is wrong with the response.
    public enum Reason: Hashable, Sendable {
        /// The status is wrong: it must be 200 for events, and 101 for a WebSocket.
        case status
        /// The content is not `text/event-stream` but of this type, or `nil` if it has no type.
        case contentType(String?)
        /// A 101 that does not complete the WebSocket handshake (RFC 6455 section 4.1).
        case handshake(WebSocketHandshakeError)
    }

    /// The head of the response.
    public let head: HTTPResponse
    /// What is wrong with the response.
    public let reason: Reason

    public var description: String {
        switch reason {
        case .status: "the server responded with status \(head.status.code)"
        case .contentType(let type?):
            "the content is of type \(type), expected \(ServerSentEventParser.mediaType)"
        case .contentType(nil):
            "the content has no type, expected \(ServerSentEventParser.mediaType)"
        case .handshake(let error): "the server's handshake is not valid: \(error)"
        }
    }
}
