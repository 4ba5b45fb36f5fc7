import Authentication
import CachePolicy
import Clocks
import EventLoop
import HTTPCore
import Logging
import PinfoldMetrics
import PinfoldTLS

/// The environment of exchanges and connections to servers: one thread's loop, clock, counters,
/// origins and pool, and the policy in force. Other threads touch none of it; they write to
/// ``mailbox``.
///
/// It needs no listener: an owner of request streams begins exchanges on it (``takeExchange()``)
/// and runs the loop.
///
/// What it owns refers to it with constant references: the compiler then knows that the environment
/// lives as long as they do, and does not count references when going through it (7 % of the
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
    /// The source of streams to servers.
    package private(set) var upstreams: any UpstreamSource
    /// The source of connections to servers.
    let sockets: any SocketSource
    /// The host: it makes room for connections, and is notified of exchanges that were refused or
    /// failed, and of all of them if ``reportsExchanges`` is set.
    package var host: (any EnvironmentHost)?
    /// Whether `host.exchangeEnded` is called for exchanges that were served, too.
    package var reportsExchanges = false
    /// Whether the host is asked for each exchange that begins what it wants of it; it keeps the
    /// head of its response, to be reported, unless that is nothing.
    package var keepsResponseHeads = false
    /// The most bytes that are kept of each.
    package var keptHeadBytes = 2048
    /// Whether exchanges whose heads are kept ask the host whether their content is, too.
    package var keepsContents = false
    /// Whether exchanges began or ended since the last call of ``takeActivity()``.
    private var hadActivity = false
    /// Answers requests that are for the gateway itself.
    package var site: (any LocalSite)?
    var flights = FlightTable<Exchange>()
    /// Connections with an incomplete head or handshake.
    var unfinished = ShareTable<ObjectIdentifier, any UnfinishedInput>(limit: .max)
    /// Whether decisions (debug) and events of connections (trace) are logged.
    package private(set) var debugs = false
    package private(set) var traces = false
    /// What the policy says about traces.
    package private(set) var tracing: TraceSettings
    var traceNumbers = TraceNumbers()
    /// Whether an event that is impossible in the state of its exchange or connection ends the
    /// program in a debug build; a test of what happens otherwise sets it to false.
    var trapsOnIllegalEvents = true
    /// Whether connections on which no request was sent are kept as long as others.
    let keepsUnusedConnections: Bool
    let pipes = PipePool()
    var recentProofs = RecentProofs(random: (.random(in: 0 ... .max), .random(in: 0 ... .max)))
    let recentMembers = RecentMembers()
    /// Memory for the key of the request being looked up, valid until the next lookup.
    let keyMemory = UnsafeMutableRawBufferPointer.allocate(
        byteCount: CacheKey.maximumBytes, alignment: 8)
    /// Whether nothing new is begun and connections are not kept.
    package var isDraining = false
    private var freeExchanges: [Exchange] = []
    /// Asks parents whether they answer; `nil` if there are none.
    private var parentMonitor: ParentMonitor?
    private var relays: [ObjectIdentifier: Relay] = [:]
    private var receiver: MailboxReceiver<EngineMessage>?
    private var willWakeReaders = false
    private var exchangeCounter: UInt64 = 0
    private let exchangePrefix: UInt64
    private var wallOffset: Int64 = 0
    private var wallReadAt = Int64.min
    /// The last reading of the monotonic clock, in microseconds, and the turn in which it was
    /// taken.
    private var reading: (turn: UInt64, microseconds: Int64) = (.max, 0)

    /// How many exchange objects are kept for reuse.
    private static let keptExchanges = 128

    /// - Parameters:
    ///   - index: the index of this environment's mailbox among the shared ones.
    ///   - upstreams: the source of streams to servers; `nil` for a pool of connections.
    ///   - sockets: the source of connections to servers; `nil` for the system's.
    ///   - keepsUnusedConnections: whether connections on which no request was sent are kept as
    ///     long as others: whoever causes them is trusted.
    package init(
        index: Int, loop: EventLoop, policy: PolicySnapshot, shared: SharedEnvironment,
        metrics: WorkerMetrics, upstreams: (any UpstreamSource)? = nil,
        sockets: (any SocketSource)? = nil, keepsUnusedConnections: Bool = false
    ) {
        self.index = index
        self.loop = loop
        self.policy = policy
        tracing = TraceSettings(policy.configuration.tracing)
        self.shared = shared
        activity = shared.activity
        self.metrics = metrics
        self.sockets = sockets ?? SystemSockets()
        self.keepsUnusedConnections = keepsUnusedConnections
        mailbox = shared.mailboxes[index]
        debugs = shared.logger.logLevel <= .debug
        traces = shared.logger.logLevel <= .trace
        exchangePrefix = (UInt64.random(in: 0..<(1 << 20)) << 4 | UInt64(index & 15)) << 40
        self.upstreams = upstreams ?? NoUpstreams()
        if upstreams == nil { self.upstreams = UpstreamPool(environment: self) }
        shared.useTagFields(of: policy)
    }

    deinit { keyMemory.deallocate() }

    /// Begins to receive what other threads write to the mailbox.
    package func start() throws(Errno) {
        let receiver = MailboxReceiver(mailbox) { [unowned self] in handle($0) }
        try loop.add(receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
        self.receiver = receiver
        monitorParents()
    }

    /// Begins or ends to ask parents whether they answer.
    private func monitorParents() {
        guard policy.parents.isEmpty else {
            guard parentMonitor == nil, receiver != nil else { return }
            let monitor = ParentMonitor(environment: self)
            parentMonitor = monitor
            return monitor.start()
        }
        parentMonitor?.close()
        parentMonitor = nil
    }

    /// The pool, or `nil` if streams come from elsewhere.
    var pool: UpstreamPool? { upstreams as? UpstreamPool }

    private func handle(_ message: EngineMessage) {
        switch message {
        case .resolved(let token, let result):
            (loop.handler(for: token) as? any LookupConsumer)?.resolved(result)
        case .resolvedLater(let token, let answer):
            (loop.handler(for: token) as? any LookupConsumer)?.arrived(answer)
        case .passwordChecked(let token, let outcome):
            (loop.handler(for: token) as? Exchange)?.passwordChecked(outcome)
        case .siteAnswered(let token, let response):
            (loop.handler(for: token) as? Exchange)?.siteAnswered(response)
        case .siteSent(let token, let piece):
            (loop.handler(for: token) as? Exchange)?.siteSent(piece)
        case .purgeEnded(let token, let order, let outcome):
            (loop.handler(for: token) as? Exchange)?.purgeEnded(outcome, order)
        case .purged(let notice): forgetFlights(notice)
        case .turnCame(let token, let ticket, let isReady):
            (loop.handler(for: token) as? Exchange)?.turnCame(ticket, isReady: isReady)
        case .loaded(let token, let result):
            (loop.handler(for: token) as? Exchange)?.loaded(result)
        case .chunk(let token, let result):
            (loop.handler(for: token) as? Exchange)?.chunkArrived(result)
        case .progressed(let token):
            (loop.handler(for: token) as? Exchange)?.bodyProgressed()
        case .follow(let follower, let hash): follow(follower, hash)
        case .unfollow(let follower, let hash):
            flights.leader(hash)?.unfollow(follower)
        case .arriving(let token, let response):
            (loop.handler(for: token) as? Exchange)?.remoteResponseArrives(response)
        case .flightEnded(let token, let end):
            (loop.handler(for: token) as? Exchange)?.remoteFlightEnded(end)
        case .storesDrained(let token):
            (loop.handler(for: token) as? Exchange)?.storeWaitEnded(hasDrained: true)
        case .reviewed(let token, let answer):
            (loop.handler(for: token) as? any PooledConnection)?.reviewed(answer)
        case .transformed(let token, let outcome): deliver(outcome, to: token)
        case .formMade(let token, let body):
            (loop.handler(for: token) as? Exchange)?.formMade(body)
        case .permitGranted(let limit): pool?.permitGranted(limit)
        case .connectionWanted(let request): pool?.connectionWanted(request)
        case .connectionAnswered(let request): pool?.connectionAnswered(request)
        }
    }

    private func follow(_ follower: RemoteFollower, _ hash: UInt64) {
        if let leader = flights.leader(hash) { return leader.follow(follower) }
        shared.mailboxes[follower.place].post(.flightEnded(follower.token, .failed))
    }

    /// Delivers the result of a transformation to the handler that waits for it, if it still
    /// exists.
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
    /// Never ahead of the clock, however long the thread was interrupted while it was read.
    package var wallSeconds: Int64 { wallMilliseconds / 1000 }

    /// Milliseconds since 1970.
    package var wallMilliseconds: Int64 {
        let now = loop.monotonicNow
        if wallReadAt == .min || now &- wallReadAt >= 1000 {
            wallReadAt = now
            let wall = loop.time.wallMilliseconds()
            wallOffset = wall - loop.time.monotonicMilliseconds()
        }
        return now + wallOffset
    }

    /// The monotonic clock in microseconds, as last read in this turn, or read now if it has not
    /// been: it serves as the start of a request that arrives in this turn, and precedes the actual
    /// start by at most the length of the turn.
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
        guard !willWakeReaders else { return }
        willWakeReaders = true
        loop.afterTurn { [self] in
            willWakeReaders = false
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

    /// An exchange of a client has ended.
    func exchangeEnded() {
        metrics.adjust(.exchangesInFlight, by: -1)
        activity.end()
        hadActivity = true
    }

    /// An exchange of a client has ended that is a part of the next one, and not reported.
    func exchangeGoesOn() {
        metrics.adjust(.exchangesInFlight, by: -1)
        activity.end()
    }

    /// Whether exchanges began or ended since the last call.
    package func takeActivity() -> Bool {
        defer { hadActivity = false }
        return hadActivity
    }

    /// The exchanges whose tunnels are relayed here.
    package var relayedExchanges: [Exchange] { relays.values.compactMap(\.exchange) }

    func register(_ relay: Relay) { relays[ObjectIdentifier(relay)] = relay }
    func unregister(_ relay: Relay) { relays[ObjectIdentifier(relay)] = nil }

    // MARK: The policy, and the end

    /// Adopts another policy. Connections that it would not have made are not used again.
    package func adopt(_ policy: PolicySnapshot) {
        let goesOn = policy.trustGeneration == self.policy.trustGeneration
        let hasSameRules = policy.rulesGeneration == self.policy.rulesGeneration
        let knowsTheSame = policy.credentialsGeneration == self.policy.credentialsGeneration
        self.policy = policy
        tracing = TraceSettings(policy.configuration.tracing)
        shared.useTagFields(of: policy)
        debugs = shared.logger.logLevel <= .debug
        traces = shared.logger.logLevel <= .trace
        if goesOn {
            for removed in origins.adopt(policy) {
                pool?.retire(removed)
                if let sibling = removed.http2.sibling { pool?.retire(sibling) }
                pool?.endSearches(for: removed)
            }
            if !hasSameRules { pool?.rulesChanged() }
        } else {
            for origin in origins.removeAll() { pool?.retire(origin) }
        }
        if !goesOn || !hasSameRules || !knowsTheSame {
            for relay in Array(relays.values) { relay.endIfSuperseded(by: policy) }
        }
        pool?.limitsChanged(origins.all)
        monitorParents()
    }

    /// The process is to end: tunnels that stay idle end sooner.
    package func drainTunnels() {
        let time = policy.configuration.timeouts.tunnelGraceMilliseconds
        for relay in relays.values { relay.drain(idleMilliseconds: time) }
    }

    /// The process does not end after all.
    package func endDraining() {
        isDraining = false
        for relay in relays.values { relay.endDraining() }
    }

    /// Ends everything in progress. Client streams must be gone.
    package func closeConnections() {
        for relay in relays.values { relay.cut() }
        // The loop may serve other environments, too.
        for case let part as any EnvironmentPart in loop.handlers where part.environment === self {
            part.closeWithEnvironment()
        }
        for origin in origins.removeAll() { pool?.closeIdle(origin, .draining) }
    }

    /// Releases everything that refers to the environment.
    package func close() {
        freeExchanges = []
        flights = FlightTable()
        unfinished.removeAll { _, _ in true }
        pool?.close()
        parentMonitor?.close()
        parentMonitor = nil
        // The loop may continue to run, and others may still write to the mailbox.
        if let receiver { loop.remove(receiver, keepingOpen: receiver.descriptor) }
        receiver = nil
        host = nil
        site = nil
        upstreams = NoUpstreams()
    }
}

/// An operation on an environment's loop that ends with the environment.
protocol EnvironmentPart: EventHandler {
    var environment: Environment { get }
    /// Ends without notifying anyone.
    func closeWithEnvironment()
}

extension PooledConnection {
    /// An idle one and its origin refer to each other, and not every origin is in the table.
    func closeWithEnvironment() {
        guard isIdle, let pool = environment.pool else { return close() }
        pool.discardIdle(self, .draining)
    }
}

extension ConnectOperation: EnvironmentPart {
    func closeWithEnvironment() { cancel() }
}

extension ProxyTunnel: EnvironmentPart {
    func closeWithEnvironment() { cancel() }
}

extension AnsweredTunnel: EnvironmentPart {
    func closeWithEnvironment() { close(nil) }
}

/// A source of streams to servers.
package protocol UpstreamSource: AnyObject {
    /// Gets a stream for the consumer: `upstreamReady` or `upstreamFailed` is called, at once or
    /// later. `fresh`: only on a connection that has not carried a request.
    func acquire(_ origin: Origin, for consumer: any UpstreamConsumer, fresh: Bool)
    /// The consumer no longer waits.
    func abandon(_ origin: Origin, _ consumer: any UpstreamConsumer)
    /// How far the connection is that a waiting consumer would get next; `nil` if it waits for a
    /// place.
    func timeline(_ origin: Origin, _ consumer: any UpstreamConsumer) -> ConnectionTimeline?
    /// The limit on connections to an origin.
    func limit(of origin: Origin) -> SharedLimit
}

extension UpstreamSource {
    package func timeline(
        _ origin: Origin, _ consumer: any UpstreamConsumer
    ) -> ConnectionTimeline? { nil }
}

/// A placeholder for a pool that does not exist yet or any more.
private final class NoUpstreams: UpstreamSource {
    func acquire(_ origin: Origin, for consumer: any UpstreamConsumer, fresh: Bool) {
        consumer.upstreamFailed(StreamError(.gateway(.superseded)))
    }

    func abandon(_ origin: Origin, _ consumer: any UpstreamConsumer) {}

    func limit(of origin: Origin) -> SharedLimit { SharedLimit() }
}

/// Is notified of exchanges, and makes room for their connections.
package protocol EnvironmentHost: AnyObject {
    /// An exchange of a client has ended and been counted. Its values are valid during the call,
    /// except for `client`, which it has left; byte counts and duration are in the record.
    func exchangeEnded(_ exchange: Exchange, _ record: ExchangeRecord, _ phases: PhaseTimes)
    /// An exchange of a client begins: what is wanted of it once it has ended. Asked only if
    /// ``Environment/keepsResponseHeads`` is set.
    func interest(in exchange: Exchange) -> ExchangeInterest
    /// An exchange of a client begins: where the content of its messages is kept; `nil` if it is
    /// not. Asked only if ``Environment/keepsContents`` is set.
    func contents(of exchange: Exchange) -> KeptContents?
    /// Descriptors have run out. Returns true if some were freed.
    func freeDescriptors() -> Bool
    /// Takes over an intercepted tunnel's client connection, to speak TLS on it in the name of the
    /// tunnel's authority.
    func takeOver(_ tunnel: InterceptedTunnel, _ handover: DownstreamHandover)
}

/// What the host wants of an exchange.
package enum ExchangeInterest: UInt8 {
    /// Nobody looked when it began.
    case undecided
    /// It is not shown.
    case none
    /// It is not shown, but the head of its response is kept, for an access log.
    case logged
    /// It is shown once it has ended.
    case shown
}
