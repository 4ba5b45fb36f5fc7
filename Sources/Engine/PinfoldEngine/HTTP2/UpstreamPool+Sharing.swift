import EventLoop
import HTTPCore
import PinfoldTLS

// Connections that several exchanges share (HTTP/2).
//
//     a shared connection has room ──► a stream on it
//     one is being made, or its server has not said yet how many it allows ──► wait for that
//     none ──► as for HTTP/1.1 (`acquire`)
//
// An origin of which nothing is known gets one connection for all who ask at once. If its server
// selects HTTP/1.1, or the connection fails, each of them gets one of its own.
extension UpstreamPool {
    /// Serves a consumer from connections in use or on their way. Returns false if a connection
    /// must be made.
    func share(_ origin: Origin, with consumer: any UpstreamConsumer, fresh: Bool) -> Bool {
        if !origin.http2.isRequired,
            origin.http2.lacks(consumer.switchRequest) || consumer.speaksOnlyHTTP1
                || environment.loop.now < origin.http2.avoidedUntil
        {
            acquireByWay(origin.inHTTP1, for: consumer, fresh: fresh)
            return true
        }
        if !fresh, let connection = takeShared(origin) {
            environment.metrics.add(.upstreamConnectionsReused)
            if environment.traces { traceReuse(connection, consumer) }
            consumer.upstreamReady(connection.open(for: consumer))
            return true
        }
        guard origin.idle.isEmpty || fresh,
            origin.http2.mayBeWaitedFor(at: environment.loop.now),
            !origin.needsConnection(besides: 1)
        else { return false }
        // If none may wait, all still wait for connections that are being made.
        let isCounted = origin.policy.configuration.limits.pending > 0
        guard wait(origin, consumer, fresh: fresh, isCounted: isCounted) else { return true }
        if origin.http2.secondAttempt == nil {
            origin.http2.secondAttempt = SecondAttempt(self, origin)
        }
        return true
    }

    /// Those who count on a connection that is being made have waited for a while.
    /// - Returns: whether they still do: another one has been made for them if there was room.
    func isLate(_ origin: Origin) -> Bool {
        guard !origin.waiters.isEmpty, origin.connecting + origin.settling > 0,
            origin.http2.streamsPerConnection > 1
        else { return false }
        // Those on their way may all be of others who have left.
        if !origin.http2.mayBeWaitedFor(at: environment.loop.now),
            origin.connecting + origin.settling <= origin.waiters.count, takePermits(origin)
        {
            connect(origin)
        }
        return true
    }

    /// A connection in use with room for another stream; `nil` if there is none, or if another
    /// worker has less than its share.
    private func takeShared(_ origin: Origin) -> (any PooledConnection)? {
        while let connection = origin.shared.last {
            if connection.hasRoom {
                if isTrusted(connection) { return givesWay(origin) ? nil : connection }
                endTrust(connection)
            }
            // It may have left while it was told.
            if origin.shared.last === connection { origin.shared.removeLast() }
        }
        return nil
    }

    /// Opens a stream on a connection that was idle.
    func give(_ connection: any PooledConnection, to consumer: any UpstreamConsumer) {
        let stream = connection.open(for: consumer)
        if connection.isShared { share(connection) }
        consumer.upstreamReady(stream)
    }

    /// Lets others use a connection in use, if it has room.
    func share(_ connection: any PooledConnection) {
        let origin = connection.origin
        guard connection.hasRoom, !origin.shared.contains(where: { $0 === connection }) else {
            return
        }
        origin.shared.append(connection)
    }

    /// No more streams are opened on a connection.
    func withdraw(_ connection: any PooledConnection) {
        let origin = connection.origin
        origin.shared.removeAll { $0 === connection }
        guard connection.isIdle else { return connection.retire() }
        discardIdle(connection)
        connectForAll(origin)
    }

    /// A stream has ended on a connection that may carry others.
    func streamEnded(_ connection: any PooledConnection) {
        guard connection.isIdle else { return roomChanged(connection) }
        connection.origin.shared.removeAll { $0 === connection }
        assign(connection, isFresh: !connection.hasCarriedRequest)
    }

    /// A connection in use may have room for more streams.
    func roomChanged(_ connection: any PooledConnection) {
        guard connection.hasRoom, !connection.isIdle else { return }
        if connection.origin.waiters.isEmpty { return share(connection) }
        assign(connection, isFresh: !connection.hasCarriedRequest)
    }

    /// The server of a new connection has said how many streams it allows.
    func settled(_ connection: any PooledConnection, streams: Int) {
        let origin = connection.origin
        origin.http2.allows(streams: streams)
        if streams == 0 {
            let consumer = takeWaiter(origin, isFresh: true, .failed)
            withdraw(connection)
            consumer?.upstreamFailed(StreamError(.server(.upstreamNotProcessed)))
        } else {
            roomChanged(connection)
        }
        connectForAll(origin)
    }

    /// Begins HTTP/2 in clear text, with a server that is known to speak it.
    func establishHTTP2(
        _ origin: Origin, _ made: EstablishedConnection, _ timeline: ConnectionTimeline,
        in session: TLSClientConnection?, _ client: IPNetwork?
    ) throws(ExchangeError) {
        let connection = HTTP2UpstreamConnection(
            pool: self, origin: origin,
            transport: Transport(descriptor: made.transport.descriptor, tls: session),
            endpoint: made.endpoint, client: client, timeline: timeline,
            trustEnds: session?.trustEnds)
        do throws(Errno) {
            try environment.loop.add(connection, descriptor: made.transport.descriptor)
        } catch {
            connection.abandon()
            throw .connectFailed(error)
        }
        environment.metrics.add(.upstreamConnectionsCreated)
        connection.begin()
        ready(connection)
    }
}
