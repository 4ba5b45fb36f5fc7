import Addressing
import EventLoop
import HTTPCore

/// Who uses an upstream: an exchange, or a probe. The calls tell of heads, body parts and ends,
/// whatever protocol version carries them.
protocol UpstreamConsumer: AnyObject {
    /// A connection is the consumer's until the response has ended or either side gave up.
    func upstreamReady(_ upstream: UpstreamConnection)
    /// There is no connection, or it failed. `responseStarted`: some byte of the final response
    /// had been received.
    func upstreamFailed(_ fault: ExchangeFault, responseStarted: Bool)
    /// A head arrived, interim ones included; it is parsed into `response` and its bytes are valid
    /// during the call.
    func upstreamHead(_ head: UnsafeRawBufferPointer)
    /// After a final head: no content came with it.
    func upstreamHeadWithoutBody()
    /// Content arrived. `owner` keeps the bytes alive. `isLast`: `upstreamEnded` follows at once.
    /// False asks to pause until `resume`.
    func upstreamBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool
    /// The response ended well. The connection is already back in its pool or closed.
    func upstreamEnded(trailers: borrowing ChunkedDecoder?)
    /// What was queued for the upstream has been written.
    func upstreamDrained()
    /// Sending the request twice would do no harm (RFC 9110 §9.2.2).
    var mayBeRepeated: Bool { get }
    /// The client that it works for; nil: none.
    var clientNetwork: IPNetwork? { get }
    /// Where response heads are parsed to.
    var response: ResponseHead { get set }
}
