import EngineTestSupport
import EventLoop
import PinfoldTLS
import Testing

@testable import PinfoldEngine

/// The step before an intercepted tunnel, and what it leaves behind.
@Suite("Verifying an origin")
struct OriginVerificationTests {
    private let server: ScriptedServer

    init() throws { server = try ScriptedServer() }

    /// A verification in progress, and its results.
    private final class Begun {
        private(set) var verification: OriginVerification!
        private(set) var outcomes: [Result<OriginVerification.Server, StreamError>] = []

        init(_ still: StillEngine, _ server: ScriptedServer) throws {
            verification = OriginVerification(
                environment: still.environment, origin: try still.origin(server), client: nil
            ) { [unowned self] in outcomes.append($0) }
            verification.start()
        }

        var servers: [OriginVerification.Server] { outcomes.compactMap { try? $0.get() } }
        var faults: [Reason] {
            outcomes.compactMap {
                if case .failure(let failure) = $0 { failure.error.reason } else { nil }
            }
        }
    }

    /// A successful verification, and the server's end of the connection that it leaves.
    private func verified(_ still: StillEngine) throws -> (begun: Begun, peer: Peer) {
        let begun = try Begun(still, server)
        #expect(begun.outcomes.isEmpty)
        let peer = try still.peer(of: server)
        still.turn(until: "it ends") { !begun.outcomes.isEmpty }
        still.settle()
        return (begun, peer)
    }

    @Test func `sends nothing, and leaves the connection for the first request`() throws {
        let still = try StillEngine.reachingLoopback()
        let (begun, peer) = try verified(still)
        #expect(begun.servers.map(\.endpoint) == [server.endpoint])
        #expect(begun.servers.first?.certificate == nil, "there is none in clear text")
        #expect(peer.read().isEmpty && peer.end == nil)
        let origin = try still.origin(server)
        #expect(still.counts(origin) == PoolCounts(permits: 1, allPermits: 1, open: 1, idle: 1))

        let first = try still.acquire(server)
        #expect(first.events == [.ready])
        still.turn(until: "the request arrives") { peer.read().hasPrefix("GET / ") }
        still.answer(first, from: peer)
        #expect(openConnections(toPort: server.port) == 1)
        #expect(still.loop.buffers.outstanding == 0)
    }

    @Test func `is content with an idle connection, and leaves that too`() throws {
        let still = try StillEngine.reachingLoopback()
        let (first, peer) = try still.exchange(server)
        still.answer(first, from: peer)
        let begun = try Begun(still, server)
        #expect(begun.servers.count == 1, "at once")
        still.settle()
        #expect(
            still.counts(try still.origin(server))
                == PoolCounts(permits: 1, allPermits: 1, open: 1, idle: 1))
        #expect(try still.acquire(server).upstream === first.lastUpstream)
    }

    @Test func `passes its connection on to the waiters, first come, first served`() throws {
        let still = try StillEngine.reachingLoopback("limits: { upstreamPerHost: 1 }")
        let (busy, peer) = try still.exchange(server)
        let waiting = [try Begun(still, server), try Begun(still, server)]
        let last = try still.acquire(server)
        #expect(waiting.allSatisfy(\.outcomes.isEmpty) && !last.isReady)
        still.answer(busy, from: peer)
        still.turn(until: "all have had their turn") { last.isReady }
        #expect(waiting.allSatisfy { $0.servers.count == 1 })
        #expect(openConnections(toPort: server.port) == 1)
        #expect(
            still.counts(try still.origin(server)) == PoolCounts(permits: 1, allPermits: 1, open: 1)
        )
    }

    @Test(arguments: ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "x"])
    func `closes a connection on which the server sends data before a request`(data: String) throws
    {
        let still = try StillEngine.reachingLoopback()
        let (begun, peer) = try verified(still)
        #expect(begun.servers.count == 1)
        peer.send(data)
        still.turn(until: "it is closed") { peer.hasEnded }
        #expect(still.counts(try still.origin(server)) == PoolCounts())
    }

    @Test func `leaves nothing when the server closes meanwhile`() throws {
        let still = try StillEngine.reachingLoopback()
        let (_, peer) = try verified(still)
        peer.close()
        still.turn(until: "it is closed") { openConnections(toPort: server.port) == 0 }
        #expect(still.counts(try still.origin(server)) == PoolCounts())
    }

    @Test func `reports once that there is no connection`() throws {
        let still = try StillEngine.reachingLoopback()
        let closed = try ScriptedServer(listens: false)
        let begun = try Begun(still, closed)
        still.turn(until: "it ends") { !begun.outcomes.isEmpty }
        still.settle()
        #expect(begun.faults.map(\.token) == ["connection-refused"])
        begun.verification.cancel()
        #expect(begun.outcomes.count == 1)
        #expect(still.counts(try still.origin(closed)) == PoolCounts())
    }

    @Test func `does not complete once cancelled, and the connection is kept`() throws {
        let still = try StillEngine.reachingLoopback()
        let begun = try Begun(still, server)
        begun.verification.cancel()
        begun.verification.cancel()
        let peer = try still.peer(of: server)
        let origin = try still.origin(server)
        still.turn(until: "it is idle") { still.counts(origin).idle == 1 }
        #expect(begun.outcomes.isEmpty)
        #expect(peer.read().isEmpty && peer.end == nil)
        #expect(still.counts(origin) == PoolCounts(permits: 1, allPermits: 1, open: 1, idle: 1))
    }

    @Test func `leaves the queue when it is cancelled`() throws {
        let still = try StillEngine.reachingLoopback("limits: { upstreamPerHost: 1 }")
        let (busy, peer) = try still.exchange(server)
        let begun = try Begun(still, server)
        let origin = try still.origin(server)
        #expect(still.counts(origin).waiting == 1)
        begun.verification.cancel()
        #expect(still.counts(origin).waiting == 0)
        still.answer(busy, from: peer)
        still.settle()
        #expect(begun.outcomes.isEmpty)
    }

    @Test func `is sent back when its policy is replaced`() throws {
        let still = try StillEngine.reachingLoopback("limits: { upstreamPerHost: 1 }")
        let (busy, peer) = try still.exchange(server)
        let begun = try Begun(still, server)
        still.pool.retire(try still.origin(server))
        #expect(begun.faults == [.gateway(.superseded)])
        still.answer(busy, from: peer)
        still.settle()
        #expect(begun.outcomes.count == 1)
    }

    @Test func `does not leave a connection under a replaced policy`() throws {
        let still = try StillEngine.reachingLoopback()
        let begun = try Begun(still, server)
        let peer = try still.peer(of: server)
        let origin = try still.origin(server)
        still.turn(until: "it ends") { !begun.outcomes.isEmpty }
        still.pool.retire(origin)
        still.turn(until: "it is closed") { peer.hasEnded }
        #expect(still.counts(origin) == PoolCounts())
    }
}
