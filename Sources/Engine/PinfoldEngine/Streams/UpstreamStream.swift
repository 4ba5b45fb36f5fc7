import EventLoop
import HTTPCore
import PinfoldTLS

/// What a stream needs to know about the request that it carries.
package struct OutgoingRequest {
    /// How the content ends.
    package var framing: BodyFraming
    package var method: Method
    /// Whether the server is asked to switch protocols.
    package var asksForUpgrade = false
    /// Whether the client accepts trailers.
    package var acceptsTrailers = false
    /// Whether its content may wait for an interim response (RFC 9110 §10.1.1).
    package var expectsContinue = false
    /// Whether it is this program's own request, whose response is not forwarded to anyone.
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

/// The server's side of one exchange, whatever protocol version carries it: a stream on a
/// connection from the pool, whose server is trusted.
///
/// Output is queued; `flush` writes it. Input is passed to the ``UpstreamConsumer``.
package protocol UpstreamStream: AnyObject {
    /// The address that it is connected to.
    var endpoint: Endpoint { get }
    /// The connection carried requests before.
    var wasReused: Bool { get }
    /// How the connection was made.
    var timeline: ConnectionTimeline { get }
    /// The TLS version in use, for the access log; `nil` for clear text.
    var tlsVersion: TLSVersion? { get }
    /// What the handshake with the server agreed on, for people; `nil` for clear text. It is made
    /// anew each time.
    var tlsSummary: TLSSummary? { get }
    /// What the connection carries.
    var carrier: HTTPCarrier { get }
    /// The response is of type `text/event-stream`.
    var isEventStream: Bool { get }
    /// Whether the request has been written to its end.
    var requestIsSent: Bool { get }
    /// The certificate that proved the server's identity; `nil` without TLS.
    var serverCertificate: ServerCertificate? { get }

    /// Begins the request's head.
    /// - Parameters:
    ///   - request: the request received; `bytes` is its head.
    ///   - host: the value of Host.
    ///   - room: the number of bytes needed for field lines.
    func makeHead(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, host: Span<UInt8>, room: Int
    ) -> HeadDraft
    /// Queues the head. `upgrade` has the protocols offered to the server. Returns false if it is
    /// too long; nothing has been queued then.
    func sendHead(
        _ head: consuming HeadDraft, of request: OutgoingRequest, upgrade: [UnsafeRawBufferPointer]
    ) -> Bool
    /// Queues content.
    func send(_ content: UnsafeRawBufferPointer, owner: Buffer)
    /// Queues the end of the content, which is the end of the request, and writes what is queued,
    /// as ``flush()`` does.
    func finish(trailers: TrailerSection?) -> Bool
    /// Writes what is queued. Returns false if not everything could be written; `upstreamDrained`
    /// will follow.
    func flush() -> Bool
    /// The consumer accepts content of the response again.
    func resume()
    /// What was delivered last is still in use: what follows is read into another buffer. Needed if
    /// the consumer accepts more before everything has been written.
    func leaveBuffer()
    /// Replaces the consumer, on behalf of the one that the stream was handed to.
    func setConsumer(_ consumer: any UpstreamConsumer)
    /// The consumer gives up; it is not called any more.
    func cancel()
    /// The consumer sends nothing: another one may use the connection.
    func giveBack()
    /// Leaves HTTP after a 101.
    func handOver() -> UpstreamHandover
}

/// A server's connection that has left HTTP, or one end of a tunnel in a stream of HTTP/2.
package struct UpstreamHandover {
    package let transport: Transport
    /// What was read beyond the head.
    package let leftover: Buffer?
    /// What carries the bytes between the transport and the stream, if it is a stream. Whoever
    /// knows how the tunnel ends tells it.
    package let tunnel: HTTP2StreamTunnel?

    package init(
        transport: Transport, leftover: Buffer? = nil, tunnel: HTTP2StreamTunnel? = nil
    ) {
        self.transport = transport
        self.leftover = leftover
        self.tunnel = tunnel
    }
}

/// Whether another protocol is asked for, by Upgrade.
package enum SwitchRequest {
    case none
    /// One that a stream of HTTP/2 may carry (RFC 8441).
    case inStream
    /// What only HTTP/1.1 has.
    case byUpgrade

    /// The longest name of a protocol in a stream, in bytes. Those that exist have a few letters.
    static let longestName = 64

    /// Whether another protocol is asked for.
    var isForAnother: Bool {
        switch self {
        case .none: false
        case .inStream, .byUpgrade: true
        }
    }

    /// - Parameter upgrade: the protocols that are offered.
    init(_ method: Method, _ upgrade: [UnsafeRawBufferPointer]) {
        let fits = upgrade.count == 1 && upgrade[0].count <= Self.longestName
        self = method == .get && fits ? .inStream : .byUpgrade
    }
}

/// The two ends of a client's connection.
package struct ClientEnds: Sendable, Hashable {
    /// The client's address.
    package var source: Endpoint
    /// The address that it has connected to.
    package var destination: Endpoint

    package init(source: Endpoint, destination: Endpoint) {
        self.source = source
        self.destination = destination
    }
}

/// A user of a stream to a server: an exchange, or a probe.
package protocol UpstreamConsumer: AnyObject {
    /// A stream is available. It belongs to the consumer until the response has ended or either
    /// side gives up.
    func upstreamReady(_ upstream: any UpstreamStream)
    /// No connection could be obtained, or it failed.
    func upstreamFailed(_ failure: StreamError)
    /// A head has arrived, possibly an interim one; it is parsed into `response`, and its bytes are
    /// valid during the call.
    func upstreamHead(_ head: UnsafeRawBufferPointer)
    /// No content arrived together with the final head.
    func upstreamHeadWithoutBody()
    /// Content has arrived. `owner` keeps the bytes alive. `isLast`: `upstreamEnded` follows
    /// immediately. Return false to pause until `resume`.
    func upstreamBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool
    /// The response is complete, and so is the request unless the server does not want the rest of
    /// it. The connection is already back in its pool or closed.
    func upstreamEnded(trailers: TrailerSection?)
    /// What was queued for the upstream has been written.
    func upstreamDrained()
    /// Whether sending the request twice would do no harm (RFC 9110 §9.2.2).
    var mayBeRepeated: Bool { get }
    /// Whether content may be read in large parts, which its client may make wait.
    var takesLargeParts: Bool { get }
    /// Whether it asks for another protocol.
    var switchRequest: SwitchRequest { get }
    /// Whether its server is spoken to over HTTP/1.1, unless it may only be spoken to over HTTP/2.
    var speaksOnlyHTTP1: Bool { get }
    /// The client that it works for; `nil` if none.
    var clientNetwork: IPNetwork? { get }
    /// What is sent along to a parent that is asked for a tunnel for it.
    var passage: Passage { get }
    /// The ends of the client's connection that it works for; `nil` if there is none, or its client
    /// has no address.
    var clientEnds: ClientEnds? { get }
    /// A step on the way to a stream is over, and another follows: ``upstreamWaits()`` says when it
    /// is to be waited for.
    func upstreamTook(_ timeline: ConnectionTimeline?)
    /// The next step has begun, and is not over.
    func upstreamWaits()
    /// It is tried to get a stream by this way: through a parent, or directly (`nil`).
    func upstreamGoes(by parent: UpstreamProxy?)
    /// That way leads to the Unix socket at this path.
    func upstreamGoes(toUnixSocket path: String)
    /// The head that response heads are parsed into.
    var response: ResponseHead { get set }
}

extension UpstreamConsumer {
    package var takesLargeParts: Bool { true }
    package var switchRequest: SwitchRequest { .none }
    package var speaksOnlyHTTP1: Bool { false }
    package var passage: Passage { Passage() }
    package var clientEnds: ClientEnds? { nil }
    package func upstreamTook(_ timeline: ConnectionTimeline?) {}
    package func upstreamWaits() {}
    package func upstreamGoes(by parent: UpstreamProxy?) {}
    package func upstreamGoes(toUnixSocket path: String) {}
}
