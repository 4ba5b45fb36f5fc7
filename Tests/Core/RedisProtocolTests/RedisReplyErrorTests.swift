import Testing

@testable import RedisProtocol

/// The texts of errors as servers send them, what they are, and what follows.
private let errors: [(String, RedisErrorCode, RedisErrorConsequence)] = [
    ("TRYAGAIN Multiple keys request during rehashing of slot", .tryAgain, .isPassing),
    ("CLUSTERDOWN The cluster is down", .clusterDown, .isPassing),
    ("CROSSSLOT Keys in request don't hash to the same slot", .crossSlot, .isUnexpected),
    ("LOADING Redis is loading the dataset in memory", .loading, .isPassing),
    ("BUSY Redis is busy running a script.", .busy, .isPassing),
    ("MASTERDOWN Link with MASTER is down", .masterDown, .isWrongServer),
    ("READONLY You can't write against a read only replica.", .readOnly, .isWrongServer),
    ("OOM command not allowed when used memory > 'maxmemory'.", .outOfMemory, .refusesWrites),
    ("MISCONF Redis is configured to save RDB snapshots", .notPersisting, .refusesWrites),
    ("NOREPLICAS Not enough good replicas to write.", .noReplicas, .refusesWrites),
    ("NOAUTH Authentication required.", .noAuthentication, .isMisconfigured),
    (
        "WRONGPASS invalid username-password pair or user is disabled.", .wrongPassword,
        .isMisconfigured
    ),
    ("ERR invalid password", .wrongPassword, .isMisconfigured),
    (
        "NOPERM User pinfold has no permissions to run the 'get' command", .noPermission,
        .isMisconfigured
    ),
    ("NOPROTO unsupported protocol version", .noProtocol, .isMisconfigured),
    (
        "ERR unknown command 'HELLO', with args beginning with: '3'", .unknownCommand,
        .isMisconfigured
    ),
    ("NOSCRIPT No matching script.", .noScript, .needsScript),
    (
        "WRONGTYPE Operation against a key holding the wrong kind of value", .wrongType,
        .isUnexpected
    ),
    ("ERR syntax error", .other, .isUnexpected),
    ("moved 1 a:1", .other, .isUnexpected),
    ("", .other, .isUnexpected),
    (" ", .other, .isUnexpected),
]

/// What follows MOVED or ASK: slot, host, port.
private let redirections: [(String, UInt16, String?, UInt16)] = [
    ("3999 127.0.0.1:6381", 3999, "127.0.0.1", 6381),
    ("0 ::1:6379", 0, "::1", 6379),
    ("0 [::1]:6379", 0, "::1", 6379),
    ("16383 node-1.example.com:65535", 16_383, "node-1.example.com", 65_535),
    ("1 :7000", 1, nil, 7000),
    ("1 a:1 more", 1, "a", 1),
]

private let noRedirections = [
    "", "1", "1 ", "x a:1", "-1 a:1", "16384 a:1", "1 a", "1 a:", "1 a:0", "1 a:65536", "1 a:x",
    "1 a:-1", "1  a:1", "1 a\u{7F}b:1", "1 é:1", "99999999999999999999 a:1",
]

@Suite("Errors that Redis replies")
struct RedisReplyErrorTests {
    @Test func `are known by their first word`() {
        for (text, code, consequence) in errors {
            let error = RedisReplyError(Array(text.utf8))
            #expect(error.code == code, "\(text)")
            #expect(error.code.consequence == consequence, "\(text)")
            #expect(error.text == text)
        }
    }

    @Test func `say where a key is`() throws {
        for (text, slot, host, port) in redirections {
            let moved = RedisErrorCode(Array("MOVED \(text)".utf8))
            let ask = RedisErrorCode(Array("ASK \(text)".utf8))
            guard case .moved(let redirection) = moved else {
                Issue.record("\(text) is \(moved)")
                continue
            }
            #expect(ask == .ask(redirection))
            #expect(moved.consequence == .redirects)
            #expect(redirection.slot == slot)
            #expect(redirection.host == host)
            #expect(redirection.port == port)
            let asked = try #require(RedisNode(host: Array("asked".utf8), port: 1))
            let node = try #require(redirection.node(asked: asked))
            #expect(node.host == host ?? "asked")
            #expect(node.port == port)
        }
    }

    @Test func `that say it wrongly are any errors`() {
        for text in noRedirections {
            #expect(RedisErrorCode(Array("MOVED \(text)".utf8)) == .other, "\(text)")
            #expect(RedisErrorCode(Array("ASK \(text)".utf8)) == .other, "\(text)")
        }
    }

    @Test func `are cut and cleaned before they are shown`() {
        let error = RedisReplyError(Array("ERR a\u{1B}[0m\n".utf8))
        #expect(error.text == "ERR a [0m ")
        #expect(error.description == "the server replied: ERR a [0m ")
        let long = RedisReplyError([UInt8](repeating: 65, count: 1000))
        #expect(long.text.utf8.count == RedisReplyError.maximumTextBytes)
    }

    @Test func `have names of hosts that can be shown`() {
        #expect(RedisNode(host: Array("::1".utf8), port: 6379)?.description == "[::1]:6379")
        #expect(RedisNode(host: Array("a".utf8), port: 6379)?.description == "a:6379")
        #expect(RedisNode(host: [], port: 1) == nil)
        #expect(RedisNode(host: Array("a b".utf8), port: 1) == nil)
        #expect(RedisNode(host: [UInt8](repeating: 65, count: 256), port: 1) == nil)
        #expect(RedisNode(host: [65], port: 0) == nil)
        #expect(RedisNode(host: [65], port: 65_536) == nil)
    }
}
