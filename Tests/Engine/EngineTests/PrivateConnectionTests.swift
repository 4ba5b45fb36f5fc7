import EngineTestSupport
import EventLoop
import HTTPCore
import PinfoldConfiguration
import ProxyProtocols
import Testing

@testable import PinfoldEngine

@Suite("Connections that begin with a PROXY header")
struct PrivateConnectionTests {
    private let server: ScriptedServer

    init() throws { server = try ScriptedServer() }

    private static func ends(_ number: UInt8, port: UInt16 = 5000) -> ClientEnds {
        ClientEnds(
            source: Endpoint(address: .v4(0xC000_0200 + UInt32(number)), port: port),
            destination: Endpoint(address: .v4(0xC633_6401), port: 8080))
    }

    /// The header of version 1, as it is sent.
    private static func header(_ number: UInt8, port: UInt16 = 5000) -> String {
        "PROXY TCP4 192.0.2.\(number) 198.51.100.1 \(port) 8080\r\n"
    }

    private func origin(
        _ still: StillEngine, _ version: UpstreamProxyProtocol = .v1
    ) -> Origin {
        let upstream = UpstreamOrigin(scheme: .http, host: server.host, port: server.port)
        return still.environment.origins.origin(
            of: ReverseUpstream(upstream, forwarding: ForwardingConfiguration(), telling: version),
            policy: still.environment.policy)
    }

    private func acquire(
        _ still: StillEngine, _ ends: ClientEnds?, fresh: Bool = false
    ) -> ScriptedConsumer {
        let consumer = ScriptedConsumer()
        consumer.environment = still.environment
        consumer.clientEnds = ends
        consumer.clientNetwork = ends.map { IPNetwork(client: $0.source.address) }
        still.environment.upstreams.acquire(origin(still), for: consumer, fresh: fresh)
        return consumer
    }

    /// A consumer whose request has arrived, and the server's end.
    private func exchange(
        _ still: StillEngine, _ ends: ClientEnds?
    ) throws -> (consumer: ScriptedConsumer, peer: Peer) {
        let consumer = acquire(still, ends)
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        return (consumer, peer)
    }

    @Test func `the header comes first, and once for all requests of the client`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try exchange(still, Self.ends(1))
        #expect(peer.text.hasPrefix(Self.header(1) + "GET / HTTP/1.1\r\n"))
        still.answer(first, from: peer)
        peer.forget()
        let second = acquire(still, Self.ends(1))
        #expect(second.events == [.ready])
        #expect(second.upstream === first.lastUpstream)
        still.await("\r\n\r\n", at: peer)
        #expect(peer.text.hasPrefix("GET / HTTP/1.1\r\n"))
        #expect(still.metrics.value(.upstreamProxyHeadersClients) == 1)
        #expect(still.metrics.value(.upstreamConnectionsReused) == 1)
    }

    @Test(arguments: [(UInt8(2), UInt16(5000)), (1, 5001)])
    func `whoever else asks, and from another port, gets another`(
        number: UInt8, port: UInt16
    ) throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try exchange(still, Self.ends(1))
        still.answer(first, from: peer)
        let (second, other) = try exchange(still, Self.ends(number, port: port))
        #expect(other.text.hasPrefix(Self.header(number, port: port)))
        #expect(second.upstream !== first.lastUpstream)
        #expect(still.counts(origin(still)).idle == 1, "that of the first waits for it")
    }

    @Test func `the same client at another address of the gateway is told so`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try exchange(still, Self.ends(1))
        still.answer(first, from: peer)
        var ends = Self.ends(1)
        ends.destination.port = 8081
        let (_, other) = try exchange(still, ends)
        #expect(other.text.hasPrefix("PROXY TCP4 192.0.2.1 198.51.100.1 5000 8081\r\n"))
    }

    @Test func `requests of the gateway's own have connections of their own`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try exchange(still, nil)
        #expect(peer.text.hasPrefix("PROXY UNKNOWN\r\nGET / "))
        still.answer(first, from: peer)
        let (_, other) = try exchange(still, Self.ends(1))
        #expect(other.text.hasPrefix(Self.header(1)))
        #expect(acquire(still, nil).upstream === first.lastUpstream)
        #expect(still.metrics.value(.upstreamProxyHeadersOwn) == 1)
    }

    @Test func `idle ones end with their client's connection, and no others`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try exchange(still, Self.ends(1))
        let (second, other) = try exchange(still, Self.ends(2))
        still.answer(first, from: peer)
        still.answer(second, from: other)
        still.environment.clientLeft(Self.ends(1).source)
        #expect(peer.hasEnded && !other.hasEnded)
        #expect(
            still.counts(origin(still)) == PoolCounts(permits: 1, allPermits: 1, open: 1, idle: 1))
        still.environment.clientLeft(Self.ends(2).source)
        #expect(other.hasEnded)
        #expect(still.counts(origin(still)) == PoolCounts())
        #expect(still.pool.privateOrigins.isEmpty)
    }

    @Test func `one that is in use when its client leaves is not kept`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try exchange(still, Self.ends(1))
        let (second, other) = try exchange(still, Self.ends(2))
        still.environment.clientLeft(Self.ends(1).source)
        #expect(!peer.hasEnded)
        still.answer(first, from: peer)
        still.answer(second, from: other)
        #expect(peer.hasEnded && !other.hasEnded)
        #expect(still.counts(origin(still)).open == 1)
        still.environment.clientLeft(Self.ends(2).source)
        #expect(still.pool.privateUses.isEmpty)
    }

    @Test func `at the limit they make room for each other, and clients take turns`() throws {
        let still = try StillEngine.reachingLoopback("limits: { upstreamPerHost: 1 }")
        let (first, peer) = try exchange(still, Self.ends(1))
        let again = acquire(still, Self.ends(1))
        let other = acquire(still, Self.ends(2))
        #expect(!again.isReady && !other.isReady)
        peer.forget()
        still.answer(first, from: peer)
        // The first client waits longest, and its connection is there.
        #expect(again.isReady && again.upstream === first.lastUpstream)
        let third = acquire(still, Self.ends(1))
        still.await("\r\n\r\n", at: peer)
        still.answer(again, from: peer)
        // It is the other's turn: the connection is of no use to it.
        #expect(!third.isReady)
        #expect(peer.hasEnded)
        let next = try still.peer(of: server)
        still.await("\r\n\r\n", at: next)
        #expect(next.text.hasPrefix(Self.header(2)))
        still.answer(other, from: next)
        let last = try still.peer(of: server)
        still.await("\r\n\r\n", at: last)
        #expect(last.text.hasPrefix(Self.header(1)) && third.isReady)
    }

    @Test func `an idle one is kept while others only wait for theirs to be made`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try exchange(still, Self.ends(1))
        let other = acquire(still, Self.ends(2))
        still.answer(first, from: peer)
        #expect(!peer.hasEnded)
        let next = try still.peer(of: server)
        still.await("\r\n\r\n", at: next)
        #expect(other.isReady)
        #expect(acquire(still, Self.ends(1)).upstream === first.lastUpstream)
    }

    @Test func `one whose client has left before is closed, and sends nothing`() throws {
        let still = try StillEngine.reachingLoopback()
        let leaving = acquire(still, Self.ends(1))
        still.environment.upstreams.abandon(origin(still), leaving)
        let peer = try still.peer(of: server)
        still.turn(until: "it is closed") { peer.hasEnded }
        #expect(peer.text.isEmpty)
        #expect(still.counts(origin(still)) == PoolCounts())
    }

    @Test func `whoever waits gets the connection of one who has left, with its own header`() throws
    {
        let still = try StillEngine.reachingLoopback()
        let leaving = acquire(still, Self.ends(1))
        let staying = acquire(still, Self.ends(2))
        still.environment.upstreams.abandon(origin(still), leaving)
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        #expect(peer.text.hasPrefix(Self.header(2)))
        #expect(staying.isReady)
        let other = try still.peer(of: server)
        still.turn(until: "the other is closed") { other.hasEnded }
        #expect(other.text.isEmpty && leaving.events.isEmpty)
    }

    @Test func `a connection that fails is told to the one for whom it was made`() throws {
        let still = try StillEngine.reachingLoopback("tls: { roots: [system] }")
        let upstream = UpstreamOrigin(scheme: .https, host: server.host, port: server.port)
        let secure = still.environment.origins.origin(
            of: ReverseUpstream(upstream, forwarding: ForwardingConfiguration(), telling: .v1),
            policy: still.environment.policy)
        let consumers = (1...2).map { number in
            let consumer = ScriptedConsumer()
            consumer.environment = still.environment
            consumer.clientEnds = Self.ends(UInt8(number))
            still.environment.upstreams.acquire(secure, for: consumer, fresh: false)
            return consumer
        }
        let peers = [try still.peer(of: server), try still.peer(of: server)]
        for peer in peers { still.turn(until: "a handshake begins") { peer.read().count > 60 } }
        let second = try #require(peers.first { $0.text.hasPrefix(Self.header(2)) })
        second.close()
        still.turn(until: "its consumer is told") { consumers[1].isOver }
        #expect(!consumers[0].isOver && !consumers[0].isReady)
        // One that has left takes nobody else's failure.
        still.environment.upstreams.abandon(secure, consumers[0])
        let third = ScriptedConsumer()
        third.environment = still.environment
        third.clientEnds = Self.ends(3)
        still.environment.upstreams.acquire(secure, for: third, fresh: false)
        let next = try still.peer(of: server)
        still.turn(until: "a handshake begins") { next.read().count > 60 }
        peers.first { $0 !== second }?.close()
        still.settle()
        #expect(!third.isOver)
        next.close()
        still.turn(until: "it fails") { third.isOver }
        #expect(still.counts(secure) == PoolCounts())
    }

    @Test func `a reload tells those for whom a connection is being made`() throws {
        let still = try StillEngine.reachingLoopback()
        let consumer = acquire(still, Self.ends(1))
        still.pool.retire(origin(still))
        #expect(consumer.failure == .gateway(.superseded))
    }

    @Test func `HTTP/2 is not offered to such a server`() throws {
        let still = try StillEngine.reachingLoopback()
        let upstream = UpstreamOrigin(scheme: .https, host: "a.test", port: 443)
        func origin(_ header: UpstreamProxyProtocol) -> Origin {
            still.environment.origins.origin(
                of: ReverseUpstream(
                    upstream, forwarding: ForwardingConfiguration(), telling: header),
                policy: still.environment.policy)
        }
        #expect(origin(.none).http2.isOffered && origin(.none).ways == nil)
        #expect(!origin(.v2).http2.isOffered && origin(.v2).key.takesOnlyHTTP1)
        #expect(origin(.v1) !== origin(.v2))
    }
}
