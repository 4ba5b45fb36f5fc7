import HTTPCore
import Testing

@Suite("Endpoints")
struct EndpointTests {
    @Test(arguments: ["127.0.0.1:80", "[::1]:80", "0.0.0.0:0", "[::]:65535", "[::ffff:1.2.3.4]:1"])
    func `an endpoint is a literal and a port`(text: String) {
        #expect(Endpoint(text)?.description == text)
    }

    @Test(
        arguments: [
            ("", .missingPort), ("127.0.0.1", .missingPort), ("[::1]", .missingPort),
            ("localhost", .missingPort), ("::1:80", .missingBrackets), ("::1", .missingBrackets),
            (":80", .badAddress), ("localhost:80", .badAddress), ("127.1:80", .badAddress),
            ("[127.0.0.1]:80", .badAddress), ("[::1%lo]:80", .badAddress),
            ("[]:80", .badAddress), ("[:80", .missingPort), ("127.0.0.1:", .badPort),
            ("127.0.0.1:65536", .badPort), ("127.0.0.1:080", .badPort),
            ("127.0.0.1:00", .badPort), ("127.0.0.1:+80", .badPort), ("127.0.0.1: 80", .badPort),
            ("127.0.0.1:80 ", .badPort), ("127.0.0.1:100000", .badPort), ("[::1]:x", .badPort),
            ("[::1]80", .missingPort),
        ] as [(String, Endpoint.ParseError)])
    func `each way not to be an endpoint has its reason`(text: String, reason: Endpoint.ParseError)
    {
        #expect(throws: reason) { try Endpoint(parsing: text) }
        #expect(Endpoint(text) == nil)
    }

    @Test func `a part of a text is read like a text`() {
        #expect(Endpoint("x1.2.3.4:5".dropFirst())?.description == "1.2.3.4:5")
    }
}
