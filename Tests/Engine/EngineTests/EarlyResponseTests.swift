import EngineTestSupport
import EventLoop
import Testing

@testable import PinfoldEngine

/// Responses that are complete before their requests are.
@Suite("A response that ends before its request")
struct EarlyResponseTests {
    private let still: StillEngine
    private let server: ScriptedServer

    init() throws {
        still = try StillEngine.reachingLoopback()
        server = try ScriptedServer()
    }

    /// A request of which some content has arrived at its server.
    private func begun(expectsContinue: Bool = false, sending content: String = "some") throws
        -> (consumer: ScriptedConsumer, peer: Peer)
    {
        let consumer = ScriptedConsumer("POST / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        consumer.endsRequest = false
        consumer.expectsContinue = expectsContinue
        let (_, peer) = try still.exchange(server, for: consumer)
        guard !content.isEmpty else { return (consumer, peer) }
        #expect(consumer.send(content))
        still.turn(until: "the content arrives") { peer.read().hasSuffix(content) }
        return (consumer, peer)
    }

    private static let welcome = [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n",
    ]

    @Test(arguments: welcome, [[0], [1, 1, 1], []])
    func `is passed on at once, and its end when the rest of the request has gone out`(
        _ response: String, _ cuts: [Int]
    ) throws {
        let (consumer, peer) = try begun()
        var rest = Substring(response)
        for cut in cuts {
            still.deliver(rest.prefix(cut), from: peer)
            rest = rest.dropFirst(cut)
        }
        still.deliver(rest, from: peer)
        let received = consumer.content
        #expect(response.contains("ok") ? received == "ok" : consumer.heads.count == 1)
        #expect(!consumer.isOver)
        #expect(consumer.send(" more"))
        still.turn(until: "more arrives") { peer.read().hasSuffix("some more") }
        #expect(!consumer.isOver)
        #expect(consumer.connection?.deadline == .max, "the client's own deadline runs")
        #expect(consumer.upstream?.finish(trailers: nil) == true)
        still.turn(until: "it ends") { consumer.isOver }
        #expect(consumer.content == received)
        #expect(consumer.events.last == .ended(trailers: nil))
        #expect(!peer.hasEnded)
        let (next, same) = (try still.acquire(server), peer)
        still.answer(next, from: same)
        #expect(still.metrics.value(.upstreamConnectionsCreated) == 1, "it is used again")
    }

    @Test func `waits for a server that is slow to read, and reports when it has`() throws {
        let (consumer, peer) = try begun()
        let head = peer.text.utf8.count
        let part = String(repeating: "x", count: 1 << 20)
        var sent = 0
        while sent < 64, consumer.send(part) { sent += 1 }
        #expect(sent < 64, "the kernel's buffers are full at some time")
        still.deliver(Self.welcome[0], from: peer)
        #expect(consumer.content == "ok")
        #expect(!consumer.isOver)
        #expect(consumer.connection?.deadline != .max, "it must take something in time")
        still.turn(until: "it drains") { peer.read().utf8.count > 0 && consumer.drains == 1 }
        _ = consumer.upstream?.finish(trailers: nil)
        let all = head + (sent + 1) << 20
        still.turn(until: "all has arrived") { peer.read().utf8.count == all && consumer.isOver }
        #expect(consumer.events.last == .ended(trailers: nil))
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 303 See Other\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nand more",
    ])
    func `ends the request where the server does not want the rest of it`(
        _ response: String
    ) throws {
        let (consumer, peer) = try begun()
        peer.send(response)
        still.turn(until: "it ends") { consumer.isOver }
        #expect(consumer.events.last == .ended(trailers: nil))
        #expect(peer.hasEnded)
    }

    @Test(arguments: [false, true])
    func `ends a request that waits for 100 Continue, unless some content has arrived`(
        _ hasCome: Bool
    ) throws {
        let (consumer, peer) = try begun(
            expectsContinue: true, sending: hasCome ? "some" : "")
        still.deliver(Self.welcome[0], from: peer)
        #expect(consumer.isOver == !hasCome)
        #expect(peer.hasEnded == !hasCome)
    }

    @Test(arguments: [Peer.End.closed, .reset])
    func `ends normally if the server closes before it has read the rest`(_ end: Peer.End) throws {
        let (consumer, peer) = try begun()
        still.deliver(Self.welcome[0], from: peer)
        #expect(!consumer.isOver)
        switch end {
        case .closed: peer.close()
        case .reset: peer.reset()
        }
        still.turn(until: "it ends") { consumer.isOver }
        #expect(consumer.events.last == .ended(trailers: nil))
        #expect(still.counts(try still.origin(server)) == PoolCounts())
    }

    @Test func `ends the request where bytes follow the response`() throws {
        let (consumer, peer) = try begun()
        still.deliver(Self.welcome[0], from: peer)
        #expect(!consumer.isOver)
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        still.turn(until: "it ends") { consumer.isOver }
        #expect(consumer.content == "ok")
        #expect(peer.hasEnded)
    }
}
