import Clocks
import EventLoop
import HTTP2
import HTTPCore
import PinfoldConfiguration
import PinfoldTLS

/// A connection to an origin that speaks HTTP/2 (RFC 9113): carries as many exchanges at a time as
/// its server allows.
///
/// What frames mean, and which may follow, is decided by `http` as a value; this class carries that
/// out. It begins where the handshake has ended (`UpstreamConnection`), or with the first byte if
/// its server is known to speak HTTP/2 in clear text.
///
/// The server may send as much as the windows allow. What a consumer does not accept waits in its
/// stream, and only the stream's window counts it: a slow consumer stops no other one. Nothing more
/// is queued for a slow server than one that is fast needs.
final class HTTP2UpstreamConnection: EventHandler, PooledConnection {
    enum Phase {
        case open
        /// It carries no more streams, and is closed when those that it has have ended.
        case retired
        case closed
    }

    let environment: Environment
    let pool: UpstreamPool
    let origin: Origin
    let endpoint: Endpoint
    let transport: Transport
    let client: IPNetwork?
    let trustEnds: Int64?
    let timeline: ConnectionTimeline
    var permits: Permits = [.origin, .total]
    var idleSince: Int64 = 0
    var queuedAt: Int64?

    var http: HTTP2Connection
    var decoder = HeaderDecoder()
    var encoder = HeaderEncoder()
    var parser: ResponseHeadParser
    /// Those that have a number, by the slots of `http`.
    var streams: ContiguousArray<HTTP2UpstreamStream?> = []
    /// All that consumers have.
    var openStreams = 0
    /// Those of them that have no number yet.
    var reservedStreams = 0
    private(set) var phase = Phase.open
    /// How many streams there were.
    private(set) var uses = 0
    /// Whether a request was answered.
    var hasCarriedRequest = false
    /// Whether a consumer gave back its stream unused: the connection is kept for who comes next.
    var wasGivenBack = false
    /// Whether the server's first SETTINGS are awaited, which say how many streams it allows.
    private(set) var isSettling = true
    /// Streams that wait for them with their requests.
    private var waiting: [HTTP2UpstreamStream] = []

    var isDriving = false
    /// Whether answers to the server must be written before more is read.
    var controlIsFull = false
    var isSending = false
    /// Whether `send` will be called at the end of the turn.
    var willSend = false
    /// Whether the pool will be told at the end of the turn that streams have ended.
    private var willTellPool = false
    /// Streams all of whose output has been taken, whose consumers do not know it yet.
    var drained: [HTTP2UpstreamStream] = []
    /// Whether several of them are being told, who send in turn what follows.
    var isTelling = false
    /// Streams whose heads have been passed on, but not flushed.
    var unflushed: [HTTP2UpstreamStream] = []
    var input = FrameInput()
    /// Where field blocks are decoded to, while frames are read.
    var scratch: Buffer?
    var output: FrameOutput
    /// How much of the output has been counted, in bytes.
    private var countedBytes: UInt64 = 0
    /// What it may still do in this turn.
    var budget = TurnBudget()
    private var progress = SendProgress()
    /// When the server last accepted anything, while output waits for it.
    var idleTime = IdleTime()
    /// When it is closed if it is idle, in the loop's milliseconds.
    private var idleEnd = Int64.max
    /// When it is looked after next, in the loop's milliseconds.
    private var nextLook = Int64.max
    /// Requests that were given up, less those that were answered.
    private var cancels = 0
    private static let greatestCancels = 50
    /// Nothing can be written any more.
    private var writingFailed = false
    /// Whether the server is given time to read why it ends.
    private var lingers = false
    /// The server's certificate, once it has been requested.
    private var knownCertificate: ServerCertificate?

    /// A stream's window, and that of the connection, in bytes. Content that waits counts towards
    /// the former only, so it may not grow as far as a client's.
    private static let greatestStreamWindow: Int32 = 1 << 20

    init(
        pool: UpstreamPool, origin: Origin, transport: Transport, endpoint: Endpoint,
        client: IPNetwork?, timeline: ConnectionTimeline, trustEnds: Int64?
    ) {
        self.pool = pool
        environment = pool.environment
        self.origin = origin
        self.transport = transport
        self.endpoint = endpoint
        self.client = client
        self.timeline = timeline
        self.trustEnds = trustEnds
        let limits = origin.policy.headLimits
        output = FrameOutput(environment.loop.buffers)
        parser = ResponseHeadParser(limits: limits, carrier: .http2)
        http = HTTP2Connection(
            role: .client,
            limits: HTTP2Limits(
                streams: origin.policy.configuration.limits.upstreamStreams, resets: 1000,
                greatestStreamWindow: Self.greatestStreamWindow,
                headerListBytes: limits.headBytes, takesExtendedConnect: false),
            now: environment.loop.now)
        origin.settling += 1
    }

    // MARK: As the pool sees it

    var isShared: Bool { true }
    var isIdle: Bool { phase == .open && openStreams == 0 }
    var isClosed: Bool { phase == .closed }
    var isOpen: Bool { phase != .closed }
    var hasRoom: Bool { phase == .open && http.roomForStreams > reservedStreams }

    func open(for consumer: any UpstreamConsumer) -> any UpstreamStream {
        let stream = HTTP2UpstreamStream(self, consumer)
        if openStreams == 0 { environment.loop.setQuiet(self, false) }
        openStreams += 1
        reservedStreams += 1
        uses += 1
        idleEnd = .max
        return stream
    }

    /// The preface is sent, and with it what the first stream has.
    func begin() {
        sendSoon()
        look(at: environment.loop.now + http.limits.answerMilliseconds)
    }

    /// A server's SETTINGS come unasked.
    func hasUnsolicitedData() -> Bool { false }

    /// Takes what has arrived first: it may have been the end.
    var isQuiet: Bool {
        input.recheck()
        drive()
        return hasRoom
    }

    /// Nothing is left unread: see `isQuiet`.
    func recheck() {}
    /// The server was reviewed before.
    func reviewed(_ answer: ReviewAnswer) {}

    func close(ifIdleFor milliseconds: Int64) {
        idleEnd = environment.loop.now + milliseconds
        http.trim()
        input.rest()
        output.trim()
        look(at: idleEnd)
    }

    /// The server has said how many streams it allows.
    func settled() {
        guard isSettling, http.isEstablished else { return }
        leaveSettling()
        for stream in takeWaiting() { stream.connectionSettled() }
        guard isOpen else { return }
        pool.settled(self, streams: min(http.limits.streams, Int(http.peer.maxConcurrentStreams)))
    }

    /// Tells a stream when it is known what the server takes: at once, or with its first SETTINGS.
    func tellWhenSettled(_ stream: HTTP2UpstreamStream) {
        isSettling ? waiting.append(stream) : stream.connectionSettled()
    }

    private func takeWaiting() -> [HTTP2UpstreamStream] {
        var taken: [HTTP2UpstreamStream] = []
        swap(&taken, &waiting)
        return taken
    }

    private func leaveSettling() {
        guard isSettling else { return }
        isSettling = false
        origin.settling -= 1
    }

    func retire() {
        guard phase == .open else { return }
        phase = .retired
        if openStreams == 0 { close() }
    }

    /// A stream has ended, in whatever way.
    func released(_ stream: HTTP2UpstreamStream, answered: Bool) {
        openStreams -= 1
        guard isOpen else { return }
        if let ref = stream.ref {
            http.released(ref)
            streams[Int(ref.slot)] = nil
        } else {
            reservedStreams -= 1
            waiting.removeAll { $0 === stream }
        }
        if answered {
            hasCarriedRequest = true
            cancels = max(0, cancels - 1)
        }
        sendSoon()
        tellPool()
    }

    /// Tells the pool that there may be room, or no stream any more. Later, because it may be
    /// handing out this connection's streams right now.
    func tellPool() {
        guard isOpen, !willTellPool else { return }
        willTellPool = true
        environment.loop.afterTurn { [self] in
            willTellPool = false
            if phase == .open, cancels >= Self.greatestCancels { pool.withdraw(self) }
            if phase == .open, !http.isEnding { return pool.streamEnded(self) }
            if openStreams == 0 { close() }
        }
    }

    /// A consumer has given up a request. A server may end a connection on which that happens much:
    /// others shall not suffer for one of them.
    func cancelled() { cancels += 1 }

    /// Content has been taken, or will not be.
    func consumed(_ count: Int, _ ref: StreamRef?) {
        if let ref { http.consumed(ref, count) }
    }

    var serverCertificate: ServerCertificate? {
        if let knownCertificate { return knownCertificate }
        guard origin.tls != nil else { return nil }
        let der = (transport.tls as? TLSClientConnection)?.certificateDER
        knownCertificate = der.flatMap { ServerCertificate(der: $0) }
        return knownCertificate
    }

    // MARK: Events

    override func ready(_ readiness: Readiness) {
        guard isOpen else { return }
        input.note(readiness)
        if readiness.mayWrite, !output.isEmpty { send() }
        drive()
    }

    override func continueWork() {
        guard isOpen else { return }
        if !output.isEmpty { send() }
        drive()
        // It goes on reading if its turn was over.
        if writingFailed, !budget.isSpent { fail(.server(.upstreamClosed)) }
    }

    /// Counts what was queued since the last time.
    func noteWritten() {
        environment.metrics.add(.upstreamBytesSent, output.totalBytes - countedBytes)
        countedBytes = output.totalBytes
    }

    /// The server does not read any more. What it has said before it closed comes first.
    func failedWriting() {
        writingFailed = true
        output.discard()
        input.recheck()
        environment.loop.requeue(self)
        retire()
    }

    /// Looks after the connection at this time, or earlier.
    func look(at time: Int64) {
        guard time < nextLook, isOpen else { return }
        nextLook = time
        environment.loop.setDeadline(self, after: max(1, time - environment.loop.now))
    }

    override func deadlineReached() {
        guard isOpen else { return }
        nextLook = .max
        let now = environment.loop.now
        if isIdle, now >= idleEnd { return pool.discardIdle(self, .idleTimeout) }
        let taken = progress.look(Sockets.delivery(transport.descriptor), at: now)
        if let taken { http.heardOf(now: taken) }
        guard let next = http.check(now: now) else { return failed(.unanswered) }
        let isSending = !output.isEmpty || unsentBytes > 0
        if let time = isSending ? taken : now { idleTime.note(at: time) }
        if idleTime.remaining(of: origin.timeouts.bodyMilliseconds, at: now) == nil {
            return fail(.server(.upstreamSendTimeout))
        }
        checkStreams(at: now)
        guard isOpen else { return }
        send()
        guard isOpen else { return }
        look(at: next)
        if openStreams == 0 { look(at: idleEnd) }
        if !output.isEmpty {
            look(at: now + IdleTime.firstLook(of: origin.timeouts.bodyMilliseconds))
        }
        for stream in streams { if let stream { look(at: stream.due) } }
    }

    /// Fails streams whose server takes too long.
    private func checkStreams(at now: Int64) {
        // Whoever is told may end others.
        for index in streams.indices {
            guard isOpen, index < streams.count, let stream = streams[index], now >= stream.due
            else { continue }
            let accepted = output.totalBytes - UInt64(output.pendingBytes + unsentBytes)
            // What the server has not accepted yet is the connection's affair.
            stream.isBeingSent(accepted: accepted) ? stream.postpone() : stream.timedOut()
        }
    }

    /// How much of what was written the server has not accepted yet, in bytes.
    private var unsentBytes: Int {
        min(
            Sockets.unsentBytes(transport.descriptor) ?? 0,
            Int(output.totalBytes) - output.pendingBytes)
    }

    // MARK: The end

    /// The connection is of no use any more: its streams fail.
    func fail(_ fault: ExchangeError) {
        guard isOpen else { return }
        let failed = streams.compactMap { $0 } + takeWaiting()
        streams = []
        close()
        for stream in failed { stream.lostConnection(fault) }
    }

    /// The server has broken the protocol, or does not answer.
    func failed(_ reason: ConnectionReason) {
        guard isOpen else { return }
        if reason.isServersFault { origin.http2Failed(reason, at: endpoint, in: environment) }
        lingers = true
        fail(reason == .unanswered ? .server(.firstByteTimeout) : .upstreamHTTP2(reason))
    }

    /// Gives up what could not be begun.
    func abandon() {
        leaveSettling()
        phase = .closed
    }

    func close() {
        guard isOpen else { return }
        if environment.traces { traceClosed() }
        http.endUnused()
        queueControl()
        budget.renew(environment.loop)
        let flush = transport.flush(&output.queue, on: environment.loop, spending: &budget)
        noteWritten()
        leaveSettling()
        phase = .closed
        let left = streams.compactMap { $0 }
        streams = []
        waiting = []
        drained = []
        unflushed = []
        input.discard()
        scratch = nil
        output.discard()
        if lingers, case .drained = flush {
            environment.loop.remove(self, keepingOpen: transport.descriptor)
            LingeringServer.take(transport, of: pool)
        } else {
            environment.loop.remove(self)
            transport.close()
        }
        pool.removed(self)
        for stream in left { stream.cutTunnel() }
    }
}

extension ConnectionReason {
    /// Whether it means that the server does not speak HTTP/2 as it should.
    fileprivate var isServersFault: Bool {
        switch self {
        case .unanswered, .internalError: false
        default: true
        }
    }
}
