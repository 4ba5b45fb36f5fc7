import HTTPCore
import Testing

@testable import HTTP2

@Suite("Responses and trailers are assembled")
struct ResponseAssemblerTests {
    @Test func `with the status and the fields in their order`() throws {
        let made = try response([
            (":status", "404"), ("content-length", "12"), ("set-cookie", "a=1"),
            ("set-cookie", "b=2"), ("x", "\u{E9}"), ("host", "a b/c"), ("host", ""),
            ("priority", "u=1"),
        ])
        #expect(
            made.text == "HTTP/2.0 404 \r\ncontent-length: 12\r\nset-cookie: a=1\r\n"
                + "set-cookie: b=2\r\nx: \u{E9}\r\nhost: a b/c\r\nhost: \r\npriority: u=1\r\n\r\n")
        #expect(made.facts.status == 404)
        #expect(made.facts.contentLength == 12)
    }

    @Test func `with every status but 101`() throws {
        for status in UInt16(100)...999 where status != 101 {
            let made = try response([(":status", "\(status)")])
            #expect(made.facts.status == status)
            #expect(made.text == "HTTP/2.0 \(status) \r\n\r\n")
            #expect(made.facts.contentLength == nil)
        }
    }

    @Test func `as the parsers of HTTP/1 read them`() throws {
        let made = try response([(":status", "200"), ("content-length", "3"), ("etag", "\"x\"")])
        let bytes = Array(made.text.replacing("HTTP/2.0", with: "HTTP/1.1").utf8)
        var parser = ResponseHeadParser()
        var head = ResponseHead()
        let progress = try parser.parse(
            bytes.span, answering: ResponseContext(method: .get), into: &head)
        #expect(progress == .complete(headBytes: made.facts.count))
        #expect(head.status == 200)
        #expect(head.framing == .length(3))
        #expect(head.fields.map(\.id) == [.contentLength, .etag])
    }

    @Test func `with the names of fields that are never indexed`() throws {
        let fields = [("x-secret", "1"), ("set-cookie", "2")].flatMap {
            literal($0.0, $0.1, pattern: 0x10)
        }
        var decoder = HeaderDecoder()
        var memory = [UInt8](repeating: 0, count: 1000)
        let sensitive = try memory.withUnsafeMutableBytes { memory in
            var assembler = ResponseAssembler(memory)
            try decoder.decode(([0x88] + fields).span, into: &assembler)
            return try assembler.finish(endsStream: true).sensitive
        }
        // An encoder knows of Set-Cookie by itself.
        var expected = SensitiveNames()
        Array("x-secret".utf8).withUnsafeBytes { expected.insert($0) }
        #expect(sensitive == expected)
        for (name, isContained) in [("X-Secret", true), ("set-cookie", false), ("etag", false)] {
            let found = Array(name.utf8).withUnsafeBytes { sensitive.mayContain($0) }
            #expect(found == isContained)
        }
    }
}
