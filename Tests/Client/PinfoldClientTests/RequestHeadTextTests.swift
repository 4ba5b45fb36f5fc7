import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("The text of a request's head")
struct RequestHeadTextTests {
    private static let start =
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n"

    private func text(_ fields: [(String, String)]) throws -> String {
        var request = HTTPRequest(method: .get, scheme: "http", authority: "a.test", path: "/")
        for (name, value) in fields {
            request.headerFields.append(
                HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        return String(
            decoding: try RequestHeadText.make(of: request, framing: .none), as: UTF8.self)
    }

    @Test func `has every byte of a field's value, however long`() throws {
        // Around the initial capacity, and around the sizes to which it grows.
        for count in Array(400...700) + Array(1000...1200) + [4096, 8190, 70_000] {
            let value = String(repeating: "v", count: count)
            #expect(try text([("X-Long", value)]) == Self.start + "X-Long: \(value)\r\n\r\n")
        }
    }

    @Test func `has every field, however many`() throws {
        for count in [0, 1, 10, 100, 1000] {
            let fields = (0..<count).map { ("X-\($0)", "\($0 * $0) and so on, and so on, so on") }
            let lines = fields.map { "\($0): \($1)\r\n" }.joined()
            #expect(try text(fields) == Self.start + lines + "\r\n")
        }
    }

    @Test func `has the host of the URL, and no other`() throws {
        for same in ["a.test", "A.TEST"] {
            #expect(try text([("Host", same)]) == Self.start + "\r\n")
        }
        for other in [
            ["b.test"], ["a.test:8080"], ["a.test/x"], ["u@a.test"], ["a.test."], [""],
            ["a.test", "b.test"],
        ] {
            let error = #expect(throws: ClientError.self) { try text(other.map { ("host", $0) }) }
            #expect(error?.reason == .invalidRequest)
            #expect(
                error?.explanation.contains("does not match the host of the URL, a.test") ?? false)
        }
    }

    @Test(
        arguments: [
            ("http://127.0.0.1:80/", "127.0.0.1"), ("http://127.0.0.1/", "127.0.0.1:80"),
            ("https://LOCALHOST/", "localhost:443"), ("https://localhost:443/", "LocalHost"),
            ("http://bücher.localhost/", "bücher.localhost"),
            ("http://bücher.localhost:80/", "xn--bcher-kva.localhost"),
            ("http://[::1]/", "[::1]:80"),
        ])
    func `has the host of the URL, in any spelling by the caller`(
        url: String, host: String
    ) throws {
        var request = try HTTPRequest(.get, url)
        request.headerFields.append(HTTPField(name: try #require(.host), value: host))
        let text = String(
            decoding: try RequestHeadText.make(of: request, framing: .none), as: UTF8.self)
        #expect(text.contains("\r\nHost: \(request.authority ?? "")\r\n"))
        #expect(text.split(separator: "\r\n").count { $0.hasPrefix("Host:") } == 1)
    }

    @Test func `has no host that differs by scheme's port or name`() throws {
        for (url, host) in [
            ("https://a.test/", "a.test:80"), ("http://a.test/", "a.test:443"),
            ("http://bücher.test/", "bucher.test"), ("http://a.test:81/", "a.test"),
        ] {
            var request = try HTTPRequest(.get, url)
            request.headerFields.append(HTTPField(name: try #require(.host), value: host))
            #expect(throws: ClientError.self) {
                try RequestHeadText.make(of: request, framing: .none)
            }
        }
    }

    @Test func `has the bytes of values, which need not be UTF-8`() throws {
        var request = HTTPRequest(method: .get, scheme: "http", authority: "a.test", path: "/")
        let latin: [UInt8] = [0x61, 0xE9]
        request.headerFields.append(HTTPField(name: .cookie, value: latin))
        request.headerFields.append(HTTPField(name: .cookie, value: "b=1"))
        request.headerFields.append(HTTPField(name: .userAgent, value: latin))
        let cookies = Array("Cookie: ".utf8) + latin + Array("; b=1\r\n".utf8)
        let agent = Array("User-Agent: ".utf8) + latin + Array("\r\n\r\n".utf8)
        #expect(
            try RequestHeadText.make(of: request, framing: .none)
                == Array(Self.start.utf8) + cookies + agent)
    }
}
