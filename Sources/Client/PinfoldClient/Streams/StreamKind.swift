public import EventStreams
public import HTTPTypes

/// What a request is for, where its response lasts as long as both ends wish.
enum StreamKind: Sendable {
    /// Content that is read for as long as it comes.
    ///
    /// - Parameter idleMilliseconds: How long nothing may come after the head; nil: for ever.
    case content(idleMilliseconds: Int64?)
    /// Another protocol on the same connection, from a 101 on.
    ///
    /// - Parameter output: What is sent then.
    case upgrade(output: any ContentFeed)

    /// How long nothing may come after the head; nil: for ever.
    var idleMilliseconds: Int64? {
        if case .content(let milliseconds) = self { milliseconds } else { nil }
    }

    /// What is sent after a 101; nil: none is asked for.
    var output: (any ContentFeed)? {
        if case .upgrade(let output) = self { output } else { nil }
    }
}

/// Why a response is not what a stream begins with: ``ClientError/underlying`` of
/// ``ClientError/Reason/unexpectedResponse``.
public struct UnexpectedResponse: Error, Sendable, CustomStringConvertible {
    /// In what the response differs.
    public enum Problem: Hashable, Sendable {
        /// The status is another one: 200 is expected of events, 101 of a WebSocket.
        case status
        /// The content is no `text/event-stream`, but of this type; nil: of none.
        case contentType(String?)
        /// A 101 that is not the answer to the WebSocket's handshake (RFC 6455 section 4.1).
        case handshake(WebSocketHandshakeError)
    }

    /// The response, without its content.
    public let head: HTTPResponse
    /// In what the response differs.
    public let problem: Problem

    public var description: String {
        switch problem {
        case .status: "the server answers \(head.status.code)"
        case .contentType(let type?):
            "the content is of type \(type), expected \(ServerSentEventParser.mediaType)"
        case .contentType(nil):
            "the content is of no type, expected \(ServerSentEventParser.mediaType)"
        case .handshake(let error): "the server's handshake is none: \(error)"
        }
    }
}
