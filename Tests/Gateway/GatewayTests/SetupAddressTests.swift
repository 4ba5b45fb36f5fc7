import HTTPCore
import Testing

@testable import Gateway

@Suite("The address for clients to reach a listener")
struct SetupAddressTests {
    @Test(
        arguments: [
            // The listening address, the requested host, the connection's own end; the result.
            ("192.0.2.1", "gateway.example", "192.0.2.9", "192.0.2.1"),
            ("127.0.0.1", "localhost", "127.0.0.1", "127.0.0.1"),
            ("::1", "localhost", "::1", "[::1]"),
            ("0.0.0.0", "Gateway.Example", "192.0.2.9", "gateway.example"),
            ("0.0.0.0", "192.0.2.9", "192.0.2.9", "192.0.2.9"),
            ("::", "2001:db8::1", "2001:db8::1", "[2001:db8::1]"),
            ("::", "", "::ffff:192.0.2.9", "192.0.2.9"),
            ("::", "localhost", "::1", "localhost"),
            // What the grammar allows in a request's host, but a shell or a page must not receive.
            ("0.0.0.0", "a'b.localhost", "192.0.2.9", "192.0.2.9"),
            ("0.0.0.0", "a$(b).localhost", "192.0.2.9", "192.0.2.9"),
            ("0.0.0.0", "a&b;c.localhost", "192.0.2.9", "192.0.2.9"),
            ("0.0.0.0", "<b>.localhost", "192.0.2.9", "192.0.2.9"),
            ("0.0.0.0", "-x.localhost", "192.0.2.9", "192.0.2.9"),
        ])
    func `is the listener's own, or the one that was asked for`(
        listener: String, asked: String, local: String, expected: String
    ) throws {
        let address = try #require(IPAddress(listener))
        #expect(
            SetupAddress.host(listener: address, asked: asked, local: IPAddress(local)) == expected)
    }

    @Test func `is the loopback where nothing is known`() {
        #expect(SetupAddress.host(listener: .v4(0), asked: "", local: nil) == "127.0.0.1")
    }
}
