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

    static let urls = [
        ("https://a.test/b?c=d", "https://a.test/b?***"),
        ("https://user:secret@a.test:1/b", "https://***@a.test:1/b"),
        ("https://u:s@e@a.test", "https://***@a.test"), ("http://a.test/@b", "http://a.test/@b"),
        ("unix:/run/a?b", "unix:/run/a?b"), ("a?b@c", "a?b@c"),
        ("http://a.test?", "http://a.test?***"),
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
