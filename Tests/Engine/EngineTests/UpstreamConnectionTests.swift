import EngineTestSupport
import EventLoop
import HTTPCore
import Testing

@testable import PinfoldEngine

@Suite("A connection to a server")
struct UpstreamConnectionTests {
    private typealias Event = ScriptedConsumer.Event

    private let still: StillEngine
    private let server: ScriptedServer

    init() throws {
        still = try StillEngine.reachingLoopback()
        server = try ScriptedServer()
    }

    private func events(of consumer: ScriptedConsumer) -> [Event] {
        // How content is split into parts is up to the network.
        consumer.events.filter { if case .body = $0 { false } else { true } }
    }

    // MARK: In any parts

    /// Responses with their content, their trailers, and the events that they cause.
    static let messages: [(wire: String, statuses: [UInt16], content: String, trailers: String?)] =
        [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello", [200], "hello", nil),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nhel\r\n2;a=b\r\nlo\r\n0\r\nDigest: z\r\n\r\n",
                [200], "hello", "Digest: z\r\n\r\n"
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
                [200], "x", nil
            ),
            (
                "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
                    + "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
                [103, 100, 404], "no", nil
            ),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", [304], "", nil),
        ]

    @Test(arguments: messages.indices)
    func `passes the same on wherever its bytes are cut in two, and is used again`(_ index: Int)
        throws
    {
        let message = Self.messages[index]
        let wire = Array(message.wire.utf8)
        let peer = try warmUp()
        for cut in 1..<wire.count {
            let consumer = try still.acquire(server)
            still.deliver(String(decoding: wire[..<cut], as: UTF8.self), from: peer)
            #expect(!consumer.isOver)
            peer.send(String(decoding: wire[cut...], as: UTF8.self))
            still.turn(until: "the response ends") { consumer.isOver }
            expect(consumer, message)
        }
        #expect(still.metrics.value(.upstreamConnectionsCreated) == 1)
        #expect(still.loop.buffers.outstanding == 0)
    }

    @Test(arguments: messages.indices)
    func `passes the same on when it arrives byte by byte`(_ index: Int) throws {
        let message = Self.messages[index]
        let peer = try warmUp()
        let consumer = try still.acquire(server)
        for byte in message.wire.utf8 {
            still.deliver(String(decoding: [byte], as: UTF8.self), from: peer)
        }
        still.turn(until: "the response ends") { consumer.isOver }
        expect(consumer, message)
    }

    /// A connection that has carried one exchange, and is idle.
    private func warmUp() throws -> Peer {
        let (first, peer) = try still.exchange(server)
        still.answer(first, from: peer)
        return peer
    }

    private func expect(
        _ consumer: ScriptedConsumer,
        _ message: (wire: String, statuses: [UInt16], content: String, trailers: String?),
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let found = events(of: consumer).filter { $0 != .headWithoutBody }
        let expected =
            [Event.ready] + message.statuses.map { .head($0) }
            + [.ended(trailers: message.trailers)]
        #expect(found == expected, sourceLocation: sourceLocation)
        #expect(consumer.content == message.content, sourceLocation: sourceLocation)
        #expect(
            message.wire.hasPrefix(consumer.heads.joined()), sourceLocation: sourceLocation)
    }

    @Test func `reports a head without content only if no content came with it`() throws {
        let (consumer, peer) = try still.exchange(server)
        still.deliver("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", from: peer)
        #expect(consumer.events == [.ready, .head(200), .headWithoutBody])
        still.deliver("hi", from: peer)
        #expect(consumer.events.dropFirst(3) == [.body("hi"), .ended(trailers: nil)])

        let second = try still.acquire(server)
        still.deliver("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", from: peer)
        #expect(second.events == [.ready, .head(200), .body("hi"), .ended(trailers: nil)])
    }

    // MARK: Framing (RFC 9112, section 6.3)

    @Test func `takes no content of a response to HEAD, whatever its fields`() throws {
        let consumer = ScriptedConsumer("HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        consumer.method = .head
        let (_, peer) = try still.exchange(server, for: consumer)
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        still.turn(until: "it ends") { consumer.isOver }
        #expect(consumer.events == [.ready, .head(200), .ended(trailers: nil)])
        #expect(try still.acquire(server).isReady, "and is used again")
    }

    @Test
    func `takes a response without a length to the connection's end, and ends itself`() throws {
        let (consumer, peer) = try still.exchange(server)
        still.deliver("HTTP/1.1 200 OK\r\n\r\nhel", from: peer)
        still.deliver("lo", from: peer)
        #expect(!consumer.isOver)
        peer.finishSending()
        still.turn(until: "it ends") { consumer.isOver }
        #expect(consumer.events.last == .ended(trailers: nil))
        #expect(consumer.content == "hello")
        #expect(peer.hasEnded)
    }

    @Test(
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
            // Lines of heads that end in bare line feeds.
            "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
            // Unsolicited bytes after the response.
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\r\n",
        ])
    func `ends where it may not be used again`(_ response: String) throws {
        let (consumer, peer) = try still.exchange(server)
        peer.send(response)
        still.turn(until: "it ends") { consumer.isOver }
        #expect(consumer.events.last == .ended(trailers: nil))
        #expect(peer.hasEnded)
        #expect(still.counts(try still.origin(server)) == PoolCounts())
    }

    @Test(
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ])
    func `is used again where both sides may`(_ response: String) throws {
        let (consumer, peer) = try still.exchange(server)
        peer.send(response)
        still.turn(until: "it ends") { consumer.isOver }
        still.settle()
        #expect(!peer.hasEnded)
        #expect(try still.acquire(server).upstream === consumer.lastUpstream)
    }

    @Test func `passes over one empty line between an interim response and the final one`() throws {
        let (consumer, peer) = try still.exchange(server)
        peer.send("HTTP/1.1 100 Continue\r\n\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
        still.turn(until: "it ends") { consumer.isOver }
        #expect(consumer.events == [.ready, .head(100), .head(204), .ended(trailers: nil)])
    }

    // MARK: The request

    @Test func `is not used again when the response ends before the request`() throws {
        let consumer = ScriptedConsumer(
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\nsome")
        consumer.endsRequest = false
        let (_, peer) = try still.exchange(server, for: consumer)
        peer.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
        still.turn(until: "it ends") { consumer.isOver }
        #expect(consumer.events == [.ready, .head(413), .ended(trailers: nil)])
        #expect(peer.hasEnded)
        #expect(still.counts(try still.origin(server)) == PoolCounts())
    }

    @Test func `writes as fast as the server reads, and reports when it has`() throws {
        let consumer = ScriptedConsumer("POST / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        consumer.endsRequest = false
        let (_, peer) = try still.exchange(server, for: consumer)
        let head = peer.text.utf8.count
        let part = String(repeating: "x", count: 1 << 20)
        var sent = 0
        while sent < 64, consumer.send(part) { sent += 1 }
        #expect(sent < 64, "the kernel's buffers are full at some time")
        #expect(consumer.drains == 0)
        let expected = head + (sent + 1) << 20
        still.turn(until: "all has arrived") { peer.read().utf8.count == expected }
        #expect(consumer.drains == 1)
        #expect(!consumer.isOver)
    }

    @Test func `reports the response of a server that has stopped reading and closed`() throws {
        let consumer = ScriptedConsumer("POST / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        consumer.endsRequest = false
        let (_, peer) = try still.exchange(server, for: consumer)
        peer.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        peer.close()
        _ = consumer.send("more")
        still.turn(until: "it ends") { consumer.isOver }
        #expect(consumer.events == [.ready, .head(403), .ended(trailers: nil)])
    }

    // MARK: Pauses

    @Test func `reads nothing while its consumer pauses, and goes on when it resumes`() throws {
        let (consumer, peer) = try still.exchange(server)
        consumer.takesContent = false
        still.deliver("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\nfirst", from: peer)
        let read = still.metrics.value(.upstreamBytesReceived)
        var unread = 0
        while true {
            let count = peer.fill(1 << 20)
            guard count > 0 else { break }
            unread += count
            still.settle()
        }
        #expect(unread < 10_000_000 - 5, "the kernel's buffers are full")
        #expect(still.metrics.value(.upstreamBytesReceived) == read)
        #expect(consumer.content == "first")
        #expect(consumer.connection?.deadline == .max, "the client is the slow one")

        consumer.takesContent = true
        consumer.upstream?.resume()
        #expect(consumer.connection?.deadline != .max)
        still.turn(until: "it goes on") { consumer.content.utf8.count == 5 + unread }
        #expect(!consumer.isOver)
    }

    @Test
    func `asks at each part, so that at most one buffer is held for a slow consumer`() throws {
        let (consumer, peer) = try still.exchange(server)
        consumer.takesContent = false
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        still.turn(until: "the head is there") { !consumer.heads.isEmpty }
        still.deliver("1\r\na\r\n", from: peer)
        var taken = "a"
        for part in ["b", "c", "d"] {
            peer.send("1\r\n\(part)\r\n")
            still.settle()
            #expect(consumer.content == taken)
            #expect(still.loop.buffers.outstanding == 1)
            taken += part
            consumer.upstream?.resume()
            still.turn(until: "the next part is there") { consumer.content == taken }
        }
        consumer.upstream?.resume()
        peer.send("0\r\n\r\n")
        still.turn(until: "it ends") { consumer.isOver }
        #expect(still.loop.buffers.outstanding == 0)
    }

    @Test func `ends well when the server closes while its consumer pauses`() throws {
        let (consumer, peer) = try still.exchange(server)
        consumer.takesContent = false
        still.deliver("HTTP/1.1 200 OK\r\n\r\nfirst", from: peer)
        peer.send("last")
        peer.close()
        still.settle()
        #expect(consumer.content == "first")
        consumer.takesContent = true
        consumer.upstream?.resume()
        still.turn(until: "it ends") { consumer.isOver }
        #expect(consumer.events.last == .ended(trailers: nil))
        #expect(consumer.content == "firstlast")
    }

    @Test func `leaves HTTP with the bytes that came behind the head`() throws {
        let consumer = ScriptedConsumer()
        consumer.asksForUpgrade = true
        let (_, peer) = try still.exchange(server, for: consumer)
        let upstream = try #require(consumer.connection)
        var handedOver: UpstreamHandover?
        consumer.atHead = { handedOver = upstream.handOver() }
        still.deliver("HTTP/1.1 101 Switching Protocols\r\n\r\nearly", from: peer)
        let left = try #require(handedOver)
        let (transport, leftover) = (left.transport, left.leftover)
        defer { Descriptors.close(transport.descriptor) }
        #expect(leftover.map { String(decoding: $0.readable, as: UTF8.self) } == "early")
        #expect(upstream.isClosed)
        peer.send("later")
        still.settle()
        #expect(readable(transport.descriptor) == "later", "nobody reads it any more")
        #expect(still.counts(try still.origin(server)) == PoolCounts())
        #expect(!peer.hasEnded)
    }
}
