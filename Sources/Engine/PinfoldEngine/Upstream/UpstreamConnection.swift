import Clocks
import EventLoop
import HTTPCore
import PinfoldTLS

/// One connection to an origin, speaking HTTP/1.1 for one consumer after another.
///
///     handshaking ──► idle ◄──► active ──► closed
///          └────────────┴─────────────────────┘
///
/// While active, the request is sent through `output`, and the response is read as the consumer
/// accepts it: a paused connection reads nothing and holds at most one buffer.
final class UpstreamConnection: EventHandler, IdleOrdered {
    enum State { case handshaking, idle, active, closed }
    package var isIdle: Bool { state == .idle }
    package var isClosed: Bool { state == .closed }
    /// Room for a request's head in addition to its fields, method, path and host.
    static let reservedBytes = 256
    enum Part { case head, body, ended }
    /// What is special about waiting for the server in the current exchange.
    struct WaitConditions: OptionSet {
        let rawValue: UInt8
        /// Checks whether the server accepts the request: for content, or a large head.
        static let sending = WaitConditions(rawValue: 1)
        /// The response is of type `text/event-stream`: long pauses are expected.
        static let eventStream = WaitConditions(rawValue: 2)
    }

    let environment: Environment
    let pool: UpstreamPool
    let origin: Origin
    /// The address it is connected to.
    package let endpoint: Endpoint
    let transport: Transport
    var state: State
    var consumer: (any UpstreamConsumer)?

    var output = OutputQueue()
    var input: Buffer?
    var parser: ResponseHeadParser
    var decoder = BodyDecoder(.none)
    var part = Part.head
    var context = ResponseContext(method: .get)
    var keepAlive = true
    var requestEnded = true
    /// Whether the request's content may never come. Applies as long as none has.
    var mayHoldContentBack = false
    var isChunked = false
    var paused = false
    /// Whether TLS must write before it can read more.
    var readWantsWrite = false
    /// Whether the head was passed to the consumer and nothing has been flushed since.
    var headIsUnflushed = false
    var mayHaveInput = false
    /// Whether an edge showed that the peer has finished: a short read then proves nothing.
    var peerFinished = false
    var isDriving = false
    /// What it may still do in this turn of the loop.
    var budget = TurnBudget()
    var wantsLargeBuffer = false
    var progress = SendProgress()
    var idleTime = IdleTime()
    var waits: WaitConditions = []
    package var isEventStream: Bool { waits.contains(.eventStream) }
    /// Whether some byte of the current response was received.
    var responseStarted = false
    /// Whether an interim response has just ended, which an empty line may follow.
    var emptyLineMayFollow = false
    /// Whether the server ends lines of heads in bare line feeds: its connection is not reused.
    var sendsBareLines = false
    /// The permits that it holds.
    var permits: Permits = [.origin, .total]
    /// How many exchanges it carried before the current one.
    var uses = 0
    /// Whether a request was sent on it and answered.
    var hasCarriedRequest = false
    /// The client for whose request or CONNECT it was made; `nil` if for no client, or for one that
    /// has left.
    var client: IPNetwork?
    var handshakeStarted: Int64 = 0
    /// Cancels the review of the server; `nil` if there is none in progress.
    var endReview: (@Sendable () -> Void)?
    /// Whether the server has been reviewed or is being reviewed, and since when.
    var isReviewed = false
    var reviewStarted: Int64 = 0
    package var connectionTimes: ConnectionTimes? { times }
    /// How long it took to establish.
    package internal(set) var times = ConnectionTimes()
    /// When the verdict on the server expires, in seconds since 1970; `nil` if never.
    private(set) var trustEnds: Int64?
    /// The server's certificate, once it has been requested.
    var knownCertificate: ServerCertificate?
    package var idleSince: Int64 = 0
    package var queuedAt: Int64?
    /// The turn of the loop in which its readiness was last reported.
    var readyTurn: UInt64 = 0

    /// - Parameter isOpen: whether the handshake is over, because the session is with a proxy and
    ///   clear text is sent to the server inside it.
    init(
        pool: UpstreamPool, origin: Origin, descriptor: Int32, endpoint: Endpoint,
        tls: TLSClientConnection?, isOpen: Bool = false
    ) {
        self.pool = pool
        environment = pool.environment
        self.endpoint = endpoint
        self.origin = origin
        transport = Transport(descriptor: descriptor, tls: tls)
        state = tls == nil || isOpen ? .idle : .handshaking
        parser = ResponseHeadParser(limits: origin.policy.headLimits)
    }

    // MARK: Establishing

    /// Begins the TLS handshake; `UpstreamPool.handshakeEnded` is called at its end.
    func beginHandshake(timeoutMilliseconds: Int64) {
        handshakeStarted = Clock.monotonicMicroseconds()
        environment.loop.setDeadline(self, after: timeoutMilliseconds)
        if environment.traces, let tls = transport.tls as? TLSClientConnection {
            traceHandshakeStart(tls)
        }
        continueHandshake()
    }

    func continueHandshake() {
        guard endReview == nil, let tls = transport.tls as? TLSClientConnection else { return }
        switch tls.handshake() {
        case .wantRead, .wantWrite: return
        case .wantIdentity:
            guard !beginReview(of: tls, asksForIdentity: true) else { return }
            tls.answer(nil)
            continueHandshake()
        case .turnIsOver: environment.loop.requeue(self)
        case .complete:
            origin.portIsProven = true
            environment.metrics.add(tls.isResumed ? .tlsHandshakesResumed : .tlsHandshakesFull)
            let duration = UInt64(max(0, Clock.monotonicMicroseconds() - handshakeStarted))
            times.handshake = Int64(duration)
            environment.metrics.record(.tlsHandshake, microseconds: duration)
            environment.countTrusted(EvaluatedServer(origin, at: endpoint), tls)
            if environment.debugs { environment.debugTrusted(origin, endpoint) }
            if environment.traces { traceHandshakeEnd(tls, microseconds: duration) }
            if !beginReview(of: tls) { established(tls) }
        case .failed(let failure):
            let error = origin.portIsProven ? failure.onProvenPort : failure
            environment.countHandshakeFailure(error, EvaluatedServer(origin, at: endpoint), tls)
            if environment.traces { traceHandshakeFailure(.tlsFailed(error)) }
            close()
            pool.handshakeEnded(self, .tlsFailed(error))
        }
    }

    /// The connection is ready for requests.
    func established(_ tls: TLSClientConnection) {
        environment.loop.setDeadline(self, after: nil)
        state = .idle
        trustEnds = tls.facts?.expires
        pool.handshakeEnded(self, nil)
    }

    /// Whether the server has sent anything on a connection that has just been established.
    ///
    /// This also processes TLS's own messages: session tickets often follow the handshake.
    func hasUnsolicitedData() -> Bool {
        guard transport.isSecure else { return transport.hasUnreadBytes }
        let scratch = environment.loop.buffers.takeSmall()
        budget.renew(environment.loop)
        switch transport.read(into: scratch.writable, spending: &budget) {
        case .bytes, .turnIsOver: return true
        case .wouldBlock, .endOfStream, .truncated, .failed: return false
        }
    }

    // MARK: One exchange

    /// The number of concurrent streams: in HTTP/1.1 a request follows the previous response (RFC
    /// 9112 §9.3).
    var capacity: Int { 1 }
    private var streamCount: Int { state == .active ? 1 : 0 }
    /// Whether it is established and another stream can be opened on it.
    var hasRoom: Bool {
        (state == .idle || state == .active) && streamCount < capacity
    }

    /// Opens a stream for a consumer, which has it until the response has ended or one side gives
    /// up.
    func open(for consumer: any UpstreamConsumer) -> any UpstreamStream {
        self.consumer = consumer
        state = .active
        part = .head
        responseStarted = false
        emptyLineMayFollow = false
        waits = []
        requestEnded = false
        paused = false
        keepAlive = true
        wantsLargeBuffer = false
        headIsUnflushed = false
        environment.loop.setDeadline(self, after: nil)
        environment.loop.setQuiet(self, false)
        return self
    }

    // MARK: Events

    package override func ready(_ readiness: Readiness) {
        readyTurn = environment.loop.turnNumber
        if !readiness.isDisjoint(with: [.peerFinished, .hungUp, .failed]) { peerFinished = true }
        switch state {
        case .closed: return
        case .handshaking: continueHandshake()
        case .idle:
            if readiness.mayRead { checkIdle() }
        case .active:
            if readiness.mayRead || readWantsWrite && readiness.mayWrite { mayHaveInput = true }
            if readiness.mayWrite { continueSending() }
            if state == .active { drive() }
        }
    }

    package override func continueWork() {
        switch state {
        case .closed, .idle: return
        case .handshaking: continueHandshake()
        case .active:
            continueSending()
            if state == .active { drive() }
        }
    }

    private func continueSending() {
        guard !output.isEmpty, flush(), state == .active else { return }
        consumer?.upstreamDrained()
    }

    /// Handles input between exchanges: anything but TLS's own messages ends the connection.
    func checkIdle() {
        if transport.isSecure {
            let scratch = environment.loop.buffers.takeSmall()
            budget.renew(environment.loop)
            if case .wouldBlock = transport.read(into: scratch.writable, spending: &budget) {
                return
            }
        }
        pool.discardIdle(self)
    }

    package override func deadlineReached() {
        switch state {
        case .closed: return
        case .idle: pool.discardIdle(self, .idleTimeout)
        case .handshaking:
            environment.metrics.add(.tlsHandshakesTimeout)
            if environment.traces { traceHandshakeFailure(.tlsTimeout) }
            close()
            pool.handshakeEnded(self, .tlsTimeout)
        case .active:
            // The client is the slow side; its own deadline applies.
            if paused, output.isEmpty { return }
            if let next = nextCheck() {
                environment.loop.setDeadline(self, after: next)
            } else {
                fail(timeoutFault)
            }
        }
    }

    /// After how long to check again whether the server accepts the request or responds; `nil` if
    /// its time is up.
    private func nextCheck() -> Int64? {
        guard waits.contains(.sending) else { return nil }
        let now = environment.loop.now
        let times = origin.timeouts
        if let time = progress.look(Sockets.delivery(transport.descriptor), at: now) {
            idleTime.note(at: time)
        }
        if isSending { return idleTime.nextCheck(of: streamMilliseconds, at: now) }
        // The time for the first byte begins when the end of the request was accepted.
        return idleTime.remaining(
            of: part == .head ? times.firstByteMilliseconds : streamMilliseconds, at: now)
    }

    /// Whether output waits for the server, here or in the kernel.
    private var isSending: Bool {
        !output.isEmpty
            || part == .head && (Sockets.unsentBytes(transport.descriptor) ?? 0) > 0
    }

    /// Which timeout was exceeded while waiting for the server.
    private var timeoutFault: ExchangeError {
        switch part {
        case .head:
            waits.contains(.sending) && isSending ? .upstreamSendTimeout : .firstByteTimeout
        case .body: isEventStream ? .eventStreamTimeout : .upstreamBodyTimeout
        case .ended: .upstreamSendTimeout
        }
    }

    func close() {
        guard state != .closed else { return }
        let wasEstablished = state != .handshaking
        if environment.traces { traceEnd() }
        state = .closed
        endReview.take()?()
        // The consumer refers to the connection, too.
        consumer = nil
        input = nil
        output.discard()
        environment.loop.remove(self)
        Descriptors.close(transport.descriptor)
        if wasEstablished { pool.removed(self) }
    }
}
