import HTTPCore
import PinfoldConfiguration
import Testing
import Trust

@Suite("Who and what is let through")
struct AccessDecisionTests {
    @Test func `clients are served by network`() throws {
        let access = AccessConfiguration()
        #expect(access.serves(client: .loopbackV4))
        #expect(access.serves(client: .loopbackV6))
        #expect(try !access.serves(client: #require(IPAddress("10.0.0.1"))))
        #expect(try access.serves(client: #require(IPAddress("::ffff:127.0.0.1"))))
    }

    @Test func `destinations are decided by both lists`() throws {
        var access = AccessConfiguration()
        access.allow = DestinationList(
            networks: [try #require(IPNetwork("10.0.0.0/8"))],
            patterns: [try HostPattern("*.lab.example")])
        access.deny = DestinationList(
            networks: [try #require(IPNetwork("10.9.0.0/16"))],
            patterns: [try HostPattern("bad.lab.example")])
        func decide(_ host: String, _ address: String) throws -> DestinationRules.Decision {
            access.destinationRules.decide(
                try #require(IPAddress(address)),
                host: access.hostMatch(host: host.utf8.span, port: 80))
        }
        #expect(try decide("a.example", "10.1.1.1") == .allowed)
        #expect(try decide("a.example", "10.9.1.1") == .refused(.deniedNetwork))
        #expect(try decide("a.lab.example", "192.168.1.1") == .allowed)
        #expect(try decide("bad.lab.example", "192.0.32.1") == .refused(.deniedHost))
        #expect(try decide("a.example", "192.168.1.1") == .refused(.scope(.private)))
        #expect(try decide("a.example", "192.0.32.1") == .allowed)
    }

    @Test func `CONNECT may name the ports of the list, or any port`() {
        #expect(ConnectPorts.any.contains(1) && ConnectPorts.any.contains(65_535))
        #expect(!ConnectPorts.ports([]).contains(443))
        let two = ConnectPorts.ports([443, 8443])
        #expect(two.contains(443) && two.contains(8443) && !two.contains(444))
    }
}
