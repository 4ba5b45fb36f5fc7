import CachePolicy
import Clocks
import EventLoop
import HTTPCore
import Logging
import PinfoldMetrics
import PinfoldTLS

/// What exchanges and connections to servers run on: one thread's loop, clock, counters, origins
/// and pool, and the policy in force. Nothing of it is touched by another thread; they write to
/// ``mailbox``.
///
/// It needs no listener: whoever has streams of requests begins exchanges on it
/// (``takeExchange()``), and turns the loop.
///
/// What it owns refers to it with plain references that never change: the compiler then knows that
/// the environment lives while they do, and counts no references on the way through it (7 % of the
/// instructions of a hit). ``close()`` breaks the cycles.
package final class Environment {
    package let index: Int
    package let loop: EventLoop
    package let mailbox: Mailbox<EngineMessage>
    package let metrics: WorkerMetrics
    package let shared: SharedEnvironment
    private let activity: ActivityMonitor
    package private(set) var policy: PolicySnapshot
    package let origins = OriginTable()
    /// Where exchanges get their streams to servers.
    package private(set) var upstreams: any UpstreamSource
    /// Where connections to servers begin.
    let sockets: any SocketSource
    /// Who makes room for connections, and is told of exchanges if it wishes.
    package var host: (any EnvironmentHost)?
    /// `host.exchangeEnded` is called.
    package var reportsExchanges = false
    /// Exchanges began or ended since this was asked.
    private var hadActivity = false
    /// Answers requests that are for the gateway itself.
    package var site: (any LocalSite)?
    var flights = FlightTable<Exchange>()
    /// Connections with a head that has not arrived whole, or a handshake that is not done.
    var unfinished = ShareTable<ObjectIdentifier, any UnfinishedInput>(limit: .max)
    /// Whether decisions are logged, and events of connections.
    package private(set) var debugs = false
    package private(set) var traces = false
    let pipes = PipePool()
    /// Where the key of the request that is looked up lies, until the next one is.
    let keyMemory = UnsafeMutableRawBufferPointer.allocate(
        byteCount: CacheKey.maximumBytes, alignment: 8)
    /// Nothing new is begun, and connections are not kept.
    package var isDraining = false
    private var freeExchanges: [Exchange] = []
    private var relays: [ObjectIdentifier: Relay] = [:]
    private var receiver: MailboxReceiver<EngineMessage>?
    private var readersAreToWake = false
    private var exchangeCounter: UInt64 = 0
    private let exchangePrefix: UInt64
    private var wallOffset: Int64 = 0
    private var wallReadAt = Int64.min
    /// The last reading of the monotonic clock, in microseconds, and the turn it was taken in.
    private var reading: (turn: UInt64, microseconds: Int64) = (.max, 0)

    /// Exchange objects kept for the next request.
    private static let keptExchanges = 64

    /// - Parameters:
    ///   - index: of this environment's mailbox among the shared ones.
    ///   - upstreams: where streams to servers come from; nil: a pool of connections.
    ///   - sockets: where connections to servers begin; nil: the system's.
    package init(
        index: Int, loop: EventLoop, policy: PolicySnapshot, shared: SharedEnvironment,
        metrics: WorkerMetrics, upstreams: (any UpstreamSource)? = nil,
        sockets: (any SocketSource)? = nil
    ) {
        self.index = index
        self.loop = loop
        self.policy = policy
        self.shared = shared
        activity = shared.activity
        self.metrics = metrics
        self.sockets = sockets ?? SystemSockets()
        mailbox = shared.mailboxes[index]
        debugs = shared.logger.logLevel <= .debug
        traces = shared.logger.logLevel <= .trace
        exchangePrefix = (UInt64.random(in: 0..<(1 << 20)) << 4 | UInt64(index & 15)) << 40
        self.upstreams = upstreams ?? NoUpstreams()
        if upstreams == nil { self.upstreams = UpstreamPool(environment: self) }
    }

    deinit { keyMemory.deallocate() }

    /// Begins to receive what other threads write to the mailbox.
    package func start() throws(Errno) {
        let receiver = MailboxReceiver(mailbox) { [unowned self] in handle($0) }
        try loop.add(receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
        self.receiver = receiver
    }

    /// The pool, unless streams come from elsewhere.
    var pool: UpstreamPool? { upstreams as? UpstreamPool }

    private func handle(_ message: EngineMessage) {
        switch message {
        case .resolved(let token, let result):
            (loop.handler(for: token) as? ConnectOperation)?.resolved(result)
        case .resolvedLater(let token, let answer):
            (loop.handler(for: token) as? ConnectOperation)?.arrived(answer)
        case .loaded(let token, let result):
            (loop.handler(for: token) as? Exchange)?.loaded(result)
        case .chunk(let token, let result):
            (loop.handler(for: token) as? Exchange)?.chunkArrived(result)
        case .storesDrained(let token):
            (loop.handler(for: token) as? Exchange)?.storeWaitEnded(hasDrained: true)
        case .reviewed(let token, let answer):
            (loop.handler(for: token) as? UpstreamConnection)?.reviewed(answer)
        case .transformed(let token, let outcome): deliver(outcome, to: token)
        case .permitGranted(let limit): pool?.permitGranted(limit)
        case .connectionWanted(let request): pool?.connectionWanted(request)
        case .connectionAnswered(let request): pool?.connectionAnswered(request)
        }
    }

    /// What came of a message's content is told to who waits for it, if anybody still does.
    func deliver(_ outcome: TransformationOutcome, to token: Token) {
        switch outcome {
        case .request(let result): (loop.handler(for: token) as? Exchange)?.translated(result)
        case .response(let result):
            let handler = loop.handler(for: token)
            if let exchange = handler as? Exchange { return exchange.translatedStored(result) }
            (handler as? ResponseFilter)?.worked(result)
        }
    }

    // MARK: Time

    /// Seconds since 1970; the clock is read about once a second and follows the monotonic one.
    package var wallSeconds: Int64 { wallMilliseconds / 1000 }

    /// Milliseconds since 1970.
    package var wallMilliseconds: Int64 {
        let now = loop.monotonicNow
        if wallReadAt == .min || now &- wallReadAt >= 1000 {
            wallReadAt = now
            wallOffset = loop.time.wallMilliseconds() - now
        }
        return now + wallOffset
    }

    /// The monotonic clock in microseconds, as last read in this turn, or read now if it has not
    /// been: taken as the start of a request that arrives in this turn, which it precedes by the
    /// length of the turn at most.
    @inline(__always)
    func turnMicroseconds() -> Int64 {
        reading.turn == loop.turnNumber ? reading.microseconds : readClock()
    }

    /// Microseconds of the monotonic clock.
    @inline(__always)
    func readClock() -> Int64 {
        let now = Clock.monotonicMicroseconds()
        reading = (loop.turnNumber, now)
        return now
    }

    /// Wakes the store's readers once for all loads of this turn.
    func wakeReadersAfterTurn() {
        guard !readersAreToWake else { return }
        readersAreToWake = true
        loop.afterTurn { [self] in
            readersAreToWake = false
            shared.store?.wakeReaders()
        }
    }

    // MARK: Exchanges

    package func takeExchange() -> Exchange {
        freeExchanges.popLast() ?? Exchange(environment: self)
    }

    package func recycle(_ exchange: consuming Exchange) {
        exchange.reset()
        if freeExchanges.count < Self.keptExchanges { freeExchanges.append(exchange) }
    }

    func nextExchangeID() -> UInt64 {
        exchangeCounter &+= 1
        return exchangePrefix | exchangeCounter & (1 << 40 - 1)
    }

    /// An exchange of a client began.
    func exchangeBegan() {
        metrics.adjust(.exchangesInFlight, by: 1)
        activity.begin()
        hadActivity = true
    }

    /// An exchange of a client is over.
    func exchangeEnded(_ exchange: Exchange, _ record: ExchangeRecord) {
        if reportsExchanges { host?.exchangeEnded(exchange, record) }
        metrics.adjust(.exchangesInFlight, by: -1)
        activity.end()
        hadActivity = true
    }

    /// Whether exchanges began or ended since the last call.
    package func takeActivity() -> Bool {
        defer { hadActivity = false }
        return hadActivity
    }

    func register(_ relay: Relay) { relays[ObjectIdentifier(relay)] = relay }
    func unregister(_ relay: Relay) { relays[ObjectIdentifier(relay)] = nil }

    // MARK: The policy, and the end

    /// Another policy is in force: connections that it would not have made are not used again.
    package func adopt(_ policy: PolicySnapshot) {
        let goesOn = policy.trustGeneration == self.policy.trustGeneration
        self.policy = policy
        debugs = shared.logger.logLevel <= .debug
        traces = shared.logger.logLevel <= .trace
        if goesOn {
            origins.adopt(policy)
        } else {
            for origin in origins.removeAll() { pool?.retire(origin) }
            for relay in Array(relays.values) { relay.meet(policy) }
        }
        pool?.limitsChanged(origins.all)
    }

    /// Ends what is under way. Client streams must be gone.
    package func closeConnections() {
        for relay in relays.values { relay.close(broken: false) }
        // The loop may serve other environments, too.
        for case let part as any EnvironmentPart in loop.handlers where part.environment === self {
            part.closeWithEnvironment()
        }
        for origin in origins.removeAll() { pool?.closeIdle(origin, .draining) }
    }

    /// Lets go of what refers to the environment.
    package func close() {
        freeExchanges = []
        flights = FlightTable()
        unfinished.removeAll { _, _ in true }
        pool?.close()
        // The loop may go on, and others may still write.
        if let receiver { loop.remove(receiver, keepingOpen: receiver.descriptor) }
        receiver = nil
        host = nil
        site = nil
        upstreams = NoUpstreams()
    }
}

/// What an environment has under way on its loop, and ends with it.
protocol EnvironmentPart: EventHandler {
    var environment: Environment { get }
    /// Nobody is told any more.
    func closeWithEnvironment()
}

extension UpstreamConnection: EnvironmentPart {
    func closeWithEnvironment() { close() }
}

extension ConnectOperation: EnvironmentPart {
    func closeWithEnvironment() { cancel() }
}

extension ProxyTunnel: EnvironmentPart {
    func closeWithEnvironment() { cancel() }
}

extension UndecidedTunnel: EnvironmentPart {
    func closeWithEnvironment() { close(nil) }
}

extension InspectedTunnel: EnvironmentPart {
    func closeWithEnvironment() { close(nil) }
}

/// Where exchanges get streams to servers.
package protocol UpstreamSource: AnyObject {
    /// Gets a stream for the consumer: `upstreamReady` or `upstreamFailed` is called, at once or
    /// later. `fresh`: only on a connection that carried no request before.
    func acquire(_ origin: Origin, for consumer: any UpstreamConsumer, fresh: Bool)
    /// The consumer no longer waits.
    func abandon(_ origin: Origin, _ consumer: any UpstreamConsumer)
    /// The limit of connections to an origin.
    func limit(of origin: Origin) -> SharedLimit
}

/// In place of a pool that is not made yet, or not there any more.
private final class NoUpstreams: UpstreamSource {
    func acquire(_ origin: Origin, for consumer: any UpstreamConsumer, fresh: Bool) {
        consumer.upstreamFailed(StreamError(.superseded))
    }

    func abandon(_ origin: Origin, _ consumer: any UpstreamConsumer) {}

    func limit(of origin: Origin) -> SharedLimit { SharedLimit() }
}

/// Who is told of exchanges, and makes room for their connections.
package protocol EnvironmentHost: AnyObject {
    /// An exchange of a client is over, and counted. Its values hold during the call, except for
    /// `client`, which it has left; byte counts and duration are in the record.
    func exchangeEnded(_ exchange: Exchange, _ record: ExchangeRecord)
    /// Descriptors have run out. True: some are free again.
    func freeDescriptors() -> Bool
    /// A tunnel ends here: its client's connection is now the host's, to speak TLS on in the name
    /// of the tunnel's authority.
    func takeOver(_ tunnel: InterceptedTunnel, _ handover: DownstreamHandover)
}

/// Answers requests that are for the gateway itself, not for a server.
package protocol LocalSite: AnyObject {
    /// - Parameters:
    ///   - bytes: the head's.
    ///   - address: the gateway's, which the client is connected to.
    func response(
        to request: borrowing RequestHead, in bytes: Span<UInt8>, at address: IPAddress?
    ) -> LocalResponse
}

/// A response of a ``LocalSite``.
package struct LocalResponse {
    package var status: UInt16
    /// Name and value of each field, Content-Type among them.
    package var fields: [(name: String, value: String)]
    package var body: [UInt8]

    package init(status: UInt16, fields: [(name: String, value: String)], body: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}
