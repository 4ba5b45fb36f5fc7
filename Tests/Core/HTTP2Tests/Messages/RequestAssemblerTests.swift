import HTTPCore
import Testing

@testable import HTTP2

/// The pseudo-fields of a request.
private let get = [
    (":method", "GET"), (":scheme", "https"), (":authority", "a.example:8443"),
    (":path", "/path?query"),
]

@Suite("Requests are assembled")
struct RequestAssemblerTests {
    @Test func `with a target in origin-form`() throws {
        let made = try request(get + [("user-agent", "x"), ("accept", "*/*")])
        #expect(
            made.text == "GET /path?query HTTP/2.0\r\nhost: a.example:8443\r\nuser-agent: x\r\n"
                + "accept: */*\r\n\r\n")
        #expect(made.facts.kind == .ordinary)
        #expect(made.facts.count == made.text.utf8.count)
    }

    /// All orders of the pseudo-fields.
    @Test func `whatever the order of the pseudo-fields`() throws {
        for order in permutations(get) {
            for isAbsolute in [false, true] {
                let style = RequestStyle(style: isAbsolute ? .absolute : .origin)
                let made = try request(order + [("x", "y")], style)
                let target = isAbsolute ? "https://a.example:8443/path?query" : "/path?query"
                #expect(
                    made.text
                        == "GET \(target) HTTP/2.0\r\nhost: a.example:8443\r\nx: y\r\n\r\n")
            }
        }
    }

    @Test func `for a tunnel`() throws {
        for order in permutations([(":method", "CONNECT"), (":authority", "a.example:443")]) {
            for style in [RequestAssembler.TargetStyle.origin, .absolute] {
                let made = try request(order + [("x", "y")], RequestStyle(style: style))
                #expect(
                    made.text
                        == "CONNECT a.example:443 HTTP/2.0\r\nhost: a.example:443\r\nx: y\r\n\r\n")
                #expect(made.facts.kind == .tunnel)
            }
        }
    }

    @Test func `for another protocol on the stream`() throws {
        let fields = [
            (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"),
            (":path", "/chat"), (":authority", "a.example"),
        ]
        for order in permutations(fields) {
            let made = try request(order + [("sec-websocket-version", "13")])
            #expect(
                made.text == "GET /chat HTTP/2.0\r\nhost: a.example\r\nconnection: upgrade\r\n"
                    + "upgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n")
            #expect(made.facts.kind == .upgrade)
            let name = try #require(made.facts.protocolName)
            #expect(Array(made.text.utf8).span.text(at: name) == "websocket")
        }
    }

    @Test func `with cookies joined, wherever they are`() throws {
        let together = try request(get + [("cookie", "a=1"), ("cookie", "b=2"), ("x", "y")])
        #expect(together.text.hasSuffix("\r\ncookie: a=1; b=2\r\nx: y\r\n\r\n"))
        let apart = try request(
            get + [
                ("cookie", "a=1"), ("cookie", "b=2"), ("x", "y"), ("priority", "u=1"),
                ("cookie", "c=3"), ("z", ""), ("cookie", "d=4"), ("cookie", "e=5"),
            ])
        #expect(
            apart.text.hasSuffix(
                "\r\ncookie: a=1; b=2; c=3; d=4; e=5\r\nx: y\r\npriority: u=1\r\nz: \r\n\r\n"))
        let empty = [("cookie", ""), ("x", "y"), ("cookie", "a"), ("cookie", "")]
        #expect(try request(get + empty).text.hasSuffix("\r\nx: y\r\ncookie: a\r\n\r\n"))
        let priority = try #require(apart.facts.priority)
        #expect(Array(apart.text.utf8).span.text(at: priority) == "u=1")
    }

    @Test func `with the authority that Host names`() throws {
        let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/p")]
        let rest = [("x", "y"), ("priority", "i"), ("host", "a.example"), ("z", "1")]
        let origin = try request(fields + rest, RequestStyle(isSecure: false))
        #expect(
            origin.text
                == "GET /p HTTP/2.0\r\nx: y\r\npriority: i\r\nhost: a.example\r\nz: 1\r\n\r\n")
        let absolute = try request(fields + rest, RequestStyle(style: .absolute))
        #expect(
            absolute.text == "GET http://a.example/p HTTP/2.0\r\nx: y\r\npriority: i\r\n"
                + "host: a.example\r\nz: 1\r\n\r\n")
        let priority = try #require(absolute.facts.priority)
        #expect(Array(absolute.text.utf8).span.text(at: priority) == "i")
    }
}

/// All orders of some elements.
func permutations<Element>(_ elements: [Element]) -> [[Element]] {
    guard !elements.isEmpty else { return [[]] }
    return elements.indices.flatMap { index in
        var rest = elements
        let first = rest.remove(at: index)
        return permutations(rest).map { [first] + $0 }
    }
}
