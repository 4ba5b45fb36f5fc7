import HTTPCore
import Testing

@Suite("The gateway's name")
struct GatewayNameTests {
    @Test(arguments: ["a", "gateway-1", "Front.end", "x!#$%&'*+-.^_`|~9"])
    func `is a token that begins with a letter`(text: String) {
        #expect(GatewayName.isValid(text))
    }

    @Test(
        arguments: [
            "", "1a", "-a", "*a", "a b", "a\r\nb", "a\0", "a:80", "a/b", "a,b", "a(b)", "a\"",
            "\u{E9}", String(repeating: "a", count: 65),
        ])
    func `is nothing else`(text: String) {
        #expect(!GatewayName.isValid(text))
    }

    @Test func `the line of a request has the mark`() {
        let entry = ViaEntry(GatewayName("gw"), ViaMark(random: 0xAB))
        for (version, text) in [(HTTPVersion.http10, "1.0"), (.http11, "1.1"), (.http2, "2.0")] {
            let expected = "Via: \(text) gw (00000000000000ab)\r\n"
            let bytes = [UInt8](unsafeUninitializedCapacity: 128) { memory, count in
                var writer = HeadWriter(UnsafeMutableRawBufferPointer(memory))
                entry.append(received: version, to: &writer)
                count = writer.count
            }
            #expect(String(decoding: bytes, as: UTF8.self) == expected)
            #expect(bytes.count <= ViaEntry.maximumLineBytes)
        }
    }

    private func passes(_ value: String, names: [String] = ["gw", "pinfold"]) -> Int {
        let bytes = Array(value.utf8)
        return ViaPasses(names: names.map { GatewayName($0) }, mark: ViaMark(random: 1))
            .count(in: bytes.span)
    }

    @Test(
        arguments: [
            ("", 0), ("1.1 other", 0), ("1.1 gw", 1), ("1.0 GW", 1), ("HTTP/1.1 gw", 1),
            ("1.1 gw, 1.1 pinfold , 1.1 x", 2), ("1.1\tgw\t", 1), ("1.1 gwx", 0),
            ("1.1 xgw", 0), ("gw", 0), ("1.1", 0), ("1.1 gw (0000000000000001)", 1),
            ("1.1 gw (0000000000000002)", 0), ("1.1 gw (x)", 0),
            ("1.1 other (0000000000000001)", 1), ("1.1 gw:8080", 0), (",,", 0),
            ("1.1 gw (0000000000000001), 1.1 gw (0000000000000002), 1.1 gw", 2),
        ])
    func `members are its own by their mark, or by their name without one`(
        value: String, count: Int
    ) {
        #expect(passes(value) == count)
    }
}
