import EngineTestSupport
import EventLoop
import HTTPCore
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("The life of a client's connection")
struct ClientLifeTests {
    private let still: StillWorker
    private let server: ScriptedServer

    init() throws {
        still = try StillWorker.reachingLoopback()
        server = try ScriptedServer()
    }

    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    private func connection(_ still: StillWorker) throws -> ClientConnection {
        try #require(still.clientConnections.last)
    }

    // MARK: Time

    @Test(arguments: [false, true])
    func `closes without a reply when no request arrives in time`(_ isSecond: Bool) throws {
        let client = try still.client()
        if isSecond {
            client.send("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n")
            still.await("HTTP/1.1 200 OK", at: client)
            client.forget()
        }
        let connection = try connection(still)
        #expect(connection.deadline - still.worker.loop.now <= (isSecond ? 60_000 : 10_000))
        connection.deadlineReached()
        #expect(client.hasEnded)
        #expect(client.text.isEmpty && client.end == .closed)
        #expect(still.clientCounts == ClientCounts())
    }

    @Test func `answers 408 when a request's head does not arrive in time`() throws {
        let client = try still.client()
        let connection = try connection(still)
        still.submit("GET http://a.test/", from: client)
        let deadline = connection.deadline
        let began = still.worker.loop.now
        #expect(deadline - began <= 10_000)
        #expect(still.clientCounts.headBytes > 0)
        still.turn(until: "some time has passed") { still.worker.loop.now > began + 1 }
        still.submit(" HTTP/1.1\r\n", from: client)
        #expect(connection.deadline == deadline, "it counts from the first byte")
        connection.deadlineReached()
        #expect(client.hasEnded)
        #expect(client.text.hasPrefix("HTTP/1.1 408 "))
        #expect(client.text.contains("\r\nConnection: close\r\n"))
        #expect(still.clientCounts.headBytes == 0)
        client.close()
        still.turn(until: "it is gone") { still.clientCounts == ClientCounts() }
    }

    @Test func `answers 408 when a request's content does not arrive in time`() throws {
        let still = try StillWorker.reachingLoopback("timeouts: { body: 100ms }")
        let client = try still.client()
        client.send(server.request("POST", fields: "Content-Length: 9\r\n", body: "some"))
        let peer = try still.peer(of: server)
        still.turn(until: "it ends") { client.hasEnded }
        #expect(client.text.hasPrefix("HTTP/1.1 408 "))
        #expect(peer.hasEnded)
        #expect(peer.text.hasSuffix("\r\n\r\nsome"))
        client.close()
        still.turn(until: "it is gone") { still.clientCounts == ClientCounts() }
        #expect(still.counts(try still.origin(server)) == PoolCounts())
    }

    @Test func `is cut when its client does not take the response in time`() throws {
        let still = try StillWorker.reachingLoopback("timeouts: { body: 100ms }")
        let client = try still.client()
        client.send(server.request())
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        still.turn(until: "it is given up") {
            _ = peer.fill(1 << 18)
            return still.clientConnections.isEmpty
        }
        #expect(still.clientCounts == ClientCounts())
        #expect(still.counts(try still.origin(server)) == PoolCounts())
        client.read()
        #expect(client.end != nil)
        #expect(client.text.utf8.count < 1_000_000_000)
    }

    @Test func `has no deadline while the server is waited for`() throws {
        let client = try still.client()
        client.send(server.request())
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        #expect(try connection(still).deadline == .max)
    }

    // MARK: Backpressure

    @Test func `has the server wait for a client that does not read, with bounded memory`() throws {
        let client = try still.client()
        client.send(server.request())
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        let length = 100_000_000
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
        var sent = 0
        while true {
            let count = peer.fill(1 << 20)
            sent += count
            still.settle()
            if count == 0 { break }
        }
        #expect(sent < length, "the server is not read any more")
        #expect(still.worker.loop.buffers.outstanding < 8)
        var received = 0
        still.turn(until: "the rest has come") {
            sent += peer.fill(min(1 << 20, length - sent))
            client.read()
            received += client.text.utf8.count
            client.forget()
            return received > length
        }
        still.turn(until: "it is over") { still.clientCounts.exchanges == 0 }
        #expect(still.counts(try still.origin(server)).idle == 1)
        #expect(try connection(still).http.phase == .idle)
    }

    // MARK: Draining

    @Test func `ends at once when it is asked to and nothing has arrived`() throws {
        let client = try still.client()
        still.settle()
        try connection(still).drain()
        #expect(client.hasEnded)
        #expect(still.clientCounts == ClientCounts())
    }

    @Test(arguments: [true, false])
    func `ends after the current exchange if it is to end`(_ hasArrived: Bool) throws {
        let client = try still.client()
        let request = server.request()
        let half = request.prefix(20)
        still.submit(hasArrived ? Substring(request) : half, from: client)
        try connection(still).drain()
        if !hasArrived { client.send(request.dropFirst(20)) }
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        #expect(!client.hasEnded)
        peer.send(Self.ok)
        still.turn(until: "it ends") { client.hasEnded }
        #expect(client.text.hasSuffix("\r\n\r\nhi"))
        #expect(client.text.contains("\r\nConnection: close\r\n"))
        client.close()
        still.turn(until: "it is gone") { still.clientCounts == ClientCounts() }
    }

    // MARK: Clients that go away

    /// The state of an exchange when its client leaves.
    enum Moment: CaseIterable {
        case nothingSent, headArriving, connecting, waitingForPlace, waitingForResponse
        case uploading, streaming, notReading, lingering, tunnelConnecting, tunnelling
    }

    @Test(arguments: Moment.allCases)
    func `leaves nothing behind when its client resets it`(_ moment: Moment) throws {
        // An attempt to connect continues without its client, for the next one that needs it.
        let connect = moment == .connecting ? "100ms" : "5s"
        let still = try StillWorker.reachingLoopback(
            """
            limits: { upstreamPerHost: \(moment == .uploading ? 4 : 1) }
            timeouts: { connect: \(connect) }
            """, connectPorts: [server.port])
        let origin = try still.origin(server)
        var held: (consumer: ScriptedConsumer, peer: Peer)?
        if moment == .waitingForPlace { held = try still.exchange(server) }
        let handlers = still.worker.loop.handlerCount

        let client = try still.client()
        let peer = try bring(still, client, to: moment)
        client.reset()
        still.turn(until: "everything is given back") {
            still.clientCounts == ClientCounts()
                && still.worker.loop.handlerCount == handlers
        }
        if let peer { still.turn(until: "the server's side is closed") { peer.hasEnded } }
        if held == nil {
            still.turn(until: "nothing is open") { openConnections(toPort: server.port) == 0 }
            #expect(still.counts(origin) == PoolCounts())
        } else {
            #expect(still.counts(origin) == PoolCounts(permits: 1, allPermits: 1, open: 1))
        }
        #expect(still.worker.metrics.value(.tunnelsOpen) == 0)
    }

    /// - Returns: the server's end, if the exchange has got that far.
    private func bring(
        _ still: StillWorker, _ client: Peer, to moment: Moment
    ) throws -> Peer? {
        switch moment {
        case .nothingSent: still.settle()
        case .headArriving: still.submit("GET http://a.test/ HTT", from: client)
        case .connecting:
            still.submit(
                "GET http://name.test/ HTTP/1.1\r\nHost: name.test\r\n\r\n", from: client)
        case .waitingForPlace: still.submit(server.request(), from: client)
        case .lingering: still.submit("nonsense\r\n\r\n", from: client)
        case .tunnelConnecting:
            still.submit(
                "CONNECT name.test:\(server.port) HTTP/1.1\r\nHost: name.test\r\n\r\n",
                from: client)
        case .tunnelling:
            client.send("CONNECT \(server.endpoint) HTTP/1.1\r\nHost: \(server.endpoint)\r\n\r\n")
            let peer = try still.peer(of: server)
            still.await("HTTP/1.1 200 ", at: client)
            return peer
        case .uploading:
            client.send(server.request("POST", fields: "Content-Length: 9\r\n", body: "some"))
            let peer = try still.peer(of: server)
            still.await("\r\n\r\nsome", at: peer)
            return peer
        case .waitingForResponse, .streaming, .notReading:
            client.send(server.request())
            let peer = try still.peer(of: server)
            still.await("\r\n\r\n", at: peer)
            guard moment != .waitingForResponse else { return peer }
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\nsome")
            still.await("\r\n\r\nsome", at: client)
            guard moment == .notReading else { return peer }
            while peer.fill(1 << 20) > 0 { still.settle() }
            return peer
        }
        return nil
    }

    @Test(arguments: [true, false])
    func `leaves nothing behind when it is cut off`(_ hasExchange: Bool) throws {
        let client = try still.client()
        if hasExchange { still.submit(server.request(), from: client) }
        let connection = try connection(still)
        connection.cutOff()
        connection.cutOff()
        #expect(client.hasEnded)
        #expect(still.clientCounts == ClientCounts())
    }

    @Test func `uses exchange objects again, without anything of the one before`() throws {
        let client = try still.client()
        client.send(server.request("POST", fields: "Content-Length: 4\r\n", body: "some"))
        let peer = try still.peer(of: server)
        still.await("\r\n\r\nsome", at: peer)
        let exchange = try #require(try connection(still).exchange)
        peer.send(Self.ok)
        still.await("\r\n\r\nhi", at: client)
        still.turn(until: "it is over") { exchange.state.name == "ended" }
        #expect(exchange.client == nil && exchange.origin == nil && exchange.upstream == nil)
        #expect(exchange.intake.buffer == nil && exchange.intake.receivedBytes == 0)
        peer.forget()
        client.send(server.request())
        still.await("\r\n\r\n", at: peer)
        #expect(try connection(still).exchange === exchange)
        #expect(!peer.text.contains("Content-Length"))
    }

    /// Only the status line of a CONNECT's reply names the reason.
    @Test func `answers what it cannot read without anything of the request before`() throws {
        let tunnel = try still.client()
        tunnel.send("CONNECT a.test:1 HTTP/1.1\r\nHost: a.test:1\r\n\r\n")
        still.await("HTTP/1.1 403 connect-port-refused\r\n", at: tunnel)
        let client = try still.client()
        client.send("\u{1}\r\n\r\n")
        still.await("\r\n\r\n", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 400 Bad Request\r\n"), "\(client.text)")
    }
}
