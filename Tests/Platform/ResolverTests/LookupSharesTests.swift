import HTTPCore
import Testing

@testable import PinfoldResolver

@Suite("Shares of the permits for lookups")
struct LookupSharesTests {
    private func begin(
        _ shares: inout LookupShares, _ name: String, client: String? = nil, now: Int64 = 0
    ) throws -> Result<LookupShares.Ticket, ResolveError> {
        let network = try client.map { IPNetwork(try #require(IPAddress($0))) }
        return shares.begin(
            try #require(DomainName(name)), client: network, nowMilliseconds: now)
    }

    private func failure(
        _ shares: inout LookupShares, _ name: String, client: String? = nil, now: Int64 = 0
    ) throws -> ResolveError? {
        if case .failure(let failure) = try begin(&shares, name, client: client, now: now) {
            return failure
        }
        return nil
    }

    @Test(arguments: [
        ("example.com", "example.com"), ("a.b.example.com", "example.com"), ("com", "com"),
        ("www.example.co.uk", "example.co.uk"), ("example.co.uk", "example.co.uk"),
        ("a.host.example.de", "example.de"), ("a.b.xy.io", "b.xy.io"),
    ])
    func `the zone of a name is what one registrant has`(name: String, zone: String) throws {
        #expect(try #require(DomainName(name)).zone == zone)
    }

    @Test func `one client may have half of the permits and the others the rest`() throws {
        var shares = LookupShares(permits: 16)
        for number in 0..<8 {
            #expect(try failure(&shares, "h\(number).z\(number).test", client: "192.0.2.1") == nil)
        }
        #expect(try failure(&shares, "other.test", client: "192.0.2.1") == .clientLimit)
        for number in 0..<4 {
            #expect(try failure(&shares, "i\(number).y\(number).test", client: "192.0.2.2") == nil)
        }
        #expect(try failure(&shares, "more.test", client: "192.0.2.2") == .clientLimit)
        #expect(try failure(&shares, "more.test", client: "192.0.2.3") == nil)
        #expect(try failure(&shares, "own.test") == nil, "the gateway's own are no client's")
    }

    @Test func `one zone may have half of the permits and the others the rest`() throws {
        var shares = LookupShares(permits: 16)
        for number in 0..<8 { #expect(try failure(&shares, "h\(number).dead.test") == nil) }
        #expect(try failure(&shares, "h9.dead.test") == .zoneLimit)
        #expect(try failure(&shares, "h9.live.test") == nil)
    }

    @Test func `no more permits are taken than there are`() throws {
        var shares = LookupShares(permits: 2)
        #expect(try failure(&shares, "a.one.test") == nil)
        #expect(try failure(&shares, "a.two.test") == nil)
        #expect(try failure(&shares, "a.three.test") == .overloaded)
    }

    @Test func `a lookup that ends releases its permit`() throws {
        var shares = LookupShares(permits: 2)
        let ticket = try begin(&shares, "a.one.test", client: "192.0.2.1").get()
        #expect(try failure(&shares, "b.two.test", client: "192.0.2.1") == .clientLimit)
        shares.end(ticket, timedOut: false, nowMilliseconds: 0)
        #expect(try failure(&shares, "b.two.test", client: "192.0.2.1") == nil)
    }

    @Test func `a zone that keeps timing out is tried with a few until something answers`() throws {
        var shares = LookupShares(permits: 1000)
        for number in 0..<8 {
            let ticket = try begin(&shares, "h\(number).dead.test").get()
            shares.end(ticket, timedOut: true, nowMilliseconds: 100)
        }
        let tickets = try (0..<4).map { try begin(&shares, "i\($0).dead.test", now: 200).get() }
        #expect(try failure(&shares, "j.dead.test", now: 200) == .zoneLimit)
        #expect(try failure(&shares, "j.live.test", now: 200) == nil)
        shares.end(tickets[0], timedOut: true, nowMilliseconds: 300)
        #expect(try failure(&shares, "j.dead.test", now: 300) == nil)
        #expect(try failure(&shares, "k.dead.test", now: 300) == .zoneLimit)
        shares.end(tickets[1], timedOut: false, nowMilliseconds: 400)
        #expect(try failure(&shares, "k.dead.test", now: 400) == nil)
        #expect(try failure(&shares, "l.dead.test", now: 400) == nil)
    }

    @Test func `a zone's time-outs are forgotten after a while`() throws {
        var shares = LookupShares(permits: 1000)
        for number in 0..<8 {
            let ticket = try begin(&shares, "h\(number).dead.test").get()
            shares.end(ticket, timedOut: true, nowMilliseconds: 100)
        }
        for number in 0..<5 {
            #expect(try failure(&shares, "i\(number).dead.test", now: 10_100) == nil)
        }
    }

    @Test func `one client's unresponsive zones do not displace another's`() throws {
        var shares = LookupShares(permits: 1000)
        for number in 0..<8 {
            let ticket = try begin(&shares, "h\(number).dead.test", client: "192.0.2.1").get()
            shares.end(ticket, timedOut: true, nowMilliseconds: 100)
        }
        for number in 0..<2000 {
            let ticket = try begin(&shares, "h.z\(number).test", client: "192.0.2.2").get()
            shares.end(ticket, timedOut: true, nowMilliseconds: 100)
        }
        for number in 0..<4 {
            #expect(try failure(&shares, "i\(number).dead.test", now: 200) == nil)
        }
        #expect(try failure(&shares, "j.dead.test", now: 200) == .zoneLimit)
    }
}
