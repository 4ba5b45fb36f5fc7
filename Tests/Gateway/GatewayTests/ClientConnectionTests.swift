import EngineTestSupport
import EventLoop
import HTTPCore
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("A client's connection")
struct ClientConnectionTests {
    private let still: StillWorker
    private let server: ScriptedServer

    init() throws {
        still = try StillWorker.reachingLoopback()
        server = try ScriptedServer()
    }

    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    /// A client whose request has arrived at the server.
    private func forward(_ request: String) throws -> (client: Peer, peer: Peer) {
        let client = try still.client()
        client.send(request)
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        return (client, peer)
    }

    // MARK: Reading

    @Test func `reads a request the same wherever its bytes are cut in two`() throws {
        let wire = Array(
            server.request("POST", fields: "X: y\r\nContent-Length: 5\r\n", body: "hello").utf8)
        let client = try still.client()
        var peer: Peer?
        var first = ""
        for cut in 1..<wire.count {
            still.submit(String(decoding: wire[..<cut], as: UTF8.self), from: client)
            client.send(String(decoding: wire[cut...], as: UTF8.self))
            let server = try peer ?? still.peer(of: server)
            peer = server
            still.await("hello", at: server)
            if first.isEmpty { first = server.text }
            #expect(server.text == first)
            server.forget()
            server.send(Self.ok)
            still.await("\r\n\r\nhi", at: client)
            #expect(client.text.hasPrefix("HTTP/1.1 200 OK\r\n"))
            client.forget()
        }
        #expect(first.hasPrefix("POST /p HTTP/1.1\r\nHost: \(server.endpoint)\r\n"))
        #expect(first.contains("\r\nX: y\r\n") && first.hasSuffix("\r\n\r\nhello"))
        #expect(still.worker.metrics.value(.clientConnectionsAccepted) == 1)
    }

    @Test func `reads a request that arrives byte by byte`() throws {
        let wire = server.request(
            "POST", fields: "Transfer-Encoding: chunked\r\n",
            body: "3\r\nhel\r\n2;a=b\r\nlo\r\n0\r\nDigest: z\r\n\r\n")
        let client = try still.client()
        for byte in wire.utf8 {
            still.submit(String(decoding: [byte], as: UTF8.self), from: client)
        }
        let peer = try still.peer(of: server)
        still.await("\r\nDigest: z\r\n\r\n", at: peer)
        let head = try #require(peer.text.firstRange(of: "\r\n\r\n"))
        // A chunk for each part that arrived: one byte each.
        #expect(
            peer.text[head.upperBound...]
                == "hello".map { "1\r\n\($0)\r\n" }.joined() + "0\r\nDigest: z\r\n\r\n")
    }

    @Test func `answers pipelined requests in their order (RFC 9112 §9.3.2)`() throws {
        let client = try still.client()
        let own = "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n"
        client.send(server.request() + own + server.request(fields: "X: second\r\n") + own)
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        still.settle()
        #expect(client.read().isEmpty, "what the gateway could answer itself has to wait")
        #expect(!peer.text.contains("X: second"), "and is not even read")
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none")
        still.await("X: second", at: peer)
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo")
        still.turn(until: "all are answered") {
            client.read().components("HTTP/1.1 200 OK\r\n").count == 5
        }
        let answers = client.text.components("HTTP/1.1 200 OK\r\n").dropFirst()
        #expect(answers.map { $0.contains("Allow: ") } == [false, true, false, true])
        #expect(answers.map { $0.hasSuffix("one") } == [true, false, false, false])
        #expect(answers.map { $0.hasSuffix("two") } == [false, false, true, false])
    }

    @Test func `forwards Expect and 100, and reads the content then (RFC 9110 §10.1.1)`() throws {
        let (client, peer) = try forward(
            server.request("PUT", fields: "Expect: 100-continue\r\nContent-Length: 5\r\n"))
        #expect(peer.text.contains("\r\nExpect: 100-continue\r\n"))
        peer.send("HTTP/1.1 100 Continue\r\n\r\n")
        still.await("HTTP/1.1 100 Continue\r\n", at: client)
        client.forget()
        client.send("hello")
        still.await("\r\n\r\nhello", at: peer)
        peer.send(Self.ok)
        still.await("\r\n\r\nhi", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 200 OK\r\n"))
        still.settle()
        #expect(!client.hasEnded, "the connection can go on")
    }

    @Test func `sends no interim response to a client of HTTP/1.0 (RFC 9110 §15.2)`() throws {
        let (client, peer) = try forward(server.request(version: "1.0"))
        peer.send("HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" + Self.ok)
        still.turn(until: "it ends") { client.hasEnded }
        #expect(client.text.hasPrefix("HTTP/1.1 200 OK\r\n"))
    }

    @Test(
        arguments: [
            ("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX : y\r\n\r\n", 400),
            ("GET http://a.test/ HTTP/1.1\r\n\r\n", 400),
            ("GET http://a.test/ HTTP/2.0\r\nHost: a.test\r\n\r\n", 505),
            (
                "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400
            ),
            ("GET /only-for-servers HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ])
    func `answers an ambiguous head with an error, and closes`(
        _ request: String, _ status: Int
    ) throws {
        let client = try still.client()
        client.send(request + server.request())
        still.turn(until: "it ends") { client.hasEnded }
        #expect(client.text.hasPrefix("HTTP/1.1 \(status) "))
        #expect(client.text.contains("\r\nConnection: close\r\n"))
        #expect(client.text.components("\r\nProxy-Status: ").count == 2, "one answer only")
        #expect(client.end == .closed, "its bytes behind the head do not destroy the answer")
        #expect(server.accept() == nil, "what followed is no request")
        client.close()
        still.turn(until: "it is gone") { still.clientCounts == ClientCounts() }
    }

    @Test func `answers a head that ends too early`() throws {
        let client = try still.client()
        client.send("GET http://a.test/ HTTP/1.1\r\nHost")
        client.finishSending()
        still.turn(until: "it ends") { client.hasEnded }
        #expect(client.text.hasPrefix("HTTP/1.1 400 "))
    }

    /// Clients show no more of the answer than that.
    @Test(arguments: ["", "\r\n"])
    func `answers a CONNECT that cannot be read with the reason in the status line`(
        _ before: String
    ) throws {
        let client = try still.client()
        client.send("\(before)CONNECT a.test:1 HTTP/1.1\r\nBad Name: x\r\n\r\n")
        still.turn(until: "it is answered") { client.read().contains("\r\n\r\n") }
        #expect(client.text.hasPrefix("HTTP/1.1 400 bad-field-name-byte\r\n"))
    }

    @Test func `answers a client that has finished sending`() throws {
        let (client, peer) = try forward(server.request())
        client.finishSending()
        still.settle()
        peer.send(Self.ok)
        still.turn(until: "it ends") { client.hasEnded }
        #expect(client.text.hasSuffix("\r\n\r\nhi"))
        #expect(client.end == .closed)
        still.turn(until: "it is gone") { still.clientCounts == ClientCounts() }
    }

    // MARK: Content that is not read

    @Test
    func `lingers when the response precedes the request's content, so that it is read`() throws {
        let (client, peer) = try forward(
            server.request("POST", fields: "Content-Length: 1000\r\n", body: "some"))
        still.await("some", at: peer)
        peer.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
        still.await("\r\n\r\nno", at: client)
        #expect(client.text.contains("\r\nConnection: close\r\n"))
        #expect(peer.hasEnded, "the rest of the request will not come")
        for _ in 0..<3 {
            client.send("more")
            still.settle()
        }
        #expect(client.hasEnded)
        #expect(client.end == .closed, "no reset, which could overtake the answer")
        #expect(still.clientConnections.map(\.http.phase) == [.lingering])
        #expect(still.clientCounts.exchanges == 0)
        client.close()
        still.turn(until: "it is gone") { still.clientCounts == ClientCounts() }
    }

    @Test func `lingers only for a time`() throws {
        let client = try still.client()
        client.send("nonsense\r\n\r\n")
        still.turn(until: "it lingers") { still.clientConnections.first?.http.phase == .lingering }
        try #require(still.clientConnections.first).deadlineReached()
        #expect(still.clientCounts == ClientCounts())
    }

    @Test func `lingers only for a limited number of bytes`() throws {
        let client = try still.client()
        client.send("nonsense\r\n\r\n")
        var sent = 0
        still.turn(until: "it is gone") {
            sent += client.fill(1 << 16)
            return still.clientConnections.isEmpty
        }
        #expect(sent >= 1 << 20)
        #expect(sent < 32 << 20, "more than the kernel's buffers hold would be read for nothing")
        #expect(still.clientCounts == ClientCounts())
    }

    // MARK: Going on or not (RFC 9112, 9.3)

    struct Persistence {
        var version: String
        var fields = ""
        var response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
        /// What the client receives after the head, and the value of Connection in it.
        var content = "hi"
        var connection: String?
        var goesOn: Bool
    }

    static let rules = [
        Persistence(version: "1.1", goesOn: true),
        Persistence(
            version: "1.1", fields: "Connection: close\r\n", connection: "close", goesOn: false),
        Persistence(version: "1.0", connection: "close", goesOn: false),
        Persistence(
            version: "1.0", fields: "Connection: keep-alive\r\n", connection: "keep-alive",
            goesOn: true),
        // The server's own connection is another matter.
        Persistence(
            version: "1.1",
            response: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
            goesOn: true),
        // Without a length: chunks for clients that support them, otherwise the end of the
        // connection.
        Persistence(
            version: "1.1",
            response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            content: "2\r\nhi\r\n0\r\n\r\n", goesOn: true),
        Persistence(
            version: "1.0", fields: "Connection: keep-alive\r\n",
            response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            connection: "close", goesOn: false),
    ]

    @Test(arguments: rules.indices)
    func `persists by the versions and fields of both messages`(_ index: Int) throws {
        let rule = Self.rules[index]
        let (client, peer) = try forward(
            server.request(version: rule.version, fields: rule.fields))
        peer.send(rule.response)
        still.await("\r\n\r\n" + rule.content, at: client)
        let value = client.text.components("\r\nConnection: ").dropFirst().first
            .map { $0.prefix { $0 != "\r\n" } }
        #expect(value.map(String.init) == rule.connection)
        still.settle()
        #expect(client.hasEnded == !rule.goesOn)
        #expect(client.text.hasSuffix("\r\n\r\n" + rule.content))
        #expect(client.text.contains("Transfer-Encoding") == (rule.content != "hi"))
        guard rule.goesOn else { return }
        client.forget()
        client.send("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n")
        still.await("HTTP/1.1 200 OK", at: client)
    }

    @Test(
        arguments: [
            ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "5"),
            ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", nil),
            ("GET", "HTTP/1.1 204 No Content\r\n\r\n", nil),
            ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "5"),
        ] as [(String, String, String?)])
    func `sends no content in answer to HEAD, or with 204 and 304 (RFC 9112 §6.3)`(
        _ method: String, _ response: String, _ length: String?
    ) throws {
        let (client, peer) = try forward(server.request(method))
        peer.send(response)
        still.await("\r\n\r\n", at: client)
        still.settle()
        #expect(client.read().hasSuffix("\r\n\r\n"))
        #expect(!client.text.contains("Transfer-Encoding"))
        let value = client.text.components("\r\nContent-Length: ").dropFirst().first
            .map { String($0.prefix { $0 != "\r\n" }) }
        #expect(value == length)
        client.forget()
        client.send("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n")
        still.await("HTTP/1.1 200 OK", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 200 OK"), "the next response follows at once")
    }

    // MARK: Responses that are cut

    @Test func `ends without the rest of a response whose server has failed`() throws {
        let (client, peer) = try forward(server.request())
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour")
        still.await("\r\n\r\nfour", at: client)
        peer.close()
        still.turn(until: "it ends") { client.hasEnded }
        #expect(client.text.hasSuffix("\r\n\r\nfour"))
        #expect(still.clientCounts == ClientCounts())
    }

    @Test func `ends without a last chunk when a response in chunks was cut`() throws {
        let (client, peer) = try forward(server.request())
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n")
        still.await("4\r\nfour\r\n", at: client)
        peer.close()
        still.turn(until: "it ends") { client.hasEnded }
        #expect(client.text.hasSuffix("4\r\nfour\r\n"))
    }

    @Test func `resets where the connection's end would be taken for the content's`() throws {
        let (client, peer) = try forward(server.request(version: "1.0"))
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n")
        still.await("\r\n\r\nfour", at: client)
        peer.close()
        still.turn(until: "it ends") { client.hasEnded }
        #expect(client.end == .reset)
    }
}

extension String {
    /// The parts between the placeholders of a text.
    fileprivate func components(_ separator: String) -> [Substring] {
        split(separator: separator, omittingEmptySubsequences: false)
    }
}
