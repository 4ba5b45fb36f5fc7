import EngineTestSupport
import HTTPCore
import PinfoldConfiguration
import Testing

@testable import PinfoldEngine

/// A parent that is asked with the credentials of different clients, each on connections of their
/// own.
@Suite("The limit on connections to a parent")
struct LimitedOriginsTests {
    private let parent: ScriptedServer

    init() throws { parent = try ScriptedServer() }

    private func bench(_ limits: String) throws -> Bench { try Bench(parent, limits) }

    @Test func `holds over the credentials of all clients`() throws {
        let bench = try bench("upstreamPerHost: 2")
        let asked = try (0..<3).map { try bench.acquire("value\($0)", client: 1) }
        let peers = try (0..<2).map { _ in try bench.arrival() }
        bench.still.settle()
        #expect(parent.accept() == nil)
        #expect(asked.map(\.isReady) == [true, true, false])
        #expect(bench.permits == 2)
        // An idle connection is of no use to others, and makes room.
        bench.still.answer(asked[0], from: peers[0])
        let next = try bench.arrival()
        #expect(asked[2].isReady)
        #expect(peers[0].hasEnded && !peers[1].hasEnded)
        #expect(bench.permits == 2)
        bench.still.answer(asked[1], from: peers[1])
        bench.still.answer(asked[2], from: next)
        #expect(!next.hasEnded)
        let again = try bench.acquire("value3", client: 1)
        _ = try bench.arrival()
        #expect(again.isReady && bench.permits == 2)
        #expect(peers[1].hasEnded != next.hasEnded, "one of them made room")
    }

    @Test func `is shared by clients, however many credentials one of them has`() throws {
        let bench = try bench("upstreamPerHost: 4, pending: 100")
        let first = try (0..<20).map { try bench.acquire("mine\($0)", client: 1) }
        var peers = try (0..<4).map { _ in try bench.arrival() }
        #expect(first.map(\.isReady).prefix(5) == [true, true, true, true, false])
        let other = try bench.acquire("other", client: 2)
        bench.still.answer(first[0], from: peers.removeFirst())
        peers.append(try bench.arrival())
        #expect(other.isReady, "it has none, and the other one has three")
        #expect(first.filter(\.isReady).count == 3)
    }

    @Test func `gives a client who has none its turn, before more of the same credentials`()
        throws
    {
        let bench = try bench("upstreamPerHost: 1, pending: 100")
        let first = try bench.acquire("mine", client: 1)
        let peer = try bench.arrival()
        let second = try bench.acquire("mine", client: 1)
        let other = try bench.acquire("other", client: 2)
        bench.still.answer(first, from: peer)
        let next = try bench.arrival()
        #expect(other.isReady && !second.isReady)
        #expect(peer.hasEnded)
        bench.still.answer(other, from: next)
        _ = try bench.arrival()
        #expect(second.isReady)
        #expect(bench.permits == 1)
    }

    @Test func `gives each client its turn, whoever has how many credentials`() throws {
        let bench = try bench("upstreamPerHost: 1, pending: 100")
        var asked = try (0..<5).map { try bench.acquire("mine\($0)", client: 1) }
        asked += try (2..<4).map { try bench.acquire("other\($0)", client: $0) }
        var order: [Int] = []
        for _ in asked {
            let peer = try bench.arrival()
            let index = try #require(asked.firstIndex { $0.isReady })
            order.append(index)
            bench.still.answer(asked[index], from: peer)
        }
        #expect(order == [0, 5, 6, 1, 2, 3, 4])
        #expect(bench.permits == 1)
    }

    @Test func `keeps connections where nobody else has fewer`() throws {
        let bench = try bench("upstreamPerHost: 2, pending: 100")
        let one = try bench.acquire("mine", client: 1)
        let peer = try bench.arrival()
        _ = try bench.acquire("other", client: 2)
        let otherPeer = try bench.arrival()
        let second = try bench.acquire("mine", client: 1)
        _ = try bench.acquire("other", client: 2)
        peer.forget()
        bench.still.answer(one, from: peer)
        #expect(second.isReady && !peer.hasEnded)
        #expect(second.upstream === one.lastUpstream)
        #expect(!otherPeer.hasEnded)
    }

    @Test func `refuses the last of the client with the most when the queue is full`() throws {
        let bench = try bench("upstreamPerHost: 1, pending: 3")
        let first = try bench.acquire("mine", client: 1)
        let peer = try bench.arrival()
        let many = try (0..<4).map { try bench.acquire("mine\($0)", client: 1) }
        #expect(many.map(\.isOver) == [false, false, false, true])
        let other = try bench.acquire("other", client: 2)
        #expect(!other.isOver)
        #expect(many.count(where: \.isOver) == 2)
        bench.still.answer(first, from: peer)
        _ = try bench.arrival()
        #expect(other.isReady)
    }

    @Test func `is free again when all have left`() throws {
        let bench = try bench("upstreamPerHost: 2, pending: 100")
        let asked = try (0..<6).map { try bench.acquire("value\($0)", client: UInt8($0)) }
        for _ in 0..<2 { _ = try bench.arrival() }
        for (index, consumer) in asked.enumerated() where index >= 2 {
            bench.still.pool.abandonByWay(try bench.origin("value\(index)"), consumer)
        }
        for consumer in asked.prefix(2) { consumer.upstream?.cancel() }
        bench.still.settle()
        #expect(bench.permits == 0)
        #expect(bench.still.pool.byLimit.isEmpty)
        #expect(parent.accept() == nil, "nobody waits")
    }

    @Test func `leaves nobody behind when two connections end at once`() throws {
        let bench = try bench("upstreamPerHost: 2, pending: 100")
        let first = try (0..<2).map { _ in try bench.acquire("mine", client: 1) }
        let former = try first.map { _ in try bench.arrival() }
        let waiting = try (2..<5).map { try bench.acquire("value\($0)", client: $0) }
        for consumer in first { consumer.upstream?.cancel() }
        let peers = try (0..<2).map { _ in try bench.arrival() }
        #expect(former.map(\.hasEnded) == [true, true])
        #expect(waiting.map(\.isReady) == [true, true, false])
        bench.still.answer(waiting[0], from: peers[0])
        let last = try bench.arrival()
        #expect(waiting[2].isReady)
        #expect(bench.permits == 2 && !peers[1].hasEnded && !last.hasEnded)
    }

    @Test func `leaves nobody behind when there is no other permit`() throws {
        let bench = try bench("upstreamPerHost: 1, connections: 1, pending: 100")
        let first = try bench.acquire("mine", client: 1)
        let former = try bench.arrival()
        let waiting = try (2..<4).map { try bench.acquire("value\($0)", client: $0) }
        first.upstream?.cancel()
        // A tunnel to another server takes the only permit for all before it is theirs.
        let other = ScriptedConsumer()
        other.environment = bench.still.environment
        bench.still.pool.acquireByWay(
            try bench.origin(nil, host: "127.0.0.1", isTunnelled: true), for: other, fresh: false)
        let tunnel = try bench.arrival()
        bench.still.settle()
        #expect(former.hasEnded)
        #expect(waiting.map(\.isReady) == [false, false])
        tunnel.close()
        let peer = try bench.arrival()
        #expect(waiting.map(\.isReady) == [true, false])
        bench.still.answer(waiting[0], from: peer)
        _ = try bench.arrival()
        #expect(waiting[1].isReady)
    }

    @Test func `is not held by an origin whose sibling is unused again`() throws {
        let bench = try bench("upstreamPerHost: 2")
        let environment = bench.still.environment
        let elder = environment.origins.origin(
            of: ReverseUpstream(host: "a.test", port: 443, isSecure: true),
            policy: environment.policy)
        #expect(elder.http2.isOffered)
        let sibling = elder.inHTTP1
        for origin in [elder, sibling] { #expect(bench.still.pool.takePermits(origin)) }
        sibling.open = 1
        bench.still.pool.forgetIfUnused(elder)
        #expect(elder.isAmongLimited, "its sibling is in use")
        sibling.open = 0
        bench.still.pool.forgetIfUnused(sibling)
        #expect(bench.still.pool.byLimit.isEmpty)
        for origin in [elder, sibling] {
            bench.still.pool.giveBack([.origin, .total], of: origin)
        }
    }

    @Test func `is one for each server that tunnels lead to`() throws {
        let bench = try bench("upstreamPerHost: 2")
        func limit(_ credentials: String?, _ host: String) throws -> SharedLimit {
            bench.still.pool.limit(of: try bench.origin(credentials, host: host, isTunnelled: true))
        }
        #expect(try limit("a", "one.test") === limit("b", "one.test"))
        #expect(try limit("a", "one.test") === limit(nil, "one.test"))
        #expect(try limit("a", "one.test") !== limit("a", "two.test"))
        let forwarded = bench.still.pool.limit(of: try bench.origin("a"))
        #expect(try forwarded !== limit("a", "one.test"))
    }

    @Test(
        arguments: [
            (1, 0, true), (5, 0, true), (1, 1, false), (2, 1, false), (3, 1, true), (3, 2, false),
            (0, 1, false),
        ])
    func `moves to who has clearly fewer`(own: Int, other: Int, givesWay: Bool) {
        #expect(LimitedOrigins.givesWay(own, to: other) == givesWay)
    }
}

private final class Bench {
    let still: StillEngine
    private let parent: ScriptedServer
    /// A peer that nobody keeps ends its connection.
    private var peers: [Peer] = []

    init(_ parent: ScriptedServer, _ limits: String) throws {
        self.parent = parent
        still = try StillEngine.reachingLoopback(
            """
            parents: { corp: { url: "http://127.0.0.1:\(parent.port)", authorization: pass } }
            ways: { parents: [corp] }
            limits: { \(limits) }
            """)
    }

    func origin(
        _ credentials: String?, host: String = "a.test", isTunnelled: Bool = false
    ) throws -> Origin {
        let environment = still.environment
        let name = Array(host.utf8)
        let found = environment.origins.origin(
            host: name.span, port: 80, scheme: .http, policy: environment.policy)
        let direct = try #require(found)
        let proxy = try #require(environment.policy.parents.first).passing(credentials)
        return environment.origins.origin(
            of: direct, through: proxy, tunnelsClearText: isTunnelled)
    }

    /// Asks for a connection to the parent for a request with these credentials.
    func acquire(_ credentials: String, client: UInt8) throws -> ScriptedConsumer {
        let consumer = ScriptedConsumer()
        consumer.environment = still.environment
        consumer.clientNetwork = IPNetwork(try #require(IPAddress("192.0.2.\(client)")))
        still.pool.acquireByWay(try origin(credentials), for: consumer, fresh: false)
        return consumer
    }

    /// A connection that arrives at the parent, with its request.
    func arrival() throws -> Peer {
        let peer = try still.peer(of: parent)
        peers.append(peer)
        still.turn(until: "the request arrives") { !peer.read().isEmpty }
        return peer
    }

    var permits: Int { (try? still.counts(origin(nil)).permits) ?? -1 }
}
