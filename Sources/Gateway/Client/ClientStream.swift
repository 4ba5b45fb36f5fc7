import EventLoop
import HTTPCore

/// How the end of a response's content is made known to the client.
enum ClientFraming: Equatable {
    /// The message ends with its head: HEAD, 204, 304.
    case none
    /// So many bytes follow, and the head already says so.
    case lengthInHead(UInt64)
    /// So many bytes follow; the head does not say so yet.
    case length(UInt64)
    /// The length is not known: chunked, or the end of the connection for HTTP/1.0.
    case streamed
}

/// The client's side of one exchange, whatever protocol version carries it.
///
/// What is sent is queued; `flush` writes it. Buffers given as owners keep the bytes alive until
/// they are written.
protocol ClientStream: AnyObject {
    /// Interim responses, and trailers, can be sent.
    var takesInterimResponses: Bool { get }
    /// Bytes sent in answer to the current exchange, heads and framing included.
    var responseBytes: UInt64 { get }
    /// Bytes of content given to be sent in answer to the current exchange.
    var contentBytes: UInt64 { get }

    /// Queues a complete interim response.
    func sendInterim(_ head: Buffer)
    /// Queues the final head. `head` holds status line and fields with room for
    /// `ClientConnection.reservedBytes` more, and no empty line.
    func sendHead(_ head: consuming Buffer, framing: ClientFraming, closing: Bool)
    /// Takes the final head back, and what is queued behind it, if nothing of it has been written.
    /// False: some of it has.
    func withdrawHead() -> Bool
    /// Queues content.
    func sendBody(_ bytes: UnsafeRawBufferPointer, owner: AnyObject)
    /// Queues content that is in a file.
    func sendFile(_ file: Int32, offset: Int, count: Int, owner: AnyObject)
    /// Queues the end of the content. `trailers`: field lines with CRLF each, may be empty.
    func sendEnd(trailers: UnsafeRawBufferPointer)
    /// Writes what is queued. False: not all could be written, `clientDrained` will follow.
    func flush() -> Bool
    /// The exchange takes more of the request's body.
    func resumeRequestBody()
    /// The exchange takes no more of it for now.
    func pauseRequestBody()
    /// Long pauses are usual in what follows: that the client is gone must be noticed in them.
    func expectPauses()
    /// Everything that was queued has been written.
    var isFlushed: Bool { get }
    /// The exchange is over. `cut`: the response is not complete, and the client must notice.
    func exchangeEnded(cut: Bool)
    /// Leaves HTTP: hands over the socket, what was read and not used, and what is still to be
    /// written. It still counts as a connection of the worker's.
    func detach() -> (descriptor: Int32, leftover: Buffer?, pending: OutputQueue)?
}
