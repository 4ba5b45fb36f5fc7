import Clocks
import EventLoop
import HTTPCore
import PinfoldTLS
import ProxyProtocols

/// Connects to a server and shakes hands with it, to find out what it presents and whether it is
/// trusted. No data is sent: the connection is closed after the handshake.
///
///     connecting ──► shaking hands ──► ended
///         └──────────────┴───────────────▲
final class HandshakeProbe: EventHandler, TunnelOpening {
    /// Which server, and how it is reached and judged.
    struct Subject {
        /// The name that its certificate must have, or its address.
        let authority: BoundAuthority
        /// The addresses to connect to; `nil` for those that the name has.
        var addresses: [IPAddress]?
        /// By what it is judged.
        let context: TLSClientContext
        /// The protocols offered by ALPN, as encoded in the extension; empty for the context's.
        var applicationProtocols: [UInt8] = []
        /// The form of the PROXY header with which the connection begins; `nil` for none.
        var header: ProxyHeader.Version?
        /// The client in whose share of the lookups it counts; `nil` if for none in particular.
        var client: IPNetwork?
        /// Which addresses may be connected to; `nil` allows all.
        var rules: DestinationRules?
        /// Which patterns of the rules match the name.
        var match = DestinationRules.HostMatch()
        /// The ways to it, and the policy by which their proxies are verified; `nil` for a direct
        /// connection.
        var ways: (list: WayList, policy: PolicySnapshot)?
        /// What is sent along to a parent.
        var passage = Passage()
        /// Where it notes what it is doing.
        var timeline = ConnectionTimeline()
        /// How many milliseconds connecting may take, and then the handshake.
        let stepMilliseconds: Int64
    }

    /// What was found out.
    enum Finding {
        /// The server is trusted.
        case trusted(TLSClientConnection, at: Endpoint)
        /// It was connected to, but the handshake failed: usually because it is not trusted.
        case refused(TLSError, TLSClientConnection, at: Endpoint)
        /// It could not be connected to, or the handshake took too long.
        case failed(StreamError)
    }

    let environment: Environment
    private let subject: Subject
    private var completion: ((Finding) -> Void)?
    private var connecting: WayConnection?
    private var connection: (transport: Transport, tls: TLSClientConnection, endpoint: Endpoint)?

    /// - Parameter completion: called once, after `start()` has returned and the connection has
    ///   been closed; not after `cancel()`.
    init(
        environment: Environment, subject: Subject, completion: @escaping (Finding) -> Void
    ) {
        self.environment = environment
        self.subject = subject
        self.completion = completion
    }

    /// Whether it is connected, and the handshake has begun.
    var isConnected: Bool { connection != nil }

    func start() {
        let authority = subject.authority
        let operation = WayConnection(
            environment: environment,
            subject: WayConnection.Subject(
                authority: authority, policy: subject.ways?.policy ?? environment.policy,
                match: subject.match, stepMilliseconds: subject.stepMilliseconds,
                client: subject.client, passage: subject.passage, addresses: subject.addresses,
                rules: subject.rules),
            by: subject.ways?.list, timeline: subject.timeline
        ) { [self] result in
            connecting = nil
            switch result {
            case .success(let made): connected(made)
            case .failure(let failure): end(.failed(failure))
            }
        }
        connecting = operation
        operation.start()
    }

    func cancel() {
        completion = nil
        connecting?.cancel()
        connecting = nil
        drop()
    }

    private func connected(_ made: EstablishedConnection) {
        guard completion != nil else { return made.transport.close() }
        let (descriptor, authority) = (made.transport.descriptor, subject.authority)
        if let version = subject.header,
            !made.transport.sendAtOnce(
                ProxyHeader(version, .sender).bytes(), on: environment.loop)
        {
            made.transport.close()
            return end(.failed(StreamError(.server(.upstreamClosed))))
        }
        let tls: TLSClientConnection
        do throws(TLSError) {
            tls = try TLSClientConnection(
                context: subject.context, fileDescriptor: descriptor, host: authority.host,
                port: authority.port, now: environment.wallSeconds, outer: made.transport.tls)
        } catch {
            made.transport.close()
            return fail(.tlsFailed(error), at: made.endpoint)
        }
        tls.offer(applicationProtocols: subject.applicationProtocols)
        do throws(Errno) {
            try environment.loop.add(self, descriptor: descriptor)
        } catch {
            made.transport.close()
            return fail(.connectFailed(error), at: made.endpoint)
        }
        connection = (Transport(descriptor: descriptor, tls: tls), tls, made.endpoint)
        subject.timeline.enter(.tls, at: Clock.monotonicMicroseconds())
        environment.loop.setDeadline(self, after: subject.stepMilliseconds)
        shakeHands()
    }

    // MARK: The handshake

    override func ready(_ readiness: Readiness) { shakeHands() }

    override func continueWork() { shakeHands() }

    override func deadlineReached() {
        guard let (_, _, endpoint) = connection else { return }
        environment.metrics.add(.tlsHandshakesTimeout)
        fail(.tlsTimeout, at: endpoint)
    }

    private func shakeHands() {
        guard completion != nil, let (_, tls, endpoint) = connection else { return }
        switch tls.handshake() {
        case .wantRead, .wantWrite: return
        case .wantIdentity:
            // There is nobody to ask for a certificate.
            tls.answer(nil)
            shakeHands()
        case .turnIsOver: environment.loop.requeue(self)
        case .complete: end(.trusted(tls, at: endpoint))
        case .failed(let error): end(.refused(error, tls, at: endpoint))
        }
    }

    // MARK: The end

    private func fail(_ error: ExchangeError, at endpoint: Endpoint) {
        end(.failed(StreamError(error, FailedAttempts(connectedTo: endpoint))))
    }

    private func drop() {
        guard let (transport, _, _) = connection else { return }
        connection = nil
        if transport.version != nil { _ = transport.finishSending() }
        environment.loop.remove(self)
        transport.close()
    }

    private func end(_ finding: Finding) {
        drop()
        subject.timeline.finish(at: Clock.monotonicMicroseconds())
        let completion = completion
        self.completion = nil
        completion?(finding)
    }
}
