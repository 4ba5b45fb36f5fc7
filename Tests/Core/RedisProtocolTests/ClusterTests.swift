import TestSupport
import Testing

@testable import RedisProtocol

/// Keys, the part that their slot depends on, and the slot, as `CLUSTER KEYSLOT` replies.
private let slots: [(key: String, tag: String, slot: UInt16)] = [
    ("", "", 0),
    ("123456789", "123456789", 12_739),
    ("foo", "foo", 12_182),
    ("bar", "bar", 5061),
    ("hello", "hello", 866),
    ("{user1000}.following", "user1000", 3443),
    ("{user1000}.followers", "user1000", 3443),
    ("foo{}{bar}", "foo{}{bar}", 8363),
    ("foo{{bar}}zap", "{bar", 4015),
    ("foo{bar}{zap}", "bar", 5061),
    ("foo{bar", "foo{bar", 15_278),
    ("foo}bar{", "foo}bar{", 11_073),
    ("}{a}", "a", 15_495),
]

private func node(_ host: String, _ port: Int64) throws -> RedisNode {
    try #require(RedisNode(host: Array(host.utf8), port: port))
}

private func address(_ host: String, _ port: Int64) -> RESPValue {
    .array([.string(host), .integer(port), .string("id")])
}

private func range(_ first: Int64, _ last: Int64, _ master: RESPValue) -> RESPValue {
    .array([.integer(first), .integer(last), master, address("replica", 1)])
}

private func map(_ entries: [(String, RESPValue)], isFlat: Bool) -> RESPValue {
    isFlat
        ? .array(entries.flatMap { [.string($0.0), $0.1] })
        : .map(entries.map { RESPEntry($0.0, $0.1) })
}

private func member(
    _ host: RESPValue, role: String = "master", health: String = "online", isFlat: Bool
) -> RESPValue {
    map(
        [
            ("id", .string("x")), ("port", .integer(6379)), ("tls-port", .integer(6380)),
            ("ip", .string("10.0.0.1")), ("endpoint", host), ("role", .string(role)),
            ("health", .string(health)),
        ], isFlat: isFlat)
}

private func shard(_ slots: [Int64], _ members: [RESPValue], isFlat: Bool) -> RESPValue {
    map(
        [("slots", .array(slots.map { .integer($0) })), ("nodes", .array(members))],
        isFlat: isFlat)
}

@Suite("Slots of a Redis cluster")
struct ClusterTests {
    @Test func `are those that a server says`() {
        for (key, tag, slot) in slots {
            let bytes = Array(key.utf8)
            #expect(
                Array(bytes[ClusterSlot.tag(of: bytes.span)]) == Array(tag.utf8), "\(key)")
            #expect(ClusterSlot.of(bytes.span) == slot, "\(key)")
        }
    }

    @Test func `depend on the tag alone`() {
        var random = SeededRandom(seed: 1)
        for _ in 0..<200 {
            let tag = (0..<1 + random.below(20)).map { _ in UInt8(0x61 + random.below(26)) }
            let key = Array("p:{".utf8) + tag + Array("}:c:".utf8) + random.bytes(8)
            #expect(ClusterSlot.of(key.span) == ClusterSlot.of(tag.span))
        }
    }

    @Test func `are read from the reply to CLUSTER SLOTS`() throws {
        let asked = try node("asked", 7000)
        let reply = RESPValue.array([
            range(0, 99, address("a", 1)), range(100, 16_000, address("", 2)),
            range(16_001, 16_001, .array([.null, .integer(3)])),
            range(16_002, 16_383, address("?", 2)),
        ])
        let topology = try ClusterTopology(slots: reply, asked: asked)
        #expect(topology.isComplete)
        #expect(try topology.owner(of: 0) == node("a", 1))
        #expect(try topology.owner(of: 99) == node("a", 1))
        #expect(try topology.owner(of: 100) == node("asked", 2))
        #expect(try topology.owner(of: 16_001) == node("asked", 3))
        #expect(try topology.owner(of: 16_383) == node("asked", 2))
        #expect(topology.nodes.count == 3)
        #expect(try topology.owns(node("a", 1)))
        #expect(try !topology.owns(node("replica", 1)))
    }

    @Test(arguments: [false, true])
    func `are read from the reply to CLUSTER SHARDS`(isFlat: Bool) throws {
        let asked = try node("asked", 7000)
        let reply = RESPValue.array([
            shard(
                [0, 10, 20, 16_383],
                [
                    member(.string("r"), role: "replica", isFlat: isFlat),
                    member(.string("gone"), health: "fail", isFlat: isFlat),
                    member(.string("m"), isFlat: isFlat),
                ], isFlat: isFlat),
            shard([11, 19], [member(.null, health: "fail", isFlat: isFlat)], isFlat: isFlat),
            shard([], [member(.string("new"), isFlat: isFlat)], isFlat: isFlat),
        ])
        for isSecure in [false, true] {
            let topology = try ClusterTopology(shards: reply, asked: asked, isSecure: isSecure)
            let port: Int64 = isSecure ? 6380 : 6379
            #expect(topology.isComplete)
            #expect(try topology.owner(of: 5) == node("m", port))
            #expect(try topology.owner(of: 15) == node("asked", port))
            #expect(try topology.owner(of: 16_383) == node("m", port))
        }
    }

    @Test func `may be unknown`() throws {
        let asked = try node("asked", 7000)
        let reply = RESPValue.array([range(5, 6, address("a", 1))])
        let topology = try ClusterTopology(slots: reply, asked: asked)
        #expect(!topology.isComplete)
        #expect(topology.owner(of: 4) == nil)
        #expect(topology.owner(of: 5) != nil)
        #expect(ClusterTopology().owner(of: 0) == nil)
    }

    @Test func `are not read from a reply that is wrong`() throws {
        let asked = try node("asked", 7000)
        let wrong: [(RESPValue, ClusterReplyError)] = [
            (.null, .malformed),
            (.failing("ERR This instance has cluster support disabled"), .malformed),
            (.array([.integer(1)]), .malformed),
            (.array([.array([.integer(0), .integer(1)])]), .malformed),
            (.array([range(0, 1, .array([.string("a")]))]), .malformed),
            (.array([range(0, 1, address("a", 0))]), .malformed),
            (.array([range(0, 1, address("a b", 1))]), .malformed),
            (.array([range(0, 1, .array([.integer(1), .integer(1)]))]), .malformed),
            (.array([range(2, 1, address("a", 1))]), .malformedRange(2, 1)),
            (.array([range(-1, 1, address("a", 1))]), .malformedRange(-1, 1)),
            (.array([range(0, 16_384, address("a", 1))]), .malformedRange(0, 16_384)),
            (
                .array([range(0, 5, address("a", 1)), range(5, 6, address("b", 1))]),
                .overlap(slot: 5)
            ),
            (
                .array((0...1024).map { range($0, $0, address("a", $0 + 1)) }),
                .tooManyNodes(limit: 1024)
            ),
        ]
        for (reply, error) in wrong {
            #expect(throws: error) { try ClusterTopology(slots: reply, asked: asked) }
        }
    }

    @Test func `are not read from shards that are wrong`() throws {
        let asked = try node("asked", 7000)
        let good = member(.string("m"), isFlat: false)
        let wrong: [(RESPValue, ClusterReplyError)] = [
            (.null, .malformed),
            (.array([.map([])]), .malformed),
            (.array([shard([1], [good], isFlat: false)]), .malformed),
            (.array([shard([0, 1], [], isFlat: false)]), .malformed),
            (
                .array([
                    shard([0, 1], [member(.integer(1), isFlat: false)], isFlat: false)
                ]), .malformed
            ),
            (
                .array([
                    shard(
                        [0, 1], [member(.string("r"), role: "replica", isFlat: false)],
                        isFlat: false)
                ]), .malformed
            ),
            (.array([shard([1, 0], [good], isFlat: false)]), .malformedRange(1, 0)),
            (.array([shard([0, 1, 1, 2], [good], isFlat: false)]), .overlap(slot: 1)),
        ]
        for (reply, error) in wrong {
            #expect(throws: error) {
                try ClusterTopology(shards: reply, asked: asked, isSecure: false)
            }
        }
    }

    @Test func `move one by one`() throws {
        var topology = ClusterTopology()
        let (first, second) = (try node("a", 1), try node("b", 1))
        #expect(topology.move(7, to: first) == true)
        #expect(topology.owner(of: 7) == first)
        #expect(topology.move(7, to: second) == true)
        #expect(topology.owner(of: 7) == second)
        #expect(!topology.owns(first))
        for port in 1...1022 { #expect(try topology.move(8, to: node("c", Int64(port))) == true) }
        #expect(try topology.move(8, to: node("d", 1)) == false)
        #expect(topology.move(8, to: first) == true)
    }
}
