import Testing
import pinfold

@Suite("Servers on the command line")
struct PeerAddressTests {
    @Test(
        arguments: [
            ("example.com", "example.com:443"), ("EXAMPLE.com.", "example.com:443"),
            ("example.com:8443", "example.com:8443"), ("localhost:1", "localhost:1"),
            ("192.0.2.1", "192.0.2.1:443"), ("192.0.2.1:8443", "192.0.2.1:8443"),
            ("::1", "[::1]:443"), ("[::1]", "[::1]:443"),
            ("[2001:DB8::1]:65535", "[2001:db8::1]:65535"),
            ("https://example.com", "example.com:443"),
            ("https://example.com:8443/a/b?c#d", "example.com:8443"),
            ("HTTPS://[::1]:8443/", "[::1]:8443"), ("a_b.example", "a_b.example:443"),
        ])
    func `a server is parsed`(text: String, expected: String) {
        #expect(PeerAddress(text)?.description == expected)
    }

    @Test(
        arguments: [
            "", ":443", "example.com:", "example.com:0", "example.com:65536", "example.com:+1",
            "example.com:١", "http://example.com", "https://", "ftp://a", "a b", "a..b", ".a",
            "*.a",
            "a/b", "[::1", "::1]:443", "user@example.com", "bücher.example", "\u{212A}.example",
            "-",
        ].filter { $0 != "-" })
    func `anything else is not a server`(text: String) {
        #expect(PeerAddress(text) == nil)
    }
}
