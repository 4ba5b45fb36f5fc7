import Clocks
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldTLS

/// A worker's connections to origins: idle ones to reuse, new ones within the limits, and the
/// consumers that wait for one. The limits apply to the whole process (`UpstreamPool+Permits`).
final class UpstreamPool: UpstreamSource {
    let environment: Environment
    /// The connections that are being established, until they are.
    var operations: [ObjectIdentifier: any TunnelOpening] = [:]
    /// The consumers for which ways are tried.
    var searches: [ObjectIdentifier: WaySearch] = [:]
    /// Connections being established, including their handshakes.
    private(set) var establishing = 0
    /// Origins that wait for a permit of the limit on all connections, first come, first served.
    var starved = FIFO<Origin>()
    private(set) var open = 0
    var idleOrder = IdleOrder<IdlePooledConnection>()
    /// The idle connections that have not carried a request (`UpstreamPool+Unused`).
    var unused = ShareTable<ObjectIdentifier, any PooledConnection>(limit: unusedLimit)
    /// Origins with connections, or with exchanges that wait for one, by their limits.
    var byLimit: [ObjectIdentifier: LimitedOrigins] = [:]
    /// The open requests to the other workers, by the limit that they concern.
    var idleRequests: [ObjectIdentifier: IdleConnectionRequest] = [:]
    /// The origins whose connections are of one client each (`UpstreamPool+Private`).
    var privateOrigins: [ObjectIdentifier: Origin] = [:]
    /// Whose connections clients have for themselves, by the clients' ends.
    var privateUses: [Endpoint: [PrivateUse]] = [:]
    /// Connections that hold no permits any more, oldest first.
    let lingering = LinkedQueue<LingeringServer>()
    /// An idle connection is being closed for another one, which already has its permits.
    var isMakingRoom = false

    init(environment: Environment) { self.environment = environment }

    /// Gets a connection for the consumer: `upstreamReady` or `upstreamFailed` is called, at once
    /// or later. `fresh`: only a connection that has not carried an exchange.
    package func acquire(_ origin: Origin, for consumer: any UpstreamConsumer, fresh: Bool) {
        guard let ways = origin.ways else {
            return acquireByWay(origin, for: consumer, fresh: fresh)
        }
        search(origin, by: ways, for: consumer, fresh: fresh)
    }

    /// The same as ``acquire(_:for:fresh:)``, by a way that has been chosen.
    func acquireByWay(_ origin: Origin, for consumer: any UpstreamConsumer, fresh: Bool) {
        if let carrier = origin.carrier {
            return acquireByWay(carrier, for: consumer, fresh: fresh)
        }
        if origin.http2.isOffered, share(origin, with: consumer, fresh: fresh) { return }
        if !fresh, let connection = takeIdle(origin, checked: !consumer.mayBeRepeated) {
            environment.metrics.add(.upstreamConnectionsReused)
            if environment.traces {
                traceReuse(connection, consumer, idleSince: connection.idleSince)
            }
            return give(connection, to: consumer)
        }
        connectOrWait(origin, for: consumer, fresh: fresh)
    }

    /// Makes a connection for a consumer, or queues it.
    func connectOrWait(_ origin: Origin, for consumer: any UpstreamConsumer, fresh: Bool) {
        let mayConnect = takePermits(origin, for: consumer.clientNetwork)
        guard wait(origin, consumer, fresh: fresh, isCounted: !mayConnect) else { return }
        if mayConnect { connect(origin, for: consumer.clientNetwork) }
    }

    /// An idle connection on which nothing has arrived.
    ///
    /// Unsolicited data from a server must never be taken for the response to the next request.
    /// Events of idle connections come first in a turn, so a connection that is still idle here had
    /// none; the socket is checked only in a turn that did not receive all events.
    ///
    /// - Parameter checked: always checks the socket, so that a request that must not be sent twice
    ///   is not risked on a connection that the server has just closed.
    private func takeIdle(_ origin: Origin, checked: Bool) -> (any PooledConnection)? {
        let checked = checked || environment.loop.mayHaveMoreEvents
        while let connection = origin.idle.popLast() {
            countIdle(-1, origin)
            if !connection.hasCarriedRequest { isNoLongerUnused(connection) }
            guard connection.hasRoom else {
                connection.retire()
                continue
            }
            guard isTrusted(connection) else {
                endTrust(connection)
                continue
            }
            if !checked || connection.isQuiet {
                return connection
            }
            if environment.traces { traceEvicted(connection, .serverEndedOrSpoke) }
            connection.close()
        }
        return nil
    }

    /// Whether the verdict on the server is still valid: its chain has not expired, nor has a
    /// pinset that would then refuse it.
    func isTrusted(_ connection: any PooledConnection) -> Bool {
        connection.trustEnds.map { environment.wallSeconds < $0 } ?? true
    }

    func endTrust(_ connection: any PooledConnection) {
        environment.metrics.add(.upstreamConnectionsOutdated)
        if environment.traces { traceNotKept(connection, .trustEnded) }
        connection.retire()
    }

    func countIdle(_ change: Int, _ origin: Origin) {
        environment.metrics.adjust(.idle, host: origin.route, by: Int64(change))
    }

    /// - Parameter client: the client whose request needs it, for the shares of name lookups.
    func connect(_ origin: Origin, for client: IPNetwork? = nil) {
        origin.connecting += 1
        establishing += 1
        origin.http2.attemptedAt = environment.loop.now
        if origin.sharesLimit {
            byLimit[ObjectIdentifier(limit(of: origin))]?
                .hadTurn(origin, client ?? origin.waiters.first?.client)
        }
        let timeline = ConnectionTimeline()
        origin.underWay.append(timeline)
        if let proxy = origin.tunnelProxy {
            return openTunnel(origin, proxy, for: client, timeline)
        }
        if let path = origin.key.unixPath {
            return connect(origin, toUnixSocket: path, timeline)
        }
        let policy = origin.policy
        var operation: ConnectOperation?
        operation = ConnectOperation(
            environment: environment, host: origin.key.host, port: origin.key.port,
            client: client, rules: origin.isSubjectToRules ? policy.destinationRules : nil,
            hostMatch: origin.match, isParent: origin.forwards?.standing != nil,
            timeline: timeline
        ) { [unowned self] result in
            if let operation { operations[ObjectIdentifier(operation)] = nil }
            operation = nil
            connected(origin, result, timeline)
        }
        guard let operation else { return }
        operations[ObjectIdentifier(operation)] = operation
        operation.start(
            timeoutMilliseconds: origin.timeouts.connectMilliseconds)
    }

    func connected(
        _ origin: Origin, _ result: Result<EstablishedConnection, StreamError>,
        _ timeline: ConnectionTimeline
    ) {
        switch result {
        case .failure(let failure): failed(origin, failure)
        case .success(let made): establishOrFail(origin, made, timeline)
        }
    }

    /// - Parameters:
    ///   - session: the TLS session with a proxy that carries the tunnel; `nil` if there is none.
    ///   - use: whose connection it is; `nil` if it is of no client in particular.
    func establish(
        _ origin: Origin, _ made: EstablishedConnection, _ timeline: ConnectionTimeline,
        in session: TLSClientConnection?, _ use: PrivateUse?
    ) throws(ExchangeError) {
        var tls = session
        if let use, let version = origin.key.proxyHeader {
            try sendHeader(version, of: use, on: made, in: session)
        }
        // The first waiter will get it.
        let client = use.map(\.client) ?? origin.waiters.first?.consumer.clientNetwork
        if let context = origin.tls {
            do throws(TLSError) {
                tls = try TLSClientConnection(
                    context: context, fileDescriptor: made.transport.descriptor,
                    host: origin.key.host,
                    port: origin.key.port, now: environment.wallSeconds, outer: session,
                    client: client, offer: origin.key.takesOnlyHTTP1 ? .http1 : nil)
            } catch {
                throw .tlsFailed(error)
            }
        } else if origin.http2.isOffered {
            return try establishHTTP2(origin, made, timeline, in: session, client)
        }
        let connection = UpstreamConnection(
            pool: self, origin: origin, descriptor: made.transport.descriptor,
            endpoint: made.endpoint, timeline: timeline, tls: tls, isOpen: origin.tls == nil)
        connection.client = client
        connection.privateUse = use
        do throws(Errno) {
            try environment.loop.add(connection, descriptor: made.transport.descriptor)
        } catch {
            throw .connectFailed(error)
        }
        environment.metrics.add(.upstreamConnectionsCreated)
        if origin.tls == nil {
            ready(connection)
        } else {
            connection.beginHandshake(
                timeoutMilliseconds: origin.timeouts.connectMilliseconds)
        }
    }

    /// Handles the result of a handshake.
    func handshakeEnded(_ connection: any PooledConnection, _ fault: ExchangeError?) {
        connection.timeline.finish(at: Clock.monotonicMicroseconds())
        if let fault {
            failed(
                connection.origin,
                StreamError(
                    fault, FailedAttempts(connectedTo: connection.endpoint),
                    by: connection.timeline),
                connection.privateUse)
        } else {
            ready(connection)
        }
    }

    func ready(_ connection: any PooledConnection) {
        let origin = connection.origin
        origin.connecting -= 1
        origin.underWay.removeAll { $0 === connection.timeline }
        establishing -= 1
        origin.open += 1
        open += 1
        environment.metrics.adjust(.open, host: origin.route, by: 1)
        environment.note(origin.reachability, nil, for: connection.client)
        if let proxy = origin.forwards { environment.parentAnswered(proxy) }
        if connection.hasUnsolicitedData() { return refuse(connection) }
        let waitsForOne = origin.http2.learned(isShared: connection.isShared)
        // Its server's settings are awaited next.
        if connection.isShared { origin.http2.attemptedAt = environment.loop.now }
        assign(connection, isFresh: true)
        if waitsForOne { connectForAll(origin) }
    }

    /// A server that sends data before a request is not an HTTP server, or the data is not from it:
    /// it must not be taken for the response to the first request.
    private func refuse(_ connection: any PooledConnection) {
        let consumer = takeWaiter(connection.origin, for: connection, isFresh: true, .failed)
        if environment.traces { traceNotKept(connection, .serverEndedOrSpoke) }
        connection.close()
        consumer?.upstreamFailed(
            StreamError(.server(.upstreamSpokeUnasked), by: connection.timeline))
    }

    /// - Parameter use: whose the connection would have been; `nil` for that of the first waiter.
    func failed(_ origin: Origin, _ failure: StreamError, _ use: PrivateUse? = nil) {
        connectionGivenUp(origin, failure.timeline)
        if let use { forget(use) }
        var failure = failure
        if origin.forwards != nil {
            failure.error = ExchangeError(onTheWayToProxy: failure.error)
        }
        if let proxy = origin.forwards, case .proxy(let error) = failure.error {
            environment.parentFailed(proxy, error)
        }
        let client = origin.waiters.first?.consumer.clientNetwork
        environment.note(origin.reachability, failure.error, for: client)
        let consumer =
            use == nil
            ? takeWaiter(origin, isFresh: true, .failed) : takeClaimant(origin, use, .failed)
        consumer?.upstreamFailed(failure)
        // Those who counted on this one try for themselves.
        if origin.http2.isOffered { _ = origin.http2.learned(isShared: false) }
        origin.http1Failed(failure.error)
        connectForAll(origin)
        forgetIfUnused(origin)
    }

    /// A connection that was being established will not be.
    func connectionGivenUp(_ origin: Origin, _ timeline: ConnectionTimeline?) {
        origin.connecting -= 1
        origin.underWay.removeAll { $0 === timeline }
        establishing -= 1
        giveBack([.origin, .total], of: origin)
    }

    /// Hands the streams of a connection to waiting exchanges, or keeps it.
    func assign(_ connection: any PooledConnection, isFresh: Bool) {
        let origin = connection.origin
        guard origin.policy.trustGeneration == environment.policy.trustGeneration else {
            environment.metrics.add(.upstreamConnectionsOutdated)
            if environment.traces { traceNotKept(connection, .outdated) }
            return connection.retire()
        }
        // A new one has just been verified.
        guard isFresh || isTrusted(connection) else { return endTrust(connection) }
        // A new one was made for an exchange waiting here.
        let isOurs = !origin.waiters.isEmpty && (isFresh || !givesWay(origin))
        var isGiven = false
        while connection.hasRoom, isOurs,
            let consumer = takeWaiter(origin, for: connection, isFresh: isFresh, .connection)
        {
            if environment.traces, !isFresh { traceReuse(connection, consumer) }
            isGiven = true
            consumer.upstreamReady(connection.open(for: consumer))
        }
        if isGiven || !connection.isIdle {
            guard connection.isShared else { return }
            leaveQueueIfNobodyWaits(origin)
            return share(connection)
        }
        leaveQueueIfNobodyWaits(origin)
        // The remaining waiters need a connection that has not carried a request, or wait at
        // another origin or in another environment. Then this connection makes room.
        guard origin.waiters.isEmpty || staysForItsClient(connection), !environment.isDraining,
            !isWaitedFor(origin), !(connection.privateUse?.clientHasLeft ?? false)
        else {
            if environment.traces {
                traceNotKept(connection, reasonNotToKeep(connection))
            }
            return connection.close()
        }
        origin.idle.append(connection)
        countIdle(1, origin)
        idleOrder.becameIdle(IdlePooledConnection(connection: connection), at: environment.loop.now)
        environment.loop.setQuiet(connection, true)
        if environment.traces { traceKept(connection) }
        let milliseconds = origin.policy.configuration.timeouts.idleMilliseconds
        guard connection.hasCarriedRequest else {
            return keepUnused(connection, atMost: milliseconds)
        }
        connection.close(ifIdleFor: milliseconds)
    }

    /// A connection's exchange has ended, and it can carry another.
    func returned(_ connection: any PooledConnection, mayHaveInput: Bool) {
        if mayHaveInput {
            connection.recheck()
            guard connection.isIdle else { return }
        }
        assign(connection, isFresh: false)
    }

    /// Closes an idle connection; by default because of what the connection itself has noticed.
    func discardIdle(
        _ connection: any PooledConnection, _ reason: PoolClosing = .serverEndedOrSpoke
    ) {
        let index = connection.origin.idle.firstIndex { $0 === connection }
        if environment.traces {
            index == nil ? traceNotKept(connection, reason) : traceEvicted(connection, reason)
        }
        if let index {
            connection.origin.idle.remove(at: index)
            countIdle(-1, connection.origin)
        }
        connection.close()
    }

    /// An established connection is gone, or no longer belongs to the pool.
    func removed(_ connection: any PooledConnection) {
        let origin = connection.origin
        idleOrder.closed(IdlePooledConnection(connection: connection))
        if !connection.hasCarriedRequest { isNoLongerUnused(connection) }
        if let use = connection.privateUse { forget(use) }
        if connection.isShared { origin.shared.removeAll { $0 === connection } }
        origin.open -= 1
        open -= 1
        environment.metrics.adjust(.open, host: origin.route, by: -1)
        giveBack(connection.permits, of: origin)
        forgetIfUnused(origin)
        guard !isMakingRoom else { return }
        connectForNext(after: origin)
        connectForStarved()
    }

    /// Closes the idle connections of an origin whose policy is no longer in force, and sends its
    /// waiters back to find their origin again.
    func retire(_ origin: Origin) {
        origin.isStarved = false
        sendBackWaiters([origin])
        environment.metrics.add(.upstreamConnectionsOutdated, UInt64(origin.idle.count))
        closeIdle(origin, .outdated)
        forgetIfUnused(origin)
    }

    /// Closes the idle connections of an origin; they and the origin refer to each other.
    func closeIdle(_ origin: Origin, _ reason: PoolClosing) {
        let idle = origin.idle
        origin.idle = []
        countIdle(-idle.count, origin)
        for connection in idle {
            if environment.traces { traceEvicted(connection, reason) }
            connection.close()
        }
    }

    /// Releases what refers to the pool: connections, some of which are already closed.
    func close() {
        operations = [:]
        searches = [:]
        starved = FIFO()
        idleOrder = IdleOrder()
        unused.removeAll { _, _ in true }
        byLimit = [:]
        privateOrigins = [:]
        privateUses = [:]
        idleRequests = [:]
    }
}
