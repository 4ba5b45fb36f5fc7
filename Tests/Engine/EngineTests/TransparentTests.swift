import HTTPCore
import Testing

@testable import PinfoldEngine

@Suite("The address that a client connected to")
struct OriginalDestinationTests {
    private static func endpoint(_ text: String) throws -> Endpoint { try #require(Endpoint(text)) }

    private static func address(_ text: String) throws -> IPAddress {
        let address = IPAddress(literal: text.utf8.span)
        return try #require(address)
    }

    @Test(
        arguments: [
            ("192.0.2.1:443", ["192.0.2.1"], true, .its),
            ("192.0.2.1:443", ["192.0.2.2", "192.0.2.1"], true, .its),
            ("192.0.2.1:443", ["192.0.2.2", "192.0.2.3"], true, .foreign),
            ("192.0.2.1:443", [], true, .foreign),
            // Of a part of the answer nothing follows for the rest, unless it is in it.
            ("192.0.2.1:443", ["192.0.2.2"], false, .unknown),
            ("192.0.2.1:443", ["192.0.2.1"], false, .its),
            ("[2001:db8::1]:443", ["192.0.2.1", "2001:db8::1"], true, .its),
            ("[2001:db8::1]:443", ["2001:db8::2"], true, .foreign),
            ("[::ffff:192.0.2.1]:443", ["192.0.2.1"], true, .its),
            ("192.0.2.1:443", ["::ffff:192.0.2.1"], true, .its),
        ] as [(String, [String], Bool, OriginalDestination.Relation)])
    func `belongs to a host if it is one of its addresses`(
        original: String, addresses: [String], areAll: Bool,
        expected: OriginalDestination.Relation
    ) throws {
        let destination = OriginalDestination(try Self.endpoint(original), opening: .tls)
        destination.beginComparison(with: "a.test")
        #expect(destination.relation(to: "a.test") == .unknown)
        let found = destination.compare(
            try addresses.map(Self.address), areAll: areAll, of: "a.test")
        #expect(found == expected)
        #expect(destination.relation(to: "a.test") == expected)
        #expect(destination.relation(to: "b.test") == .unknown)
    }

    @Test func `is compared with a host once, and with few of them`() throws {
        let destination = OriginalDestination(try Self.endpoint("192.0.2.1:80"), opening: .http)
        for number in 0..<16 {
            // Asking does not count.
            #expect(destination.mayCompare(with: "\(number).test"))
            #expect(destination.mayCompare(with: "\(number).test"))
            destination.beginComparison(with: "\(number).test")
            #expect(!destination.mayCompare(with: "\(number).test"))
        }
        #expect(!destination.mayCompare(with: "16.test"))
    }

    @Test(arguments: [
        ("192.0.2.1:80", "192.0.2.1"), ("[2001:db8::1]:80", "2001:db8::1"),
        ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
    ])
    func `is the host where none is named`(original: String, host: String) throws {
        let endpoint = try Self.endpoint(original)
        #expect(OriginalDestination(endpoint, opening: .other).host == host)
    }
}

@Suite("Connections that the gateway has begun itself")
struct OwnConnectionsTests {
    private let here = Endpoint(address: .v4(0xC000_0201), port: 40_000)
    private let there = Endpoint(address: .v4(0xC633_6401), port: 443)

    @Test func `are recognized by both addresses`() {
        let own = OwnConnections()
        own.note(here, to: there, at: 1000)
        #expect(own.contain(from: here, to: there, at: 1000))
        var other = here
        other.port += 1
        #expect(!own.contain(from: other, to: there, at: 1000))
        other = there
        other.port += 1
        #expect(!own.contain(from: here, to: other, at: 1000))
        #expect(!own.contain(from: there, to: here, at: 1000))
    }

    @Test func `are forgotten when their addresses may be another's`() {
        let own = OwnConnections()
        own.note(here, to: there, at: 0)
        #expect(own.contain(from: here, to: there, at: OwnConnections.milliseconds - 1))
        #expect(!own.contain(from: here, to: there, at: OwnConnections.milliseconds))
        own.note(here, to: there, at: OwnConnections.milliseconds)
        #expect(own.contain(from: here, to: there, at: OwnConnections.milliseconds))
    }

    @Test func `take bounded memory`() {
        let own = OwnConnections()
        for number in 0..<100_000 {
            // A new one each millisecond, from another address.
            let source = Endpoint(address: .v6(1, UInt64(number)), port: 1)
            own.note(source, to: there, at: Int64(number))
        }
        #expect(own.count <= 2 * Int(OwnConnections.milliseconds) + 1)
    }

    @Test func `are not remembered while nobody watches`() {
        let own = OwnConnections()
        own.note(here, to: there, at: 0)
        own.watch(false)
        #expect(own.count == 0)
        own.began(-1, to: there)
        #expect(own.count == 0)
    }
}
