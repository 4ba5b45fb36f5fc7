import EventLoop
import HTTPCore
import PinfoldTLS
import ProxyProtocols

/// Whose connection to a server it is: its PROXY header has told the server for whom all of its
/// requests are.
final class PrivateUse {
    let origin: ProxyHeader.Origin
    /// The network of the client for whom it was made; `nil` if for none.
    let client: IPNetwork?
    /// Whether that client's connection has ended while this one was in use: it is not kept.
    fileprivate(set) var clientHasLeft = false
    /// The wait that it was made to end (`WaiterQueue.claim`), until it is over.
    fileprivate var claim: UInt64?

    fileprivate init(_ origin: ProxyHeader.Origin, _ client: IPNetwork?, claim: UInt64) {
        self.origin = origin
        self.client = client
        self.claim = claim
    }

    /// The client's address; `nil` if it is the gateway's own.
    fileprivate var source: Endpoint? {
        if case .client(let source, _) = origin { source } else { nil }
    }
}

extension UpstreamConsumer {
    /// For whom a connection is that carries its requests.
    fileprivate var headerOrigin: ProxyHeader.Origin {
        clientEnds.map { .client(source: $0.source, destination: $0.destination) } ?? .sender
    }
}

// Connections that begin with a PROXY header. What it says holds for all that follows, so such a
// connection carries requests with the same header only: those of one connection of a client, or
// those that are the gateway's own.
//
//     an idle connection with this header ──► used again
//     none ──► connected ──► the header of the first who waits ──► TLS ──► given to that one
//                                                         which has left ──► idle, or closed
//     its client's connection has ended ──► closed if idle
//
// In all else they are like others: the limit on connections to the server is one for all clients,
// and idle ones make room for whoever waits.
extension UpstreamPool {
    /// Gets a connection for the consumer that is, or becomes, that of its client.
    func acquirePrivately(_ origin: Origin, for consumer: any UpstreamConsumer, fresh: Bool) {
        privateOrigins[ObjectIdentifier(origin)] = origin
        let checked = !consumer.mayBeRepeated
        if !fresh, let connection = takeIdle(origin, of: consumer.headerOrigin, checked: checked) {
            environment.metrics.add(.upstreamConnectionsReused)
            if environment.traces {
                traceReuse(connection, consumer, idleSince: connection.idleSince)
            }
            return give(connection, to: consumer)
        }
        connectOrWait(origin, for: consumer, fresh: fresh)
    }

    private func takeIdle(
        _ origin: Origin, of client: ProxyHeader.Origin, checked: Bool
    ) -> (any PooledConnection)? {
        let checked = checked || environment.loop.mayHaveMoreEvents
        while let index = origin.idle.lastIndex(where: { $0.privateUse?.origin == client }) {
            let connection = origin.idle.remove(at: index)
            countIdle(-1, origin)
            if !connection.hasCarriedRequest { isNoLongerUnused(connection) }
            guard isTrusted(connection) else {
                endTrust(connection)
                continue
            }
            if !checked || connection.isQuiet { return connection }
            if environment.traces { traceEvicted(connection, .serverEndedOrSpoke) }
            connection.close()
        }
        return nil
    }

    /// Gives a connection that has just been made to the first who waits.
    ///
    /// - Returns: `nil` if nobody waits for it any more; it is closed then.
    func claim(
        _ origin: Origin, for made: EstablishedConnection, _ timeline: ConnectionTimeline
    ) -> PrivateUse? {
        if let (claim, waiter) = origin.waiters.claim() {
            let consumer = waiter.consumer
            let use = PrivateUse(consumer.headerOrigin, consumer.clientNetwork, claim: claim)
            if let source = use.source { privateUses[source, default: []].append(use) }
            return use
        }
        made.transport.close()
        connectionGivenUp(origin, timeline)
        forgetIfUnused(origin)
        return nil
    }

    /// The connection of a use is gone, or was not made.
    func forget(_ use: PrivateUse) {
        guard let source = use.source else { return }
        privateUses[source]?.removeAll { $0 === use }
        if privateUses[source]?.isEmpty ?? false { privateUses[source] = nil }
    }

    /// Sends the header with which a connection begins.
    /// - Parameter session: the TLS session with a proxy that carries the tunnel; `nil` if there is
    ///   none.
    func sendHeader(
        _ version: ProxyHeader.Version, of use: PrivateUse, on made: EstablishedConnection,
        in session: TLSClientConnection?
    ) throws(ExchangeError) {
        let transport = Transport(descriptor: made.transport.descriptor, tls: session)
        let header = ProxyHeader(version, use.origin)
        guard transport.sendAtOnce(header.bytes(), on: environment.loop) else {
            throw .server(.upstreamClosed)
        }
        environment.metrics.add(
            use.source == nil ? .upstreamProxyHeadersOwn : .upstreamProxyHeadersClients)
    }

    /// Takes the waiter that a connection was made for; `nil` if it does not wait any more.
    func takeClaimant(
        _ origin: Origin, _ use: PrivateUse?, _ end: PoolWaitEnd
    ) -> (any UpstreamConsumer)? {
        guard let use, let claim = use.claim else { return nil }
        use.claim = nil
        guard let waiter = origin.waiters.take(claim: claim) else { return nil }
        waitEnded(waiter, origin, end)
        return waiter.consumer
    }

    /// Takes the first waiter that can use a connection. That of one client is only for the one
    /// that it was made for, and for the same client if it is its turn.
    func takeWaiter(
        _ origin: Origin, for connection: any PooledConnection, isFresh: Bool, _ end: PoolWaitEnd
    ) -> (any UpstreamConsumer)? {
        guard let use = connection.privateUse else {
            return takeWaiter(origin, isFresh: isFresh, end)
        }
        if let claimant = takeClaimant(origin, use, end) { return claimant }
        guard let first = origin.waiters.first(isFresh: isFresh),
            first.consumer.headerOrigin == use.origin
        else { return nil }
        return takeWaiter(origin, isFresh: isFresh, end)
    }

    /// Whether an idle connection is kept for its client although others wait: for each of them
    /// another one is being made.
    func staysForItsClient(_ connection: any PooledConnection) -> Bool {
        connection.privateUse != nil && !connection.origin.needsConnection
    }

    /// Why a connection that has nothing to do is closed.
    func reasonNotToKeep(_ connection: any PooledConnection) -> PoolClosing {
        if environment.isDraining { return .draining }
        if connection.privateUse?.clientHasLeft ?? false { return .clientLeft }
        return isOverLimit(connection.origin) ? .overLimit : .waitedForElsewhere
    }

    /// A connection of a client has ended: closes the idle ones that were made for it alone, and
    /// those in use when they are returned.
    func clientLeft(_ client: Endpoint) {
        for use in privateUses[client] ?? [] { use.clientHasLeft = true }
        for (key, origin) in privateOrigins {
            for connection in origin.idle where connection.privateUse?.source == client {
                discardIdle(connection, .clientLeft)
            }
            if origin.isUnused { privateOrigins[key] = nil }
        }
    }
}

extension Environment {
    /// A connection of a client has ended.
    package func clientLeft(_ client: Endpoint) {
        guard let pool, !pool.privateOrigins.isEmpty else { return }
        pool.clientLeft(client)
    }
}

extension Transport {
    /// Sends a few bytes on a connection that has just been established, and therefore takes them.
    /// Returns false if it does not: it cannot be used.
    func sendAtOnce(_ bytes: [UInt8], on loop: EventLoop) -> Bool {
        let buffer = loop.buffers.holding(bytes)
        var output = OutputQueue()
        output.append(buffer.readable, owner: buffer)
        var budget = TurnBudget()
        budget.renew(loop)
        if case .drained = flush(&output, on: loop, spending: &budget) { return true }
        output.discard()
        return false
    }
}
