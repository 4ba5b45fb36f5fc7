import PinfoldResolver
import Testing

@Suite("Domain names")
struct DomainNameTests {
    @Test(
        arguments: [
            ("example.com", "example.com"), ("Example.COM", "example.com"),
            ("example.com.", "example.com"), ("EXAMPLE.com.", "example.com"), ("a", "a"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"), ("_dmarc.a-b.c1", "_dmarc.a-b.c1"),
            ("1.example", "1.example"), ("3com", "3com"), ("a.0xg", "a.0xg"), ("a.x0", "a.x0"),
            ("a.1x2", "a.1x2"), ("a.0b", "a.0b"),
        ])
    func `a name is taken in lower case without its trailing dot`(name: String, expected: String) {
        #expect(DomainName(name)?.text == expected)
    }

    @Test(
        arguments: [
            "", ".", "..", ".a", "a..b", "a..", "-a.b", "a-.b", "a.-b", "a.b-", "a b", "a/b",
            "a:80",
            "a@b", "bücher.example", "a%2eb", "a\0b", "a\n", "*.example.com", "[::1]", "::1",
        ])
    func `what is not a host name is refused`(name: String) {
        #expect(DomainName(name) == nil)
    }

    @Test(
        arguments: [
            "127.1", "1", "2130706433", "0x7f.1", "0x7f000001", "0X7F000001", "1.2.3.4.5",
            "a.0x", "a.0xff", "foo.1", "1.2.3.4.", "0177.0.0.1", "999.999.999.999",
        ])
    func `names that loose readers take for addresses are refused`(name: String) {
        #expect(DomainName(name) == nil)
    }

    @Test func `labels end at 63 bytes and names at 253`() {
        let label63 = String(repeating: "a", count: DomainName.maximumLabelBytes)
        #expect(DomainName(label63) != nil)
        #expect(DomainName(label63 + "a") == nil)
        let prefix = "\(label63).\(label63).\(label63)."
        let name253 = prefix + String(repeating: "b", count: 61)
        #expect(name253.utf8.count == DomainName.maximumBytes)
        #expect(DomainName(name253) != nil)
        #expect(DomainName(name253 + ".")?.text == name253)
        #expect(DomainName(name253 + "b") == nil)
    }

    @Test(
        arguments: [
            ("localhost", true), ("LOCALHOST.", true), ("a.localhost", true),
            ("a.b.LocalHost", true), ("notlocalhost", false), ("localhost.example", false),
            ("localhost.localdomain", false),
        ])
    func `localhost and the names under it are known`(name: String, expected: Bool) throws {
        let name = try #require(DomainName(name))
        #expect(name.isLocalhost == expected)
    }
}
