import CacheStore
import EventLoop
import HTTPCore

/// How the end of a response's content is made known to the client.
package enum ContentFraming: Equatable {
    /// The message ends with its head: HEAD, 204, 304.
    case none
    /// So many bytes follow, and the fields already say so.
    case lengthInFields(UInt64)
    /// So many bytes follow; the fields do not say so.
    case length(UInt64)
    /// The length is not known: the stream says where the content ends.
    case streamed
}

/// The client's side of one exchange, whatever protocol version carries it.
///
/// The stream calls the exchange when content has arrived (`Exchange.content`), has ended or cannot
/// be read, when what was queued has been written (`Exchange.clientDrained`), and when the client
/// is gone. What is sent is queued; `flush` writes it. Buffers given as owners keep the bytes alive
/// until they are written.
package protocol DownstreamStream: AnyObject {
    /// What the client has open; nil for whom no limit of a client applies.
    var account: ClientAccount? { get }
    /// Why the client is not served, if it is not.
    var refusal: ExchangeError { get }
    /// The gateway's address that the client is connected to.
    var localAddress: IPAddress? { get }
    /// What was sent in answer to the current exchange: bytes in all, heads and framing included,
    /// and bytes of content given to be sent.
    var sentBytes: (total: UInt64, content: UInt64) { get }
    /// Everything that was queued has been written.
    var isFlushed: Bool { get }
    /// Interim responses, and trailers, can be sent.
    var takesInterimResponses: Bool { get }

    /// Begins a head.
    /// - Parameters:
    ///   - phrase: where the version has one: the reason phrase; nil for the standard one.
    ///   - room: bytes that field lines will need.
    func makeHead(status: UInt16, phrase: Span<UInt8>?, room: Int) -> HeadDraft
    /// Queues an interim response.
    func sendInterim(_ head: consuming HeadDraft)
    /// Queues the final head. `closing`: this is the connection's last exchange.
    func sendHead(_ head: consuming HeadDraft, framing: ContentFraming, closing: Bool)
    /// Takes the final head back, and what is queued behind it, if nothing of it has been written.
    /// False: some of it has.
    func withdrawHead() -> Bool
    /// Queues content.
    func send(_ content: UnsafeRawBufferPointer, owner: AnyObject)
    /// Queues content that is in a file.
    func sendFile(_ file: MemoryFile, offset: Int, count: Int)
    /// Queues the end of the content, and writes what is queued, as ``flush()`` does.
    func finish(trailers: TrailerSection?) -> Bool
    /// Writes what is queued. False: not all could be written, `clientDrained` will follow.
    func flush() -> Bool
    /// The exchange takes more of the request's content.
    func resumeContent()
    /// The exchange takes no more of it for now.
    func pauseContent()
    /// Long pauses are usual in what follows: that the client is gone must be noticed in them.
    func expectPauses()
    /// The exchange is over. `cut`: the response is not complete, and the client must notice.
    func exchangeEnded(cut: Bool)
    /// Leaves HTTP behind a last head: hands over what carries the bytes. It still counts as a
    /// connection of the client's.
    /// - Parameter isUpgrade: the head is that of a 101, and names the protocol in Upgrade.
    func handOver(after head: consuming HeadDraft, isUpgrade: Bool) -> DownstreamHandover?
    /// What a server speaks after 101 is read and written by the stream's owner itself, and is not
    /// relayed to a client's connection.
    var takesProtocols: Bool { get }
    /// Leaves HTTP behind the head of a 101, where ``takesProtocols`` says so: the server's
    /// connection is the stream's, which registers and closes it. The exchange ends.
    /// - Parameter leftover: what was read beyond the head.
    func switchProtocols(
        after head: consuming HeadDraft, to server: Transport, leftover: Buffer?)
}

extension DownstreamStream {
    package var refusal: ExchangeError { .clientNotAllowed }
    package var takesProtocols: Bool { false }

    package func switchProtocols(
        after head: consuming HeadDraft, to server: Transport, leftover: Buffer?
    ) {
        _ = head.finished()
        server.close()
        assertionFailure("a connection for a stream that takes none")
    }
}

/// A client's connection that is HTTP no longer.
package struct DownstreamHandover {
    package let transport: Transport
    /// What was read and not used.
    package let leftover: Buffer?
    /// What is still to be written.
    package let pending: OutputQueue
    /// To be called when the connection is closed.
    package let closed: () -> Void

    package init(
        transport: Transport, leftover: Buffer?, pending: OutputQueue,
        closed: @escaping () -> Void
    ) {
        self.transport = transport
        self.leftover = leftover
        self.pending = pending
        self.closed = closed
    }
}
