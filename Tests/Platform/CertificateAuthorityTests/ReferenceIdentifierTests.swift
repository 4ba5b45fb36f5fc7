import HTTPCore
import Testing

@testable import PinfoldTLS

@Suite("The name that a certificate is asked for") struct ReferenceIdentifierTests {
    private static let label63 = String(repeating: "a", count: 63)
    private static let name253 = [label63, label63, label63, String(repeating: "b", count: 61)]
        .joined(separator: ".")

    @Test(
        arguments: [
            ("example.com", "example.com"),
            ("Example.COM", "example.com"),
            ("example.com.", "example.com"),
            ("localhost", "localhost"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
            ("_dmarc.example.com", "_dmarc.example.com"),
            ("a_b.example.com", "a_b.example.com"),
            ("1.example", "1.example"),
            ("a--b.example", "a--b.example"),
            ("0x.g", "0x.g"),
            (label63 + ".test", label63 + ".test"),
            (name253, name253),
            (name253 + ".", name253),
        ])
    func `a name has one form`(host: String, name: String) {
        #expect(ReferenceIdentifier(host) == .dns(name))
        #expect(ReferenceIdentifier(host)?.description == name)
    }

    @Test(
        arguments: [
            ("192.0.2.1", IPAddress.v4(0xC000_0201)),
            ("::1", .loopbackV6),
            ("[::1]", .loopbackV6),
            ("2001:DB8::1", .v6(0x2001_0DB8_0000_0000, 1)),
            ("[2001:db8:0:0::1]", .v6(0x2001_0DB8_0000_0000, 1)),
            ("::ffff:192.0.2.1", .v6(0, 0xFFFF_C000_0201)),
        ])
    func `an address is an address`(host: String, address: IPAddress) {
        #expect(ReferenceIdentifier(host) == .address(address))
    }

    @Test(
        arguments: [
            "", ".", "..", "a..b", ".a", "a.b..", "*", "*.example.com", "a*.example.com",
            "-a.example", "a-.example", "a b", "a,b", "a/b", "a:443", "a\0b", "a\nb",
            "bücher.example", "example.com,DNS:evil.test", "127.1", "1.2.3.4.5", "256.1.1.1",
            "0x7f.1", "a.0x7f", "a.1", "1.2.3.4.", "fe80::1%eth0", "[::1", "::1]", "[192.0.2.1]",
            String(repeating: "a", count: 64) + ".test", name253 + "b", name253 + "b.",
        ])
    func `what a certificate must not name has no form`(host: String) {
        #expect(ReferenceIdentifier(host) == nil)
    }
}
