import EngineTestSupport
import EventLoop
import Testing

@testable import Engine
@testable import Gateway

@Suite("The stages of a request's content")
struct RequestStageTests {
    private let server: ScriptedServer
    private let stages = ScriptedStages()

    init() throws { server = try ScriptedServer() }

    private func worker(_ configuration: String = "") throws -> StillWorker {
        let still = try StillWorker.reachingLoopback(configuration)
        still.worker.environment.bodyStages = stages
        return still
    }

    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    private func post(_ body: String, method: String = "POST") -> String {
        server.request(method, fields: "Content-Length: \(body.utf8.count)\r\n", body: body)
    }

    private func content(_ message: String) -> String {
        message.firstRange(of: "\r\n\r\n").map { String(message[$0.upperBound...]) } ?? ""
    }

    @Test func `a stage that keeps the length leaves the framing as it is`() throws {
        stages.request = { [MapStage.upperCase] }
        let still = try worker()
        let client = try still.client()
        client.send(post("hello") + server.request())
        let peer = try still.peer(of: server)
        still.await("\r\n\r\nHELLO", at: peer)
        #expect(peer.text.contains("\r\nContent-Length: 5\r\n"))
        // The pipelined one has no content, and no stages.
        peer.forget()
        peer.send(Self.ok)
        still.await("GET ", at: peer)
        #expect(stages.requests == 1)
        peer.send(Self.ok)
        still.turn(until: "both are answered") { client.read().ranges(of: "hi").count == 2 }
    }

    @Test func `a stage that changes the length makes the request chunked`() throws {
        stages.request = { [MapStage(last: ".") { [$0, $0] }] }
        let still = try worker()
        let client = try still.client()
        let wire = post("hello")
        for part in [wire.dropLast(5)] + wire.suffix(5).map({ "\($0)"[...] }) {
            still.submit(part, from: client)
        }
        let peer = try still.peer(of: server)
        still.await("\r\n0\r\n\r\n", at: peer)
        #expect(unchunked(content(peer.text)) == "hheelllloo.")
        #expect(peer.text.contains("\r\nTransfer-Encoding: chunked\r\n"))
        #expect(!peer.text.contains("Content-Length"))
        peer.send(Self.ok)
        still.await("hi", at: client)
    }

    @Test
    func `refused content becomes a reply, and the server's connection is let go of`() throws {
        stages.request = { [JudgeStage()] }
        let still = try worker()
        let client = try still.client()
        let wire = post("bad one")
        still.submit(wire.dropLast(2), from: client)
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        #expect(client.read() == "")
        still.submit(wire.suffix(2) + post("good"), from: client)
        still.await("upstream-content-forbidden", at: client)
        still.turn(until: "the server's connection ends") { peer.hasEnded }
        #expect(content(peer.text) == "")
        // It had been read to its end: the client's connection goes on, with the pipelined one.
        let next = try still.peer(of: server)
        still.await("\r\n\r\ngood", at: next)
        next.send(Self.ok)
        still.await("hi", at: client)
    }

    @Test func `content refused before its end is replied to, and the connection closed`() throws {
        stages.request = { [LimitStage(3)] }
        let still = try worker()
        let client = try still.client()
        let wire = post("hello")
        still.submit(wire.dropLast(3), from: client)
        let peer = try still.peer(of: server)
        still.await("\r\n\r\nhe", at: peer)
        client.send(wire.suffix(3).dropLast())
        still.await("upstream-truncated-body", at: client)
        #expect(client.text.contains("\r\nConnection: close\r\n"))
        still.turn(until: "the server's connection ends") { peer.hasEnded && client.hasEnded }
        #expect(content(peer.text) == "he")
    }

    @Test func `content that is refused after the response has begun cuts it off`() throws {
        stages.request = { [JudgeStage()] }
        let still = try worker()
        let client = try still.client()
        let wire = post("bad one")
        still.submit(wire.dropLast(2), from: client)
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        peer.send(Self.ok.dropLast())
        still.await("\r\n\r\nh", at: client)
        client.send(wire.suffix(2))
        still.turn(until: "both connections end") { client.hasEnded && peer.hasEnded }
        #expect(client.text.ranges(of: "HTTP/1.1").count == 1)
    }

    @Test func `content that was gathered passes the stages when it is sent`() throws {
        stages.request = { [MapStage.doubling] }
        let still = try worker("limits: { upstreamPerHost: 1 }")
        let client = try still.client()
        let wire = post("hello")
        still.submit(wire.dropLast(2), from: client)
        #expect(still.clientConnections.first?.exchange?.state.name == "gathering")
        client.send(wire.suffix(2))
        let peer = try still.peer(of: server)
        still.await("\r\n0\r\n\r\n", at: peer)
        #expect(unchunked(content(peer.text)) == "hheelllloo")
        peer.send(Self.ok)
        still.await("hi", at: client)
    }

    @Test func `gathered content that is refused is not sent, and the connection goes on`() throws {
        stages.request = { [JudgeStage()] }
        let still = try worker("limits: { upstreamPerHost: 1 }")
        let client = try still.client()
        let wire = post("bad one")
        still.submit(wire.dropLast(2), from: client)
        client.send(wire.suffix(2))
        let peer = try still.peer(of: server)
        still.await("upstream-content-forbidden", at: client)
        still.turn(until: "the server's connection ends") { peer.hasEnded }
        #expect(peer.text == "")
        client.forget()
        client.send("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n")
        still.await("HTTP/1.1 200 OK\r\n", at: client)
    }

    @Test func `a request that is sent again passes fresh stages with all of its content`() throws {
        stages.request = { [MapStage(last: ".") { [$0, $0] }] }
        let still = try worker()
        let client = try still.client()
        client.send(server.request())
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        peer.send(Self.ok)
        still.await("hi", at: client)
        peer.forget()
        client.send(post("hello", method: "PUT"))
        still.await("\r\n0\r\n\r\n", at: peer)
        peer.close()
        let next = try still.peer(of: server)
        still.await("\r\n0\r\n\r\n", at: next)
        #expect(unchunked(content(next.text)) == "hheelllloo.")
        #expect(stages.requests == 2)
        next.send(Self.ok)
        still.turn(until: "it is answered") { client.read().ranges(of: "hi").count == 2 }
    }

    @Test func `a client that goes away leaves nothing behind`() throws {
        stages.request = { [JudgeStage()] }
        let still = try worker()
        do {
            let client = try still.client()
            still.submit(post("hello").dropLast(2), from: client)
            let peer = try still.peer(of: server)
            still.await("\r\n\r\n", at: peer)
            client.reset()
            still.turn(until: "the server's connection ends") { peer.hasEnded }
        }
        #expect(still.clientCounts == ClientCounts())
        #expect(still.counts(try still.origin(server)) == PoolCounts())
    }
}
