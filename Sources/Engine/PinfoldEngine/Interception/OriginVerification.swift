import Clocks
import EventLoop
import HTTPCore
import PinfoldMetrics
import PinfoldTLS

/// Verifies a server as for a request: through the pool, with its trust and within its limits.
/// Nothing is sent; the connection is left for the requests that follow.
final class OriginVerification: UpstreamConsumer, TunnelOpening {
    /// The result.
    struct Server {
        let endpoint: Endpoint
        let tlsVersion: TLSVersion?
        let certificate: ServerCertificate?
        /// What was agreed on with it.
        let carrier: HTTPCarrier
        /// Whether the connection was there before it was asked for.
        let isReused: Bool

        /// The same for the tunnel's client.
        var verified: TunnelServer { .verified(certificate, carrier) }
    }

    private let environment: Environment
    private let origin: Origin
    let clientNetwork: IPNetwork?
    let passage: Passage
    /// The parent that was tried last; `nil` for none.
    private(set) var parent: UpstreamProxy?
    private var completion: ((Result<Server, StreamError>) -> Void)?
    private var waits = Exchange.Waits()
    var response = ResponseHead()

    /// - Parameter completion: called once, within `start()` or later; not after `cancel()`.
    init(
        environment: Environment, origin: Origin, client: IPNetwork?,
        passage: Passage = Passage(),
        completion: @escaping (Result<Server, StreamError>) -> Void
    ) {
        self.environment = environment
        self.origin = origin
        clientNetwork = client
        self.passage = passage
        self.completion = completion
    }

    func start() {
        environment.upstreams.acquire(origin, for: self, fresh: false)
        if completion != nil { waits.begin(at: Clock.monotonicMicroseconds()) }
    }

    func cancel() {
        guard completion != nil else { return }
        completion = nil
        environment.upstreams.abandon(origin, self)
    }

    func upstreamReady(_ upstream: any UpstreamStream) {
        let isReused =
            waits.since == 0 || waits.end(with: upstream, at: Clock.monotonicMicroseconds())
        let server = Server(
            endpoint: upstream.endpoint, tlsVersion: upstream.tlsVersion,
            certificate: upstream.serverCertificate, carrier: upstream.carrier,
            isReused: isReused)
        upstream.giveBack()
        end(.success(server))
    }

    func upstreamGoes(by parent: UpstreamProxy?) { self.parent = parent }

    func upstreamTook(_ timeline: ConnectionTimeline?) {
        waits.end(by: timeline, at: Clock.monotonicMicroseconds())
    }

    func upstreamWaits() { waits.begin(at: Clock.monotonicMicroseconds()) }

    func upstreamFailed(_ failure: StreamError) {
        waits.end(by: failure.timeline, at: Clock.monotonicMicroseconds())
        end(.failure(failure))
    }

    func phases(now: Int64) -> PhaseTimes {
        var waits = waits
        waits.end(by: timeline, at: now)
        return waits.phases
    }

    var tried: Endpoint? { timeline?.tried }

    /// What is being done for it; `nil` if it does not wait for a connection.
    private var timeline: ConnectionTimeline? {
        completion == nil ? nil : environment.upstreams.timeline(origin, self)
    }

    private func end(_ result: Result<Server, StreamError>) {
        let completion = completion
        self.completion = nil
        completion?(result)
    }

    /// An idle connection is sufficient: it was verified, and need not be alive.
    var mayBeRepeated: Bool { true }

    // Nothing is sent, so nothing is received.

    func upstreamHead(_ head: UnsafeRawBufferPointer) {}

    func upstreamHeadWithoutBody() {}

    func upstreamBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool { true }

    func upstreamEnded(trailers: TrailerSection?) {}

    func upstreamDrained() {}
}
