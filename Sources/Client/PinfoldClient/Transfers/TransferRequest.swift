import Locking
import PinfoldEngine

/// Everything that the loop has to know about a request. It is a class so that it can be passed on
/// without copying.
final class TransferRequest: Sendable {
    let session: UInt64
    let number: UInt64
    let origin: RequestOrigin
    /// The head in the form that the engine expects.
    let head: [UInt8]
    let content: OutgoingContent
    let priority: RequestPriority
    /// The idle timeout in milliseconds.
    let idleMilliseconds: Int64
    /// How long the request may be queued without progress of those before it, in milliseconds.
    let queueMilliseconds: Int64
    /// How long the request may take, including the time in the queue, in milliseconds.
    let remainingMilliseconds: Int64
    /// How long its task may take in total, in milliseconds; for messages.
    let totalMilliseconds: Int64
    let channel: TransferChannel
    /// Whether only a connection that has carried no request yet may be used.
    let needsFreshConnection: Bool
    /// The route through a proxy, or `nil` if the request goes directly to the server.
    let proxy: ProxyRoute?
    /// The kind of stream if the response has no defined end, otherwise `nil`.
    let stream: StreamKind?
    /// Whether any stored response is used.
    let acceptsAnyStored: Bool
    /// Whether the server is spoken to over HTTP/1.1, whatever else it speaks.
    let speaksOnlyHTTP1: Bool
    /// Whether the content has a known length, or there is none, so that sending it will end.
    let contentHasEnd: Bool
    /// How long the content waits for the server to ask for it, in milliseconds, or `nil` if it is
    /// sent at once.
    let continueMilliseconds: Int64?
    /// Whether somebody wants to know what the handshake of TLS agreed on.
    let describesConnection: Bool

    init(
        session: UInt64, number: UInt64, origin: RequestOrigin, head: [UInt8],
        content: OutgoingContent, contentHasEnd: Bool = true, priority: RequestPriority,
        idleMilliseconds: Int64, queueMilliseconds: Int64, remainingMilliseconds: Int64,
        totalMilliseconds: Int64, channel: TransferChannel,
        needsFreshConnection: Bool = false, proxy: ProxyRoute? = nil, stream: StreamKind? = nil,
        acceptsAnyStored: Bool = false, speaksOnlyHTTP1: Bool = false,
        continueMilliseconds: Int64? = nil, describesConnection: Bool = false
    ) {
        (self.session, self.number, self.origin) = (session, number, origin)
        (self.head, self.content, self.priority) = (head, content, priority)
        self.contentHasEnd = contentHasEnd
        (self.idleMilliseconds, self.queueMilliseconds) = (idleMilliseconds, queueMilliseconds)
        self.needsFreshConnection = needsFreshConnection
        self.remainingMilliseconds = remainingMilliseconds
        self.totalMilliseconds = totalMilliseconds
        (self.channel, self.proxy, self.stream) = (channel, proxy, stream)
        (self.acceptsAnyStored, self.speaksOnlyHTTP1) = (acceptsAnyStored, speaksOnlyHTTP1)
        self.continueMilliseconds = continueMilliseconds
        self.describesConnection = describesConnection
    }
}

/// What is sent after the head.
enum OutgoingContent: Sendable {
    case none
    case bytes([UInt8])
    /// Parts that are requested one at a time.
    case feed(any ContentFeed)

    /// Called when the content is not sent, or not sent any further.
    func close() { if case .feed(let feed) = self { feed.close() } }
}

/// Provides content part by part.
protocol ContentFeed: AnyObject, Sendable {
    /// How long to wait after each part, in milliseconds, or 0 for no wait.
    var pauseMilliseconds: Int64 { get }
    /// Requests the next part. `deliver` is called once, on any thread.
    func next(_ deliver: @escaping @Sendable (ContentPart) -> Void)
    /// No more parts are requested.
    func close()
}

extension ContentFeed {
    var pauseMilliseconds: Int64 { 0 }
}
