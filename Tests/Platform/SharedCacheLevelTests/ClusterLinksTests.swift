import EventLoop
import RedisProtocol
import SharedCache
import Testing

@testable import SharedCacheLevel

/// Which connection leads to which slot, without any server.
@Suite("The connections to a cluster")
struct ClusterLinksTests {
    /// Three masters with a third of the slots each: `a`, `b` and `c`.
    private let thirds = [("a", 0, 5460), ("b", 5461, 10_922), ("c", 10_923, 16_383)]
    private let names: SharedName
    private let options: SharedLevelOptions
    private let loop: EventLoop
    private let mailbox: Mailbox<LevelMessage>

    init() throws {
        names = try #require(SharedName(prefix: []))
        let secret = try #require(SharedSecret([UInt8](repeating: 1, count: 32)))
        options = SharedLevelOptions(
            server: .cluster(SharedLevelOptions.Cluster([])), names: names,
            keyring: try #require(SharedKeyring([secret])))
        loop = try EventLoop()
        mailbox = try Mailbox()
    }

    private func node(_ name: String) throws -> RedisNode {
        try #require(RedisNode(host: Array(name.utf8), port: 1))
    }

    private func text(_ text: String) -> RESPValue { .bulk(Array(text.utf8)) }

    private func topology(_ ranges: [(String, Int, Int)]) throws -> ClusterTopology {
        let reply = RESPValue.array(
            ranges.map { name, first, last in
                .array([
                    .integer(Int64(first)), .integer(Int64(last)),
                    .array([text(name), .integer(1)]),
                ])
            })
        return try ClusterTopology(slots: reply, asked: node("asked"))
    }

    /// A connection that has passed its beginning.
    private func link(to node: RedisNode?) -> ServerLink {
        let link = ServerLink(
            options, socket: ServerSocket(resolver: nil, on: loop, mailbox: mailbox), now: 0)
        link.node = node
        _ = link.connection.start(now: 0)
        _ = link.connection.connected(now: 0)
        _ = link.connection.replied(
            .map([
                RESPEntry(key: text("server"), value: text("redis")),
                RESPEntry(key: text("proto"), value: .integer(3)),
                RESPEntry(key: text("mode"), value: text("cluster")),
                RESPEntry(key: text("role"), value: text("master")),
            ]))
        return link
    }

    private func ask(_ link: ServerLink) {
        #expect(link.add(.nothing, by: 1000) { $0.add("PING") })
    }

    private func answer(_ link: ServerLink) { _ = link.takeExpected() }

    private func adopt(
        _ links: inout ClusterLinks, _ ranges: [(String, Int, Int)], home: ServerLink
    ) throws -> (new: [String], gone: [String]) {
        let changed = links.adopt(try topology(ranges), home: home) { link(to: $0) }
        for link in changed.new { link.isInUse = true }
        func names(_ links: [ServerLink]) -> [String] { links.compactMap(\.node?.host).sorted() }
        return (names(changed.new), names(changed.gone))
    }

    @Test func `all of a URL is in one slot, and all of the fleet`() throws {
        let digest = try #require(
            Array("http://a/".utf8).withUnsafeBytes { SharedName.digest(of: $0) })
        let token = SharedToken.drawn()
        let slot = ClusterSlot.of(digest.span)
        for name in [
            names.index(digest), names.value(digest, variant: []),
            names.value(digest, variant: Array("0123456789abcdef".utf8)), names.lease(digest),
            names.chunk(digest, body: token, 0), names.chunk(digest, body: token, 4_000_000_000),
        ] { #expect(ClusterSlot.of(name.span) == slot) }
        let fleet = ClusterLinks(names).fleetSlot
        for name in [
            names.stream, names.removed, names.members, names.policy, names.policyVersion,
            names.generation(run: []), names.generation(run: Array("0123".utf8)),
        ] { #expect(ClusterSlot.of(name.span) == fleet) }
    }

    @Test func `begin and end with the masters`() throws {
        var links = ClusterLinks(names)
        #expect(links.home == nil && links.link(of: 0) == nil && links.owner(of: 0) == nil)
        // "fleet" is in the last third.
        let home = link(to: try node("c"))
        home.isInUse = true
        #expect(try adopt(&links, thirds, home: home) == (["a", "b"], []))
        #expect(links.home == home.node)
        #expect(links.link(of: 10_923) === home && links.link(of: 16_383) === home)
        #expect(links.link(of: 0)?.node?.host == "a" && links.link(of: 5461)?.node?.host == "b")
        #expect(try adopt(&links, thirds, home: home) == ([], []))
        let others = [("a", 0, 5460), ("d", 5461, 10_922), ("c", 10_923, 16_383)]
        #expect(try adopt(&links, others, home: home) == (["d"], ["b"]))
        // A part has no master.
        #expect(try adopt(&links, [others[0], others[2]], home: home) == ([], ["d"]))
        #expect(links.link(of: 5461) == nil)
        // Home has moved to where another connection leads.
        home.node = try node("a")
        #expect(try adopt(&links, [("a", 0, 16_383)], home: home) == ([], ["a"]))
        #expect(links.links.isEmpty && links.link(of: 0) === home)
    }

    @Test func `that are not in use are not given`() throws {
        var links = ClusterLinks(names)
        let home = link(to: try node("c"))
        _ = try adopt(&links, thirds, home: home)
        #expect(links.link(of: 10_923) == nil && links.owner(of: 10_923) === home)
        home.isInUse = true
        #expect(links.link(of: 10_923) === home)
    }

    @Test func `do not serve a slot that has moved before its old node has answered`() throws {
        var links = ClusterLinks(names)
        let home = link(to: try node("c"))
        home.isInUse = true
        _ = try adopt(&links, thirds, home: home)
        let old = try #require(links.link(of: 0))
        ask(old)
        let known = links.topology(moving: 0, from: old, to: try node("a"))
        #expect(known == nil)
        let moved = try #require(links.topology(moving: 0, from: old, to: try node("b")))
        // Another one is not asked about it.
        #expect(links.topology(moving: 0, from: home, to: try node("b")) == nil)
        _ = links.adopt(moved, home: home) { link(to: $0) }
        #expect(links.link(of: 0) == nil && links.owner(of: 0)?.node?.host == "b")
        #expect(links.link(of: 1) === old)
        // What is sent later is not waited for.
        ask(old)
        let place = try #require(links.unsettled[0])
        #expect(place.link === old && place.retryAt == nil && old.answered < place.through)
        answer(old)
        #expect(old.answered == place.through)
        links.settled(0)
        #expect(links.link(of: 0)?.node?.host == "b")
        // It moves on without having been asked anything.
        answer(old)
        let owner = try #require(links.owner(of: 0))
        let back = try #require(links.topology(moving: 0, from: owner, to: try node("a")))
        _ = links.adopt(back, home: home) { link(to: $0) }
        #expect(links.unsettled.isEmpty && links.link(of: 0) === old)
    }

    @Test func `wait for the node that a slot has left first`() throws {
        var links = ClusterLinks(names)
        let home = link(to: try node("c"))
        home.isInUse = true
        _ = try adopt(&links, thirds, home: home)
        let first = try #require(links.link(of: 0))
        ask(first)
        for name in ["b", "c"] {
            let owner = try #require(links.owner(of: 0))
            let moved = try #require(links.topology(moving: 0, from: owner, to: try node(name)))
            _ = links.adopt(moved, home: home) { link(to: $0) }
            #expect(links.unsettled[0]?.link === first)
        }
        #expect(links.owner(of: 0) === home && links.link(of: 0) == nil)
    }

    @Test func `leave a slot alone that is moving until it is told to`() throws {
        var links = ClusterLinks(names)
        let home = link(to: try node("c"))
        home.isInUse = true
        _ = try adopt(&links, thirds, home: home)
        let old = try #require(links.link(of: 7))
        links.isMoving(7, from: old, retryAt: 500)
        links.isMoving(7, from: old, retryAt: 900)
        #expect(links.unsettled[7]?.retryAt == 500 && links.link(of: 7) == nil)
        ask(old)
        links.wasRetried(7, on: old, retryAt: 1000)
        #expect(links.unsettled[7]?.through == old.asked && links.unsettled[7]?.retryAt == 1000)
        // Then it has moved: what was sent is waited for, and nothing else.
        let moved = try #require(links.topology(moving: 7, from: old, to: try node("b")))
        _ = links.adopt(moved, home: home) { link(to: $0) }
        #expect(links.unsettled[7]?.retryAt == nil && links.unsettled[7]?.link === old)
        // One of which nothing is on its way is served by its new node at once.
        links.isMoving(8, from: old, retryAt: 500)
        answer(old)
        let other = try #require(links.topology(moving: 8, from: old, to: try node("b")))
        _ = links.adopt(other, home: home) { link(to: $0) }
        #expect(links.unsettled[8] == nil && links.link(of: 8)?.node?.host == "b")
    }

    @Test func `answer all when they end`() throws {
        let link = link(to: nil)
        ask(link)
        ask(link)
        #expect(link.asked == 2 && link.answered == 0)
        link.close()
        #expect(link.ended(.stopped, now: 0, random: 0).count == 2)
        #expect(link.answered == link.asked)
        #expect(!link.add(.nothing, by: 0) { $0.add("PING") })
    }
}
