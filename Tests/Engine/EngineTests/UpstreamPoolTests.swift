import EngineTestSupport
import EventLoop
import HTTPCore
import PinfoldConfiguration
import Testing

@testable import PinfoldEngine

@Suite("The pool of connections to servers")
struct UpstreamPoolTests {
    private let server: ScriptedServer

    init() throws { server = try ScriptedServer() }

    // MARK: Idle connections

    @Test func `hands an idle connection to the next consumer, at once`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try still.exchange(server)
        still.answer(first, from: peer)
        let origin = try still.origin(server)
        #expect(still.counts(origin) == PoolCounts(permits: 1, allPermits: 1, open: 1, idle: 1))

        let second = try still.acquire(server)
        #expect(second.events == [.ready])
        #expect(second.upstream === first.lastUpstream)
        #expect(still.counts(origin) == PoolCounts(permits: 1, allPermits: 1, open: 1))
        #expect(still.metrics.value(.upstreamConnectionsReused) == 1)
        #expect(openConnections(toPort: server.port) == 1)
    }

    @Test func `makes a new connection for a consumer that needs an unused one`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try still.exchange(server)
        still.answer(first, from: peer)
        let second = try still.acquire(server, fresh: true)
        #expect(second.events.isEmpty)
        _ = try still.peer(of: server)
        still.turn(until: "it is ready") { second.isReady }
        #expect(second.upstream !== first.lastUpstream)
        #expect(
            still.counts(try still.origin(server))
                == PoolCounts(permits: 2, allPermits: 2, open: 2, idle: 1))
    }

    @Test func `hands out the most recently used connection, so that the others can expire`() throws
    {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try still.exchange(server)
        let (second, other) = try still.exchange(server)
        still.answer(first, from: peer)
        still.answer(second, from: other)
        #expect(try still.acquire(server).upstream === second.lastUpstream)
        #expect(try still.acquire(server).upstream === first.lastUpstream)
    }

    @Test func `keeps no connection that its server has closed`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try still.exchange(server)
        still.answer(first, from: peer)
        peer.close()
        still.turn(until: "it is given up") { openConnections(toPort: server.port) == 0 }
        #expect(still.counts(try still.origin(server)) == PoolCounts())
    }

    @Test func `looks at the socket first for a request that may not be sent twice`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try still.exchange(server)
        still.answer(first, from: peer)
        peer.close()
        let consumer = ScriptedConsumer("POST / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        consumer.mayBeRepeated = false
        try still.acquire(server, for: consumer)
        #expect(!consumer.isReady, "the event for the end has not been handled yet")
        let next = try still.peer(of: server)
        still.turn(until: "the request arrives") { !next.read().isEmpty }
        #expect(consumer.upstream !== first.lastUpstream)
        #expect(openConnections(toPort: server.port) == 1)
    }

    @Test func `never takes unsolicited data on an idle connection for a response`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try still.exchange(server)
        still.answer(first, from: peer)
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        still.turn(until: "it is closed") { peer.hasEnded }
        #expect(still.counts(try still.origin(server)) == PoolCounts())
        #expect(first.events == [.ready, .head(204), .ended(trailers: nil)])
    }

    /// They and their origin refer to each other, and would keep the environment in memory.
    @Test func `closes idle connections of an origin in no table with the environment`() throws {
        let still = try StillEngine.reachingLoopback()
        let origin = Origin(
            named: UpstreamOrigin(scheme: .http, host: server.host, port: server.port),
            context: TestIdentity.client, policy: still.environment.policy)
        let consumer = ScriptedConsumer()
        consumer.environment = still.environment
        still.environment.upstreams.acquire(origin, for: consumer, fresh: false)
        let peer = try still.peer(of: server)
        still.turn(until: "the request arrives") { !peer.read().isEmpty }
        still.answer(consumer, from: peer)
        #expect(origin.idle.count == 1)
        still.environment.closeConnections()
        #expect(peer.hasEnded)
        #expect(origin.idle.isEmpty)
        #expect(still.counts(origin) == PoolCounts())
    }

    @Test func `refuses a connection whose server has sent data before a request`() throws {
        let still = try StillEngine.reachingLoopback()
        let consumer = try still.acquire(server)
        let peer = try still.peer(of: server)
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        still.turn(until: "it fails") { consumer.isOver }
        #expect(
            consumer.events == [.failed(.server(.upstreamSpokeUnasked), responseStarted: false)])
        #expect(peer.hasEnded)
        #expect(peer.text.isEmpty, "no request was sent")
        #expect(still.counts(try still.origin(server)) == PoolCounts())
    }

    @Test func `closes a connection that was idle for its time`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try still.exchange(server)
        still.answer(first, from: peer)
        first.lastConnection?.deadlineReached()
        #expect(peer.hasEnded)
        #expect(still.counts(try still.origin(server)) == PoolCounts())
    }

    // MARK: Waiting

    @Test func `queues consumers at the limit, first come, first served`() throws {
        let still = try StillEngine.reachingLoopback("limits: { upstreamPerHost: 1 }")
        let (first, peer) = try still.exchange(server)
        let waiting = try (0..<3).map { _ in try still.acquire(server) }
        let origin = try still.origin(server)
        #expect(
            still.counts(origin)
                == PoolCounts(permits: 1, allPermits: 1, waitingExchanges: 3, open: 1, waiting: 3))
        var current = first
        for (index, next) in waiting.enumerated() {
            peer.forget()
            still.answer(current, from: peer)
            #expect(waiting.map(\.isReady) == (0..<3).map { $0 == index })
            still.turn(until: "the request arrives") { !peer.read().isEmpty }
            #expect(next.upstream === first.lastUpstream)
            current = next
        }
        still.answer(current, from: peer)
        #expect(still.counts(origin) == PoolCounts(permits: 1, allPermits: 1, open: 1, idle: 1))
        #expect(still.metrics.value(.poolWaits) == 3)
        #expect(openConnections(toPort: server.port) == 1)
    }

    @Test
    func `makes another connection for a waiter if the previous one cannot be kept`() throws {
        let still = try StillEngine.reachingLoopback("limits: { upstreamPerHost: 1 }")
        let (first, peer) = try still.exchange(server)
        let second = try still.acquire(server)
        peer.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        let next = try still.peer(of: server)
        still.turn(until: "the request arrives") { !next.read().isEmpty }
        #expect(first.isOver && second.isReady)
        #expect(
            still.counts(try still.origin(server))
                == PoolCounts(permits: 1, allPermits: 1, open: 1))
    }

    @Test func `closes an idle connection for a waiter that needs an unused one`() throws {
        let still = try StillEngine.reachingLoopback("limits: { upstreamPerHost: 1 }")
        let (first, peer) = try still.exchange(server)
        still.answer(first, from: peer)
        let second = try still.acquire(server, fresh: true)
        #expect(peer.hasEnded)
        let next = try still.peer(of: server)
        still.turn(until: "the request arrives") { !next.read().isEmpty }
        #expect(second.isReady)
        #expect(
            still.counts(try still.origin(server))
                == PoolCounts(permits: 1, allPermits: 1, open: 1))
    }

    @Test func `refuses consumers when the queue is full`() throws {
        let still = try StillEngine.reachingLoopback(
            "limits: { upstreamPerHost: 1, pending: 1 }")
        let (first, peer) = try still.exchange(server)
        let second = try still.acquire(server)
        let third = try still.acquire(server)
        #expect(second.events.isEmpty)
        #expect(third.events == [.failed(.gateway(.tooManyPending), responseStarted: false)])
        #expect(still.metrics.value(.poolWaitRefusals) == 1)
        #expect(still.counts(try still.origin(server)).waitingExchanges == 1)
        still.answer(first, from: peer)
        #expect(second.isReady)
    }

    @Test func `refuses the last of the client with the most when the queue is full`() throws {
        let still = try StillEngine.reachingLoopback(
            "limits: { upstreamPerHost: 1, pending: 3 }")
        let (first, peer) = try still.exchange(server)
        func acquire(_ client: String) throws -> ScriptedConsumer {
            let consumer = ScriptedConsumer()
            consumer.clientNetwork = try IPNetwork(#require(IPAddress(client)))
            try still.acquire(server, for: consumer)
            return consumer
        }
        let many = try (0..<4).map { _ in try acquire("192.0.2.1") }
        #expect(many.map(\.isOver) == [false, false, false, true])
        let other = try acquire("192.0.2.2")
        #expect(!other.isOver)
        #expect(many[2].events == [.failed(.gateway(.tooManyPending), responseStarted: false)])
        // Now it has but one more.
        let another = try acquire("192.0.2.2")
        #expect(another.events == [.failed(.gateway(.tooManyPending), responseStarted: false)])
        #expect(still.counts(try still.origin(server)).waitingExchanges == 3)
        #expect(still.metrics.value(.poolWaitRefusals) == 3)
        still.answer(first, from: peer)
        #expect(many[0].isReady && !other.isReady)
    }

    @Test func `frees the queue position of a waiter that leaves`() throws {
        let still = try StillEngine.reachingLoopback(
            "limits: { upstreamPerHost: 1, pending: 2 }")
        let origin = try still.origin(server)
        let (first, peer) = try still.exchange(server)
        let second = try still.acquire(server)
        let third = try still.acquire(server)
        still.pool.abandon(origin, second)
        still.pool.abandon(origin, second)
        #expect(still.counts(origin).waitingExchanges == 1)
        let fourth = try still.acquire(server)
        #expect(!fourth.isOver)
        still.answer(first, from: peer)
        #expect([second, third, fourth].map(\.isReady) == [false, true, false])
        #expect(second.events.isEmpty)
        still.pool.abandon(origin, fourth)
        #expect(still.counts(origin) == PoolCounts(permits: 1, allPermits: 1, open: 1))
    }

    @Test func `keeps a connection whose waiter gave up meanwhile`() throws {
        let still = try StillEngine.reachingLoopback()
        let origin = try still.origin(server)
        let consumer = try still.acquire(server)
        let peer = try still.peer(of: server)
        still.pool.abandon(origin, consumer)
        still.turn(until: "it is established") { origin.open == 1 }
        #expect(still.counts(origin) == PoolCounts(permits: 1, allPermits: 1, open: 1, idle: 1))
        #expect(try still.acquire(server).isReady)
        still.turn(until: "the request arrives") { !peer.read().isEmpty }
        #expect(consumer.events.isEmpty)
    }

    @Test func `sends waiters back to find their origin again when its policy is replaced`() throws
    {
        let still = try StillEngine.reachingLoopback("limits: { upstreamPerHost: 2 }")
        let origin = try still.origin(server)
        let (first, idlePeer) = try still.exchange(server)
        let (busy, busyPeer) = try still.exchange(server)
        let waiting = try (0..<2).map { _ in try still.acquire(server) }
        still.pool.abandon(origin, waiting[1])
        still.pool.retire(origin)
        #expect(
            waiting[0].events == [.failed(.gateway(.superseded), responseStarted: false)])
        #expect(waiting[1].events.isEmpty)
        #expect(still.counts(origin) == PoolCounts(permits: 2, allPermits: 2, open: 2))

        still.answer(first, from: idlePeer)
        still.pool.retire(origin)
        #expect(idlePeer.hasEnded)
        #expect(!busyPeer.hasEnded, "what is in use ends with its exchange")
        #expect(still.counts(origin) == PoolCounts(permits: 1, allPermits: 1, open: 1))
        still.answer(busy, from: busyPeer)
    }

    // MARK: All origins together

    @Test func `closes the longest idle connection of all for another origin's`() throws {
        let still = try StillEngine.reachingLoopback("limits: { connections: 2 }")
        let servers = [server, try ScriptedServer(), try ScriptedServer()]
        let (first, peer) = try still.exchange(servers[0])
        still.answer(first, from: peer)
        let (second, other) = try still.exchange(servers[1])
        still.answer(second, from: other)
        let (third, _) = try still.exchange(servers[2])
        #expect(third.isReady)
        #expect(peer.hasEnded && !other.hasEnded)
        #expect(still.counts(try still.origin(servers[0])).permits == 0)
        #expect(
            still.counts(try still.origin(servers[1]))
                == PoolCounts(permits: 1, allPermits: 2, open: 2, idle: 1))
    }

    @Test
    func `connects for another origin's waiter when a permit of the total limit becomes free`()
        throws
    {
        let still = try StillEngine.reachingLoopback("limits: { connections: 1 }")
        let other = try ScriptedServer()
        let (first, peer) = try still.exchange(server)
        let second = try still.acquire(other)
        still.settle()
        #expect(other.accept() == nil)
        #expect(
            still.counts(try still.origin(other))
                == PoolCounts(allPermits: 1, waitingExchanges: 1, open: 1, waiting: 1))
        still.answer(first, from: peer)
        let next = try still.peer(of: other)
        still.turn(until: "the request arrives") { !next.read().isEmpty }
        #expect(second.isReady)
        #expect(peer.hasEnded, "it makes room instead of being kept")
        #expect(
            still.counts(try still.origin(other)) == PoolCounts(permits: 1, allPermits: 1, open: 1))
        #expect(still.counts(try still.origin(server)).permits == 0)
    }

    // MARK: Places

    /// The ways in which an exchange and its connection can end.
    enum Ending: CaseIterable {
        case refusedPort, reset, closedBeforeHead, truncated, malformed, notPersistent
        case cancelled, timedOut, detached, closedWhileIdle, spokeUnasked, poolEnds
    }

    @Test(arguments: Ending.allCases)
    func `gives permits back once, whatever ends a connection`(_ ending: Ending) throws {
        let still = try StillEngine.reachingLoopback()
        let server = try ScriptedServer(listens: ending != .refusedPort)
        let origin = try still.origin(server)
        let handlers = still.loop.handlerCount
        for _ in 0..<2 {
            try end(ending, still, server)
            still.turn(until: "nothing is open") { openConnections(toPort: server.port) == 0 }
            #expect(still.counts(origin) == PoolCounts())
            #expect(origin.isUnused)
            #expect(still.pool.byLimit.isEmpty)
            #expect(still.loop.handlerCount == handlers)
        }
        still.settle()
        #expect(still.loop.buffers.outstanding == 0)
    }

    private func end(_ ending: Ending, _ still: StillEngine, _ server: ScriptedServer) throws {
        if ending == .refusedPort || ending == .spokeUnasked {
            let consumer = try still.acquire(server)
            if ending == .spokeUnasked { try still.peer(of: server).send("220 hello\r\n") }
            return still.turn(until: "it fails") { consumer.isOver }
        }
        let consumer = ScriptedConsumer()
        consumer.asksForUpgrade = ending == .detached
        let (_, peer) = try still.exchange(server, for: consumer)
        switch ending {
        case .refusedPort, .spokeUnasked: return
        case .reset: peer.reset()
        case .closedBeforeHead: peer.close()
        case .truncated:
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc")
            peer.close()
        case .malformed: peer.send("HTTP/1.1 two hundred\r\n\r\n")
        case .notPersistent: peer.send("HTTP/1.0 204 No Content\r\n\r\n")
        case .cancelled: return consumer.upstream?.cancel() ?? ()
        case .timedOut: consumer.connection?.deadlineReached()
        case .detached:
            let upstream = try #require(consumer.connection)
            var descriptor: Int32?
            consumer.atHead = { descriptor = upstream.handOver().transport.descriptor }
            still.deliver("HTTP/1.1 101 Switching Protocols\r\n\r\n", from: peer)
            return Descriptors.close(try #require(descriptor))
        case .closedWhileIdle:
            still.answer(consumer, from: peer)
            return peer.close()
        case .poolEnds:
            still.answer(consumer, from: peer)
            return still.pool.closeIdle(try still.origin(server), .draining)
        }
        still.turn(until: "it is over") { consumer.isOver }
    }
}
