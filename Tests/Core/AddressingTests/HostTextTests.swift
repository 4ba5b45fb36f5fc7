import HTTPCore
import Testing

@Suite("Hosts in text")
struct HostTextTests {
    @Test(
        arguments: [
            ("a.test", "a.test"), ("192.0.2.1", "192.0.2.1"), ("::1", "[::1]"),
            ("[::1]", "[::1]"), ("::ffff:192.0.2.1", "[::ffff:192.0.2.1]"), ("", ""),
        ])
    func `only an IPv6 address stands in brackets, and in one pair`(host: String, text: String) {
        #expect(HostText.bracketed(host) == text)
        #expect(HostText.text(host, port: 81) == "\(text):81")
    }
}
