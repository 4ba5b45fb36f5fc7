import HTTPCore
import Testing

/// Response heads whose lines end in a bare line feed (RFC 9112 §2.2).
@Suite("Heads with bare line feeds (RFC 9112 §2.2)")
struct BareLineTests {
    @Test(arguments: [
        "HTTP/1.1 200 OK\nContent-Length: 5\n\n", "HTTP/1.1 200\nContent-Length: 5\n\n",
        "HTTP/1.1 200 \nContent-Length: 5\n\n", "HTTP/1.0 200 OK\n\n", "HTTP/1.1 404\n\n",
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nX:\nY: \t z \t\nConnection: close, X\n\n",
        "HTTP/1.1 103 Early Hints\nLink: </a>\n\n", "HTTP/1.1 304 Not Modified\nETag: \"x\"\n\n",
    ])
    func `a head is read as if it had CRLF`(text: String) throws {
        let strict = responseOutcome(text.replacing("\n", with: "\r\n"))
        let bare = responseOutcome(text + "more")
        #expect(strict.isComplete)
        guard case .complete(let expected) = strict else { return }
        #expect(bare == .complete("\(text.utf8.count) bare bytes: \(expected)"))
    }

    @Test(
        arguments: [
            ("HTTP/1.1 200 OK\nX: y\r\n\n", .mixedLineEnds),
            ("HTTP/1.1 200 OK\nX: y\n\r\n", .mixedLineEnds),
            ("HTTP/1.1 200 OK\n\r\n\r\n", .mixedLineEnds),
            ("HTTP/1.1 200 OK\nX: y\rz\n\n", .mixedLineEnds),
            ("HTTP/1.1 200\n\r\n", .mixedLineEnds),
            ("HTTP/1.1 200 OK\nContent-Length: 21\r\n\r\n", .mixedLineEnds),
            ("HTTP/1.1 200 OK\nContent-Length: \r-6\n\n", .mixedLineEnds),
            ("HTTP/1.1 200 OK\r\nServer: no\n\r\n", .bareLineFeed),
            ("HTTP/1.1 200 OK\nContent-Length: -6\n\n", .malformedContentLength),
            ("HTTP/1.1 200 OK\nServer test/fake\n\n", .missingColon),
            ("HTTP/1.1 200 x\n  12345\nfooo\n\n", .whitespaceBeforeFirstField),
            ("HTTP/1.1 204 x\nTransfer-Encoding: chunked\n\n", .contentForbidden),
            ("HTTP/1.1 200 OK\r\nX: y\n\r\n", .bareLineFeed),
            ("HTTP/1.1 200 OK\r\n\n", .bareLineFeed),
            ("HTTP/1.1 200 OK\r\nX: y\r\n\n", .bareLineFeed),
            ("HTTP/1.1 200 OK\r\nX\n\r\n", .bareLineFeed),
            ("HTTP/1.1 200 O\u{1}K\n\n", .malformedStatusLine),
            ("HTTP/1.1 200OK\n\n", .malformedStatusLine),
            ("HTTP/1.1 200 OK\nX y\n\n", .missingColon),
            ("HTTP/1.1 200 OK\nX: y\n z\n\n", .obsoleteLineFolding),
            ("HTTP/1.1 200 OK\nX: \u{0}\n\n", .badFieldValueByte),
            ("HTTP/1.1 200 OK\nnonsense\n\n", .missingColon),
            ("HTTP/1.1 200 OK\n: y\n\n", .emptyFieldName),
            ("HTTP/1.1 200 OK\nContent-Length: 1\nContent-Length: 1\n\n", .repeatedContentLength),
            ("HTTP/1.1 204 x\nContent-Length: 1\n\n", .contentForbidden),
        ] as [(String, WireError)])
    func `one that mixes line ends, or is wrong in itself, is refused`(
        text: String, error: WireError
    ) {
        #expect(responseOutcome(text + "HTTP/1.1 200 OK\n\n").error == error)
    }

    @Test func `a request's head with bare line feeds is refused`() {
        for text in ["GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\n\r\n"] {
            #expect(requestOutcome(text).error == .bareLineFeed)
        }
    }

    @Test func `a limit holds for what was received and for what is written anew`() {
        let text = "HTTP/1.1 200 OK\n" + String(repeating: "A:\n", count: 10) + "\n"
        let rewritten = text.replacing("\n", with: "\r\n").utf8.count
        #expect(responseOutcome(text, limits: HeadLimits(headBytes: rewritten)).isComplete)
        #expect(
            responseOutcome(text, limits: HeadLimits(headBytes: rewritten - 1)).error
                == .headTooLarge)
        let endless = "HTTP/1.1 200 OK\n" + String(repeating: "a", count: 100)
        #expect(responseOutcome(endless, limits: HeadLimits(headBytes: 64)).error == .headTooLarge)
        #expect(responseOutcome(text, limits: HeadLimits(fields: 9)).error == .tooManyFields)
    }

    @Test func `a head that has not ended is waited for, and known to have begun`() throws {
        let text = latin1("HTTP/1.1 200 OK\nX: y\n\n")
        for count in 1..<text.count {
            var parser = ResponseHeadParser()
            var head = ResponseHead()
            let part = Array(text[..<count])
            let progress = try parser.parse(
                part.span, answering: ResponseContext(method: .get), into: &head)
            #expect(progress == .needMore)
            #expect(parser.isWithinHead)
        }
    }
}
