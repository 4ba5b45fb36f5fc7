import HTTPTypes
import PinfoldClient
import Testing

@testable import pinfold

@Suite("Arguments as curl takes them")
struct CurlArgumentsTests {
    @Test(arguments: [
        ("example.com", "http://example.com"), ("example.com/a?b", "http://example.com/a?b"),
        ("example.com:8080/a", "http://example.com:8080/a"), ("localhost", "http://localhost"),
        ("localhost:80", "http://localhost:80"), ("127.0.0.1", "http://127.0.0.1"),
        ("bücher.example/a", "http://bücher.example/a"),
        ("[::1]:80/a", "http://[::1]:80/a"), ("example.com?a", "http://example.com?a"),
        // These are left as they are.
        ("https://example.com", "https://example.com"), ("nonsense", "nonsense"),
        ("http:/u:secret@a.test", "http:/u:secret@a.test"), ("mailto.x:a@b", "mailto.x:a@b"),
        ("u:p@a.test/", "u:p@a.test/"), ("/path.txt", "/path.txt"), ("", ""),
        ("a.test:x", "a.test:x"), ("urn:a.b", "urn:a.b"),
    ])
    func `are URLs without a scheme`(text: String, url: String) {
        #expect(CompletedURL.text(text) == url)
    }

    @Test(arguments: [
        ("a.test:80:127.0.0.1", "a.test", 80, ["127.0.0.1"]),
        ("a.test:80:127.0.0.1,::1", "a.test", 80, ["127.0.0.1", "::1"]),
        ("[::1]:443:[2001:db8::1]", "[::1]", 443, ["[2001:db8::1]"]),
        ("*:80:127.0.0.1", "*", 80, ["127.0.0.1"]), ("+a.test:80:::1", "a.test", 80, ["::1"]),
    ])
    func `are places of hosts`(text: String, host: String, port: Int, addresses: [String]) throws {
        let argument = try ResolveArgument(text)
        #expect(argument.host == host)
        #expect(argument.port == port)
        #expect(argument.addresses == addresses)
    }

    @Test(arguments: ["", "a.test", "a.test:80", "a.test:80:", "a.test:x:127.0.0.1", ":80:::1"])
    func `are refused if they are no places`(text: String) {
        #expect(throws: ClientError.self) { try ResolveArgument(text) }
    }
}
