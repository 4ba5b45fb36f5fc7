import EventLoop
import HTTP2
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldTLS

/// A client's HTTP/2 connection (RFC 9113): reads frames and writes frames, and carries an exchange
/// for each stream.
///
/// What frames mean, and which may follow, is decided by `http` as a value; this class carries that
/// out. It begins where ``ClientConnection`` ends, once the handshake or the client's first bytes
/// say that it speaks HTTP/2.
///
/// Everything that is to be written in a turn is collected and written together: the responses of
/// many streams with one call. What streams have queued is moved to the connection's output only as
/// far as that has room, so that no more is queued for a slow client than one that is fast needs.
/// An idle connection holds no buffer and no stream.
final class HTTP2ClientConnection: EventHandler, InterceptedConnection {
    /// How far it has come.
    enum Phase {
        case open
        /// An error, or the end, has been announced to the client. What it still sends is discarded
        /// for a while, because a reset would destroy the announcement.
        case lingering
        case closed
    }

    let worker: Worker
    let environment: Environment
    let loop: EventLoop
    let buffers: BufferPool
    let transport: Transport
    var descriptor: Int32 { transport.descriptor }
    /// Its ingress, with the results of its TLS handshake.
    let ingress: Ingress
    let peer: Endpoint
    let tunnel: InterceptedTunnel?
    var isUntried: Bool
    var outerIngress: Ingress { tunnel?.ingress ?? ingress }
    let account: ClientAccount?

    var http: HTTP2Connection
    var decoder: HeaderDecoder
    var encoder: HeaderEncoder
    var parser: RequestHeadParser
    /// By the slots of `http`.
    var streams: ContiguousArray<HTTP2ClientStream?> = []
    var openStreams = 0
    /// Whether it has had streams since it was last idle.
    var isBusy = false
    /// For the next streams.
    var spares: ContiguousArray<HTTP2ClientStream> = []
    /// The maximum number of them.
    static let keptStreams = 100

    var phase = Phase.open
    var isDriving = false
    var isSending = false
    /// Whether `send` will be called at the end of the turn.
    var willSend = false
    /// Streams all of whose output has been taken, whose exchanges do not know it yet.
    var drained: [HTTP2ClientStream] = []
    /// Whether several of them are being told, who send in turn what follows.
    var isTelling = false
    var input: FrameInput
    /// The heads of requests, one after the other.
    var heads: Buffer?
    /// Where field blocks are decoded to, while frames are read.
    var scratch: Buffer?
    var output: FrameOutput
    /// What it may still do in this turn.
    var budget = TurnBudget()
    var progress = SendProgress()
    var idleTime = IdleTime()
    private var standing = ClientStanding()

    /// Whether the client has ended its direction.
    var hasEnded = false
    /// Whether the client's preface has arrived.
    private var isBegun = false
    /// When it is ended if it has no streams, in the loop's milliseconds.
    private var idleEnd: Int64 = 0
    /// Since when a frame or a field block has been incomplete, in the loop's milliseconds.
    var unfinishedSince: Int64?
    var unfinishedBytes = 0
    var stalledSince: Int64 = 0
    private var lingering = Lingering()
    var idleSince: Int64 = 0
    var queuedAt: Int64? {
        didSet { if queuedAt == nil { isInIdleOrder = false } }
    }
    var isInIdleOrder = false
    var share: ClientShareMember?
    private var handedOver: ClientPermits = []

    /// - Parameters:
    ///   - ingress: with the client's session, if it is over TLS.
    ///   - input: what has been read of the client's preface and what follows it.
    init(
        worker: Worker, transport: Transport, ingress: Ingress, peer: Endpoint,
        account: ClientAccount?, tunnel: InterceptedTunnel?, isUntried: Bool, input: Buffer?
    ) {
        self.worker = worker
        environment = worker.environment
        loop = worker.loop
        buffers = worker.loop.buffers
        self.transport = transport
        self.ingress = ingress
        self.peer = peer
        self.account = account
        self.tunnel = tunnel
        self.isUntried = isUntried
        self.input = FrameInput(input)
        let limits = worker.policy.headLimits
        parser = RequestHeadParser(limits: limits, carrier: .http2)
        http = HTTP2Connection(
            role: .server, limits: worker.http2Limits, now: worker.loop.now)
        decoder = HeaderDecoder()
        encoder = HeaderEncoder()
        output = FrameOutput(worker.loop.buffers)
    }

    var timeouts: TimeoutsConfiguration { worker.policy.configuration.timeouts }
    var isOpen: Bool { phase == .open }
    var isClosed: Bool { phase == .closed }
    var isLingering: Bool { phase == .lingering }
    var isServed: Bool {
        if standing.generation != worker.policy.generation {
            standing.determine(
                ingress.session, through: outerIngress, from: peer, isCounted: ingress.isCounted,
                by: worker)
        }
        return standing.mayBeServed
    }
    var refusal: ExchangeError {
        ClientStanding.refusal(of: peer, isCounted: ingress.isCounted, by: worker)
    }

    func start() {
        noteIdle()
        idleEnd = loop.now + timeouts.headMilliseconds
        setDeadline(atMost: http.limits.answerMilliseconds)
    }

    /// The client has sent its preface, and may take its time.
    func hasBegun() {
        guard !isBegun else { return }
        isBegun = true
        idleEnd = loop.now + timeouts.idleMilliseconds
        if openStreams == 0 { setDeadline(atMost: Self.restMilliseconds) }
    }

    // MARK: Idleness

    var isIdle: Bool { isOpen && openStreams == 0 && input.isEmpty }

    private func noteIdle() {
        idleSince = worker.idleClients.nextMoment()
        if !isInIdleOrder { worker.idleClients.insert(self) }
    }

    /// Called when its last stream has ended.
    func becameIdle() {
        isBusy = false
        heads = nil
        spares = []
        http.trim()
        noteIdle()
        idleEnd = loop.now + timeouts.idleMilliseconds
        setDeadline(atMost: Self.restMilliseconds)
    }

    /// After so long without streams, the memory of header compression is given back.
    private static let restMilliseconds: Int64 = 2000

    /// Gives back what would be needed again if there were streams every now and then.
    private func rest() {
        streams = []
        decoder.trim()
        encoder.forget()
    }

    /// Called with its first stream.
    func becameBusy() {
        guard !isBusy else { return }
        isBusy = true
        idleTime.note(at: loop.now)
        setDeadline(atMost: http.limits.answerMilliseconds)
    }

    // MARK: Events

    override func ready(_ readiness: Readiness) {
        guard !isClosed else { return }
        input.note(readiness)
        if readiness.contains(.failed) || readiness.contains(.hungUp) { return close() }
        if isLingering { return linger() }
        if readiness.mayWrite, !output.isEmpty { send() }
        drive()
    }

    override func continueWork() {
        if isLingering { return linger() }
        if !output.isEmpty { send() }
        drive()
    }

    override func deadlineReached() {
        guard isOpen else { return close() }
        let now = loop.now
        // A client that takes what was sent before needs no time to answer.
        let taken = progress.look(Sockets.delivery(descriptor), at: now)
        if let taken { http.heardOf(now: taken) }
        guard var next = http.check(now: now) else {
            countFailure()
            return end()
        }
        if openStreams > 0 {
            checkStreams(at: now, taken: taken)
        } else if !accepts(at: now, taken: taken, lookingAgainAt: &next) {
            close()
        } else if now >= idleEnd || isLate(at: now) {
            if isUntried { endedUntried() }
            http.endUnused()
            end()
        }
        guard isOpen else { return }
        send()
        if isOpen, openStreams == 0 { rest() }
        if isOpen { setDeadline(atMost: next - now) }
    }

    /// When to look after it next.
    /// - Parameter milliseconds: what the protocol asks for.
    func setDeadline(atMost milliseconds: Int64) {
        var time = milliseconds
        if openStreams > 0 {
            time = min(time, IdleTime.firstLook(of: timeouts.bodyMilliseconds))
        } else {
            time = min(time, idleEnd - loop.now)
        }
        if let unfinishedSince {
            time = min(time, unfinishedSince + timeouts.headMilliseconds - loop.now)
        }
        loop.setDeadline(self, after: max(1, time))
    }

    /// Whether a frame, or a field block, takes too long.
    private func isLate(at now: Int64) -> Bool {
        unfinishedSince.map { now >= $0 + timeouts.headMilliseconds } ?? false
    }

    /// Whether the client accepts what it was sent, though no stream is open any more.
    /// - Parameters:
    ///   - taken: when it has last acknowledged anything, if that is news.
    ///   - next: when to look again.
    private func accepts(
        at now: Int64, taken: Int64?, lookingAgainAt next: inout Int64
    ) -> Bool {
        let milliseconds = timeouts.bodyMilliseconds
        let waits = !output.isEmpty || Sockets.unsentBytes(descriptor).map { $0 > 0 } ?? false
        if let time = waits ? taken : now { idleTime.note(at: time) }
        if waits { next = min(next, now + IdleTime.firstLook(of: milliseconds)) }
        return idleTime.remaining(of: milliseconds, at: now) != nil
    }

    /// Ends streams whose clients neither send nor accept anything, and a connection that accepts
    /// nothing.
    /// - Parameter taken: when the client has last acknowledged anything, if that is news.
    private func checkStreams(at now: Int64, taken: Int64?) {
        if isLate(at: now) { return end() }
        if let time = output.isEmpty ? now : taken { idleTime.note(at: time) }
        guard idleTime.remaining(of: timeouts.bodyMilliseconds, at: now) != nil else {
            return close()
        }
        // Whoever is told may end, and others with it.
        for index in streams.indices {
            guard isOpen, index < streams.count, let stream = streams[index],
                stream.isOverdue(at: now)
            else { continue }
            if let exchange = stream.exchange, stream.held == nil {
                exchange.clientTimedOut()
            } else {
                fail(stream, .cancel)
            }
        }
    }

    func certificateIssued(_ result: Result<TLSServerIdentity, IssuanceError>) {
        assertionFailure("a handshake that is over waits for no certificate")
    }

    // MARK: The end

    func drain() {
        guard isOpen else { return }
        guard openStreams > 0 else {
            http.endUnused()
            return end()
        }
        http.drain(now: loop.now)
        sendSoon()
    }

    func giveUp() { end() }

    func makeRoom(handingOver permits: ClientPermits) {
        handedOver = permits
        http.endUnused()
        queueControl()
        _ = transport.flush(&output.queue, on: loop, spending: &budget)
        close()
    }

    /// Ends all streams, writes what the client is still to be told, and closes.
    func end() {
        guard isOpen else { return }
        abandonStreams()
        guard isOpen else { return }
        queueControl()
        budget.renew(loop)
        guard case .drained = transport.flush(&output.queue, on: loop, spending: &budget) else {
            return close()
        }
        startLingering()
    }

    private func startLingering() {
        phase = .lingering
        input.discard()
        heads = nil
        stalledSince = loop.now
        lingering.begin(self, among: account == nil ? nil : worker)
        _ = transport.finishSending()
        if transport.isSecure { Sockets.shutdownWrite(descriptor) }
        loop.setDeadline(self, after: Lingering.milliseconds)
        input.recheck()
        linger()
    }

    private func linger() {
        budget.renew(loop)
        switch lingering.discard(
            from: transport, &input.readiness, by: buffers, spending: &budget)
        {
        case .waits: break
        case .turnIsOver: loop.requeue(self)
        case .isOver: close()
        }
    }

    /// The client of every stream is gone.
    func abandonStreams() {
        for index in streams.indices {
            if let stream = streams[index] { abandon(stream) }
        }
    }

    /// Tells the client which streams will not be completed, and which was the last one. It has no
    /// time left to read that before the connection is closed: only what has arrived by now is read
    /// first, because input that is unread would reset the connection.
    func cutOff() {
        guard isOpen else { return close() }
        for stream in streams { if let stream { fail(stream, .cancel) } }
        guard isOpen else { return }
        http.endUnused()
        queueControl()
        budget.renew(loop)
        if case .drained = transport.flush(&output.queue, on: loop, spending: &budget) {
            _ = transport.finishSending()
            input.recheck()
            _ = lingering.discard(
                from: transport, &input.readiness, by: buffers, spending: &budget)
        }
        close()
    }

    func close() {
        guard !isClosed else { return }
        if isOpen { abandonStreams() }
        guard !isClosed else { return }
        reportTheRest()
        phase = .closed
        lingering.end(among: worker)
        environment.release(self)
        streams = []
        spares = []
        input.discard()
        heads = nil
        output.discard()
        loop.remove(self)
        Descriptors.close(descriptor)
        worker.idleClients.removed(self)
        environment.clientLeft(peer)
        worker.clientLeft(account, handingOver: handedOver)
    }
}
