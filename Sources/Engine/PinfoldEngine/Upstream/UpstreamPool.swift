import Clocks
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldTLS

/// A worker's connections to origins: idle ones to use again, new ones within the limits, and who
/// waits for one. The limits are the process's (`UpstreamPool+Permits`).
final class UpstreamPool: UpstreamSource {
    let environment: Environment
    private var operations: [ObjectIdentifier: ConnectOperation] = [:]
    /// Connections on their way, handshakes included.
    private(set) var establishing = 0
    /// Origins that wait for a place among all connections, first come first served.
    var starved = FIFO<Origin>()
    private(set) var open = 0
    var idleOrder = IdleOrder<UpstreamConnection>()
    /// The idle ones that have carried no request (`UpstreamPool+Unused`).
    var unused = ShareTable<ObjectIdentifier, UpstreamConnection>(limit: unusedLimit)
    /// Origins with connections, or with exchanges that wait for one, by their limit.
    var byLimit: [ObjectIdentifier: Origin] = [:]
    /// What the other workers are being asked, by the limit that it is about.
    var idleRequests: [ObjectIdentifier: IdleConnectionRequest] = [:]
    /// An idle connection is being closed for another one, which has its places already.
    var isMakingRoom = false

    init(environment: Environment) { self.environment = environment }

    /// Gets a connection for the consumer: `upstreamReady` or `upstreamFailed` is called, at once
    /// or later. `fresh`: only one that carried no exchange before.
    package func acquire(_ origin: Origin, for consumer: any UpstreamConsumer, fresh: Bool) {
        if let carrier = origin.carrier { return acquire(carrier, for: consumer, fresh: fresh) }
        if !fresh, let connection = takeIdle(origin, checked: !consumer.mayBeRepeated) {
            environment.metrics.add(.upstreamConnectionsReused)
            if environment.traces {
                traceReuse(connection, consumer, idleSince: connection.idleSince)
            }
            return consumer.upstreamReady(connection.open(for: consumer))
        }
        let mayConnect = takePermits(origin)
        guard mayConnect || mayWait(origin) else {
            leaveQueueIfNobodyWaits(origin)
            forgetIfUnused(origin)
            environment.metrics.add(.poolWaitRefusals)
            if environment.traces { traceRefusal(origin, consumer) }
            consumer.upstreamFailed(StreamError(.tooManyPending))
            return
        }
        origin.waiters.append(
            consumer, wantsFresh: fresh, since: mayConnect ? nil : Clock.monotonicMicroseconds())
        environment.metrics.adjust(.waiting, host: origin.route, by: 1)
        if mayConnect {
            connect(origin, for: consumer.clientNetwork)
        } else {
            environment.metrics.add(.poolWaits)
            if environment.traces { traceWait(origin, consumer) }
        }
    }

    /// Counts one more exchange that waits; false: there are as many as may.
    private func mayWait(_ origin: Origin) -> Bool {
        let limit = limit(of: origin)
        let pending = origin.policy.configuration.limits.pending
        if limit.waitingExchanges.add(1, ordering: .relaxed).newValue <= pending { return true }
        // With none that may wait, the other workers' answer is waited for all the same.
        if pending == 0, hasIdleRequest(for: origin) { return true }
        limit.waitingExchanges.subtract(1, ordering: .relaxed)
        return false
    }

    /// The consumer no longer waits.
    package func abandon(_ origin: Origin, _ consumer: any UpstreamConsumer) {
        if let carrier = origin.carrier { return abandon(carrier, consumer) }
        guard let waiter = origin.waiters.remove(consumer) else { return }
        waitEnded(waiter, origin, .abandoned)
        leaveQueueIfNobodyWaits(origin)
        forgetIfUnused(origin)
    }

    /// Counts a wait that ended, in whatever way: those in vain are the longest.
    private func waitEnded(
        _ waiter: WaiterQueue.Waiter, _ origin: Origin, _ end: PoolWaitEnd
    ) {
        environment.metrics.adjust(.waiting, host: origin.route, by: -1)
        guard let since = waiter.since else { return }
        limit(of: origin).waitingExchanges.subtract(1, ordering: .relaxed)
        let microseconds = UInt64(max(0, Clock.monotonicMicroseconds() - since))
        environment.metrics.record(.poolWait, microseconds: microseconds)
        if environment.traces { traceWaitEnd(waiter, origin, end, microseconds: microseconds) }
    }

    /// The first who would use the connection; `end` is what its wait ends with.
    func takeWaiter(
        _ origin: Origin, isFresh: Bool, _ end: PoolWaitEnd
    ) -> (any UpstreamConsumer)? {
        guard let waiter = origin.waiters.take(isFresh: isFresh) else { return nil }
        waitEnded(waiter, origin, end)
        return waiter.consumer
    }

    /// An idle connection on which nothing has arrived.
    ///
    /// What a server sends unasked must never be taken for the answer to the next request. Events
    /// of idle connections come first in a turn, so one that is still idle here had none; only in a
    /// turn that was not told of all events is the socket looked at.
    ///
    /// - Parameter checked: looks at the socket always: what may not be sent twice is not risked on
    ///   a connection that the server has just closed.
    private func takeIdle(_ origin: Origin, checked: Bool) -> UpstreamConnection? {
        let checked = checked || environment.loop.mayHaveMoreEvents
        while let connection = origin.idle.popLast() {
            countIdle(-1, origin)
            if !connection.hasCarriedRequest { isNoLongerUnused(connection) }
            guard connection.hasRoom else { continue }
            guard isTrusted(connection) else {
                endTrust(connection)
                continue
            }
            if !checked || connection.transport.isQuiet {
                return connection
            }
            if environment.traces { traceEvicted(connection, .serverEndedOrSpoke) }
            connection.close()
        }
        return nil
    }

    /// Whether the verdict on the server still holds: its chain and the pinsets that would then
    /// refuse have not expired.
    private func isTrusted(_ connection: UpstreamConnection) -> Bool {
        connection.trustEnds.map { environment.wallSeconds < $0 } ?? true
    }

    private func endTrust(_ connection: UpstreamConnection) {
        environment.metrics.add(.upstreamConnectionsOutdated)
        if environment.traces { traceNotKept(connection, .trustEnded) }
        connection.close()
    }

    private func countIdle(_ change: Int, _ origin: Origin) {
        environment.metrics.adjust(.idle, host: origin.route, by: Int64(change))
    }

    /// - Parameter client: whose request made it necessary, for the shares of name lookups.
    func connect(_ origin: Origin, for client: IPNetwork? = nil) {
        origin.connecting += 1
        establishing += 1
        let policy = origin.policy
        var operation: ConnectOperation?
        operation = ConnectOperation(
            environment: environment, host: origin.connectsTo.host, port: origin.connectsTo.port,
            client: client, rules: origin.isSubjectToRules ? policy.destinationRules : nil,
            hostMatch: origin.match
        ) { [unowned self] result in
            let times = operation?.times ?? ConnectionTimes()
            if let operation { operations[ObjectIdentifier(operation)] = nil }
            operation = nil
            connected(origin, result, times)
        }
        guard let operation else { return }
        operations[ObjectIdentifier(operation)] = operation
        operation.start(
            timeoutMilliseconds: origin.timeouts.connectMilliseconds)
    }

    private func connected(
        _ origin: Origin, _ result: Result<EstablishedConnection, StreamError>,
        _ times: ConnectionTimes
    ) {
        switch result {
        case .failure(var failure):
            if origin.tunnelProxy != nil {
                failure.error = ExchangeError(onTheWayToProxy: failure.error)
            }
            failed(origin, failure)
        case .success(let made):
            if let proxy = origin.tunnelProxy { return openTunnel(origin, proxy, made, times) }
            establishOrFail(origin, made, times)
        }
    }

    /// - Parameter session: the one with a proxy that carries the tunnel; nil: there is none.
    func establish(
        _ origin: Origin, _ made: EstablishedConnection,
        _ times: ConnectionTimes, in session: TLSClientConnection?
    ) throws(ExchangeError) {
        var tls = session
        // Who waits first gets it.
        let client = origin.waiters.first?.consumer.clientNetwork
        if let context = origin.tls {
            do throws(TLSError) {
                tls = try TLSClientConnection(
                    context: context, fileDescriptor: made.transport.descriptor,
                    host: origin.key.host,
                    port: origin.key.port, now: environment.wallSeconds, outer: session,
                    client: client)
            } catch {
                throw .tlsFailed(error)
            }
        }
        let connection = UpstreamConnection(
            pool: self, origin: origin, descriptor: made.transport.descriptor,
            endpoint: made.endpoint, tls: tls, isOpen: origin.tls == nil)
        connection.times = times
        connection.client = client
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

    /// A handshake's outcome.
    func handshakeEnded(_ connection: UpstreamConnection, _ fault: ExchangeError?) {
        if let fault {
            failed(
                connection.origin,
                StreamError(fault, FailedAttempts(connectedTo: connection.endpoint)))
        } else {
            ready(connection)
        }
    }

    private func ready(_ connection: UpstreamConnection) {
        let origin = connection.origin
        origin.connecting -= 1
        establishing -= 1
        origin.open += 1
        open += 1
        environment.metrics.adjust(.open, host: origin.route, by: 1)
        environment.note(origin.reachability, nil, for: connection.client)
        if connection.hasSpokenUnasked() { return refuse(connection) }
        assign(connection, isFresh: true)
    }

    /// A server that speaks before it was asked is no HTTP server, or somebody else speaks in its
    /// place: what it sent must not be taken for the answer to the first request.
    private func refuse(_ connection: UpstreamConnection) {
        let consumer = takeWaiter(connection.origin, isFresh: true, .failed)
        if environment.traces { traceNotKept(connection, .serverEndedOrSpoke) }
        connection.close()
        consumer?.upstreamFailed(StreamError(.upstreamSpokeUnasked))
    }

    func failed(_ origin: Origin, _ failure: StreamError) {
        origin.connecting -= 1
        establishing -= 1
        giveBack([.origin, .total], of: origin)
        var failure = failure
        if origin.forwards != nil {
            failure.error = ExchangeError(onTheWayToProxy: failure.error)
        }
        let client = origin.waiters.first?.consumer.clientNetwork
        environment.note(origin.reachability, failure.error, for: client)
        if let consumer = takeWaiter(origin, isFresh: true, .failed) {
            consumer.upstreamFailed(failure)
        }
        connectForWaiters(origin)
        forgetIfUnused(origin)
    }

    /// Hands the streams of a connection to exchanges that wait, or keeps it.
    private func assign(_ connection: UpstreamConnection, isFresh: Bool) {
        let origin = connection.origin
        guard origin.policy.trustGeneration == environment.policy.trustGeneration else {
            environment.metrics.add(.upstreamConnectionsOutdated)
            if environment.traces { traceNotKept(connection, .outdated) }
            return connection.close()
        }
        // A new one was judged just now.
        guard isFresh || isTrusted(connection) else { return endTrust(connection) }
        // A new one was made for an exchange that waits here.
        let isOurs = isFresh || origin.waiters.isEmpty || !givesWay(origin)
        var isGiven = false
        while connection.hasRoom, isOurs,
            let consumer = takeWaiter(origin, isFresh: isFresh, .connection)
        {
            if environment.traces, !isFresh { traceReuse(connection, consumer) }
            isGiven = true
            consumer.upstreamReady(connection.open(for: consumer))
        }
        if isGiven { return }
        leaveQueueIfNobodyWaits(origin)
        // Who still waits wants one that carried nothing before, or waits elsewhere: at another
        // origin or on another environment. Then this one makes room.
        guard origin.waiters.isEmpty, !environment.isDraining, !isWaitedFor(origin) else {
            if environment.traces {
                let other = isOverLimit(origin) ? PoolClosing.overLimit : .waitedForElsewhere
                traceNotKept(connection, environment.isDraining ? .draining : other)
            }
            return connection.close()
        }
        origin.idle.append(connection)
        countIdle(1, origin)
        idleOrder.becameIdle(connection, at: environment.loop.now)
        environment.loop.setQuiet(connection, true)
        if environment.traces { traceKept(connection) }
        let milliseconds = origin.policy.configuration.timeouts.idleMilliseconds
        guard connection.hasCarriedRequest else {
            return keepUnused(connection, atMost: milliseconds)
        }
        environment.loop.setDeadline(connection, after: milliseconds)
    }

    /// A connection's exchange ended and it can carry another.
    func returned(_ connection: UpstreamConnection, mayHaveInput: Bool) {
        if mayHaveInput {
            connection.recheck()
            guard connection.state == .idle else { return }
        }
        assign(connection, isFresh: false)
    }

    /// Closes a connection that is idle; by default for what the connection itself has found.
    func discardIdle(
        _ connection: UpstreamConnection, _ reason: PoolClosing = .serverEndedOrSpoke
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

    /// An established connection is gone, or no longer the pool's.
    func removed(_ connection: UpstreamConnection) {
        let origin = connection.origin
        idleOrder.closed(connection)
        if !connection.hasCarriedRequest { isNoLongerUnused(connection) }
        origin.open -= 1
        open -= 1
        environment.metrics.adjust(.open, host: origin.route, by: -1)
        giveBack(connection.permits, of: origin)
        forgetIfUnused(origin)
        guard !isMakingRoom else { return }
        connectForWaiters(origin)
        connectForStarved()
    }

    /// Room has come free: who could not connect because of the total limit is next.
    func connectForStarved() {
        while let next = starved.popFirst() {
            guard next.isStarved else { continue }
            next.isStarved = false
            // Who waited there may have given up; without room after all it is starved anew.
            if connectForWaiters(next) || next.isStarved { return }
        }
    }

    /// Makes a connection for a waiting exchange that has none coming; false: there is no such
    /// exchange, or no room.
    @discardableResult
    func connectForWaiters(_ origin: Origin) -> Bool {
        guard origin.waiters.count > origin.connecting, takePermits(origin) else { return false }
        if environment.traces { tracePermit(origin, .origin) }
        connect(origin)
        return true
    }

    /// Closes the idle connections of an origin whose policy is no longer in force, and sends who
    /// waits there back to find its origin anew.
    func retire(_ origin: Origin) {
        origin.isStarved = false
        let waiters = origin.waiters.takeAll()
        // Before they go on: this worker stands in the same line again then, for the origin's
        // successor.
        leaveQueueIfNobodyWaits(origin)
        for waiter in waiters {
            waitEnded(waiter, origin, .superseded)
            waiter.consumer.upstreamFailed(StreamError(.superseded))
        }
        environment.metrics.add(.upstreamConnectionsOutdated, UInt64(origin.idle.count))
        closeIdle(origin, .outdated)
        forgetIfUnused(origin)
    }

    /// Closes the idle connections of an origin, which hold it as it holds them.
    func closeIdle(_ origin: Origin, _ reason: PoolClosing) {
        let idle = origin.idle
        origin.idle = []
        countIdle(-idle.count, origin)
        for connection in idle {
            if environment.traces { traceEvicted(connection, reason) }
            connection.close()
        }
    }

    /// Lets go of what refers to the pool: connections, some of which are closed already.
    func close() {
        operations = [:]
        starved = FIFO()
        idleOrder = IdleOrder()
        unused.removeAll { _, _ in true }
        byLimit = [:]
        idleRequests = [:]
    }
}
