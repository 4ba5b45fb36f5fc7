import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("The configuration as it is shown")
struct MaskedYAMLTests {
    @Test func `has no value that rules write into messages`() {
        let text = """
            hosts:
              - match: [a.test]
                request:
                  headers: { remove: [X-A], rename: { X-B: X-C }, set: { X-Key: c2VjcmV0 } }
                  query: { add: { key: [c2VjcmV0, other] }, defaults: { token: c2VjcmV0 } }
            """
        let masked = MaskedYAML.masked(text)
        #expect(!masked.contains("c2VjcmV0"))
        #expect(masked.contains("set: { X-Key: \"***\" }"))
        #expect(masked.contains("add: { key: [\"***\", \"***\"] }"))
        #expect(masked.contains("remove: [X-A], rename: { X-B: X-C }"))
    }

    @Test func `has all of what is no secret`() throws {
        let snapshot = try load("pinsets: { token: { mode: none } }\nvia: gateway-1\n")
        #expect(snapshot.maskedYAML() == snapshot.effectiveYAML())
    }

    @Test func `has all of what users have named like a step or a secret`() throws {
        let pin = "sha256/" + String(repeating: "A", count: 43) + "="
        let snapshot = try load(
            """
            pinsets:
              set: { mode: publicKey, pins: ["\(pin)"] }
              add: { mode: none }
              defaults: { mode: none }
            parents: { password: { url: "http://p.test:3128" } }
            hosts:
              - match: [a.test]
                pinsets: [set]
                cache: { key: { fields: { add: [X-Tenant] } } }
                request: { headers: { rename: { password: X-Y, set: X-Z } } }
            """)
        #expect(snapshot.maskedYAML() == snapshot.effectiveYAML())
        #expect(snapshot.maskedYAML().contains(pin))
    }

    @Test func `has neither the queries of paths nor the paths that rules write`() throws {
        let snapshot = try load(
            """
            hosts:
              - match: [a.test]
                probe: { interval: 30s, path: "/p?key=c2VjcmV0" }
                request: { path: { prefixes: { /old: /s/c2VjcmV0 } } }
            """)
        let masked = snapshot.maskedYAML()
        #expect(!masked.contains("c2VjcmV0"))
        #expect(masked.contains("/p?***"))
        #expect(masked.contains("/old"))
    }

    static let urls = [
        ("https://a.test/b?c=d", "https://a.test/b?***"),
        ("https://user:secret@a.test:1/b", "https://***@a.test:1/b"),
        ("https://u:s@e@a.test", "https://***@a.test"), ("http://a.test/@b", "http://a.test/@b"),
        ("unix:/run/a?b", "unix:/run/a?b"), ("a?b@c", "a?b@c"),
        ("http://a.test?", "http://a.test?***"), ("/health?token=b", "/health?***"),
        ("/a/b", "/a/b"), ("/?", "/?***"),
    ]

    @Test(arguments: urls)
    func `has neither the userinfo nor the query of a URL`(url: String, shown: String) {
        #expect(MaskedYAML.withoutSecrets(url: url) == shown)
        #expect(MaskedYAML.masked("a: \"\(url)\"\n") == "a: \"\(shown)\"\n")
    }

    @Test func `is nothing where it is not understood`() {
        #expect(!MaskedYAML.masked("a: { b: secret\n").contains("secret"))
    }
}
