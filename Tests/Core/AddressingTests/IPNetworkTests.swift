import HTTPCore
import Testing

@Suite("IP networks")
struct IPNetworkTests {
    @Test(
        arguments: [
            ("10.0.0.0/8", "10.0.0.0/8"), ("0.0.0.0/0", "0.0.0.0/0"),
            ("192.168.1.1/32", "192.168.1.1/32"), ("192.168.1.1", "192.168.1.1/32"),
            ("::/0", "::/0"), ("fc00::/7", "fc00::/7"), ("::1", "::1/128"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("2001:db8:0:0:8000::/65", "2001:db8:0:0:8000::/65"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"), ("::ffff:10.0.0.1", "10.0.0.1/32"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
        ])
    func `a network is an address and a prefix length, or an address by itself`(
        text: String, canonical: String
    ) {
        #expect(IPNetwork(text)?.description == canonical)
        #expect(IPNetwork(canonical) == IPNetwork(text))
    }

    @Test(
        arguments: [
            ("", .badAddress), ("/8", .badAddress), ("10/8", .badAddress),
            ("10.0.0.0.0/8", .badAddress), ("example.com", .badAddress), ("[::1]/128", .badAddress),
            ("10.0.0.0/", .badPrefixLength), ("10.0.0.0/33", .badPrefixLength),
            ("::/129", .badPrefixLength), ("::/1000", .badPrefixLength),
            ("10.0.0.0/08", .badPrefixLength), ("10.0.0.0/-1", .badPrefixLength),
            ("10.0.0.0/8/8", .badPrefixLength), ("10.0.0.0/255.0.0.0", .badPrefixLength),
            ("10.0.0.0/8 ", .badPrefixLength),
        ] as [(String, IPNetwork.ParseError)])
    func `each way not to be a network has its reason`(text: String, reason: IPNetwork.ParseError) {
        #expect(throws: reason) { try IPNetwork(parsing: text) }
        #expect(IPNetwork(text) == nil)
    }

    @Test(
        arguments: [
            ("10.0.0.1/8", "10.0.0.0/8"), ("10.128.0.0/8", "10.0.0.0/8"),
            ("192.168.1.3/31", "192.168.1.2/31"), ("1.0.0.0/0", "0.0.0.0/0"),
            ("2001:db8::1/32", "2001:db8::/32"), ("::1/127", "::/127"),
            ("1:2:3:4:8000::/64", "1:2:3:4::/64"), ("::ffff:10.0.0.1/104", "10.0.0.0/8"),
            ("::ffff:0:0/90", "::ffc0:0:0/90"),
        ])
    func `host bits are an error that suggests the network`(text: String, suggestion: String) throws
    {
        let network = try #require(IPNetwork(suggestion))
        #expect(throws: IPNetwork.ParseError.hostBitsSet(suggestion: network)) {
            try IPNetwork(parsing: text)
        }
    }

    @Test(
        arguments: [
            ("10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"),
            ("172.16.0.0/12", "172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"),
            ("192.168.1.2/31", "192.168.1.2", "192.168.1.3", "192.168.1.1", "192.168.1.4"),
            ("192.168.1.2", "192.168.1.2", "192.168.1.2", "192.168.1.1", "192.168.1.3"),
            (
                "fc00::/7", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe00::"
            ),
            (
                "2001:db8::/64", "2001:db8::", "2001:db8::ffff:ffff:ffff:ffff",
                "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8:0:1::"
            ),
            ("2001:db8::8/125", "2001:db8::8", "2001:db8::f", "2001:db8::7", "2001:db8::10"),
        ])
    func `a network holds its first and last address and neither neighbour`(
        network: String, first: String, last: String, before: String, after: String
    ) throws {
        let network = try #require(IPNetwork(network))
        #expect(network.contains(try #require(IPAddress(first))))
        #expect(network.contains(try #require(IPAddress(last))))
        #expect(!network.contains(try #require(IPAddress(before))))
        #expect(!network.contains(try #require(IPAddress(after))))
    }

    @Test
    func `mapped addresses are IPv4 on both sides, and the families are apart otherwise`() throws {
        let all4 = try #require(IPNetwork("0.0.0.0/0"))
        let all6 = try #require(IPNetwork("::/0"))
        let mapped = try #require(IPAddress("::ffff:10.0.0.1"))
        #expect(all4.contains(mapped))
        #expect(!all6.contains(mapped))
        #expect(!all6.contains(.loopbackV4))
        #expect(!all4.contains(.loopbackV6))
        #expect(all6.contains(.loopbackV6))
        #expect(try #require(IPNetwork("::ffff:10.0.0.0/104")).contains(.v4(0x0a01_0203)))
    }

    @Test func `masking clears the host bits and refuses lengths that the family has not`() {
        #expect(
            IPNetwork(masking: .v4(0x0a01_0203), prefixLength: 8)?.description == "10.0.0.0/8")
        #expect(IPNetwork(masking: .v4(1), prefixLength: 33) == nil)
        #expect(IPNetwork(masking: .v4(1), prefixLength: -1) == nil)
        #expect(IPNetwork(masking: .v6(1, 1), prefixLength: 129) == nil)
        #expect(IPNetwork(masking: .v6(0, 0xffff_0000_0001), prefixLength: 129) == nil)
        #expect(IPNetwork(.v6(0, 0xffff_0000_0001)).description == "0.0.0.1/32")
    }
}
