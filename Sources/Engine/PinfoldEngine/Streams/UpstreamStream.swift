import EventLoop
import HTTPCore
import PinfoldTLS

/// What a stream needs to know of the request that it carries.
package struct OutgoingRequest {
    /// How the content ends.
    package var framing: BodyFraming
    package var method: Method
    /// The server is asked to switch protocols.
    package var asksForUpgrade = false
    /// The client takes trailers.
    package var acceptsTrailers = false
    /// Its content may wait for an interim response (RFC 9110 §10.1.1).
    package var expectsContinue = false
    /// It is this program's own: what answers it is passed on to nobody.
    package var isUserAgents = false

    package init(
        framing: BodyFraming, method: Method, asksForUpgrade: Bool = false,
        acceptsTrailers: Bool = false, expectsContinue: Bool = false, isUserAgents: Bool = false
    ) {
        self.framing = framing
        self.method = method
        self.asksForUpgrade = asksForUpgrade
        self.acceptsTrailers = acceptsTrailers
        self.expectsContinue = expectsContinue
        self.isUserAgents = isUserAgents
    }
}

/// The server's side of one exchange, whatever protocol version carries it: a place on a connection
/// that was handed out by the pool, whose server is trusted.
///
/// What is sent is queued; `flush` writes it. What arrives is told to the ``UpstreamConsumer``.
package protocol UpstreamStream: AnyObject {
    /// The address that it is connected to.
    var endpoint: Endpoint { get }
    /// The connection carried requests before.
    var wasReused: Bool { get }
    /// How long the connection took to be made; nil where that is not known.
    var connectionTimes: ConnectionTimes? { get }
    /// What is spoken, for the access log.
    var tlsVersion: UpstreamTLSVersion { get }
    /// The response is of type `text/event-stream`.
    var isEventStream: Bool { get }
    /// Whether the request has been written to its end.
    var requestIsSent: Bool { get }
    /// What the server has proved itself with; nil without TLS.
    var serverCertificate: ServerCertificate? { get }

    /// Begins the request's head.
    /// - Parameters:
    ///   - request: what arrived; `bytes` is its head.
    ///   - host: the value of Host.
    ///   - room: bytes that field lines will need.
    func makeHead(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, host: Span<UInt8>, room: Int
    ) -> HeadDraft
    /// Queues the head. `upgrade` is the protocols that the server is asked to switch to.
    /// False: it is too long, and nothing was queued.
    func sendHead(
        _ head: consuming HeadDraft, of request: OutgoingRequest, upgrade: [UnsafeRawBufferPointer]
    ) -> Bool
    /// Queues content.
    func send(_ content: UnsafeRawBufferPointer, owner: Buffer)
    /// Queues the end of the content, behind which nothing more of the request follows, and writes
    /// what is queued, as ``flush()`` does.
    func finish(trailers: TrailerSection?) -> Bool
    /// Writes what is queued. False: not all could be written, `upstreamDrained` will follow.
    func flush() -> Bool
    /// The consumer takes content of the response again.
    func resume()
    /// Another one is the consumer from now on, for whoever the stream was handed to.
    func tell(_ consumer: any UpstreamConsumer)
    /// The consumer gives up; nothing more is told to it.
    func cancel()
    /// The consumer sends nothing: another one may use the stream's place.
    func giveBack()
    /// Leaves HTTP: hands over what carries the bytes, and what was read beyond the head.
    func handOver() -> (transport: Transport, leftover: Buffer?)
}

/// Who uses a stream to a server: an exchange, or a probe.
package protocol UpstreamConsumer: AnyObject {
    /// A stream is the consumer's until the response has ended or either side gave up.
    func upstreamReady(_ upstream: any UpstreamStream)
    /// There is no connection, or it failed.
    func upstreamFailed(_ failure: StreamError)
    /// A head arrived, interim ones included; it is parsed into `response` and its bytes are valid
    /// during the call.
    func upstreamHead(_ head: UnsafeRawBufferPointer)
    /// After a final head: no content came with it.
    func upstreamHeadWithoutBody()
    /// Content arrived. `owner` keeps the bytes alive. `isLast`: `upstreamEnded` follows at once.
    /// False asks to pause until `resume`.
    func upstreamBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool
    /// The response ended well, and the request, too, unless the server does not want the rest of
    /// it. The connection is already back in its pool or closed.
    func upstreamEnded(trailers: TrailerSection?)
    /// What was queued for the upstream has been written.
    func upstreamDrained()
    /// Sending the request twice would do no harm (RFC 9110 §9.2.2).
    var mayBeRepeated: Bool { get }
    /// The client that it works for; nil: none.
    var clientNetwork: IPNetwork? { get }
    /// Where response heads are parsed to.
    var response: ResponseHead { get set }
}
