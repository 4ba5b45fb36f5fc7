import Testing

@testable import RedisProtocol

private func hello(
    role: String = "master", mode: String = "standalone", version: Int64 = 3
) -> RESPValue {
    .map([
        RESPEntry("server", .string("redis")), RESPEntry("version", .string("7.0.15")),
        RESPEntry("proto", .integer(version)), RESPEntry("id", .integer(3)),
        RESPEntry("mode", .string(mode)), RESPEntry("role", .string(role)),
        RESPEntry("modules", .array([])),
    ])
}

private let unknown = RESPValue.failing("ERR unknown command 'HELLO'")
private let roleOfMaster = RESPValue.array([.string("master"), .integer(0), .array([])])
private let roleOfReplica = RESPValue.array([.string("slave"), .string("a"), .integer(1)])

/// A session, the replies, the commands that are sent, and how it ends.
private struct Dialogue: Sendable {
    var name: String
    var session = RedisSession()
    var replies: [RESPValue]
    var sent: [String]
    /// `nil` if it becomes ready.
    var error: RedisHandshakeError?
    var protocolVersion: Int64 = 3

    init(
        _ name: String, _ change: (inout RedisSession) -> Void, _ replies: [RESPValue],
        sent: [String], error: RedisHandshakeError? = nil, protocolVersion: Int64 = 3
    ) {
        self.name = name
        change(&session)
        self.replies = replies
        self.sent = sent
        self.error = error
        self.protocolVersion = protocolVersion
    }
}

extension Dialogue {
    /// Of a session without anything.
    init(
        _ name: String, _ replies: [RESPValue], sent: [String],
        error: RedisHandshakeError? = nil, protocolVersion: Int64 = 3
    ) {
        self.init(
            name, { _ in }, replies, sent: sent, error: error, protocolVersion: protocolVersion)
    }
}

private func secret(_ session: inout RedisSession) { session.password = Array("pw".utf8) }

private func everything(_ session: inout RedisSession) {
    session.user = Array("u".utf8)
    session.password = Array("pw".utf8)
    session.database = 3
    session.clientName = Array("gw-1".utf8)
}

private let ok = RESPValue.word("OK")

private func error(_ text: String) -> RedisReplyError { RedisReplyError(Array(text.utf8)) }

private let dialogues: [Dialogue] = [
    Dialogue("nothing but RESP3", [hello()], sent: ["HELLO 3"]),
    Dialogue("a password", secret, [hello()], sent: ["HELLO 3 AUTH default pw"]),
    Dialogue(
        "all of it", everything, [hello(), ok],
        sent: ["HELLO 3 AUTH u pw SETNAME gw-1", "SELECT 3"]),
    Dialogue("a node of a cluster", [hello(mode: "cluster")], sent: ["HELLO 3"]),
    Dialogue("a replica", [hello(role: "replica")], sent: ["HELLO 3"], error: .isReplica),
    Dialogue(
        "a replica that will do", { $0.needsMaster = false }, [hello(role: "replica")],
        sent: ["HELLO 3"]),
    Dialogue(
        "a Sentinel", [hello(mode: "sentinel")], sent: ["HELLO 3"], error: .isSentinel),
    Dialogue(
        "RESP2", [unknown, roleOfMaster], sent: ["HELLO 3", "ROLE"], protocolVersion: 2),
    Dialogue(
        "RESP2 by a server that has another version", [.failing("NOPROTO no"), roleOfMaster],
        sent: ["HELLO 3", "ROLE"], protocolVersion: 2),
    Dialogue(
        "all of it in RESP2", everything, [unknown, ok, ok, ok, roleOfMaster],
        sent: [
            "HELLO 3 AUTH u pw SETNAME gw-1", "AUTH u pw", "CLIENT SETNAME gw-1", "SELECT 3",
            "ROLE",
        ], protocolVersion: 2),
    Dialogue(
        "a password in RESP2", secret, [unknown, ok, roleOfMaster],
        sent: ["HELLO 3 AUTH default pw", "AUTH pw", "ROLE"], protocolVersion: 2),
    Dialogue(
        "a replica in RESP2", [unknown, roleOfReplica], sent: ["HELLO 3", "ROLE"],
        error: .isReplica),
    Dialogue(
        "a server too old for ROLE", [unknown, .failing("ERR unknown command 'ROLE'")],
        sent: ["HELLO 3", "ROLE"], protocolVersion: 2),
    Dialogue(
        "a user who may not ask for the role", [unknown, .failing("NOPERM no")],
        sent: ["HELLO 3", "ROLE"], protocolVersion: 2),
    Dialogue(
        "a user who may not name the connection", everything,
        [unknown, ok, .failing("NOPERM no"), ok, roleOfMaster],
        sent: [
            "HELLO 3 AUTH u pw SETNAME gw-1", "AUTH u pw", "CLIENT SETNAME gw-1", "SELECT 3",
            "ROLE",
        ], protocolVersion: 2),
    Dialogue(
        "a user who may not select a database", everything, [hello(), .failing("NOPERM no")],
        sent: ["HELLO 3 AUTH u pw SETNAME gw-1", "SELECT 3"],
        error: .notPermitted(.select, error("NOPERM no"))),
    Dialogue(
        "no password where one is needed",
        [.failing("NOAUTH HELLO must be called with the client already authenticated")],
        sent: ["HELLO 3"], error: .passwordRequired),
    Dialogue(
        "no password where one is needed, in RESP2",
        [unknown, .failing("NOAUTH Authentication required.")], sent: ["HELLO 3", "ROLE"],
        error: .passwordRequired),
    Dialogue(
        "a wrong password", secret, [.failing("WRONGPASS invalid")],
        sent: ["HELLO 3 AUTH default pw"], error: .wrongPassword),
    Dialogue(
        "a wrong password in RESP2", secret, [unknown, .failing("ERR invalid password")],
        sent: ["HELLO 3 AUTH default pw", "AUTH pw"], error: .wrongPassword),
    Dialogue(
        "a server that reads its data", [.failing("LOADING Redis is loading")],
        sent: ["HELLO 3"], error: .unavailable(error("LOADING Redis is loading"))),
    Dialogue(
        "a database that is none", { $0.database = 99 },
        [hello(), .failing("ERR DB index is out of range")], sent: ["HELLO 3", "SELECT 99"],
        error: .refused(.select, error("ERR DB index is out of range"))),
    Dialogue("another server", [ok], sent: ["HELLO 3"], error: .unexpectedReply(.hello)),
    Dialogue(
        "another version", [hello(version: 4)], sent: ["HELLO 3"],
        error: .unexpectedReply(.hello)),
    Dialogue(
        "another answer to SELECT", { $0.database = 1 }, [hello(), .integer(1)],
        sent: ["HELLO 3", "SELECT 1"], error: .unexpectedReply(.select)),
    Dialogue(
        "another answer to ROLE", [unknown, .array([.string("king")])],
        sent: ["HELLO 3", "ROLE"], error: .unexpectedReply(.role)),
]

@Suite("The handshake with Redis")
struct RedisHandshakeTests {
    @Test func `is one command after the other`() {
        for dialogue in dialogues {
            var handshake = RedisHandshake(dialogue.session)
            var sent = [Self.text(handshake.begin())]
            var end: RedisHandshake.Action?
            for reply in dialogue.replies {
                #expect(end == nil, "\(dialogue.name)")
                switch handshake.receive(reply) {
                case .send(let command): sent.append(Self.text(command))
                case .ready(let server): end = .ready(server)
                case .failed(let error): end = .failed(error)
                }
            }
            #expect(sent == dialogue.sent, "\(dialogue.name)")
            #expect(handshake.step == nil, "\(dialogue.name)")
            if let error = dialogue.error {
                #expect(end == .failed(error), "\(dialogue.name)")
                #expect(!error.description.contains("pw"))
            } else if case .ready(let server) = end {
                #expect(server.protocolVersion == dialogue.protocolVersion, "\(dialogue.name)")
            } else {
                Issue.record("\(dialogue.name): \(String(describing: end))")
            }
        }
    }

    private static func text(_ command: RedisCommand) -> String {
        command.arguments.map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
    }

    @Test func `tells what the server is`() {
        var handshake = RedisHandshake(RedisSession())
        _ = handshake.begin()
        var server = RedisServer()
        server.protocolVersion = 3
        server.product = "redis"
        server.version = "7.0.15"
        server.role = .master
        server.isClustered = true
        #expect(handshake.receive(hello(mode: "cluster")) == .ready(server))
    }

    @Test func `has failed if there is a reply after its end`() {
        var handshake = RedisHandshake(RedisSession())
        _ = handshake.begin()
        _ = handshake.receive(hello())
        #expect(handshake.receive(ok) == .failed(.unexpectedReply(.hello)))
    }

    @Test func `says which errors somebody has to mend`() {
        #expect(RedisHandshakeError.wrongPassword.isMisconfigured)
        #expect(!RedisHandshakeError.isReplica.isMisconfigured)
        #expect(!RedisHandshakeError.unavailable(error("LOADING")).isMisconfigured)
    }
}
