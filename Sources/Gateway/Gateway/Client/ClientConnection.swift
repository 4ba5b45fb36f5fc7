import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldTLS

/// A client's HTTP/1 connection: reads request heads and bodies, writes responses, one exchange at
/// a time; pipelined requests wait in the input.
///
///     ┌──────────┐ TLS ┌─────────────┐
///     │ greeting │ ──► │ handshaking │ ── failure, time-out ──► closed
///     └──────────┘     └─────────────┘
///
///     handshaking (greeting: in an intercepted tunnel)
///        │ done; without TLS it begins here
///        ▼     request head              response and request body complete
///     ┌──────┐ ────────────► ┌──────────┐ ─────────────────────────────────► (head)
///     │ head │               │ exchange │ ── CONNECT, 101 ──► detached
///     └──────┘               └──────────┘ ── must not go on ─► lingering ──► closed
///        │ bad head: error reply through an exchange ──────────────┘
///        │ end of stream, idle time-out ──► closed
///
/// An idle connection holds no buffer and no exchange.
final class ClientConnection: EventHandler, IdleOrdered, QueueMember, UnfinishedInput {
    /// Room that the start line and what `sendHead` writes take up, besides the reason phrase.
    static let reservedBytes = 160
    /// The number of bytes that a closing connection still reads, so that a reset does not destroy
    /// the response that is on its way to the client.
    private static let lingerBytes = 1 << 20
    private static let lingerMilliseconds: Int64 = 2000

    enum State { case greeting, handshaking, head, exchange, lingering, closed }

    let worker: Worker
    let environment: Environment
    let loop: EventLoop
    let buffers: BufferPool
    /// Carries all its bytes.
    let transport: Transport
    /// For operations on the socket itself.
    var descriptor: Int32 { transport.descriptor }
    let ingress: Ingress
    /// The ingress with the results of its TLS handshake; `nil` for clear text, and before. It is
    /// separate because a property that never changes costs clear text less.
    var secureIngress: Ingress?
    /// Whether TLS has failed to begin, and what the client still sends is only to be discarded.
    var isRaw = false
    let peer: Endpoint
    /// The intercepted tunnel that it is the inside of, or `nil` for most.
    let tunnel: InterceptedTunnel?
    /// Whether it is the inside of a tunnel in which nothing has been requested yet, so that it is
    /// unknown whether its client accepts the certificate.
    var isUntried: Bool
    /// The ingress from outside: that of its tunnel, if it is inside one.
    var outerIngress: Ingress { tunnel?.ingress ?? ingress }
    /// What its client has open; `nil` on the administrative listener.
    let account: ClientAccount?

    var state: State
    var mayHaveInput = true
    /// Whether TLS must send something before it can continue reading.
    var readWantsWrite = false
    var peerFinished = false
    var isDriving = false
    /// Whether the response is delimited by the end of the connection.
    var endsWithConnection = false
    var isChunked = false
    var keepsAlive = true
    var hasFinishedSending = false
    var lingered = 0
    private var servedGeneration: UInt64 = 0
    private var mayBeServed = false
    /// The memory of an unfinished head's buffer, or of an unfinished handshake.
    var unfinishedBytes = 0
    /// Since when its head is unfinished, or it lingers, and its neighbours among such connections.
    var stalledSince: Int64 = 0
    var nextInQueue: ClientConnection?
    var previousInQueue: ClientConnection?
    /// The deadline of an incomplete head runs: it counts from the head's first byte.
    var headIsTimed = false

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
        state = transport.isSecure ? .handshaking : .head
        self.ingress = ingress
        self.peer = peer
        self.account = account
        self.tunnel = tunnel
        isUntried = tunnel != nil
        parser = RequestHeadParser(limits: worker.policy.headLimits)
    }

    /// Whether the client is one of `access.clients`, and proved to be someone its listener serves;
    /// determined once per configuration.
    var isServed: Bool {
        if servedGeneration != worker.policy.generation {
            servedGeneration = worker.policy.generation
            mayBeServed = !ingress.isCounted || hasServedAddress && hasServedSubject
        }
        return mayBeServed
    }

    private var hasServedAddress: Bool {
        worker.policy.configuration.access.serves(client: peer.address)
    }

    private var hasServedSubject: Bool {
        guard let former = outerIngress.tls else { return true }
        let tls = worker.policy.clientTLS(ofListener: ingress.name) ?? former
        return tls.configuration.serves(subject: secureIngress?.session?.subject)
    }

    package var refusal: ExchangeError {
        hasServedAddress ? .clientSubjectNotAllowed : .clientNotAllowed
    }

    /// Begins to serve; the connection must be registered.
    func start() {
        loop.setDeadline(self, after: timeouts.headMilliseconds)
        noteIdle()
        if state == .handshaking || state == .greeting {
            environment.hold(self, bytes: TLSServerConnection.handshakeBytes)
        }
    }

    func giveUp() {
        if state == .handshaking || state == .greeting { close() } else { refuse(.headBuffersFull) }
    }

    // MARK: Idleness

    var idleSince: Int64 = 0
    var queuedAt: Int64? {
        didSet { if queuedAt == nil { isInIdleOrder = false } }
    }
    /// Whether it is in the orders of idle connections, or need not be.
    var isInIdleOrder = false
    /// Its entry among its client's connections here; `nil` for the administration's.
    var share: ClientShareMember?
    /// Which of its permits are handed over to another connection when it is closed.
    private var handedOver: ClientPermits = []
    var isClosed: Bool { state == .closed }
    /// Whether nothing of a request has arrived: it may be closed to make room for another
    /// connection.
    var isIdle: Bool {
        state == .head && !parser.isWithinHead && input?.isEmpty ?? true
            || state == .handshaking || state == .greeting
    }

    /// Records that nothing is expected of the client for now.
    func noteIdle() {
        idleSince = worker.idleClients.nextMoment()
        if !isInIdleOrder { worker.idleClients.insert(self) }
    }

    var timeouts: TimeoutsConfiguration { worker.policy.configuration.timeouts }

    var localAddress: IPAddress? { Sockets.localEndpoint(descriptor)?.address }

    // MARK: Events

    override func ready(_ readiness: Readiness) {
        if readiness.mayRead || readWantsWrite && readiness.mayWrite { mayHaveInput = true }
        if !readiness.isDisjoint(with: [.peerFinished, .hungUp, .failed]) { peerFinished = true }
        if readiness.contains(.failed) || readiness.contains(.hungUp), state == .exchange {
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
        guard state != .greeting, flush() else { return }
        exchange?.clientDrained()
    }

    override func deadlineReached() {
        switch state {
        case .closed: return
        case .greeting, .handshaking: handshakeFailed(nil)
        case .lingering: close()
        case .head:
            if parser.isWithinHead {
                refuse(.requestTimeout)
            } else {
                if isUntried { endedUntried() }
                close()
            }
        case .exchange:
            if let next = nextCheck() {
                loop.setDeadline(self, after: next)
            } else {
                exchange?.clientTimedOut()
            }
        }
    }

    /// Asks it to end: at once if idle, otherwise after the current exchange.
    func drain() {
        keepsAlive = false
        if isIdle { close() }
    }

    // MARK: The end

    func abandonExchange() {
        output.discard()
        keepsAlive = false
        let exchange = self.exchange
        self.exchange = nil
        body = nil
        close()
        exchange?.clientGone()
    }

    /// Ends at once, whatever is in progress.
    func cutOff() { state == .exchange ? abandonExchange() : close() }

    func linger() {
        finishSending()
        let scratch = buffers.takeSmall()
        let transport = isRaw ? Transport(descriptor: descriptor) : self.transport
        while mayHaveInput, lingered < Self.lingerBytes {
            switch transport.read(into: scratch.writable, spending: &budget) {
            case .bytes(let count, _): lingered += count
            case .wouldBlock(let wantsWrite):
                mayHaveInput = false
                readWantsWrite = wantsWrite
                return
            case .turnIsOver: return loop.requeue(self)
            case .endOfStream, .truncated, .failed: return close()
            }
        }
        if lingered >= Self.lingerBytes { close() }
    }

    func startLingering() {
        input = nil
        state = .lingering
        if account != nil {
            stalledSince = loop.now
            worker.lingeringClients.append(self)
        }
        finishSending()
        loop.setDeadline(self, after: Self.lingerMilliseconds)
        mayHaveInput = true
        // The edge for what is unread may have been consumed already.
        drive()
    }

    /// Ends at once for another connection, which takes over its permits. A request that was
    /// arriving receives the reason, as far as the socket accepts it.
    func makeRoom(handingOver permits: ClientPermits) {
        handedOver = permits
        if state == .head, !isIdle { refuse(.connectionsFull) }
        cutOff()
    }

    func close() {
        guard state != .closed else { return }
        if state == .lingering, account != nil { worker.lingeringClients.remove(self) }
        // Only between responses: within one the client must notice the truncation.
        if state == .head, transport.isSecure { _ = transport.finishSending() }
        state = .closed
        environment.release(self)
        if let exchange = exchange.take() { environment.recycle(exchange) }
        input = nil
        output.discard()
        loop.remove(self)
        Descriptors.close(descriptor)
        worker.idleClients.removed(self)
        worker.clientLeft(account, handingOver: handedOver)
    }
}
