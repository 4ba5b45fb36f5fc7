import Clocks
import EventLoop
import HTTPCore
import PinfoldTLS

/// One connection to an origin, speaking HTTP/1.1 for one consumer after another.
///
/// Whose turn it is, and whether it may be used again, is decided by `http` as a value; this class
/// carries that out. During an exchange, the request is sent through `output`, and the response is
/// read as the consumer accepts it: a paused connection reads nothing and holds at most one buffer.
final class UpstreamConnection: EventHandler, PooledConnection {
    package var isIdle: Bool { http.phase == .idle }
    package var isClosed: Bool { !http.isOpen }
    /// Room for a request's head in addition to its fields, method, path and host.
    static let reservedBytes = 256
    /// How the response reaches the consumer.
    enum Delivery {
        case flowing
        /// The head was passed to the consumer, and nothing has been flushed since.
        case headIsUnflushed
        /// The consumer accepts no more content for now.
        case paused
    }
    /// The review of the server (`UpstreamConnection+Review`).
    enum Review {
        /// There has been none.
        case due
        /// It is in progress, and can be cancelled.
        case underWay(cancel: @Sendable () -> Void)
        case over
    }
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
    var http: HTTP1Connection
    var consumer: (any UpstreamConsumer)?

    var output = OutputQueue()
    var input: Buffer?
    var parser: ResponseHeadParser
    var decoder = BodyDecoder(.none)
    var context = ResponseContext(method: .get)
    var delivery = Delivery.flowing
    var inputReadiness = InputReadiness.empty
    var isDriving = false
    /// What it may still do in this turn of the loop.
    var budget = TurnBudget()
    var wantsLargeBuffer = false
    var progress = SendProgress()
    var idleTime = IdleTime()
    var waits: WaitConditions = []
    package var isEventStream: Bool { waits.contains(.eventStream) }
    /// The permits that it holds.
    var permits: Permits = [.origin, .total]
    /// How many exchanges it carried before the current one.
    var uses = 0
    /// Whether a request was sent on it and answered.
    var hasCarriedRequest: Bool { http.hasCarriedExchange }
    /// The client for whose request or CONNECT it was made; `nil` if for no client, or for one that
    /// has left.
    var client: IPNetwork?
    /// Whose connection it is, if its PROXY header has told that.
    var privateUse: PrivateUse?
    var handshakeStarted: Int64 = 0
    var review = Review.due
    /// When the review began.
    var reviewStarted: Int64 = 0
    /// How it was made.
    package let timeline: ConnectionTimeline
    /// When the verdict on the server, or on the proxy that carries the connection, expires, in
    /// seconds since 1970; `nil` if never.
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
        timeline: ConnectionTimeline, tls: TLSClientConnection?, isOpen: Bool = false
    ) {
        self.pool = pool
        environment = pool.environment
        self.endpoint = endpoint
        self.origin = origin
        self.timeline = timeline
        transport = Transport(descriptor: descriptor, tls: tls)
        http = HTTP1Connection(.client, isOpen: tls == nil || isOpen)
        if isOpen { trustEnds = tls?.trustEnds }
        parser = ResponseHeadParser(limits: origin.policy.headLimits)
    }

    // MARK: Establishing

    /// Begins the TLS handshake; `UpstreamPool.handshakeEnded` is called at its end.
    func beginHandshake(timeoutMilliseconds: Int64) {
        handshakeStarted = Clock.monotonicMicroseconds()
        timeline.enter(.tls, at: handshakeStarted)
        environment.loop.setDeadline(self, after: timeoutMilliseconds)
        if environment.traces, let tls = transport.tls as? TLSClientConnection {
            traceHandshakeStart(tls)
        }
        continueHandshake()
    }

    func continueHandshake() {
        if case .underWay = review { return }
        guard let tls = transport.tls as? TLSClientConnection else { return }
        switch tls.handshake() {
        case .wantRead, .wantWrite: return
        case .wantIdentity:
            guard !beginReview(of: tls, asksForIdentity: true) else { return }
            tls.answer(nil)
            continueHandshake()
        case .turnIsOver: environment.loop.requeue(self)
        case .complete:
            origin.portIsProven = true
            environment.metrics.countHandshake(with: tls)
            let duration = UInt64(max(0, Clock.monotonicMicroseconds() - handshakeStarted))
            environment.metrics.record(.tlsHandshake, microseconds: duration)
            environment.countTrusted(EvaluatedServer(origin, at: endpoint, for: client), tls)
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
        switch tls.carrier {
        case .http2: return continueInHTTP2(trustEnds: tls.trustEnds)
        case .http1:
            guard !origin.http2.isRequired else {
                close()
                return pool.handshakeEnded(self, .server(.upstreamHTTP2NotSpoken))
            }
        }
        environment.loop.setDeadline(self, after: nil)
        handle(.opened)
        trustEnds = tls.trustEnds
        pool.handshakeEnded(self, nil)
    }

    /// The server has selected HTTP/2: another object carries that on.
    private func continueInHTTP2(trustEnds: Int64?) {
        handle(.closed)
        review = .over
        environment.loop.remove(self, keepingOpen: transport.descriptor)
        let next = HTTP2UpstreamConnection(
            pool: pool, origin: origin, transport: transport, endpoint: endpoint, client: client,
            timeline: timeline, trustEnds: trustEnds)
        do throws(Errno) {
            try environment.loop.add(next, descriptor: transport.descriptor)
        } catch {
            Descriptors.close(transport.descriptor)
            next.abandon()
            return pool.handshakeEnded(self, .connectFailed(error))
        }
        next.begin()
        pool.handshakeEnded(next, nil)
    }

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

    var isShared: Bool { false }
    /// One stream at a time: in HTTP/1.1 a request follows the previous response (RFC 9112 §9.3).
    var hasRoom: Bool { isIdle }

    func open(for consumer: any UpstreamConsumer) -> any UpstreamStream {
        self.consumer = consumer
        handle(.headBegan)
        delivery = .flowing
        waits = []
        wantsLargeBuffer = false
        environment.loop.setDeadline(self, after: nil)
        environment.loop.setQuiet(self, false)
        return self
    }

    /// What is left when a message is complete.
    var rest: HTTP1Connection.Rest {
        HTTP1Connection.Rest(isFlushed: output.isEmpty, hasInput: !(input?.isEmpty ?? true))
    }

    // MARK: Events

    /// Passes an event to the state machine and carries out its reaction.
    /// - Parameter fault: why the exchange is given up, if it is.
    @inline(__always)
    func handle(
        _ event: @autoclosure () -> HTTP1Connection.Event,
        orFail fault: @autoclosure () -> ExchangeError = .server(.upstreamClosed)
    ) {
        perform(http.handle(event()), after: event(), orFail: fault())
    }

    @inline(__always)
    func perform(
        _ reaction: HTTP1Connection.Reaction,
        after event: @autoclosure () -> HTTP1Connection.Event,
        orFail fault: @autoclosure () -> ExchangeError = .server(.upstreamClosed)
    ) {
        switch reaction {
        case .nothing, .finishRequest: break
        case .reuse: becameIdle()
        case .close: close()
        case .abandon: fail(fault())
        // The last three are a server's.
        case .illegal, .reset, .linger, .refuse: reportIllegal(event())
        }
    }

    /// A bug in the program: ends the connection and its exchange.
    @inline(never)
    func reportIllegal(_ event: HTTP1Connection.Event) {
        environment.reportIllegal(event, on: http)
        fail(.server(.upstreamClosed))
    }

    /// The exchange has left the connection as the next one needs it.
    private func becameIdle() {
        // Edges seen during the exchange are lost: unread input must be checked now. The same
        // applies to an event that has not been handled yet, if a client's event led here.
        if readyTurn != environment.loop.turnNumber { inputReadiness = .ready }
        pool.returned(self, mayHaveInput: inputReadiness == .ready)
    }

    package override func ready(_ readiness: Readiness) {
        readyTurn = environment.loop.turnNumber
        guard http.isOpen else { return }
        if !readiness.isDisjoint(with: [.peerFinished, .hungUp, .failed]) {
            handle(.peerFinished)
        }
        switch http.phase {
        case .detached, .closed: return
        case .opening: continueHandshake()
        case .idle:
            if readiness.mayRead { checkIdle() }
        case .starting, .requesting, .awaiting, .answering, .responding, .answered, .finishing,
            .lingering:
            inputReadiness.note(readiness)
            if readiness.mayWrite { continueSending() }
            if http.isInExchange { drive() }
        }
    }

    package override func continueWork() {
        switch http.phase {
        case .idle, .detached, .closed: return
        case .opening: continueHandshake()
        case .starting, .requesting, .awaiting, .answering, .responding, .answered, .finishing,
            .lingering:
            continueSending()
            if http.isInExchange { drive() }
        }
    }

    private func continueSending() {
        guard !output.isEmpty, flush(), http.isInExchange else { return }
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
        switch http.phase {
        case .detached, .closed: return
        case .idle: pool.discardIdle(self, .idleTimeout)
        case .opening:
            environment.metrics.add(.tlsHandshakesTimeout)
            if environment.traces { traceHandshakeFailure(.tlsTimeout) }
            close()
            pool.handshakeEnded(self, .tlsTimeout)
        case .starting, .requesting, .awaiting, .answering, .responding, .answered, .finishing,
            .lingering:
            // The client is the slow side; its own deadline applies.
            if delivery == .paused, output.isEmpty { return }
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
            of: http.responsePart == .head ? times.firstByteMilliseconds : streamMilliseconds,
            at: now)
    }

    /// Whether output waits for the server, here or in the kernel.
    private var isSending: Bool {
        !output.isEmpty
            || http.responsePart == .head && (Sockets.unsentBytes(transport.descriptor) ?? 0) > 0
    }

    /// Which timeout was exceeded while waiting for the server.
    private var timeoutFault: ExchangeError {
        switch http.responsePart {
        case .head:
            .server(
                waits.contains(.sending) && isSending ? .upstreamSendTimeout : .firstByteTimeout)
        case .content: .server(isEventStream ? .eventStreamTimeout : .upstreamBodyTimeout)
        case .ended: .server(.upstreamSendTimeout)
        }
    }

    func close(ifIdleFor milliseconds: Int64) {
        environment.loop.setDeadline(self, after: milliseconds)
    }

    func retire() { close() }

    func close() {
        guard http.isOpen else { return }
        let wasEstablished = http.phase != .opening
        if environment.traces { traceEnd() }
        handle(.closed)
        let review = review
        self.review = .over
        if case .underWay(let cancel) = review { cancel() }
        // The consumer refers to the connection, too.
        consumer = nil
        input = nil
        output.discard()
        environment.loop.remove(self)
        Descriptors.close(transport.descriptor)
        if wasEstablished { pool.removed(self) }
    }
}
