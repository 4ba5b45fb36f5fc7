import HTTPCore
import Testing

@Suite("The key of a WebSocket's opening handshake")
struct WebSocketKeyTests {
    private static func answer(to key: String) -> String {
        String(decoding: WebSocketKey.answer(to: Array(key.utf8).span), as: UTF8.self)
    }

    @Test(
        arguments: [
            // RFC 6455 §1.3; the others by OpenSSL: keys of the lengths around SHA-1's blocks.
            ("dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
            ("", "Kfh9QIsMVZcl6xEPYxPHzW8SZ8w="),
            (String(repeating: "a", count: 19), "yzaGyu0mcUukN7CdsSwa30tnCpc="),
            (String(repeating: "a", count: 20), "dUYRM7bOMwDmbriNIPr11x+r3E0="),
            (String(repeating: "a", count: 28), "xMWmCBqYJY4uXzUs8PNU1t+Pzro="),
            (String(repeating: "a", count: 92), "QozTWdJkJ6Mr6+QwqAHt8yNpBdc="),
        ])
    func `has one right answer`(_ key: String, _ answer: String) {
        #expect(Self.answer(to: key) == answer)
    }

    @Test func `is 16 bytes in base64, and never the same`() {
        let keys = (0..<100).map { _ in WebSocketKey.make() }
        #expect(Set(keys).count == 100)
        #expect(keys.allSatisfy { $0.count == 24 && $0.suffix(2).elementsEqual("==".utf8) })
    }
}
