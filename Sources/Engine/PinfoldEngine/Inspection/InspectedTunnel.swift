import EventLoop
import HTTPCore
import PinfoldMetrics
import PinfoldTLS
import Trust

/// A tunnel that has been answered and whose server has to show who it is, before the client sees
/// what it says.
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
/// Until the server is trusted the client's ClientHello is all that the server gets, and an alert
/// of its own all that the client does. A second ClientHello that the server asks for goes to it
/// once it agrees with the first (``HelloRetry``). While the handshake is finished both are still
/// looked at (``HandshakeEnding``); from the first encrypted byte on it is a tunnel as any other.
final class InspectedTunnel: EventHandler, UnfinishedInput {
    /// How it goes on.
    enum Outcome {
        /// What both sides say is relayed.
        case relayed(DownstreamHandover, to: Transport)
        /// The server is who it is to be, and the gateway speaks in its name.
        case intercepted(
            DownstreamHandover, InterceptionPolicy, ReferenceIdentifier, OriginVerification.Server)
        /// It is over, and closed.
        case ended(ExchangeError?)
    }

    enum Step {
        case greeting, answering, probing, verifying, retrying, finishing, refusing, over
    }

    /// The server's connection.
    final class Server: EventHandler {
        let transport: Transport
        /// What it is still to be sent.
        var output = OutputQueue()
        var mayRead = true
        private unowned let tunnel: InspectedTunnel

        init(_ transport: Transport, of tunnel: InspectedTunnel) {
            self.transport = transport
            self.tunnel = tunnel
        }

        override func ready(_ readiness: Readiness) {
            if readiness.mayRead { mayRead = true }
            tunnel.proceed()
        }
    }

    /// How long a client that was refused may take to read why, and what of it is read meanwhile,
    /// so that the alert is not lost by a reset.
    private static let lingerMilliseconds: Int64 = 2000
    private static let lingerBytes = 1 << 20

    let environment: Environment
    let authority: BoundAuthority
    let account: ClientAccount?
    var clientNetwork: IPNetwork? { account?.network }
    var unfinishedBytes = 0
    var stalledSince: Int64 = 0
    let endpoint: Endpoint
    /// The client's connection, and to be called when it is closed.
    private let transport: Transport
    private let closed: () -> Void
    private var ended: ((Outcome) -> Void)?
    var step = Step.greeting
    /// The configuration by which its server was connected to, or was judged last.
    var policy: PolicySnapshot
    var server: Server?

    // The client's side.
    var input: Buffer?
    var output: OutputQueue
    private var budget = TurnBudget()
    private var mayRead = true
    private var readWantsWrite = false
    private var lingered = 0
    private var hasFinishedSending = false
    var opening = ClientOpening()
    /// How many bytes of `input` have been taken by `opening`, or belong to the ClientHello.
    var seen = 0
    var hello: ClientHello?

    // The server's side.
    var flight: ServerFlight?
    /// What the server has said and the client has not been told.
    var held: [UInt8] = []
    var ending: HandshakeEnding?
    /// What the server's request for another ClientHello leads to; nil: there is none.
    var retry: HelloRetry?
    /// What is noted of the session when the handshake has ended; nil: nothing.
    var session: SessionNote?

    /// What the tunnel waits for besides its two connections.
    var opened: (any TunnelOpening)?
    private var fault: ExchangeError?
    /// What has come of it so far, for the log and the metrics.
    var inspection = TunnelInspection.refused

    /// - Parameters:
    ///   - handover: the client's connection, with the answer to CONNECT queued.
    ///   - server: the server's connection, now this tunnel's.
    ///   - policy: under which the two were allowed.
    ///   - ended: called once.
    init(
        environment: Environment, authority: BoundAuthority, account: ClientAccount?,
        handover: DownstreamHandover, server: EstablishedConnection,
        policy: PolicySnapshot, ended: @escaping (Outcome) -> Void
    ) {
        self.environment = environment
        self.authority = authority
        self.account = account
        endpoint = server.endpoint
        transport = handover.transport
        closed = handover.closed
        self.policy = policy
        self.ended = ended
        input = handover.leftover
        output = handover.pending
        super.init()
        self.server = Server(server.transport, of: self)
    }

    private var descriptor: Int32 { transport.descriptor }

    var isForAddress: Bool { IPAddress(literal: authority.host.utf8.span) != nil }

    /// The version that the server has chosen; `none` before.
    var version: UpstreamTLSVersion {
        UpstreamTLSVersion(wire: flight?.serverHello?.version)
    }

    /// Begins; the loop keeps it until it has ended.
    func start() {
        guard let server else { return }
        do throws(Errno) {
            try environment.loop.add(server, descriptor: server.transport.descriptor)
        } catch {
            server.transport.close()
            self.server = nil
            return close(.connectFailed(error))
        }
        do throws(Errno) {
            try environment.loop.add(self, descriptor: descriptor)
        } catch {
            return close(.connectFailed(error))
        }
        environment.loop.setDeadline(self, after: policy.timeouts.headMilliseconds)
        environment.hold(self, bytes: TLSServerConnection.handshakeBytes)
        environment.loop.afterTurn { [self] in proceed() }
    }

    // MARK: Events

    override func ready(_ readiness: Readiness) {
        if readiness.mayRead || readWantsWrite && readiness.mayWrite { mayRead = true }
        if !readiness.isDisjoint(with: [.hungUp, .failed]) { return close(fault) }
        proceed()
    }

    override func continueWork() { proceed() }

    override func deadlineReached() {
        switch step {
        case .over: return
        case .retrying where retry?.isAgreed == true: refuse(.tlsTimeout, .handshakeFailure)
        case .greeting, .retrying, .finishing:
            environment.metrics.add(.clientHandshakesTimeout)
            refuse(.tunnel(.handshakeTimeout), .handshakeFailure)
        case .answering: refuse(.tlsTimeout, .handshakeFailure)
        case .probing, .verifying: refuse(.poolWaitTimeout, .internalError)
        case .refusing: close(fault)
        }
    }

    // MARK: The way of the bytes

    /// Goes on as far as both connections allow.
    func proceed() {
        guard step != .over else { return }
        budget.renew(environment.loop)
        guard sendToClient(), sendToServer() else { return }
        while step != .over {
            let goesOn: Bool
            switch step {
            case .greeting: goesOn = greet()
            case .answering: goesOn = answer()
            case .retrying: goesOn = greetAgain()
            case .finishing: goesOn = finish()
            case .refusing: goesOn = linger()
            // A client that leaves is told of by `ready`.
            case .probing, .verifying, .over: return
            }
            guard goesOn else { return }
            guard sendToClient(), sendToServer() else { return }
        }
    }

    /// False: nothing more can be done now.
    private func sendToClient() -> Bool {
        switch transport.flush(&output, on: environment.loop, spending: &budget) {
        case .drained: return true
        case .blocked: break
        case .turnIsOver: environment.loop.requeue(self)
        case .failed: close(fault)
        }
        return false
    }

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

    /// Reads once from the client; nil when nothing was read.
    func readClient() -> UnsafeRawBufferPointer? {
        guard mayRead else { return nil }
        let room = environment.loop.buffers.makeRoom(in: &input)
        switch transport.read(into: room, spending: &budget) {
        case .bytes(let count, _):
            let fresh = UnsafeRawBufferPointer(rebasing: room.prefix(count))
            input?.end += count
            environment.metrics.add(.clientBytesReceived, UInt64(count))
            return fresh
        case .wouldBlock(let wantsWrite):
            mayRead = false
            readWantsWrite = wantsWrite
        case .turnIsOver: environment.loop.requeue(self)
        case .endOfStream, .truncated, .failed: close(fault)
        }
        return nil
    }

    /// Reads once from the server; nil when nothing was read.
    func readServer() -> Buffer? {
        guard let server, server.mayRead else { return nil }
        let buffer = environment.loop.buffers.takeLarge()
        switch server.transport.read(into: buffer.writable, spending: &budget) {
        case .bytes(let count, _):
            buffer.end = count
            return buffer
        case .wouldBlock: server.mayRead = false
        case .turnIsOver: environment.loop.requeue(self)
        case .endOfStream, .truncated: refuse(.upstreamClosed, .internalError)
        case .failed(.reset(let error)): refuse(.upstreamReset(error), .internalError)
        case .failed: refuse(.upstreamClosed, .internalError)
        }
        return nil
    }

    // MARK: What comes of it

    /// The server is trusted: the client is shown what it said.
    ///
    /// - Parameter ending: what is looked at before the tunnel is relayed; nil: nothing.
    func release(_ inspection: TunnelInspection, ending: HandshakeEnding?) {
        self.inspection = inspection
        self.ending = ending
        sendToClient(held)
        held = []
        // The server has the ClientHello; what came behind it is still to be sent.
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

    /// The bytes are everybody's own from now on.
    func relay() -> Bool {
        guard let server else { return false }
        self.server = nil
        environment.loop.remove(server, keepingOpen: server.transport.descriptor)
        countInspection()
        end(.relayed(handOver(), to: server.transport))
        return false
    }

    /// Gives the client's connection, with its ClientHello, to another owner.
    func intercept(
        _ interception: InterceptionPolicy, _ name: ReferenceIdentifier,
        _ verified: OriginVerification.Server
    ) {
        inspection = .intercepted
        countInspection()
        end(.intercepted(handOver(), interception, name, verified))
    }

    private func handOver() -> DownstreamHandover {
        environment.loop.remove(self, keepingOpen: descriptor)
        return DownstreamHandover(
            transport: transport, leftover: input, pending: output, closed: closed)
    }

    /// What ``refuse(_:_:)`` does, as a step that ends here.
    func fail(_ fault: ExchangeError, _ alert: TLSAlert?) -> Bool {
        refuse(fault, alert)
        return step == .refusing
    }

    /// Closes the server's connection at once, and the client's when it has been told by an alert;
    /// nil: it does not speak TLS.
    func refuse(_ fault: ExchangeError, _ alert: TLSAlert?) {
        guard step != .refusing, step != .over else { return }
        self.fault = fault
        inspection = .refused
        if let alert {
            // In the clear, as before any key is agreed on (RFC 8446 §6, RFC 5246 §7.2).
            let version = hello?.recordVersion ?? ClientHello.Version.tls10
            sendToClient([21, UInt8(version >> 8), UInt8(version & 0xFF), 0, 2, 2, alert.code])
        }
        dropServer()
        held = []
        input = nil
        // It waits for nothing, and is not to make way with another fault than its own.
        environment.release(self)
        go(to: .refusing, within: Self.lingerMilliseconds)
        environment.loop.requeue(self)
    }

    /// Has the client read what it was told.
    private func linger() -> Bool {
        if !hasFinishedSending { hasFinishedSending = transport.finishSending() }
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

    func dropServer() {
        // A completion of what is cancelled does not come.
        opened?.cancel()
        opened = nil
        guard let server else { return }
        self.server = nil
        server.output.discard()
        environment.loop.remove(server)
        server.transport.close()
    }

    func cut() { close(nil) }

    func giveUp() { close(.headBuffersFull) }

    /// Closes both connections.
    func close(_ fault: ExchangeError?) {
        guard step != .over else { return }
        dropServer()
        environment.loop.remove(self)
        transport.close()
        output.discard()
        closed()
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
        input = nil
        environment.release(self)
        let ended = ended
        self.ended = nil
        ended?(outcome)
    }
}
