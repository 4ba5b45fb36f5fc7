import HTTPCore
import Testing

@Suite("Rules on destinations")
struct DestinationRulesTests {
    private func rules(allow: [String] = [], deny: [String] = []) -> DestinationRules {
        DestinationRules(
            allow: allow.compactMap { IPNetwork($0) }, deny: deny.compactMap { IPNetwork($0) })
    }

    private func decide(
        _ text: String, _ rules: DestinationRules,
        host: DestinationRules.HostMatch = DestinationRules.HostMatch()
    ) throws -> DestinationRules.Decision {
        rules.decide(try #require(IPAddress(text)), host: host)
    }

    @Test(
        arguments: [
            ("8.8.8.8", nil), ("2001:4860:4860::8888", nil), ("127.0.0.1", .loopback),
            ("::1", .loopback), ("::ffff:127.0.0.1", .loopback), ("64:ff9b::7f00:1", .loopback),
            ("10.0.0.1", .private), ("fd12::1", .private),
            ("169.254.1.1", .linkLocal), ("fe80::1", .linkLocal), ("100.64.0.1", .shared),
            ("169.254.169.254", .metadata), ("::ffff:169.254.169.254", .metadata),
            ("fd00:ec2::254", .metadata), ("0.0.0.0", .unspecified), ("::", .unspecified),
            ("224.0.0.1", .multicast), ("ff02::1", .multicast), ("255.255.255.255", .broadcast),
            ("240.0.0.1", .reserved), ("2001:db8::1", .reserved),
        ] as [(String, AddressScope?)])
    func `without rules only global addresses are allowed, and the refusal names the scope`(
        text: String, scope: AddressScope?
    ) throws {
        let expected = scope.map { DestinationRules.Decision.refused(.scope($0)) } ?? .allowed
        #expect(try decide(text, rules()) == expected)
    }

    @Test
    func `an allowed network lets its addresses through, mapped ones too, and no others`() throws {
        let rules = rules(allow: ["127.0.0.0/8", "169.254.169.254", "fc00::/7"])
        #expect(try decide("127.0.0.1", rules) == .allowed)
        #expect(try decide("::ffff:127.0.0.1", rules) == .allowed)
        #expect(try decide("169.254.169.254", rules) == .allowed)
        #expect(try decide("fd00:ec2::254", rules) == .allowed)
        #expect(try decide("169.254.169.253", rules) == .refused(.scope(.linkLocal)))
        #expect(try decide("::1", rules) == .refused(.scope(.loopback)))
        #expect(try decide("10.0.0.1", rules) == .refused(.scope(.private)))
    }

    @Test func `a denied network wins over an allowed one and over an allowed host`() throws {
        let rules = rules(allow: ["10.0.0.0/8"], deny: ["10.1.0.0/16", "8.8.8.8"])
        #expect(try decide("10.0.0.1", rules) == .allowed)
        #expect(try decide("10.1.0.1", rules) == .refused(.deniedNetwork))
        #expect(try decide("::ffff:10.1.0.1", rules) == .refused(.deniedNetwork))
        #expect(try decide("8.8.8.8", rules) == .refused(.deniedNetwork))
        #expect(try decide("8.8.4.4", rules) == .allowed)
        let host = DestinationRules.HostMatch(allowed: true)
        #expect(try decide("10.1.0.1", rules, host: host) == .refused(.deniedNetwork))
        #expect(try decide("172.16.0.1", rules, host: host) == .allowed)
    }

    @Test(
        arguments: [
            ("10.0.0.1", nil), ("172.16.0.1", nil), ("192.168.1.1", nil), ("fd00::1", nil),
            ("100.64.0.1", nil), ("::ffff:10.0.0.1", nil), ("64:ff9b::a00:1", nil),
            ("8.8.8.8", nil),
            ("127.0.0.1", .loopback), ("127.8.8.8", .loopback), ("::1", .loopback),
            ("::ffff:127.0.0.1", .loopback), ("64:ff9b::7f00:1", .loopback),
            ("0.0.0.0", .unspecified), ("::", .unspecified),
            ("169.254.1.1", .linkLocal), ("fe80::1", .linkLocal),
            ("169.254.169.254", .metadata), ("100.100.100.200", .metadata),
            ("fd00:ec2::254", .metadata), ("64:ff9b::a9fe:a9fe", .metadata),
            ("224.0.0.1", .multicast), ("255.255.255.255", .broadcast), ("192.0.2.1", .reserved),
        ] as [(String, AddressScope?)])
    func `a permission by name opens private networks only`(
        address: String, scope: AddressScope?
    ) throws {
        let named = DestinationRules.HostMatch(allowed: true)
        let expected = scope.map { DestinationRules.Decision.refused(.scope($0)) } ?? .allowed
        #expect(try decide(address, rules(), host: named) == expected)
        #expect(scope.map { DestinationRefusalReason.scope($0).isOpenedByHostName } != true)
        // Allowing its network permits it, and so does the address if the request names that.
        let network = try #require(IPAddress(address))
        let opened = DestinationRules(allow: [IPNetwork(network)])
        #expect(try decide(address, opened, host: named) == .allowed)
        let literal = DestinationRules.HostMatch(allowed: true, isAddress: true)
        #expect(try decide(address, rules(), host: literal) == .allowed)
    }

    @Test func `a denied host is refused whatever its address, even if it is allowed too`() throws {
        let rules = rules(allow: ["0.0.0.0/0"])
        let denied = DestinationRules.HostMatch(allowed: true, denied: true)
        #expect(try decide("8.8.8.8", rules, host: denied) == .refused(.deniedHost))
        #expect(try decide("127.0.0.1", rules, host: denied) == .refused(.deniedHost))
    }

    @Test func `an IPv4 address carried by NAT64 or 6to4 can be denied but not allowed`() throws {
        let allowing = rules(allow: ["10.0.0.0/8"])
        #expect(try decide("64:ff9b::a00:1", allowing) == .refused(.scope(.private)))
        #expect(try decide("2002:a00:1::1", allowing) == .refused(.scope(.private)))
        let denying = rules(deny: ["8.8.8.0/24"])
        #expect(try decide("64:ff9b::808:808", denying) == .refused(.deniedNetwork))
        #expect(try decide("2002:808:808::1", denying) == .refused(.deniedNetwork))
        #expect(try decide("64:ff9b::808:908", denying) == .allowed)
        // Where in an address of a local gateway the other one is, only that gateway knows.
        let local = rules(allow: ["64:ff9b:1::/48"], deny: ["10.0.0.0/8"])
        for text in [
            "64:ff9b:1::a00:1", "64:ff9b:1:a00:0:100::", "64:ff9b:1:a:0:1::",
            "64:ff9b:1:0:a:0:100:0",
        ] { #expect(try decide(text, local) == .refused(.deniedNetwork), "\(text)") }
        #expect(try decide("64:ff9b:1::808:808", local) == .allowed)
        let named = rules(allow: ["64:ff9b::/96"])
        #expect(try decide("64:ff9b::a00:1", named) == .allowed)
    }

    @Test func `every refusal has a word of its own`() {
        #expect(
            DestinationRefusalReason.allCases.map(\.token) == [
                "denied_host", "denied_network", "loopback", "link_local", "private", "shared",
                "metadata", "unspecified", "multicast", "broadcast", "reserved",
            ])
    }
}
