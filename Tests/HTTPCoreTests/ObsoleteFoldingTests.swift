import Testing

@testable import HTTPCore

/// What a user agent reads that a gateway refuses (RFC 9112 §5.2, §6.3).
@Suite("Heads that only a user agent reads")
struct ObsoleteFoldingTests {
    private func unfolded(_ text: String) -> String? {
        var bytes = Array(text.utf8)
        return bytes.withUnsafeMutableBytes { ObsoleteFolding.unfold($0) }
            ? String(decoding: bytes, as: UTF8.self) : nil
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b   c\r\n\r\n"),
        (
            "HTTP/1.1 200 OK\r\nA: b\r\n\tc\r\n  d\r\nE: f\r\n g\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b  \tc    d\r\nE: f   g\r\n\r\n"
        ),
        ("HTTP/1.1 200 OK\r\nA:\r\n b\r\nC: d", "HTTP/1.1 200 OK\r\nA:   b\r\nC: d"),
        // What follows the head is none of it.
        (
            "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\nx\r\n y",
            "HTTP/1.1 200 OK\r\nA: b   c\r\n\r\nx\r\n y"
        ),
    ])
    func `a line end that white space follows is read as spaces`(_ text: String, _ read: String) {
        #expect(unfolded(text) == read)
        #expect(unfolded(read) == nil)
    }

    @Test(arguments: [
        "", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\n A: b\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n x",
        "HTTP/1.1 200 OK\r\nA: b\r\n", "HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\n\r\n",
    ])
    func `nothing else is changed`(_ text: String) {
        #expect(unfolded(text) == nil)
    }

    @Test(arguments: ["Content-Length: 4", "Transfer-Encoding: chunked"])
    func `a 204 that announces content ends with its head, and so does the connection`(
        _ field: String
    ) throws {
        let text = Array("HTTP/1.1 204 No Content\r\n\(field)\r\n\r\n".utf8)
        func parsed(isUserAgent: Bool) throws(WireError) -> ResponseHead {
            var (parser, head) = (ResponseHeadParser(), ResponseHead())
            let progress = try parser.parse(
                text.span, answering: ResponseContext(method: .get, isUserAgent: isUserAgent),
                into: &head)
            #expect(progress == .complete(headBytes: text.count))
            return head
        }
        let head = try parsed(isUserAgent: true)
        #expect(head.framing == .none)
        #expect(!head.keepAlive)
        #expect(throws: WireError.contentForbidden) { try parsed(isUserAgent: false) }
    }
}
