import Testing

@testable import RedisProtocol

private func node(_ host: String, _ port: Int64 = 26_379) throws -> RedisNode {
    try #require(RedisNode(host: Array(host.utf8), port: port))
}

@Suite("Sentinels of Redis")
struct SentinelTests {
    private let name = Array("mymaster".utf8)

    @Test func `say where the master is`() throws {
        #expect(
            SentinelReplies.askMaster(name).arguments.map { String(decoding: $0, as: UTF8.self) }
                == ["SENTINEL", "get-master-addr-by-name", "mymaster"])
        let reply = RESPValue.array([.string("10.0.0.1"), .string("6379")])
        #expect(try SentinelReplies.master(reply) == node("10.0.0.1", 6379))
    }

    @Test func `may not know it`() {
        let error = RedisReplyError(Array("NOAUTH Authentication required.".utf8))
        let wrong: [(RESPValue, SentinelReplyError)] = [
            (.null, .unknownMaster),
            (.failing("NOAUTH Authentication required."), .refused(error)),
            (.array([]), .malformed),
            (.array([.string("a"), .string("0")]), .malformed),
            (.array([.string("a"), .string("1"), .null]), .malformed),
            (.string("a:1"), .malformed),
            (.map([]), .malformed),
        ]
        for (reply, error) in wrong {
            #expect(throws: error) { try SentinelReplies.master(reply) }
        }
    }

    @Test func `know each other`() throws {
        let flat = RESPValue.array([.string("ip"), .string("a"), .string("port"), .string("1")])
        let map = RESPValue.map([RESPEntry("port", .string("2")), RESPEntry("ip", .string("b"))])
        let reply = RESPValue.array([flat, map, flat])
        #expect(
            try SentinelReplies.sentinels(reply, limit: 9) == [node("a", 1), node("b", 2)])
        #expect(try SentinelReplies.sentinels(reply, limit: 1) == [node("a", 1)])
        #expect(throws: SentinelReplyError.malformed) {
            try SentinelReplies.sentinels(.null, limit: 9)
        }
        #expect(throws: SentinelReplyError.malformed) {
            try SentinelReplies.sentinels(.array([.array([])]), limit: 9)
        }
    }

    @Test func `tell when it changes`() throws {
        func switched(_ text: String) -> RedisNode? {
            SentinelReplies.switched(Array(text.utf8), name: name)
        }
        #expect(try switched("mymaster 10.0.0.1 6379 10.0.0.2 6380") == node("10.0.0.2", 6380))
        #expect(switched("other 10.0.0.1 6379 10.0.0.2 6380") == nil)
        #expect(switched("mymaster 10.0.0.1 6379 10.0.0.2") == nil)
        #expect(switched("mymaster 10.0.0.1 6379 10.0.0.2 x") == nil)
        #expect(switched("mymaster  10.0.0.1 6379 10.0.0.2 1") == nil)
        #expect(switched("") == nil)
    }

    @Test func `are told from servers by their role`() {
        let roles: [(String, RedisRole?)] = [
            ("master", .master), ("slave", .replica), ("replica", .replica),
            ("primary", .master), ("sentinel", .sentinel), ("", nil), ("Master", nil),
        ]
        for (word, role) in roles {
            #expect(RedisRole(.array([.string(word), .integer(0)])) == role)
        }
        #expect(RedisRole(.null) == nil)
        #expect(RedisRole(.array([])) == nil)
    }
}

@Suite("The search for a master")
struct SentinelSearchTests {
    @Test func `takes the first that is one`() throws {
        var search = SentinelSearch([try node("a"), try node("b")])
        let master = try node("m", 6379)
        #expect(try search.begin() == .ask(node("a")))
        #expect(search.named(master) == .verify(master))
        #expect(search.verified(.master) == .use(master))
    }

    @Test func `goes on to the next Sentinel, which is then the first`() throws {
        var search = SentinelSearch([try node("a"), try node("b"), try node("c")])
        let master = try node("m", 6379)
        _ = search.begin()
        #expect(try search.failed() == .ask(node("b")))
        #expect(try search.failed() == .ask(node("c")))
        #expect(search.named(master) == .verify(master))
        #expect(search.verified(.master) == .use(master))
        #expect(try search.begin() == .ask(node("c")))
        #expect(try search.failed() == .ask(node("a")))
        #expect(try search.failed() == .ask(node("b")))
        #expect(search.failed() == .giveUp)
        #expect(search.failed() == .giveUp)
    }

    @Test(arguments: [RedisRole.replica, .sentinel, nil])
    func `asks another one if the server is not one any longer`(role: RedisRole?) throws {
        var search = SentinelSearch([try node("a"), try node("b")])
        let (old, new) = (try node("old", 6379), try node("new", 6379))
        _ = search.begin()
        _ = search.named(old)
        #expect(try search.verified(role) == .ask(node("b")))
        #expect(search.named(new) == .verify(new))
        #expect(search.verified(.master) == .use(new))
        #expect(try search.sentinels == [node("b"), node("a")])
    }

    @Test func `asks all in turn, however often one names what is none`() throws {
        var search = SentinelSearch([try node("a"), try node("b"), try node("c")])
        for name in ["a", "b", "c", "a", "b", "c"] {
            #expect(try search.begin() == .ask(node(name)))
            #expect(try search.named(node("m")) == .verify(node("m")))
            guard case .ask = search.verified(nil) else {
                Issue.record("nobody else is asked")
                return
            }
        }
    }

    @Test func `gives up without Sentinels, and where nothing was named`() throws {
        var none = SentinelSearch([])
        #expect(none.begin() == .giveUp)
        #expect(none.named(try node("m")) == .giveUp)
        #expect(none.verified(.master) == .giveUp)
        var search = SentinelSearch([try node("a")])
        _ = search.begin()
        #expect(search.verified(.master) == .giveUp)
    }

    @Test func `knows a bounded number of Sentinels`() throws {
        var search = SentinelSearch([try node("a")])
        search.add([try node("a"), try node("b"), try node("b")])
        #expect(try search.sentinels == [node("a"), node("b")])
        search.add(try (0..<100).map { try node("n\($0)") })
        #expect(search.sentinels.count == SentinelSearch.maximumSentinels)
    }
}
