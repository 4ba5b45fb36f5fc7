import CLinux
import HTTPCore
import TestSupport
import Testing

@testable import PinfoldResolver

/// Answers and how long they are cached.
@Suite("Answers of servers", .timeLimit(.minutes(30))) struct ResolverTests {
    private static let soa = DNSWire.Record.soa(owner: "example", ttl: 300, minimum: 20)

    private func server(ttl: UInt32 = 60) throws -> DNSServer {
        try DNSServer { $0.address(v4: "192.0.2.1", v6: "2001:db8::1", ttl: ttl) }
    }

    @Test func `a lookup asks for A and AAAA at once, and both make its answer`() async throws {
        let server = try server()
        let fixture = try ResolverFixture(servers: [server])
        let answer = try #require(await fixture.resolve("www.example").answer)
        #expect(answer.addresses.map(\.description) == ["2001:db8::1", "192.0.2.1"])
        #expect(answer.source == .dns)
        #expect(answer.isComplete)
        #expect(answer.expiresAtMilliseconds == fixture.clock.now + 60_000)
        #expect(server.count("www.example/a") == 1)
        #expect(server.count("www.example/aaaa") == 1)
    }

    @Test func `an answer is kept for its TTL and asked for again at its end`() async throws {
        let server = try server()
        let fixture = try ResolverFixture(servers: [server])
        #expect(fixture.cached("www.example") == nil)
        let first = await fixture.resolve("www.example")
        fixture.clock.advance(milliseconds: 59_999)
        #expect(fixture.cached("www.example") == first)
        #expect(await fixture.resolve("www.example") == first)
        #expect(server.total == 2)
        fixture.clock.advance(milliseconds: 1)
        #expect(fixture.cached("www.example") == nil)
        #expect(await fixture.resolve("www.example").addresses == first.addresses)
        #expect(server.total == 4)
    }

    @Test func `an answer with a TTL of 0 is used once and not kept`() async throws {
        let server = try server(ttl: 0)
        let fixture = try ResolverFixture(servers: [server])
        #expect(await fixture.resolve("www.example").addresses?.count == 2)
        #expect(fixture.cached("www.example") == nil)
        #expect(await fixture.resolve("www.example").addresses?.count == 2)
        #expect(server.total == 4)
    }

    @Test(arguments: [(UInt32(0), Int64(30)), (29, 30), (31, 31), (100, 100), (101, 100)])
    func `the configured bounds hold against the TTL`(ttl: UInt32, kept: Int64) async throws {
        let fixture = try ResolverFixture(servers: [server(ttl: ttl)]) {
            $0.minimumTTLSeconds = 30
            $0.maximumTTLSeconds = 100
        }
        let result = await fixture.resolve("www.example")
        fixture.clock.advance(milliseconds: kept * 1000 - 1)
        #expect(fixture.cached("www.example") == result)
        fixture.clock.advance(milliseconds: 1)
        #expect(fixture.cached("www.example") == nil)
    }

    @Test func `case and a trailing dot make no other name`() async throws {
        let server = try server()
        let fixture = try ResolverFixture(servers: [server])
        let first = await fixture.resolve("WWW.Example.")
        #expect(first.addresses?.count == 2)
        #expect(fixture.cached("www.example") == first)
        #expect(await fixture.resolve("www.EXAMPLE") == first)
        #expect(server.total == 2)
    }

    @Test func `one family alone is an answer`() async throws {
        let server = try DNSServer { query in
            query.type == .a ? query.answer([.a("192.0.2.1")]) : query.answer(authority: [Self.soa])
        }
        let fixture = try ResolverFixture(servers: [server])
        let result = await fixture.resolve("www.example")
        #expect(result.addresses == ["192.0.2.1"])
        #expect(result.answer?.isComplete == true)
    }

    @Test func `a name that does not exist is cached for the time in the SOA`() async throws {
        let server = try DNSServer { $0.answer(code: 3, authority: [Self.soa]) }
        let fixture = try ResolverFixture(servers: [server])
        #expect(await fixture.resolve("no.example") == .failed(.nxdomain))
        fixture.clock.advance(milliseconds: 19_999)
        #expect(fixture.cached("no.example") == .failed(.nxdomain))
        fixture.clock.advance(milliseconds: 1)
        #expect(fixture.cached("no.example") == nil)
        #expect(await fixture.resolve("no.example") == .failed(.nxdomain))
        #expect(server.total == 4)
    }

    @Test func `without a SOA a negative answer is remembered for the default`() async throws {
        let server = try DNSServer { query in
            let long = DNSWire.Record.soa(owner: "example", ttl: 9000, minimum: 9000)
            return query.answer(authority: query.name == "long.example" ? [long] : [])
        }
        let fixture = try ResolverFixture(servers: [server]) {
            $0.defaultNegativeTTLSeconds = 7
            $0.maximumNegativeTTLSeconds = 11
        }
        #expect(await fixture.resolve("none.example") == .failed(.noData))
        #expect(await fixture.resolve("long.example") == .failed(.noData))
        fixture.clock.advance(milliseconds: 6999)
        #expect(fixture.cached("none.example") == .failed(.noData))
        fixture.clock.advance(milliseconds: 1)
        #expect(fixture.cached("none.example") == nil)
        fixture.clock.advance(milliseconds: 3999)
        #expect(fixture.cached("long.example") == .failed(.noData))
        fixture.clock.advance(milliseconds: 1)
        #expect(fixture.cached("long.example") == nil)
    }

    @Test(
        arguments: [(UInt16(2), ResolveError.serverFailure), (5, .refused), (4, .serverFailure)])
    func `a server's failure has its reason and is remembered for a moment only`(
        code: UInt16, expected: ResolveError
    ) async throws {
        let server = try DNSServer { $0.answer(code: code) }
        let fixture = try ResolverFixture(servers: [server])
        #expect(await fixture.resolve("www.example") == .failed(expected))
        fixture.clock.advance(milliseconds: 999)
        #expect(fixture.cached("www.example") == .failed(expected))
        fixture.clock.advance(milliseconds: 1)
        #expect(fixture.cached("www.example") == nil)
    }

    @Test func `silent servers are a timeout, after the tries`() async throws {
        let server = try DNSServer { _ in .silence }
        let fixture = try ResolverFixture(servers: [server]) {
            $0.timeoutMilliseconds = 30
            $0.tries = 2
        }
        #expect(await fixture.resolve("www.example") == .failed(.timeout))
        // Sent, but possibly not read yet.
        await server.waitForTotal(4)
        #expect(server.count("www.example/a") == 2)
        #expect(server.count("www.example/aaaa") == 2)
    }

    @Test
    func `a question whose time passed while the process slept is asked once more`() async throws {
        let clock = ManualClock()
        let server = try DNSServer { query in
            // The first question of each family is lost in a pause of ten seconds.
            guard query.name != "lost.example" || clock.now >= 2_000_000 else {
                clock.advance(milliseconds: 500_000)
                return .silence
            }
            return query.name == "dead.example"
                ? .silence : query.address(v4: "192.0.2.1", v6: "2001:db8::1")
        }
        let fixture = try ResolverFixture(servers: [server]) {
            $0.clock = { clock.now }
            $0.timeoutMilliseconds = 200
            $0.tries = 1
        }
        #expect(await fixture.resolve("lost.example").addresses?.count == 2)
        #expect(server.total == 4)
        #expect(await fixture.resolve("dead.example") == .failed(.timeout))
        #expect(server.count("dead.example/a") == 1)
    }

    @Test func `a server whose port is closed is unreachable`() async throws {
        let port = ClosedPort(.udp)
        let closed = try #require(Endpoint(port.place))
        let fixture = try ResolverFixture(servers: .list([closed]))
        #expect(await fixture.resolve("www.example") == .failed(.unreachable))
    }

    @Test(arguments: [UInt16(2), 5, nil])
    func `when a server fails or is away the next one is asked`(code: UInt16?) async throws {
        let first = try DNSServer { query in code.map { query.answer(code: $0) } ?? .silence }
        let second = try server()
        let fixture = try ResolverFixture(servers: [first, second]) {
            guard code == nil else { return }
            $0.timeoutMilliseconds = 50
            // Each wait is longer than the previous one: one is long enough for any server.
            $0.tries = 12
        }
        #expect(await fixture.resolve("www.example").addresses?.count == 2)
        #expect(first.count("www.example/a") >= 1)
        #expect(second.count("www.example/a") >= 1)
        if code != nil { #expect(second.count("www.example/a") == 1) }
    }

    @Test func `when all servers fail, their answer is the reason`() async throws {
        let first = try DNSServer { $0.answer(code: 5) }
        let second = try DNSServer { $0.answer(code: 5) }
        let fixture = try ResolverFixture(servers: [first, second])
        #expect(await fixture.resolve("www.example") == .failed(.refused))
        #expect(second.total >= 2)
    }

    @Test func `a truncated answer is fetched whole over TCP`() async throws {
        let server = try DNSServer { query in
            guard query.isTCP else { return query.answer(truncated: true) }
            let many = (1...100).map { number in
                query.type == .a
                    ? DNSWire.Record.a("192.0.2.\(number)") : .aaaa("2001:db8::\(number)")
            }
            return query.answer(many)
        }
        let fixture = try ResolverFixture(servers: [server])
        let addresses = try #require(await fixture.resolve("www.example").addresses)
        #expect(addresses.count == 2 * DNSMessage.maximumAddresses)
        #expect(server.count("www.example/a/tcp") == 1)
        #expect(server.count("www.example/aaaa/tcp") == 1)
    }

    @Test func `aliases are followed in the answer, and their TTLs bound it`() async throws {
        let server = try DNSServer { query in
            query.answer([
                .cname("real.example", ttl: 5),
                query.type == .a
                    ? .a("192.0.2.1", owner: "real.example")
                    : .aaaa("2001:db8::1", owner: "real.example"),
            ])
        }
        let fixture = try ResolverFixture(servers: [server])
        let answer = try #require(await fixture.resolve("www.example").answer)
        #expect(answer.addresses.count == 2)
        #expect(answer.expiresAtMilliseconds == fixture.clock.now + 5000)
    }

    @Test func `an answer that cannot be read is a bad response`() async throws {
        let server = try DNSServer { query in
            query.answer([DNSWire.Record(owner: nil, type: query.type, ttl: 1, data: [1])])
        }
        let fixture = try ResolverFixture(servers: [server])
        #expect(await fixture.resolve("www.example") == .failed(.badResponse))
    }

    @Test
    func `answers to other questions are ignored until the right one arrives`() async throws {
        let server = try DNSServer { query in
            guard case .message(let right) = query.address(v4: "192.0.2.1", v6: "2001:db8::1")
            else { return .silence }
            guard case .message(var wrong) = query.address(v4: "192.0.2.9", v6: "2001:db8::9")
            else { return .silence }
            wrong[0] ^= 0xff
            return .messages([wrong, right])
        }
        let fixture = try ResolverFixture(servers: [server])
        #expect(await fixture.resolve("www.example").addresses == ["2001:db8::1", "192.0.2.1"])
        #expect(server.total == 2)
    }

    @Test(
        arguments: [
            ("192.0.2.7", "192.0.2.7"), ("[2001:db8::7]", "2001:db8::7"),
            ("2001:DB8::7", "2001:db8::7"),
        ])
    func `literals are answered at once, without a server`(name: String, expected: String)
        async throws
    {
        let server = try server()
        let fixture = try ResolverFixture(servers: [server], hosts: "192.0.2.9 192.0.2.7")
        #expect(fixture.cached(name)?.addresses == [expected])
        #expect(fixture.cached(name)?.answer?.source == .literal)
        #expect(await fixture.resolve(name).addresses == [expected])
        #expect(server.total == 0)
    }

    @Test(arguments: ["localhost", "LocalHost.", "a.b.localhost"])
    func `localhost and the names under it are loopback, whatever a file or server has`(
        name: String
    ) async throws {
        let server = try server()
        let fixture = try ResolverFixture(
            servers: [server], hosts: "192.0.2.9 localhost a.b.localhost")
        #expect(fixture.cached(name)?.addresses == ["::1", "127.0.0.1"])
        #expect(await fixture.resolve(name).answer?.source == .localhost)
        #expect(server.total == 0)
    }

    @Test(arguments: ["", "127.1", "0x7f.1", "a b", "bücher.example", "[fe80::1%25lo]", "a..b"])
    func `what is not a name is refused without a question`(name: String) async throws {
        let server = try server()
        let fixture = try ResolverFixture(servers: [server])
        #expect(fixture.cached(name) == .failed(.badName))
        #expect(await fixture.resolve(name) == .failed(.badName))
        #expect(server.total == 0)
    }

    @Test func `search domains are not tried, not even for names without a dot`() async throws {
        let server = try DNSServer { $0.answer(code: 3, authority: [Self.soa]) }
        let folder = TemporaryFolder()
        try folder.write(
            "search corp.example\noptions ndots:5\nnameserver 127.0.0.1\n",
            to: "resolv.conf")
        let fixture = try ResolverFixture(servers: .file(path: folder.path + "/resolv.conf")) {
            $0.filePort = server.endpoint.port
        }
        #expect(await fixture.resolve("intranet") == .failed(.nxdomain))
        #expect(await fixture.resolve("a.b") == .failed(.nxdomain))
        #expect(server.count("intranet/a") == 1)
        #expect(server.count("a.b/a") == 1)
        #expect(server.total == 4)
    }

    @Test func `new servers in the file are asked from the next lookup on`() async throws {
        let first = try server()
        let second = try DNSServer(host: 2, port: first.endpoint.port) {
            $0.address(v4: "192.0.2.1", v6: "2001:db8::1")
        }
        let folder = TemporaryFolder()
        try folder.write("nameserver 127.0.0.1\n", to: "resolv.conf")
        let fixture = try ResolverFixture(servers: .file(path: folder.path + "/resolv.conf")) {
            $0.filePort = first.endpoint.port
        }
        #expect(await fixture.resolve("one.example").addresses?.count == 2)
        try folder.write("# changed\nnameserver 127.0.0.2\n", to: "resolv.conf")
        #expect(await fixture.resolve("two.example").addresses?.count == 2)
        #expect(first.total == 2)
        #expect(second.count("two.example/a") == 1)
        #expect(second.total == 2)
    }
}
