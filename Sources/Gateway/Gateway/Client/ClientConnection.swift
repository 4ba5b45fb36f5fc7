import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldTLS

/// A client's HTTP/1 connection: reads request heads and bodies, writes responses, one exchange at
/// a time; pipelined requests wait in the input.
///
/// Whose turn it is, and whether another request may follow, is decided by `http` as a value; this
/// class carries that out. A head that cannot be read is answered through an exchange, too. An idle
/// connection holds no buffer and no exchange.
final class ClientConnection: EventHandler, InterceptedConnection {
    /// Room that the start line and what `sendHead` writes take up, besides the reason phrase.
    static let reservedBytes = 160

    /// How far the connection has been secured.
    enum Opening {
        /// In an intercepted tunnel, below its TLS: the response to CONNECT is being sent, and the
        /// client's first bytes are waited for.
        case greeting
        case handshaking
        /// It is complete, or there is nothing to secure.
        case done
        /// TLS has failed to begin, and what the client still sends is only to be discarded.
        case failed
    }

    let worker: Worker
    let environment: Environment
    let loop: EventLoop
    let buffers: BufferPool
    /// Carries all its bytes.
    let transport: Transport
    var descriptor: Int32 { transport.descriptor }
    let ingress: Ingress
    /// The ingress with the results of its TLS handshake; `nil` for clear text, and before. It is
    /// separate because a property that never changes costs clear text less.
    var secureIngress: Ingress?
    let peer: Endpoint
    let tunnel: InterceptedTunnel?
    /// Whether it is the inside of a tunnel in which nothing has been requested yet, so that it is
    /// unknown whether its client accepts the certificate.
    var isUntried: Bool
    var outerIngress: Ingress { tunnel?.ingress ?? ingress }
    /// What its client has open; `nil` on the administrative listener.
    let account: ClientAccount?

    var http: HTTP1Connection
    var opening: Opening
    var inputReadiness = InputReadiness.ready
    var isDriving = false
    var hasFinishedSending = false
    private var standing = ClientStanding()
    /// The memory of an unfinished head's buffer, or of an unfinished handshake.
    var unfinishedBytes = 0
    /// Since when its head is unfinished, or it lingers.
    var stalledSince: Int64 = 0
    private var lingering = Lingering()

    var input: Buffer?
    var output = OutputQueue()
    /// What it may still do in this turn.
    var budget = TurnBudget()
    var progress = SendProgress()
    var idleTime = IdleTime()
    var parser: RequestHeadParser
    var body: RequestBody?
    var exchange: Exchange?
    /// Chunk heads that wait in `output`.
    var chunkHeads: Buffer?
    var responseBytes: UInt64 = 0
    var contentBytes: UInt64 = 0
    /// `responseBytes` when the final head was queued, which it stays until some of the head is
    /// written; `nil` if something else was queued before it.
    var bytesBeforeHead: UInt64?

    /// The state of a request's body while it is read.
    final class RequestBody {
        var decoder: BodyDecoder
        /// Nothing is read until the exchange asks: it may still be waiting for a connection.
        var isPaused = true
        init(_ framing: BodyFraming) { decoder = BodyDecoder(framing) }
    }

    init(
        worker: Worker, transport: Transport, ingress: Ingress, peer: Endpoint,
        account: ClientAccount?, tunnel: InterceptedTunnel? = nil
    ) {
        self.worker = worker
        environment = worker.environment
        loop = worker.loop
        buffers = worker.loop.buffers
        self.transport = transport
        http = HTTP1Connection(.server, isOpen: !transport.isSecure)
        opening = transport.isSecure ? .handshaking : .done
        self.ingress = ingress
        self.peer = peer
        self.account = account
        self.tunnel = tunnel
        isUntried = tunnel != nil
        parser = RequestHeadParser(limits: worker.policy.headLimits)
    }

    var isServed: Bool {
        if standing.generation != worker.policy.generation {
            standing.determine(
                secureIngress?.session, through: outerIngress, from: peer,
                isCounted: ingress.isCounted, by: worker)
        }
        return standing.mayBeServed
    }

    package var refusal: ExchangeError {
        ClientStanding.refusal(of: peer, isCounted: ingress.isCounted, by: worker)
    }

    func start() {
        loop.setDeadline(self, after: timeouts.headMilliseconds)
        noteIdle()
        if http.phase == .opening {
            environment.hold(self, bytes: TLSServerConnection.handshakeBytes)
        }
    }

    func giveUp() {
        if http.phase == .opening { close() } else { refuse(.gateway(.headBuffersFull)) }
    }

    // MARK: Idleness

    var idleSince: Int64 = 0
    var queuedAt: Int64? {
        didSet { if queuedAt == nil { isInIdleOrder = false } }
    }
    var isInIdleOrder = false
    var share: ClientShareMember?
    /// Which of its permits are handed over to another connection when it is closed.
    private var handedOver: ClientPermits = []
    var isClosed: Bool { !http.isOpen }
    var isLingering: Bool { http.phase == .lingering }
    /// Whether nothing of a request has arrived: it may be closed to make room for another
    /// connection.
    var isIdle: Bool { http.phase == .idle && !hasUnusedInput || http.phase == .opening }
    var awaitsFirstRequest: Bool { responseBytes == 0 }
    var mayLoseRequest: Bool { true }
    /// Whether it waits for a request, or for the rest of its head.
    @inline(__always)
    var awaitsHead: Bool { http.phase == .idle || http.phase == .starting }
    private var hasUnusedInput: Bool { !(input?.isEmpty ?? true) }

    /// Records that nothing is expected of the client for now.
    func noteIdle() {
        idleSince = worker.idleClients.nextMoment()
        if !isInIdleOrder { worker.idleClients.insert(self) }
    }

    var timeouts: TimeoutsConfiguration { worker.policy.configuration.timeouts }

    var localEndpoint: Endpoint? { Sockets.localEndpoint(descriptor) }

    // MARK: Events

    override func ready(_ readiness: Readiness) {
        inputReadiness.note(readiness)
        if !readiness.isDisjoint(with: [.peerFinished, .hungUp, .failed]) {
            handle(.peerFinished)
        }
        if readiness.contains(.failed) || readiness.contains(.hungUp), http.isInExchange {
            return abandonExchange()
        }
        if readiness.mayWrite, !output.isEmpty { writable() }
        drive()
    }

    override func continueWork() {
        if !output.isEmpty { writable() }
        drive()
    }

    private func writable() {
        // The beginning of a tunnel is sent below its TLS.
        guard opening != .greeting, flush() else { return }
        exchange?.clientDrained()
    }

    override func deadlineReached() {
        switch http.phase {
        case .detached, .closed: return
        case .opening: handshakeFailed(nil)
        case .lingering: close()
        case .idle, .starting:
            if parser.isWithinHead {
                refuse(.gateway(.requestTimeout))
            } else {
                if isUntried { endedBeforeRequest() }
                close()
            }
        case .requesting, .awaiting, .answering, .responding, .answered, .finishing:
            if let next = nextCheck() {
                loop.setDeadline(self, after: next)
            } else {
                exchange?.clientTimedOut()
            }
        }
    }

    func drain() {
        guard http.isOpen else { return }
        handle(.drain(hasInput: hasUnusedInput))
    }

    /// Passes an event to the state machine and carries out its reaction.
    @inline(__always)
    func handle(_ event: HTTP1Connection.Event) {
        switch http.handle(event) {
        case .nothing: break
        case .reuse: awaitNextHead()
        case .close: close()
        case .reset:
            Sockets.resetOnClose(descriptor)
            close()
        case .linger: startLingering()
        case .abandon: abandonExchange()
        case .refuse: refuse(.request(.truncatedHead))
        // The second is a client's.
        case .illegal, .finishRequest: reportIllegal(event)
        }
    }

    /// A bug in the program: ends the connection.
    @inline(never)
    private func reportIllegal(_ event: HTTP1Connection.Event) {
        environment.reportIllegal(event, on: http)
        cutOff()
    }

    private func awaitNextHead() {
        loop.setDeadline(self, after: timeouts.idleMilliseconds)
        if input?.isEmpty ?? true { Buffer.release(&input) }
        noteIdle()
        drive()
    }

    // MARK: The end

    func abandonExchange() {
        output.discard()
        let exchange = self.exchange
        self.exchange = nil
        body = nil
        close()
        exchange?.clientGone()
    }

    func cutOff() { http.isInExchange ? abandonExchange() : close() }

    func linger() {
        finishSending()
        let transport =
            opening == .failed ? Transport(descriptor: descriptor) : self.transport
        switch lingering.discard(
            from: transport, &inputReadiness, by: buffers, spending: &budget)
        {
        case .waits: break
        case .turnIsOver: loop.requeue(self)
        case .isOver: close()
        }
    }

    private func startLingering() {
        input = nil
        body = nil
        stalledSince = loop.now
        lingering.begin(self, among: account == nil ? nil : worker)
        finishSending()
        loop.setDeadline(self, after: Lingering.milliseconds)
        inputReadiness = .ready
        // The edge for what is unread may have been consumed already.
        drive()
    }

    func makeRoom(handingOver permits: ClientPermits) {
        handedOver = permits
        if awaitsHead, !isIdle { refuse(.gateway(.connectionsFull)) }
        cutOff()
    }

    func close() {
        guard http.isOpen else { return }
        lingering.end(among: worker)
        // Only between responses: within one the client must notice the truncation.
        if awaitsHead, transport.isSecure { _ = transport.finishSending() }
        handle(.closed)
        environment.release(self)
        if let exchange = exchange.take() { environment.recycle(exchange) }
        input = nil
        output.discard()
        loop.remove(self)
        Descriptors.close(descriptor)
        worker.idleClients.removed(self)
        environment.clientLeft(peer)
        worker.clientLeft(account, handingOver: handedOver)
    }
}
