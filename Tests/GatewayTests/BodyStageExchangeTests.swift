import CLinux
import CacheStore
import EngineTestSupport
import EventLoop
import Foundation
import Testing

@testable import Engine
@testable import Gateway

@Suite("The stages of an exchange's content")
struct BodyStageExchangeTests {
    private let still: StillWorker
    private let server: ScriptedServer
    private let stages = ScriptedStages()

    init() throws {
        var options = CacheStoreOptions()
        options.diskBytes = 0
        options.memoryFileBytes = 32 << 10
        still = try StillWorker.reachingLoopback(store: CacheStore(options: options))
        server = try ScriptedServer()
        still.worker.environment.bodyStages = stages
    }

    private func response(_ body: String, fields: String = "") -> String {
        "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\n\(fields)"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private static let fresh = "Cache-Control: max-age=60\r\n"

    /// A client whose request has arrived at the server.
    private func forward(_ request: String) throws -> (client: Peer, peer: Peer) {
        let client = try still.client()
        client.send(request)
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        return (client, peer)
    }

    /// Sends the client's next request, which its connection has to take, and answers it.
    private func goesOn(_ client: Peer, sourceLocation: SourceLocation = #_sourceLocation) throws {
        client.forget()
        stages.response = { [] }
        stages.request = { [] }
        client.send("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n")
        still.await("HTTP/1.1 200 OK\r\n", at: client, sourceLocation: sourceLocation)
    }

    private func content(_ message: String) -> String {
        message.firstRange(of: "\r\n\r\n").map { String(message[$0.upperBound...]) } ?? ""
    }

    private var stores: UInt64 { still.worker.metrics.value(.cacheStores) }

    // MARK: Responses

    @Test func `a stage that keeps the length leaves the framing as it is`() throws {
        stages.response = { [MapStage.upperCase] }
        let (client, peer) = try forward(server.request() + server.request())
        peer.send(response("hello"))
        still.await("HELLO", at: client)
        #expect(client.text.contains("\r\nContent-Length: 5\r\n"))
        #expect(!client.text.contains("Transfer-Encoding"))
        // The pipelined one, in parts.
        client.forget()
        still.turn(until: "the second arrives") {
            peer.read().ranges(of: "GET ").count == 2
        }
        for part in response("again").map({ String($0) }) { still.deliver(part, from: peer) }
        still.await("AGAIN", at: client)
        #expect(stages.responses == ["200 text/x", "200 text/x"])
        try goesOn(client)
    }

    @Test func `a stage that changes the length makes the response chunked`() throws {
        stages.response = { [MapStage.doubling] }
        let (client, peer) = try forward(server.request())
        peer.send(response("hello"))
        still.await("\r\n0\r\n\r\n", at: client)
        #expect(unchunked(content(client.text)) == "hheelllloo")
        #expect(client.text.contains("\r\nTransfer-Encoding: chunked\r\n"))
        #expect(!client.text.contains("Content-Length"))
        try goesOn(client)

        let (old, next) = (try still.client(), peer)
        next.forget()
        stages.response = { [MapStage.doubling] }
        old.send(server.request(version: "1.0"))
        still.await("\r\n\r\n", at: next)
        next.send(response("abc"))
        still.turn(until: "the connection ends") { old.hasEnded }
        #expect(content(old.text) == "aabbcc" && old.end == .closed)
    }

    @Test
    func `a response without content is finished: a stage may still give something out`() throws {
        stages.response = { [MapStage(last: "{}") { [$0] }] }
        let (client, peer) = try forward(server.request())
        peer.send(response(""))
        still.await("\r\n0\r\n\r\n", at: client)
        #expect(unchunked(content(client.text)) == "{}")
        #expect(!client.text.contains("Content-Length"))
        try goesOn(client)
    }

    @Test(arguments: ["HEAD", "GET"])
    func `where there can be no content no stage is asked for`(method: String) throws {
        stages.response = { [MapStage.doubling] }
        let (client, peer) = try forward(server.request(method))
        peer.send(
            method == "HEAD"
                ? "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n" : "HTTP/1.1 204 No Content\r\n\r\n"
        )
        still.await("\r\n\r\n", at: client)
        #expect(stages.responses == [])
        #expect(client.text.contains("Content-Length: 7") == (method == "HEAD"))
        try goesOn(client)
    }

    @Test
    func `content refused before the head was sent becomes a reply, and is not stored`() throws {
        stages.response = { [JudgeStage()] }
        let (client, peer) = try forward(server.request() + server.request())
        let wire = response("bad one", fields: Self.fresh)
        for part in [wire.dropLast(5), wire.suffix(5).dropLast(), wire.suffix(1)] {
            #expect(client.read() == "")
            still.deliver(part, from: peer)
        }
        still.await("upstream-content-forbidden", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 502 ") && !client.text.contains("text/x"))
        #expect(stores == 0)
        // The next one is asked for again, and passes; both connections have gone on.
        still.turn(until: "the second arrives") { peer.read().ranges(of: "GET ").count == 2 }
        client.forget()
        peer.send(response("good one", fields: Self.fresh))
        still.await("good one", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(stores == 1)
        try goesOn(client)
    }

    @Test func `the head waits for the stage that holds it, and for no longer`() throws {
        stages.response = { [JudgeStage(), MapStage.upperCase] }
        let (client, peer) = try forward(server.request())
        let wire = response("good")
        still.deliver(wire.dropLast(2), from: peer)
        still.settle()
        #expect(client.read() == "")
        #expect(still.clientConnections.first?.exchange?.state.name == "holding")
        still.deliver(wire.suffix(2), from: peer)
        still.await("GOOD", at: client)
        #expect(client.text.contains("\r\nContent-Length: 4\r\n"))
        try goesOn(client)
    }

    @Test func `a server that fails while the head is held is replied for`() throws {
        stages.response = { [JudgeStage()] }
        let (client, peer) = try forward(server.request())
        still.deliver(response("good", fields: Self.fresh).dropLast(), from: peer)
        peer.close()
        still.await("upstream-truncated-body", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 502 "))
        #expect(stores == 0)
        try goesOn(client)
    }

    @Test func `a client that goes away while the head is held leaves nothing behind`() throws {
        stages.response = { [JudgeStage()] }
        do {
            let (client, peer) = try forward(server.request())
            still.deliver(response("good", fields: Self.fresh).dropLast(), from: peer)
            #expect(still.clientConnections.first?.exchange?.state.name == "holding")
            #expect(stages.latest != nil)
            client.reset()
            still.turn(until: "the server's connection ends") { peer.hasEnded }
        }
        #expect(still.clientCounts == ClientCounts())
        #expect(still.counts(try still.origin(server)) == PoolCounts())
        #expect(stages.latest == nil)
        #expect(stores == 0)
    }

    @Test
    func `content that is refused behind a head cuts the response off, and is not stored`() throws {
        stages.response = { [LimitStage(4)] }
        let (client, peer) = try forward(server.request() + server.request())
        let wire = response("abcdef", fields: Self.fresh)
        peer.send(wire.dropLast(3))
        still.await("abc", at: client)
        peer.send("def")
        still.turn(until: "the connection ends") { client.hasEnded && peer.hasEnded }
        #expect(client.text.hasPrefix("HTTP/1.1 200 OK\r\n") && content(client.text) == "abc")
        #expect(stores == 0)
        #expect(peer.text.ranges(of: "GET ").count == 1)
        // Nothing of the head was written yet: a reply.
        let (next, other) = try forward(server.request())
        other.send(wire)
        still.await("upstream-truncated-body", at: next)
        #expect(next.text.hasPrefix("HTTP/1.1 502 "))
        #expect(stores == 0)
        try goesOn(next)
    }

    @Test func `a client that reads slowly slows the server down`() throws {
        stages.response = { [MapStage.doubling] }
        let (client, peer) = try forward(server.request())
        let count = 32 << 20
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n")
        var sent = 0
        for _ in 0..<200 {
            sent += peer.fill(min(1 << 16, count - sent))
            still.settle()
        }
        #expect(sent < count)
        var received = 0
        still.turn(until: "all has arrived") {
            if sent < count { sent += peer.fill(min(1 << 16, count - sent)) }
            client.read()
            received += client.text.utf8.count
            let isLast = client.text.hasSuffix("\r\n0\r\n\r\n")
            client.forget()
            return isLast
        }
        #expect(received > 2 * count)
        try goesOn(client)
    }

    // MARK: Stored responses

    /// Stores a body, whose response passes no stage.
    private func store(_ body: String) throws -> (client: Peer, peer: Peer) {
        let (client, peer) = try forward(server.request())
        peer.send(
            "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\n\(Self.fresh)"
                + "Content-Length: \(body.utf8.count)\r\n\r\n")
        var rest = Array(body.utf8)[...]
        still.turn(until: "it is stored") {
            let sent = rest.withUnsafeBytes {
                send(peer.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            rest = rest.dropFirst(max(0, sent))
            client.read()
            return stores == 1
        }
        still.turn(until: "it has arrived") { content(client.read()).utf8.count == body.utf8.count }
        client.forget()
        return (client, peer)
    }

    /// Small ones lie behind their head, larger ones in a file.
    @Test(arguments: [10, 300_000])
    func `a hit passes the stages like any response`(count: Int) throws {
        let body = String(repeating: "0123456789", count: count / 10)
        let (client, peer) = try store(body)
        #expect(stages.responses == ["200 text/x"])
        stages.response = { [MapStage.doubling] }
        client.send(server.request() + server.request())
        still.turn(until: "both arrive") {
            client.read().ranges(of: "\r\n0\r\n\r\n").count == 2
        }
        let first = content(client.text)
        #expect(unchunked(first) == body.map { "\($0)\($0)" }.joined())
        #expect(client.text.ranges(of: "Cache-Status: pinfold; hit").count == 2)
        #expect(!client.text.contains("Content-Length"))
        #expect(stages.responses.dropFirst() == ["200 text/x stored", "200 text/x stored"])
        #expect(peer.read().ranges(of: "GET ").count == 1)
        // With its length, and from within.
        client.forget()
        stages.response = { [MapStage.upperCase] }
        client.send(server.request(fields: "Range: bytes=2-5\r\n"))
        still.await("\r\n\r\n2345", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 206 "))
        #expect(client.text.contains("\r\nContent-Length: 4\r\n"))
        #expect(stages.responses.last == "206 text/x stored")
        try goesOn(client)
        #expect(still.worker.loop.buffers.outstanding <= 1)
    }

    @Test(arguments: [10, 300_000])
    func `a hit that is held is refused with a reply, or sent`(count: Int) throws {
        let body = "bad" + String(repeating: "x", count: count)
        let (client, peer) = try store(body)
        stages.response = { [JudgeStage()] }
        client.send(server.request())
        still.await("upstream-content-forbidden", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 502 "))
        #expect(client.text.ranges(of: "HTTP/1.1").count == 1)
        // Behind another one it is no longer bad.
        client.forget()
        stages.response = { [MapStage.upperCase, JudgeStage()] }
        client.send(server.request())
        still.turn(until: "it arrives") {
            content(client.read()).utf8.count == body.utf8.count
        }
        #expect(content(client.text) == body.uppercased())
        #expect(peer.read().ranges(of: "GET ").count == 1)
        try goesOn(client)
    }

    @Test
    func `what comes from the disk passes the stages, and may be refused while held`() throws {
        var options = CacheStoreOptions()
        let folder = FileManager.default.temporaryDirectory.appending(path: "\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        options.folder = folder.path
        options.memoryObjectBytes = 1024
        options.wholeBodyBytes = 1024
        options.inlineBodyBytes = 1024
        options.chunkBytes = 4096
        let store = CacheStore(options: options)
        #expect(store.waitUntilDiskSettled(milliseconds: 20_000) == .ready)
        let still = try StillWorker.reachingLoopback(store: store)
        still.worker.environment.bodyStages = stages
        let body = "bad" + String(repeating: "x", count: 50_000)
        let client = try still.client()
        client.send(server.request())
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        peer.send(response(body, fields: Self.fresh))
        still.turn(until: "it arrives") { client.read().hasSuffix("xxx") }
        client.forget()

        stages.response = { [MapStage.doubling] }
        client.send(server.request())
        still.await("\r\n0\r\n\r\n", at: client)
        #expect(unchunked(content(client.text)) == body.map { "\($0)\($0)" }.joined())
        client.forget()
        stages.response = { [JudgeStage()] }
        client.send(server.request())
        still.await("upstream-content-forbidden", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 502 "))
        #expect(stages.responses.dropFirst() == ["200 text/x stored", "200 text/x stored"])
        #expect(peer.read().ranges(of: "GET ").count == 1)
    }

    @Test func `a hit without content asks for no stage`() throws {
        let (client, _) = try store("body")
        stages.response = { [MapStage.doubling] }
        client.send(server.request("HEAD"))
        still.await("\r\n\r\n", at: client)
        #expect(client.text.contains("\r\nContent-Length: 4\r\n"))
        #expect(stages.responses.count == 1)
        try goesOn(client)
    }
}
