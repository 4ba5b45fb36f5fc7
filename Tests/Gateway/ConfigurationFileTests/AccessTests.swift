import HTTPCore
import Testing

@testable import Gateway

@Suite("The section access")
struct AccessTests {
    @Test func `networks, addresses and patterns are distinguished`() throws {
        let snapshot = try load(
            """
            access:
              clients: [10.0.0.0/8, "fd00::/8", 192.0.2.1]
              connectPorts: [443, 8443]
              destinations:
                allow: [127.0.0.0/8, "localhost", 10.1.2.3, "*.corp.example:8443", "::1"]
                deny: ["**.ads.example", "[::1]:80"]
            """)
        let access = snapshot.access
        #expect(access.clients.map(\.description) == ["10.0.0.0/8", "fd00::/8", "192.0.2.1/32"])
        #expect(access.connectPorts == .ports([443, 8443]))
        #expect(
            access.allow.networks.map(\.description) == ["127.0.0.0/8", "10.1.2.3/32", "::1/128"])
        #expect(access.allow.patterns.map(\.description) == ["localhost", "*.corp.example:8443"])
        #expect(access.deny.networks.isEmpty)
        #expect(access.deny.patterns.map(\.description) == ["**.ads.example", "[::1]:80"])
    }

    @Test func `the ports of CONNECT may be any or none`() throws {
        let any = try load("access: { connectPorts: any }").access.connectPorts
        #expect(any == .any && any.contains(1) && any.contains(65_535))
        let none = try load("access: { connectPorts: [] }").access.connectPorts
        #expect(none == .ports([]) && !none.contains(443))
        let standard = try loadDefaults().access.connectPorts
        #expect(standard.contains(443) && !standard.contains(444))
    }

    @Test(arguments: [
        Wrong(
            "access: { clients: [10.0.0.1/8] }",
            "1: access.clients[0]: \"10.0.0.1/8\" has bits set after its prefix; "
                + "expected 10.0.0.0/8"),
        Wrong(
            "access: { clients: [10.0.0.0/33] }",
            "1: access.clients[0]: \"10.0.0.0/33\" has an invalid prefix length; "
                + "expected a network or an address, such as 10.0.0.0/8, fc00::/7 or 192.0.2.1"),
        Wrong(
            "access: { clients: [example.com] }",
            "1: access.clients[0]: \"example.com\" is not a network; "
                + "expected a network or an address, such as 10.0.0.0/8, fc00::/7 or 192.0.2.1"),
        Wrong(
            "access: { clients: 10.0.0.0/8 }",
            "1: access.clients: is a single value; expected a list of networks"),
        Wrong(
            "access: { connectPorts: [0, 65536, https] }",
            "1: access.connectPorts[0]: 0 is out of range; expected a whole number from 1 to 65535",
            "1: access.connectPorts[1]: 65536 is out of range; "
                + "expected a whole number from 1 to 65535",
            "1: access.connectPorts[2]: \"https\" is not valid; "
                + "expected a whole number from 1 to 65535"),
        Wrong(
            "access: { connectPorts: 443 }",
            "1: access.connectPorts: \"443\" is not a list; expected any, or a list of ports"),
        Wrong(
            "access: { destinations: { deny: [10.0.0.0/40] } }",
            "1: access.destinations.deny[0]: \"10.0.0.0/40\" has an invalid prefix length; "
                + "expected a network or an address, such as 10.0.0.0/8, fc00::/7 or 192.0.2.1"),
        Wrong(
            "access: { destinations: { allow: [[a]] } }",
            "1: access.destinations.allow[0]: is a list; "
                + "expected a network, an address or a host pattern"),
        Wrong(
            "access: { destinations: { allow: ['a*'] } }",
            "1: access.destinations.allow[0]: \"a*\" is not a host pattern: a wildcard is "
                + "allowed only at the start, as '*.' (one label) or '**.' (any depth); expected a "
                + "host name, *.name for one more label, **.name for any depth, or an address, "
                + "each optionally with a :port"),
    ])
    func `a wrong rule is reported`(wrong: Wrong) {
        #expect(errors(of: wrong.text) == wrong.lines)
    }
}
