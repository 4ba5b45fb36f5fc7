import CLinux
import EventLoop
import HTTPCore
import RedisProtocol
import TestSupport
import Testing

@testable import PinfoldEngine

@Suite("A client of Redis")
struct RedisClientTests {
    private static let ok = RESPValue.simple(Array("OK".utf8))

    private static func string(_ text: String) -> RESPValue { .bulk(Array(text.utf8)) }

    @Test func `sends all commands of a turn at once, and gets their replies in order`() throws {
        let server = try RedisServer()
        let client = try server.client()
        defer { client.stop() }
        try server.run { client.isReady }
        let before = client.writes
        var replies: [RedisOutcome] = []
        for number in 0..<500 {
            client.send(RedisCommand("ECHO", "\(number)"), within: 20_000) {
                replies.append($0)
            }
        }
        #expect(replies.isEmpty)
        #expect(client.pendingCount == 500)
        server.loop.turn(waitingAtMost: 0)
        #expect(client.writes == before + 1)
        try server.run { replies.count == 500 }
        #expect(replies == (0..<500).map { .reply(Self.string("\($0)")) })
        #expect(client.pendingCount == 0)
    }

    @Test func `refuses operations while it is not connected`() throws {
        let server = try RedisServer()
        let client = try server.client()
        defer { client.stop() }
        var outcome: RedisOutcome?
        client.send(RedisCommand("PING"), within: 1000) { outcome = $0 }
        #expect(outcome == nil)
        try server.run { outcome != nil }
        #expect(outcome == .failed(.refused(.notReady)))
    }

    @Test func `gets long strings in pieces, and as values`() throws {
        let server = try RedisServer()
        let client = try server.client()
        defer { client.stop() }
        try server.run { client.isReady }
        let long = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &>> 3) }
        let set = RedisCommand([Array("SET".utf8), Array("long".utf8), long])
        #expect(try server.outcome(client, set) == .reply(Self.ok))
        let get = RedisCommand("GET", "long")
        #expect(try server.outcome(client, get) == .reply(.bulk(long)))
        var received: [UInt8] = []
        var pieces = 0
        var outcome: RedisOutcome?
        client.send(
            get, within: 20_000,
            receive: {
                received += $0
                pieces += 1
            }, completion: { outcome = $0 })
        try server.run { outcome != nil }
        #expect(outcome == .received)
        #expect(received == long)
        #expect(pieces > 1)
        // What is no string comes as a value.
        var none: RedisOutcome?
        client.send(
            RedisCommand("GET", "none"), within: 20_000, receive: { _ in pieces = 0 },
            completion: { none = $0 })
        try server.run { none != nil }
        #expect(none == .reply(.null))
        #expect(pieces > 0)
    }

    @Test func `gives up operations of a server that has stopped, and comes back`() throws {
        let server = try RedisServer()
        let client = try server.client { $0.stallMilliseconds = 20 }
        defer { client.stop() }
        try server.run { client.isReady }
        var errors: [RedisConnectionError] = []
        client.onEnd = { errors.append($0) }
        server.signal(SIGSTOP)
        #expect(try server.outcome(client, RedisCommand("PING"), within: 10) == .failed(.slow))
        try server.run { !errors.isEmpty }
        #expect(errors.first == .stalled)
        server.signal(SIGCONT)
        try server.run { client.isReady }
        #expect(try server.reply(client, "ECHO", "back") == Self.string("back"))
    }

    @Test func `tells what was lost when the server is killed, and connects to the next one`()
        throws
    {
        let server = try RedisServer()
        let client = try server.client()
        defer { client.stop() }
        try server.run { client.isReady }
        // It waits for an element that nobody adds.
        var lost: [RedisOutcome] = []
        client.send(RedisCommand("BLPOP", "none", "0"), within: 60_000) { lost.append($0) }
        server.loop.turn(waitingAtMost: 0)
        server.kill()
        client.send(RedisCommand("PING"), within: 60_000) { lost.append($0) }
        try server.run { lost.count == 2 }
        #expect(lost.first == .failed(.lost(.unanswered)))
        #expect(!client.isReady)
        try server.start()
        try server.run { client.isReady }
        #expect(try server.reply(client, "PING") == .simple(Array("PONG".utf8)))
    }

    @Test func `proves who it is`() throws {
        let server = try RedisServer("--requirepass", "secret")
        var session = RedisSession()
        session.password = Array("secret".utf8)
        session.database = 3
        session.clientName = Array("gateway".utf8)
        let client = try server.client(session)
        defer { client.stop() }
        try server.run { client.isReady }
        #expect(try server.reply(client, "CLIENT", "GETNAME") == Self.string("gateway"))
        for (password, error) in [
            ("wrong", RedisHandshakeError.wrongPassword), (nil, .passwordRequired),
        ] {
            var other = RedisSession()
            other.password = password.map { Array($0.utf8) }
            let refused = try server.client(other)
            defer { refused.stop() }
            try server.run { refused.lastError != nil && !refused.isReady }
            #expect(refused.lastError == .handshake(error))
        }
    }

    @Test func `is told what others change`() throws {
        let server = try RedisServer()
        var session = RedisSession()
        session.trackedPrefixes = [Array("p:".utf8)]
        let client = try server.client(session)
        let other = try server.client()
        defer {
            client.stop()
            other.stop()
        }
        var pushes: [[RESPValue]] = []
        client.onPush = { pushes.append($0) }
        try server.run { client.isReady && other.isReady }
        #expect(try server.reply(other, "SET", "q:a", "1") == Self.ok)
        #expect(try server.reply(other, "SET", "p:a", "1") == Self.ok)
        try server.run { !pushes.isEmpty }
        #expect(pushes == [[Self.string("invalidate"), .array([Self.string("p:a")])]])
        // Messages do not disturb replies.
        #expect(try server.reply(client, "SET", "p:b", "2") == Self.ok)
        #expect(try server.reply(client, "GET", "p:b") == Self.string("2"))
    }

    @Test func `ends with what is under way when it is stopped`() throws {
        let server = try RedisServer()
        let client = try server.client()
        try server.run { client.isReady }
        var outcomes: [RedisOutcome] = []
        client.send(RedisCommand("PING"), within: 1000) { outcomes.append($0) }
        client.stop()
        client.stop()
        #expect(outcomes == [.failed(.lost(.notSent))])
        #expect(client.lastError == .stopped)
        client.send(RedisCommand("PING"), within: 1000) { outcomes.append($0) }
        try server.run { outcomes.count == 2 }
        #expect(outcomes.last == .failed(.refused(.notReady)))
        #expect(server.loop.handlerCount == 0)
    }

    @Test func `tries again where nobody listens`() throws {
        let port = ClosedPort()
        let loop = try EventLoop()
        var options = RedisConnection.Options()
        options.backoff = ReconnectBackoff(firstMilliseconds: 1, longestMilliseconds: 2)
        let address = try #require(IPAddress("127.0.0.1"))
        let client = RedisClient(
            loop: loop,
            address: .endpoint(Endpoint(address: address, port: port.number)),
            session: RedisSession(), options: options)
        var errors: [RedisConnectionError] = []
        client.onEnd = { errors.append($0) }
        try client.start()
        for _ in 0..<1000 where errors.count < 3 { loop.turn(waitingAtMost: 10) }
        #expect(errors.count >= 3)
        #expect(errors.allSatisfy { if case .transport = $0 { true } else { false } })
        client.stop()
    }
}
