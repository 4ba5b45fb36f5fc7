import EngineTestSupport
import EventLoop
import HTTPCore
import Testing

@testable import PinfoldEngine

@Suite("A connection to a server that fails")
struct UpstreamFailureTests {
    private let still: StillEngine
    private let server: ScriptedServer

    init() throws {
        still = try StillEngine.reachingLoopback()
        server = try ScriptedServer()
    }

    /// What a server has sent when its connection ends, and the resulting failure.
    static let ends: [(sent: String, reset: Bool, reason: Reason, started: Bool)] = [
        ("", false, .server(.upstreamClosed), false),
        ("", true, .server(.upstreamReset), false),
        ("HTTP/1.1 200 OK\r\nContent-Le", false, .response(.truncatedHead), true),
        ("HTTP/1.1 200 OK\r\nContent-Le", true, .server(.upstreamReset), true),
        ("HTTP/1.1 100 Continue\r\n\r\n", false, .server(.upstreamClosed), true),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour", false,
            .response(.truncatedBody), true
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour", true, .server(.upstreamReset),
            true
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n", false,
            .response(.truncatedBody), true
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", false,
            .response(.truncatedBody), true
        ),
        ("HTTP/1.1 200 OK\r\n\r\nsome", true, .server(.upstreamReset), true),
    ]

    @Test(arguments: ends.indices)
    func `reports how far the response had come when it ended`(_ index: Int) throws {
        let end = Self.ends[index]
        let (consumer, peer) = try still.exchange(server)
        if !end.sent.isEmpty { still.deliver(end.sent, from: peer) }
        if end.reset { peer.reset() } else { peer.close() }
        still.turn(until: "it fails") { consumer.isOver }
        #expect(
            consumer.events.last == .failed(end.reason, responseStarted: end.started))
        #expect(openConnections(toPort: server.port) == 0)
        #expect(still.counts(try still.origin(server)) == PoolCounts())
        #expect(still.loop.buffers.outstanding == 0)
    }

    @Test(
        arguments: [
            ("HTTP/1.1 20 OK\r\n\r\n", WireError.malformedStatusLine),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                .repeatedContentLength
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
                .contentLengthWithTransferEncoding
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                .malformedChunkSize
            ),
        ])
    func `refuses an ambiguous response`(
        _ response: String, _ error: WireError
    ) throws {
        let (consumer, peer) = try still.exchange(server)
        peer.send(response)
        still.turn(until: "it fails") { consumer.isOver }
        #expect(consumer.failure == .response(error))
        #expect(peer.hasEnded)
    }

    @Test(arguments: ["\u{15}\u{3}\u{3}\0\u{2}\u{2}\u{28}", "\u{16}\u{3}\u{1}\0\u{4}"])
    func `is distinguished from a server that uses TLS on its port`(_ record: String) throws {
        let (consumer, peer) = try still.exchange(server)
        peer.send(record)
        still.turn(until: "it fails") { consumer.isOver }
        #expect(consumer.failure == .server(.upstreamSpeaksTLS))
        #expect(peer.hasEnded)
    }

    @Test func `is closed when its consumer gives up, without calling it again`() throws {
        let (consumer, peer) = try still.exchange(server)
        still.deliver("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour", from: peer)
        let upstream = try #require(consumer.connection)
        let events = consumer.events
        upstream.cancel()
        upstream.cancel()
        #expect(peer.hasEnded)
        still.settle()
        #expect(consumer.events == events)
    }

    // MARK: Time

    @Test func `limits the time for the response's first byte`() throws {
        let (consumer, peer) = try still.exchange(server)
        let upstream = try #require(consumer.connection)
        #expect(upstream.deadline - still.loop.now <= 60_000)
        #expect(upstream.deadline != .max)
        upstream.deadlineReached()
        #expect(
            consumer.events == [
                .ready, .failed(.server(.firstByteTimeout), responseStarted: false),
            ])
        #expect(peer.hasEnded)
    }

    @Test func `limits a pause within the response`() throws {
        let (consumer, peer) = try still.exchange(server)
        still.deliver("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour", from: peer)
        try #require(consumer.connection).deadlineReached()
        #expect(
            consumer.events.last == .failed(.server(.upstreamBodyTimeout), responseStarted: true))
        #expect(peer.hasEnded)
    }

    @Test func `gives an event stream its own timeout`() throws {
        let (consumer, peer) = try still.exchange(server)
        still.deliver("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", from: peer)
        let upstream = try #require(consumer.connection)
        #expect(upstream.deadline - still.loop.now > 60_000)
        upstream.deadlineReached()
        #expect(
            consumer.events.last == .failed(.server(.eventStreamTimeout), responseStarted: true))
    }

    @Test func `waits for a consumer that pauses as long as that takes`() throws {
        let (consumer, peer) = try still.exchange(server)
        consumer.takesContent = false
        still.deliver("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour", from: peer)
        let upstream = try #require(consumer.connection)
        upstream.deadlineReached()
        #expect(!consumer.isOver)
        #expect(!peer.hasEnded)
        consumer.takesContent = true
        upstream.resume()
        still.deliver("!", from: peer)
        #expect(consumer.content == "four!")
    }

    @Test func `gives up a server that reads nothing of the request`() throws {
        let still = try StillEngine.reachingLoopback("timeouts: { body: 100ms }")
        let consumer = ScriptedConsumer("POST / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        consumer.endsRequest = false
        let (_, peer) = try still.exchange(server, for: consumer)
        let part = String(repeating: "x", count: 1 << 20)
        while consumer.send(part) {}
        still.turn(until: "it fails") { consumer.isOver }
        #expect(
            consumer.events
                == [.ready, .failed(.server(.upstreamSendTimeout), responseStarted: false)])
        #expect(peer.hasEnded)
        #expect(still.loop.buffers.outstanding == 0)
    }

    @Test func `restarts the time for the first byte when the end of the request is accepted`()
        throws
    {
        let still = try StillEngine.reachingLoopback("timeouts: { firstByte: 100ms }")
        let consumer = ScriptedConsumer("POST / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        consumer.endsRequest = false
        let (_, peer) = try still.exchange(server, for: consumer)
        #expect(consumer.send("content"))
        let upstream = try #require(consumer.connection)
        #expect(upstream.finish(trailers: nil))
        still.turn(until: "it fails") { consumer.isOver }
        #expect(consumer.failure == .server(.firstByteTimeout))
        #expect(peer.read().hasSuffix("content"))
    }
}
