import HTTPCore
import Testing

@Suite("Responses")
struct ResponseTests {
    @Test(
        arguments: [
            ("HTTP/1.1 200 OK", 200, "OK"), ("HTTP/1.0 404 Not Found", 404, "Not Found"),
            ("HTTP/1.1 200 ", 200, ""), ("HTTP/1.1 200", 200, ""), ("HTTP/1.1 999 x", 999, "x"),
            ("HTTP/1.1 100 Continue", 100, "Continue"), ("HTTP/1.1 600 \t x ", 600, "\t x "),
            ("HTTP/1.1 200 caf\u{E9}", 200, "caf\u{FFFD}"), ("HTTP/1.1 200  OK", 200, " OK"),
        ] as [(String, UInt16, String)])
    func `a status line is version, three digits and a reason that may be empty`(
        line: String, status: UInt16, reason: String
    ) throws {
        let text = line + "\r\n\r\n"
        #expect(responseOutcome(text).isComplete)
        let head = try responseHead(text)
        #expect(head.status == status)
        #expect(latin1(text).span.text(at: head.reason) == reason)
        #expect(head.length == latin1(text).count)
    }

    @Test(
        arguments: [
            ("HTTP/1.1 99 x", .malformedStatusLine), ("HTTP/1.1 1000 x", .malformedStatusLine),
            ("HTTP/1.1 099 x", .malformedStatusLine), ("HTTP/1.1 000 x", .malformedStatusLine),
            ("HTTP/1.1 20 x", .malformedStatusLine), ("HTTP/1.1 2x0 x", .malformedStatusLine),
            ("HTTP/1.1  200 x", .malformedStatusLine), ("HTTP/1.1\t200 x", .malformedStatusLine),
            ("HTTP/1.1 200\tx", .malformedStatusLine), ("HTTP/1.1 200x", .malformedStatusLine),
            ("HTTP/1.1 -20 x", .malformedStatusLine), ("HTTP/1.1 +20 x", .malformedStatusLine),
            ("HTTP/1.1", .malformedStatusLine), ("HTTP/1.1 ", .malformedStatusLine),
            ("HTTP/1.1 200 a\u{0}", .malformedStatusLine),
            ("HTTP/1.1 200 \u{7F}", .malformedStatusLine),
            ("HTTP/1.1 200 a\rb", .bareCarriageReturn), ("HTTP/1.1 200\rb", .bareCarriageReturn),
            ("HTTP/1.1 200 a\nb", .mixedLineEnds), ("HTTP/1.1 200\n", .mixedLineEnds),
            ("HTTP/1.1\n", .malformedStatusLine),
            ("HTTP/2.0 200 x", .unsupportedVersion), ("HTTP/1.2 200 x", .unsupportedVersion),
            ("HTTP/0.9 200 x", .unsupportedVersion), ("HTTP/2 200", .malformedVersion),
            ("http/1.1 200 OK", .malformedVersion), ("ICY 200 OK", .malformedVersion),
            (" HTTP/1.1 200 OK", .malformedVersion), ("\r\nHTTP/1.1 200 OK", .malformedVersion),
            ("<html>", .malformedVersion), ("\u{15}\u{3}\u{3}\u{0}\u{2}", .malformedVersion),
            ("\nHTTP/1.1 200 OK", .bareLineFeed),
        ] as [(String, WireError)])
    func `a status line in any other form is the upstream's fault`(line: String, error: WireError) {
        #expect(responseOutcome(line + "\r\n\r\n").error == error)
        #expect(error.status(from: .upstream) == 502)
    }

    @Test(
        arguments: [
            ("200", .get, "", .untilClose), ("200", .get, "Content-Length: 5\r\n", .length(5)),
            ("200", .get, "Content-Length: 0\r\n", .length(0)),
            ("200", .get, "Content-Length: 5, 5\r\n", .length(5)),
            ("200", .get, "Content-Length: 5\r\nX: y\r\nContent-Length: 5\r\n", .length(5)),
            ("200", .get, "Content-Length: 5 ,05\r\nContent-Length: 5\r\n", .length(5)),
            ("200", .get, "Transfer-Encoding: chunked\r\n", .chunked),
            ("404", .other, "Content-Length: 5\r\n", .length(5)),
            ("200", .head, "", .none), ("200", .head, "Content-Length: 5\r\n", .none),
            ("200", .head, "Transfer-Encoding: chunked\r\n", .none),
            ("100", .get, "", .none), ("103", .get, "Link: x\r\n", .none),
            ("101", .get, "Upgrade: x\r\n", .none), ("100", .get, "Content-Length: 0\r\n", .none),
            ("204", .get, "", .none), ("204", .get, "Content-Length: 0\r\n", .none),
            ("304", .get, "", .none), ("304", .get, "Content-Length: 5\r\n", .none),
            ("304", .get, "Transfer-Encoding: chunked\r\n", .none),
            ("205", .get, "Content-Length: 0\r\n", .length(0)),
            ("200", .connect, "", .none), ("200", .connect, "Content-Length: 5\r\n", .none),
            ("299", .connect, "Transfer-Encoding: chunked\r\n", .none),
            ("407", .connect, "Content-Length: 5\r\n", .length(5)),
            ("502", .connect, "", .untilClose),
        ] as [(String, HTTPCore.Method, String, BodyFraming)])
    func `status, method and fields determine how the body ends`(
        status: String, method: HTTPCore.Method, fields: String, framing: BodyFraming
    ) throws {
        let text = "HTTP/1.1 \(status) x\r\n\(fields)\r\n"
        #expect(responseOutcome(text, to: method, allowsSwitch: true).isComplete)
        let head = try responseHead(text, to: method)
        #expect(head.framing == framing)
        #expect(head.keepAlive == (framing != .untilClose))
        #expect(head.isInterim == ["100", "103"].contains(status))
    }

    @Test(
        arguments: [
            (
                "200", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                .contentLengthWithTransferEncoding
            ),
            ("200", "Transfer-Encoding: gzip\r\n", .unknownTransferCoding),
            ("200", "Transfer-Encoding: chunked, gzip\r\n", .chunkedNotFinal),
            ("200", "Content-Length: 5, 6\r\n", .repeatedContentLength),
            ("200", "Content-Length: 5\r\nContent-Length: 6\r\n", .repeatedContentLength),
            ("304", "Content-Length: 5\r\nContent-Length: 5, 6\r\n", .repeatedContentLength),
            ("200", "Content-Length: 5,\r\n", .malformedContentLength),
            ("200", "Content-Length: ,5\r\n", .malformedContentLength),
            ("200", "Content-Length: 5\r\nContent-Length:\r\n", .malformedContentLength),
            ("200", "Content-Length: 5;5\r\n", .malformedContentLength),
            (
                "200", "Content-Length: 5, 5\r\nTransfer-Encoding: chunked\r\n",
                .contentLengthWithTransferEncoding
            ),
            ("304", "Content-Length: x\r\n", .malformedContentLength),
            (
                "304", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                .contentLengthWithTransferEncoding
            ),
            ("204", "Content-Length: 5\r\n", .contentForbidden),
            ("204", "Transfer-Encoding: chunked\r\n", .contentForbidden),
            ("100", "Content-Length: 5\r\n", .contentForbidden),
            ("103", "Transfer-Encoding: chunked\r\n", .contentForbidden),
            ("101", "", .unexpectedSwitch), ("101", "Upgrade: x\r\n", .unexpectedSwitch),
        ] as [(String, String, WireError)])
    func `a response that could be ended in two ways is refused`(
        status: String, fields: String, error: WireError
    ) {
        for method in [HTTPCore.Method.get, .head] {
            let text = "HTTP/1.1 \(status) x\r\n\(fields)\r\n"
            #expect(responseOutcome(text, to: method).error == error)
        }
    }

    @Test func `Transfer-Encoding in HTTP 1.0 is refused`() {
        let text = "HTTP/1.0 200 x\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(responseOutcome(text).error == .transferEncodingInHTTP10)
    }

    @Test func `an interim head and the final one are found one after another`() throws {
        let interim = latin1("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        let final = latin1("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        let all = interim + final
        var parser = ResponseHeadParser()
        var head = ResponseHead()
        let context = ResponseContext(method: .get)
        #expect(!parser.isWithinHead)
        let first = try parser.parse(all.span, answering: context, into: &head)
        #expect(first == .complete(headBytes: interim.count) && head.isInterim)
        #expect(!parser.isWithinHead)
        let rest = all.span.extracting(interim.count..<all.count)
        let partial = try parser.parse(
            rest.extracting(0..<1), answering: context, into: &head)
        #expect(partial == .needMore && parser.isWithinHead)
        let second = try parser.parse(rest, answering: context, into: &head)
        #expect(second == .complete(headBytes: final.count) && !head.isInterim)
        #expect(head.fields.count == 1)
    }

    @Test func `an unknown field that Connection names is nominated`() throws {
        let text = "HTTP/1.1 200 OK\r\nConnection: X-A\r\nX-A: 1\r\nX-B: 1\r\n\r\n"
        let head = try responseHead(text)
        #expect(head.fields.map(\.isNominated) == [false, true, false])
    }
}
