import EventLoop
import HTTPCore
import PinfoldMetrics
import PinfoldTLS
import Trust

/// A tunnel that has been answered, and whose server must prove its identity before the client sees
/// anything from it.
///
///                   ┌──────────┐ ClientHello  ┌───────────┐ up to TLS 1.2: proved ┌───────────┐
///     200 to CONNECT│ greeting │ ───────────► │ answering │ ────────────────────► │ finishing │
///                   └──────────┘              └───────────┘                       └───────────┘
///                        │ not TLS, another name    │ TLS 1.3   ┌─────────┐ proved      │
///                        ▼                          ├─────────► │ probing │ ───────► relayed
///                    ┌──────────┐   not proved      │           └─────────┘   or retrying
///                    │ refusing │ ◄─────────────────┤           ┌───────────┐
///                    └──────────┘                   └─────────► │ verifying │ ──► intercepted
///                   an alert, and the end                       └───────────┘
///
///     The server asks for another ClientHello: retrying ──► the two agree, it goes on ──► relayed
///
/// Until the server is trusted, it gets only the client's ClientHello, and the client gets at most
/// an alert. A second ClientHello that the server asks for is passed on if it agrees with the first
/// (``HelloRetry``). Both sides are observed while they complete the handshake
/// (``HandshakeEnding``); from the first encrypted byte on, it is a tunnel like any other.
final class InspectedTunnel: AnsweredTunnel {
    /// How the tunnel continues.
    enum Outcome {
        /// Relay what both sides send.
        case relayed(DownstreamHandover, to: Transport)
        /// The server is the right one, and the gateway answers in its name.
        case intercepted(
            DownstreamHandover, InterceptionPolicy, ReferenceIdentifier, OriginVerification.Server)
        /// It has ended and is closed.
        case ended(ExchangeError?)
    }

    enum Step {
        case greeting, answering, probing, verifying, retrying, finishing, refusing, over
    }

    /// How long a refused client may take to read the alert, and how much is read from it
    /// meanwhile, so that the alert is not lost by a reset.
    private static let lingerMilliseconds: Int64 = 2000
    private static let lingerBytes = 1 << 20

    let endpoint: Endpoint
    /// The parent that its server is reached through; `nil` for a direct connection.
    var parent: UpstreamProxy? { connected.parent }
    private let connected: EstablishedConnection
    private var ended: ((Outcome) -> Void)?
    var step = Step.greeting
    /// The policy under which its server was connected to, or was last verified.
    var policy: PolicySnapshot

    // The client's side.
    private var lingered = 0
    private var hasFinishedSending = false
    var clientOpening = ClientOpening()
    /// How many bytes of `input` `clientOpening` has consumed, or belong to the ClientHello.
    var seen = 0
    var hello: ClientHello?
    /// When it was passed on to the server, in microseconds of the monotonic clock; `nil` before
    /// that.
    var helloSent: Int64?

    // The server's side.
    var flight: ServerFlight?
    /// What the server has sent and the client has not been given.
    var held: [UInt8] = []
    var ending: HandshakeEnding?
    /// The state after the server's request for another ClientHello; `nil` if there is none.
    var retry: HelloRetry?
    /// What is recorded about the session when the handshake has ended; `nil` for nothing.
    var session: SessionNote?

    /// The result so far, for the log and the metrics.
    var inspection = TunnelInspection.refused

    /// - Parameters:
    ///   - handover: the client's connection, with the response to CONNECT queued.
    ///   - server: the server's connection, which now belongs to this tunnel.
    ///   - policy: the policy under which both were allowed.
    ///   - request: what asked for the tunnel, for rules; `nil` if none apply.
    ///   - ended: called once.
    init(
        environment: Environment, authority: BoundAuthority, account: ClientAccount?,
        handover: DownstreamHandover, server: EstablishedConnection,
        policy: PolicySnapshot, request: AccessRequest?, passage: Passage = Passage(),
        ended: @escaping (Outcome) -> Void
    ) {
        connected = server
        endpoint = server.endpoint
        self.policy = policy
        self.ended = ended
        super.init(
            environment: environment, authority: authority, account: account,
            handover: handover, request: request, passage: passage)
    }

    var isForAddress: Bool { IPAddress(literal: authority.host.utf8.span) != nil }

    /// The version that the server has chosen; `nil` before that.
    var version: TLSVersion? { (flight?.serverHello?.version).flatMap(TLSVersion.init(wire:)) }

    /// Starts the tunnel; the loop keeps it alive until it has ended.
    func start() {
        if adopt(connected) { begin(within: policy.timeouts.headMilliseconds) }
    }

    // MARK: Events

    override func deadlineReached() {
        switch step {
        case .over: return
        case .retrying where retry?.isAgreed == true: refuse(.tlsTimeout, .handshakeFailure)
        case .greeting, .retrying, .finishing:
            environment.metrics.add(.clientHandshakesTimeout)
            refuse(.tunnel(.handshakeTimeout), .handshakeFailure)
        case .answering: refuse(.tlsTimeout, .handshakeFailure)
        case .probing, .verifying: refuse(.gateway(.poolWaitTimeout), .internalError)
        case .refusing: close(fault)
        }
    }

    // MARK: Moving bytes

    override func proceed() {
        guard step != .over else { return }
        budget.renew(environment.loop)
        guard flush(), sendToServer() else { return }
        while step != .over {
            let goesOn: Bool
            switch step {
            case .greeting: goesOn = readClientHello()
            case .answering: goesOn = answer()
            case .retrying: goesOn = readSecondClientHello()
            case .finishing: goesOn = finish()
            case .refusing: goesOn = linger()
            // `ready` reports a client that leaves.
            case .probing, .verifying, .over: return
            }
            guard goesOn else { return }
            guard flush(), sendToServer() else { return }
        }
    }

    /// Returns false if nothing more can be done now.
    private func sendToServer() -> Bool {
        guard let server, !server.output.isEmpty else { return step != .over }
        switch server.transport.flush(&server.output, on: environment.loop, spending: &budget) {
        case .drained: return true
        case .blocked: break
        case .turnIsOver: environment.loop.requeue(self)
        case .failed(let error): refuse(.upstreamReset(error), .internalError)
        }
        return false
    }

    /// Reads once from the server; returns `nil` if nothing was read.
    func readServer() -> Buffer? {
        guard let server, server.mayRead else { return nil }
        let buffer = environment.loop.buffers.takeLarge()
        switch server.transport.read(into: buffer.writable, spending: &budget) {
        case .bytes(let count, _):
            buffer.end = count
            return buffer
        case .wouldBlock: server.mayRead = false
        case .turnIsOver: environment.loop.requeue(self)
        case .endOfStream, .truncated: refuse(.server(.upstreamClosed), .internalError)
        case .failed(.reset(let error)): refuse(.upstreamReset(error), .internalError)
        case .failed: refuse(.server(.upstreamClosed), .internalError)
        }
        return nil
    }

    // MARK: The result

    /// The server is trusted: passes what it has sent to the client.
    ///
    /// - Parameter ending: the rest of the handshake to observe before the tunnel is relayed; `nil`
    ///   for none.
    func release(_ inspection: TunnelInspection, ending: HandshakeEnding?) {
        self.inspection = inspection
        self.ending = ending
        sendToClient(held)
        held = []
        // The server already has the ClientHello; what followed it must still be sent.
        input?.start += seen
        seen = 0
        if input?.isEmpty ?? true { input = nil }
        go(
            to: retry == nil ? .finishing : .retrying,
            within: policy.timeouts.headMilliseconds)
    }

    /// Queues bytes for the client.
    private func sendToClient(_ bytes: [UInt8]) {
        let buffer = environment.loop.buffers.take(bytes: bytes.count)
        bytes.withUnsafeBytes { buffer.writable.copyMemory(from: $0) }
        buffer.end = bytes.count
        output.append(buffer.readable, owner: buffer)
    }

    /// Hands both connections to a relay; from now on the bytes are not examined.
    func relay() -> Bool {
        guard let server = releaseServer() else { return false }
        countInspection()
        end(.relayed(handOver(), to: server.transport))
        return false
    }

    /// Hands the client's connection, with its ClientHello, to another owner.
    func intercept(
        _ interception: InterceptionPolicy, _ name: ReferenceIdentifier,
        _ verified: OriginVerification.Server
    ) {
        inspection = .intercepted
        countInspection()
        end(.intercepted(handOver(), interception, name, verified))
    }

    /// Does the same as ``refuse(_:_:)``, as a step after which none follows.
    func fail(_ fault: ExchangeError, _ alert: TLSAlert?) -> Bool {
        refuse(fault, alert)
        return step == .refusing
    }

    /// Closes the server's connection immediately, and the client's once it has received an alert;
    /// `nil` if it does not speak TLS.
    func refuse(_ fault: ExchangeError, _ alert: TLSAlert?) {
        guard step != .refusing, step != .over else { return }
        self.fault = fault
        inspection = .refused
        if let alert {
            // In clear text, as before any key is agreed on (RFC 8446 §6, RFC 5246 §7.2).
            let version = hello?.recordVersion ?? ClientHello.Version.tls10
            sendToClient([21, UInt8(version >> 8), UInt8(version & 0xFF), 0, 2, 2, alert.code])
        }
        dropServer()
        held = []
        input = nil
        // It waits for nothing any more, and must not be evicted with a different error.
        environment.release(self)
        go(to: .refusing, within: Self.lingerMilliseconds)
        environment.loop.requeue(self)
    }

    /// Gives the client time to read the alert.
    private func linger() -> Bool {
        if !hasFinishedSending { hasFinishedSending = finishSending() }
        input?.clear()
        while lingered < Self.lingerBytes, let bytes = readClient() {
            lingered += bytes.count
            input?.clear()
        }
        if lingered >= Self.lingerBytes { close(fault) }
        return false
    }

    func go(to step: Step, within milliseconds: Int64) {
        self.step = step
        environment.loop.setDeadline(self, after: milliseconds)
    }

    override func hasClosed(_ fault: ExchangeError?, _ attempts: FailedAttempts?) {
        if fault != nil { countInspection() }
        end(.ended(fault))
    }

    private func countInspection() {
        if let counter = WorkerCounter.inspected(inspection, version) {
            environment.metrics.add(counter)
        }
    }

    private func end(_ outcome: Outcome) {
        step = .over
        let ended = ended
        self.ended = nil
        ended?(outcome)
    }
}
