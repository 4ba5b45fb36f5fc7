import CacheStore
import EventLoop
import HTTPCore

/// How the client recognizes the end of a response's content.
package enum ContentFraming: Equatable {
    /// The message ends with its head: HEAD, 204, 304.
    case none
    /// This many bytes follow, as the fields already say.
    case lengthInFields(UInt64)
    /// This many bytes follow, which the fields do not say.
    case length(UInt64)
    /// The length is unknown: the stream marks the end of the content.
    case streamed
}

/// The client's side of one exchange, whatever protocol version carries it.
///
/// The stream calls the exchange when content has arrived (`Exchange.content`), has ended or cannot
/// be parsed, when what was queued has been written (`Exchange.clientDrained`), and when the client
/// is gone. Output is queued; `flush` writes it. Buffers given as owners keep the bytes alive until
/// they are written.
package protocol DownstreamStream: AnyObject {
    /// The client's account; `nil` if no limits apply to the client.
    var account: ClientAccount? { get }
    /// Why the client is not served, if it is not.
    var refusal: ExchangeError { get }
    /// The gateway's address that the client is connected to; `nil` if it has none.
    var localEndpoint: Endpoint? { get }
    /// What was sent in the current exchange: total bytes, including heads and framing, and bytes
    /// of content passed for sending.
    var sentBytes: (total: UInt64, content: UInt64) { get }
    /// Everything that was queued has been written.
    var isFlushed: Bool { get }
    /// Whether bytes have arrived that are not of the current exchange's request, or may have.
    var inputFollows: Bool { get }
    /// Whether its connection has other streams.
    var isOneOfSeveral: Bool { get }
    /// Whether interim responses and trailers can be sent.
    var takesInterimResponses: Bool { get }

    /// Begins a head.
    /// - Parameters:
    ///   - phrase: the reason phrase, if the protocol version has one; `nil` for the standard one.
    ///   - room: the number of bytes needed for field lines.
    func makeHead(status: UInt16, phrase: Span<UInt8>?, room: Int) -> HeadDraft
    /// Queues an interim response.
    func sendInterim(_ head: consuming HeadDraft)
    /// Queues the final head. `closing`: this is the connection's last exchange.
    func sendHead(_ head: consuming HeadDraft, framing: ContentFraming, closing: Bool)
    /// Withdraws the final head and what is queued after it, if none of it has been written.
    /// Returns false if some of it has.
    func withdrawHead() -> Bool
    /// Queues content.
    func send(_ content: UnsafeRawBufferPointer, owner: AnyObject)
    /// Queues content from a file.
    func sendFile(_ file: MemoryFile, offset: Int, count: Int)
    /// Queues the end of the content, and writes what is queued, as ``flush()`` does.
    func finish(trailers: TrailerSection?) -> Bool
    /// Writes what is queued. Returns false if not everything could be written; `clientDrained`
    /// will follow.
    func flush() -> Bool
    /// The exchange accepts more of the request's content.
    func resumeContent()
    /// The exchange accepts no more of it for now.
    func pauseContent()
    /// Long pauses are normal from now on: during them it must be noticed if the client is gone.
    func expectPauses()
    /// The exchange has ended. `cut`: the response is incomplete, and the client must notice.
    func exchangeEnded(cut: Bool)
    /// The client is gone, and the exchange goes on for others: what is done for it is not over
    /// until ``exchangeReleased()``.
    func exchangeContinues()
    /// The exchange that went on without the client is over.
    func exchangeReleased()
    /// Leaves HTTP after a last head and hands over the transport. It still counts as a connection
    /// of the client.
    /// - Parameter isUpgrade: whether the head is that of a 101, which names the protocol in
    ///   Upgrade.
    func handOver(after head: consuming HeadDraft, isUpgrade: Bool) -> DownstreamHandover?
    /// Whether the stream's owner itself reads and writes the protocol after a 101, instead of
    /// having it relayed to a client's connection.
    var takesProtocols: Bool { get }
    /// Leaves HTTP after the head of a 101, if ``takesProtocols`` is true: the server's connection
    /// now belongs to the stream, which registers and closes it. The exchange ends.
    func switchProtocols(after head: consuming HeadDraft, to server: UpstreamHandover)
}

extension DownstreamStream {
    package var refusal: ExchangeError { .access(.clientNotAllowed) }
    package var inputFollows: Bool { true }
    package var isOneOfSeveral: Bool { false }
    package var takesProtocols: Bool { false }

    // A connection with one exchange at a time is closed when its client is gone.
    package func exchangeContinues() {}
    package func exchangeReleased() {}

    package func switchProtocols(
        after head: consuming HeadDraft, to server: UpstreamHandover
    ) {
        _ = head.finished()
        server.transport.close()
        assertionFailure("a connection for a stream that does not accept one")
    }
}

/// A client's connection that has left HTTP.
package struct DownstreamHandover {
    package let transport: Transport
    /// Bytes that were read and not used.
    package let leftover: Buffer?
    /// Output that must still be written.
    package let pending: OutputQueue
    /// Must be called when the connection is closed.
    /// - Parameter isBroken: whether it was cut off, so that the client must notice.
    package let closed: (_ isBroken: Bool) -> Void

    package init(
        transport: Transport, leftover: Buffer?, pending: OutputQueue,
        closed: @escaping (_ isBroken: Bool) -> Void
    ) {
        self.transport = transport
        self.leftover = leftover
        self.pending = pending
        self.closed = closed
    }
}
