import HTTPCore
import Testing

@Suite("Scopes of addresses")
struct AddressScopeTests {
    @Test(
        arguments: [
            ("0.0.0.0", .unspecified), ("0.255.255.255", .unspecified), ("1.0.0.0", nil),
            ("9.255.255.255", nil), ("10.0.0.0", .private), ("10.255.255.255", .private),
            ("11.0.0.0", nil), ("100.63.255.255", nil), ("100.64.0.0", .shared),
            ("100.127.255.255", .shared), ("100.128.0.0", nil), ("126.255.255.255", nil),
            ("127.0.0.0", .loopback), ("127.255.255.255", .loopback), ("128.0.0.0", nil),
            ("169.253.255.255", nil), ("169.254.0.0", .linkLocal),
            ("169.254.255.255", .linkLocal), ("169.255.0.0", nil),
            ("172.15.255.255", nil), ("172.16.0.0", .private), ("172.31.255.255", .private),
            ("172.32.0.0", nil), ("192.0.0.0", .reserved), ("192.0.0.8", .reserved),
            ("192.0.0.9", nil), ("192.0.0.10", nil), ("192.0.0.11", .reserved),
            ("192.0.0.255", .reserved), ("192.0.1.0", nil), ("192.0.2.0", .reserved),
            ("192.0.2.255", .reserved), ("192.0.3.0", nil), ("192.31.196.1", nil),
            ("192.88.98.255", nil), ("192.88.99.1", .reserved), ("192.88.100.0", nil),
            ("192.167.255.255", nil), ("192.168.0.0", .private),
            ("192.168.255.255", .private), ("192.169.0.0", nil), ("198.17.255.255", nil),
            ("198.18.0.0", .reserved), ("198.19.255.255", .reserved), ("198.20.0.0", nil),
            ("198.51.99.255", nil), ("198.51.100.7", .reserved), ("198.51.101.0", nil),
            ("203.0.112.255", nil), ("203.0.113.9", .reserved), ("203.0.114.0", nil),
            ("223.255.255.255", nil), ("224.0.0.0", .multicast),
            ("239.255.255.255", .multicast), ("240.0.0.0", .reserved),
            ("255.255.255.254", .reserved), ("255.255.255.255", .broadcast),
        ] as [(String, AddressScope?)])
    func `IPv4 scopes follow the special-purpose registry, edges included`(
        text: String, scope: AddressScope?
    ) throws {
        let address = try #require(IPAddress(text))
        #expect(address.scope == scope)
    }

    @Test(
        arguments: [
            ("::", .unspecified), ("::1", .loopback), ("2001:4860:4860::8888", nil),
            ("2000::", nil), ("1fff::", .reserved), ("4000::", .reserved),
            ("3ffe::1", nil), ("3fff::1", .reserved), ("3fff:fff::", .reserved),
            ("3fff:1000::", nil), ("64:ff9b:1::1", .reserved), ("100::1", .reserved),
            ("100:0:0:1::1", .reserved), ("5f00::1", .reserved), ("2001:db8::1", .reserved),
            ("2001:db7:ffff::1", nil), ("2001:db9::1", nil), ("2001::1", .reserved),
            ("2001:1::1", nil), ("2001:1::3", nil), ("2001:1::4", .reserved),
            ("2001:2::1", .reserved), ("2001:3::1", nil), ("2001:4:112::1", nil),
            ("2001:4:113::1", .reserved), ("2001:10::1", .reserved), ("2001:20::1", nil),
            ("2001:2f::1", nil), ("2001:30::1", nil), ("2001:40::1", .reserved),
            ("2001:1ff::1", .reserved), ("2001:200::1", nil), ("fbff::1", .reserved),
            ("fc00::1", .private), ("fdff::1", .private), ("fe00::1", .reserved),
            ("fe7f::1", .reserved), ("fe80::1", .linkLocal), ("febf::1", .linkLocal),
            ("fec0::1", .private), ("feff::1", .private), ("ff00::1", .multicast),
            ("ff02::1", .multicast), ("ffff::", .multicast),
        ] as [(String, AddressScope?)])
    func `IPv6 scopes follow the special-purpose registry, edges included`(
        text: String, scope: AddressScope?
    ) throws {
        let address = try #require(IPAddress(text))
        #expect(address.scope == scope)
    }

    @Test(
        arguments: [
            "::ffff:%", "::%", "64:ff9b::%",
        ])
    func `an address that carries an IPv4 one has its scope`(form: String) throws {
        let table: [(String, AddressScope?)] = [
            ("127.0.0.1", .loopback), ("10.0.0.1", .private), ("169.254.169.254", .metadata),
            ("8.8.8.8", nil), ("100.64.0.1", .shared), ("224.0.0.1", .multicast),
            ("255.255.255.255", .broadcast),
        ]
        for (text, scope) in table {
            let whole = form.split(separator: "%")[0] + text
            let address = try #require(IPAddress(whole))
            #expect(address.scope == scope, "\(whole)")
        }
    }

    @Test func `6to4 has the scope of the router that it names`() {
        #expect(IPAddress("2002:7f00:1::1")?.scope == .loopback)
        #expect(IPAddress("2002:a00:1::1")?.scope == .private)
        #expect(IPAddress("2002:808:808::1")?.scope == nil)
    }

    @Test(
        arguments: [
            ("169.254.169.254", .metadata), ("169.254.169.253", .linkLocal),
            ("169.254.170.2", .metadata), ("169.254.170.23", .metadata),
            ("169.254.170.3", .linkLocal), ("169.254.0.23", .metadata),
            ("169.254.42.42", .metadata), ("100.100.100.200", .metadata),
            ("100.100.100.201", .shared), ("192.0.0.192", .metadata),
            ("168.63.129.16", .metadata), ("168.63.129.17", nil),
            ("fd00:ec2::254", .metadata), ("fd00:ec2::23", .metadata), ("fd00:ec2::255", .private),
            ("fd20:ce::254", .metadata), ("fd00:42::42", .metadata),
        ] as [(String, AddressScope?)])
    func `clouds' metadata services are known wherever they lie, their neighbours are not`(
        text: String, scope: AddressScope?
    ) throws {
        let address = try #require(IPAddress(text))
        #expect(address.scope == scope)
    }
}
