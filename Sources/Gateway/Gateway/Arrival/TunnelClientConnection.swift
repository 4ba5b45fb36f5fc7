import CacheStore
import EventLoop
import HTTPCore
import PinfoldEngine

/// A client's connection on which a tunnel is asked for in another way than by HTTP, until the
/// tunnel begins.
///
/// What is asked for becomes a CONNECT, of which an exchange like any other decides, in the same
/// order by the same rules; how it is asked for and answered is for subclasses.
///
///     listening ──► proving ──► listening ──► connecting ──► handed over to a relay
///         └────────────┴───────────────────────────┴───► answering ──► lingering ──► closed
class TunnelClientConnection: OpeningConnection, DownstreamStream {
    enum Phase {
        /// What the client has to say is awaited.
        case listening
        /// An exchange finds out whether the client's password is right.
        case proving
        /// An exchange decides about the tunnel.
        case connecting
        /// The last answer is being sent.
        case answering
        /// The client has been told all, and what it still sends is discarded.
        case lingering
        case closed
    }

    final let environment: Environment
    final let loop: EventLoop
    final let transport: Transport

    final var phase = Phase.listening
    final var output = OutputQueue()
    final var exchange: Exchange?
    /// The status of the exchange's answer.
    final var status: UInt16 = 0
    final var budget = TurnBudget()
    final var inputReadiness = InputReadiness.ready
    /// Whether the client has said all that it will say.
    final private(set) var peerHasFinished = false
    private var sentBytesTotal: UInt64 = 0
    private var isDriving = false
    private var standing = ClientStanding()
    private var lingering = Lingering()

    final override var isLingering: Bool { phase == .lingering }
    final override var awaitsFirstRequest: Bool { phase == .listening }

    init(
        worker: Worker, transport: Transport, ingress: Ingress, peer: Endpoint,
        account: ClientAccount?
    ) {
        environment = worker.environment
        loop = worker.loop
        self.transport = transport
        super.init(
            worker: worker, descriptor: transport.descriptor, ingress: ingress, peer: peer,
            account: account)
    }

    // MARK: For subclasses

    /// Takes one step while the client is listened to; returns `false` if the next one needs an
    /// event.
    func listen() -> Bool { false }

    /// The client has not said everything in time.
    func listeningTimedOut() { close() }

    /// Queues the answer to what the exchange has decided. The phase becomes `answering` if it is
    /// the last one.
    func answer() { phase = .answering }

    /// Listens on after an exchange; returns `false` if there is nothing more to say.
    func goesOn() -> Bool { false }

    /// Whether the client is waited for after its last answer.
    var lingersAfterAnswer: Bool { true }

    /// What the relay of the tunnel begins with: what the client has sent already, and what it is
    /// sent first.
    func beginsRelay() -> (leftover: Buffer?, pending: OutputQueue) { (nil, OutputQueue()) }

    // MARK: Events

    final override func ready(_ readiness: Readiness) {
        inputReadiness.note(readiness)
        if readiness.contains(.failed) || readiness.contains(.hungUp) {
            if exchange != nil { return abandonExchange() }
            if phase == .listening { return close() }
        }
        if readiness.contains(.peerFinished) { peerHasFinished = true }
        continueWork()
    }

    final override func continueWork() {
        if !output.isEmpty, flush() {
            if let exchange { exchange.clientDrained() } else { everythingIsSent() }
        }
        drive()
    }

    final override func deadlineReached() {
        switch phase {
        case .listening: listeningTimedOut()
        case .answering, .lingering:
            if let exchange { exchange.clientTimedOut() } else { close() }
        case .proving, .connecting, .closed: break
        }
    }

    /// Goes on as far as that is possible without an event.
    final func drive() {
        guard !isDriving else { return }
        isDriving = true
        defer { isDriving = false }
        budget.renew(loop)
        while !budget.isSpent {
            switch phase {
            case .listening: guard listen() else { return }
            case .lingering: return linger()
            case .proving, .connecting, .answering, .closed: return
            }
        }
        if !isClosed { loop.requeue(self) }
    }

    // MARK: Exchanges

    /// Whether the client may still be served.
    private var isServed: Bool {
        if standing.generation != worker.policy.generation {
            standing.determine(nil, through: ingress, from: peer, isCounted: true, by: worker)
        }
        return standing.mayBeServed
    }

    /// Begins an exchange that decides about a tunnel.
    final func connect(to authority: String, at ingress: Ingress) {
        let head = "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n"
        begin(.connecting, head, at: ingress)
    }

    /// Begins an exchange with a head.
    /// - Parameter change: changes the head, once it is parsed.
    final func begin(
        _ phase: Phase, _ head: String, at ingress: Ingress,
        change: (Buffer, Exchange) -> Void = { _, _ in }
    ) {
        environment.release(self)
        loop.setDeadline(self, after: nil)
        self.phase = phase
        budget.spend(.exchange)
        let exchange = environment.takeExchange()
        self.exchange = exchange
        let buffer = loop.buffers.holding(Array(head.utf8))
        do throws(WireError) {
            var parser = RequestHeadParser(limits: HeadLimits())
            guard
                case .complete = try parser.parse(
                    buffer.readable.octets, into: &exchange.request)
            else { throw .truncatedHead }
        } catch {
            return exchange.refuse(
                .request(error), seen: buffer, client: self, ingress: ingress, peer: peer)
        }
        change(buffer, exchange)
        // Behind the head there is nothing: what the client has sent is kept elsewhere.
        guard
            exchange.begin(
                client: self, ingress: ingress, peer: peer, buffer: buffer, headStart: 0,
                hasBody: false, isServed: isServed)
        else { return }
        exchange.route(at: ingress)
    }

    private func abandonExchange() {
        let exchange = exchange.take()
        close()
        exchange?.clientGone()
    }

    // MARK: The end

    final override func drain() { if isIdle { close() } }

    final override func cutOff() { exchange == nil ? close() : abandonExchange() }

    /// Called when the last answer has been sent.
    final func everythingIsSent() {
        if phase == .answering { startLingering() }
    }

    /// Waits for the client's end.
    func startLingering() {
        guard !isClosed else { return }
        phase = .lingering
        stalledSince = loop.now
        lingering.begin(self, among: account == nil ? nil : worker)
        _ = transport.finishSending()
        loop.setDeadline(self, after: Lingering.milliseconds)
        inputReadiness = .ready
        drive()
    }

    private func linger() {
        switch lingering.discard(
            from: transport, &inputReadiness, by: loop.buffers, spending: &budget)
        {
        case .waits: break
        case .turnIsOver: loop.requeue(self)
        case .isOver: close()
        }
    }

    override func leave(closing: Bool) {
        phase = .closed
        lingering.end(among: worker)
        output.discard()
        super.leave(closing: closing)
    }

    // MARK: DownstreamStream
    // Of what exchanges answer only their decision is used: heads and content are not sent.

    final var refusal: ExchangeError {
        ClientStanding.refusal(of: peer, isCounted: true, by: worker)
    }
    final var localEndpoint: Endpoint? { Sockets.localEndpoint(descriptor) }
    final var sentBytes: (total: UInt64, content: UInt64) { (sentBytesTotal, 0) }
    final var isFlushed: Bool { output.isEmpty }
    final var takesInterimResponses: Bool { false }

    final func makeHead(status: UInt16, phrase: Span<UInt8>?, room: Int) -> HeadDraft {
        self.status = status
        return HeadDraft(loop.buffers.take(atLeast: room + 64))
    }

    final func sendInterim(_ head: consuming HeadDraft) { _ = head.finished() }

    final func sendHead(_ head: consuming HeadDraft, framing: ContentFraming, closing: Bool) {
        _ = head.finished()
    }

    final func withdrawHead() -> Bool { false }
    final func send(_ content: UnsafeRawBufferPointer, owner: AnyObject) {}
    final func sendFile(_ file: MemoryFile, offset: Int, count: Int) {}
    final func resumeContent() {}
    final func pauseContent() {}
    final func expectPauses() { Sockets.probePeer(descriptor) }

    final func finish(trailers: TrailerSection?) -> Bool {
        if phase == .proving || phase == .connecting { answer() }
        if phase == .answering { loop.setDeadline(self, after: Lingering.milliseconds) }
        return flush()
    }

    /// Queues bytes for the client.
    final func queue(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        let buffer = loop.buffers.holding(bytes)
        output.append(buffer.readable, owner: buffer)
    }

    final func flush() -> Bool {
        guard !isClosed else { return true }
        let before = output.pendingBytes
        let result = transport.flush(&output, on: loop, spending: &budget)
        sentBytesTotal += UInt64(before - output.pendingBytes)
        switch result {
        case .drained: return true
        case .blocked: break
        case .turnIsOver: loop.requeue(self)
        case .failed:
            output.discard()
            loop.afterTurn { [self] in cutOff() }
        }
        return false
    }

    final func exchangeEnded(cut: Bool) {
        if let exchange = exchange.take() { environment.recycle(consume exchange) }
        switch phase {
        case .proving, .connecting: if cut || !goesOn() { close() }
        case .answering: lingersAfterAnswer ? startLingering() : close()
        case .listening, .lingering, .closed: break
        }
    }

    final func handOver(
        after head: consuming HeadDraft, isUpgrade: Bool
    ) -> DownstreamHandover? {
        _ = head.finished()
        guard phase == .connecting else { return nil }
        let (leftover, pending) = beginsRelay()
        exchange = nil
        leave(closing: false)
        return DownstreamHandover(
            transport: transport, leftover: leftover, pending: pending,
            closed: { [worker, account] _ in worker.clientLeft(account) })
    }
}
