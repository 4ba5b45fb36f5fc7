import HTTPCore
import Testing

@testable import PinfoldResolver

/// The hosts file and its changes.
@Suite("The hosts file and its changes", .timeLimit(.minutes(30))) struct ResolverHostsTests {
    private func server() throws -> DNSServer {
        try DNSServer { $0.address(v4: "192.0.2.1", v6: "2001:db8::1") }
    }

    @Test
    func `a name in the hosts file is answered from it and no server is asked`() async throws {
        let server = try server()
        let fixture = try ResolverFixture(
            servers: [server], hosts: "10.0.0.1 db.example db\nfd00::1 db.example\n")
        let answer = try #require(await fixture.resolve("DB.example").answer)
        #expect(answer.addresses.map(\.description) == ["fd00::1", "10.0.0.1"])
        #expect(answer.source == .hosts)
        #expect(await fixture.resolve("db").addresses == ["10.0.0.1"])
        #expect(fixture.cached("db")?.addresses == ["10.0.0.1"])
        #expect(server.total == 0)
    }

    @Test
    func `a changed file is seen when the last look is old, and at every lookup`() async throws {
        let server = try server()
        let fixture = try ResolverFixture(servers: [server], hosts: "10.0.0.1 db.example\n")
        #expect(await fixture.resolve("db.example").addresses == ["10.0.0.1"])
        try fixture.folder.write("10.0.0.22 db.example\n", to: "hosts")
        fixture.clock.advance(milliseconds: 4999)
        #expect(fixture.cached("db.example")?.addresses == ["10.0.0.1"])
        fixture.clock.advance(milliseconds: 1)
        #expect(fixture.cached("db.example") == nil)
        #expect(await fixture.resolve("db.example").addresses == ["10.0.0.22"])
        try fixture.folder.write("10.0.0.3 other.example\n", to: "hosts")
        #expect(await fixture.resolve("other.example").addresses == ["10.0.0.3"])
        #expect(await fixture.resolve("db.example").answer?.source == .dns)
    }

    @Test func `a name that is added to the file replaces the cached DNS answer`() async throws {
        let server = try server()
        let fixture = try ResolverFixture(servers: [server])
        #expect(await fixture.resolve("www.example").answer?.source == .dns)
        try fixture.folder.write("10.0.0.1 www.example\n", to: "hosts")
        fixture.clock.advance(milliseconds: 5000)
        // This lookup asks the thread to check; the next one comes after the check.
        #expect(fixture.cached("www.example")?.answer?.source == .dns)
        #expect(await fixture.resolve("other.example").answer?.source == .dns)
        #expect(await fixture.resolve("www.example").answer?.source == .hosts)
    }

    @Test func `a missing file is an empty one, and may come later`() async throws {
        let server = try server()
        let fixture = try ResolverFixture(servers: [server]) { $0.hostsPath += ".missing" }
        #expect(await fixture.resolve("www.example").answer?.source == .dns)
        let late = try ResolverFixture(servers: [server]) {
            $0.hostsPath.removeLast("hosts".count)
            $0.hostsPath += "new"
        }
        #expect(await late.resolve("a.example").answer?.source == .dns)
        try late.folder.write("10.0.0.1 b.example", to: "new")
        #expect(await late.resolve("b.example").answer?.source == .hosts)
    }
}
