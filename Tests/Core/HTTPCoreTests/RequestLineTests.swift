import HTTPCore
import Testing

@Suite("The request line (RFC 9112 §3)")
struct RequestLineTests {
    private static let rest = "\r\nHost: a\r\n\r\n"

    @Test(arguments: [
        ("GET", Method.get), ("HEAD", .head), ("POST", .post), ("PUT", .put), ("DELETE", .delete),
        ("TRACE", .trace), ("PATCH", .patch), ("OPTIONS", .options), ("QUERY", .query),
        ("get", .other), ("query", .other), ("QUERYX", .other),
        ("Get", .other), ("GETS", .other), ("GE", .other), ("PROPFIND", .other),
        ("M-SEARCH", .other),
        ("!#$%&'*+-.^_`|~09azAZ", .other), ("CONNECTS", .other), ("OPTION", .other), ("G", .other),
    ])
    func `methods are tokens and letter case counts`(name: String, method: HTTPCore.Method) throws {
        let text = "\(name) / HTTP/1.1" + Self.rest
        #expect(requestOutcome(text).isComplete)
        let head = try requestHead(text)
        #expect(head.method == method)
        #expect(latin1(text).span.text(at: head.methodRange) == name)
        if method != .other { #expect(method.name.description == name) }
    }

    @Test(arguments: [
        ("GET", true), ("HEAD", true), ("OPTIONS", true), ("TRACE", true), ("PROPFIND", true),
        ("QUERY", true), ("REPORT", true), ("SEARCH", true), ("POST", false), ("PUT", false),
        ("DELETE", false), ("PATCH", false), ("PROPPATCH", false), ("M-SEARCH", false),
        ("query", false), ("QUERYX", false), ("LOCK", false), ("ACL", false),
    ])
    func `methods are safe by the registry of methods, and safe ones are idempotent`(
        name: String, isSafe: Bool
    ) throws {
        let rest = " / HTTP/1.1" + Self.rest
        // On one connection the next request's method is classified again.
        var parser = RequestHeadParser()
        var head = RequestHead()
        for (method, expected) in [("SEARCH", true), (name, isSafe), ("POST", false)] {
            _ = try parser.parse(latin1(method + rest).span, into: &head)
            let found = (isSafe: head.isSafe, isIdempotent: head.isIdempotent)
            #expect(found.isSafe == expected)
            #expect(found.isIdempotent == (expected || method == "PUT" || method == "DELETE"))
        }
    }

    @Test(
        arguments: [
            ("GET / HTTP/1.1", nil),
            ("GET / HTTP/1.0", nil),
            ("\r\nGET / HTTP/1.1", nil),
            ("\r\n\r\nGET / HTTP/1.1", .malformedRequestLine),
            ("\nGET / HTTP/1.1", .bareLineFeed),
            ("\rGET / HTTP/1.1", .bareCarriageReturn),
            (" GET / HTTP/1.1", .malformedRequestLine),
            ("\tGET / HTTP/1.1", .malformedRequestLine),
            ("GET  / HTTP/1.1", .malformedRequestLine),
            ("GET\t/ HTTP/1.1", .malformedRequestLine),
            ("GET /  HTTP/1.1", .malformedVersion),
            ("GET /\tHTTP/1.1", .badTargetByte),
            ("GET / HTTP/1.1 ", .malformedRequestLine),
            ("GET / HTTP/1.1\t", .malformedRequestLine),
            ("GET / HTTP/1.1 x", .malformedRequestLine),
            ("GET / HTTP/1.10", .malformedRequestLine),
            ("GET /", .malformedRequestLine),
            ("GET / ", .malformedVersion),
            ("GET", .malformedRequestLine),
            ("GET ", .malformedRequestLine),
            ("G:T / HTTP/1.1", .malformedRequestLine),
            ("G\u{0}T / HTTP/1.1", .malformedRequestLine),
            ("G\u{E9}T / HTTP/1.1", .malformedRequestLine),
            ("GET / http/1.1", .malformedVersion),
            ("GET / HTTP/1.1\u{0}", .malformedRequestLine),
            ("GET / HTTP/1,1", .malformedVersion),
            ("GET / HTTP/11", .malformedVersion),
            ("GET / HTTP/1.", .malformedVersion),
            ("GET / HTTP/x.1", .malformedVersion),
            ("GET / HTTPS/1.1", .malformedVersion),
            ("GET / HTTP /1.1", .malformedVersion),
            ("GET / HTTP/+1.1", .malformedVersion),
            ("GET / HTTP/0.9", .unsupportedVersion),
            ("GET / HTTP/1.2", .unsupportedVersion),
            ("GET / HTTP/1.9", .unsupportedVersion),
            ("GET / HTTP/2.0", .unsupportedVersion),
            ("GET / HTTP/3.0", .unsupportedVersion),
            ("PRI * HTTP/2.0", .unsupportedVersion),
            ("GET / HTTP/1.1\r", .bareCarriageReturn),
            ("GET / HTTP/1.1\rX: y", .bareCarriageReturn),
            ("GET / HTTP/1.1\nX: y", .bareLineFeed),
            ("GET / HTT\n", .bareLineFeed),
            ("GET /\nHost: a", .bareLineFeed),
            ("GET\n/ HTTP/1.1", .bareLineFeed),
        ] as [(String, WireError?)])
    func `a request line is method, space, target, space, version, CRLF`(
        line: String, error: WireError?
    ) {
        #expect(requestOutcome(line + Self.rest).error == error)
        if error == nil { #expect(requestOutcome(line + Self.rest).isComplete) }
    }

    @Test(arguments: [
        "\u{16}\u{03}\u{01}\u{02}\u{00}\u{01}\u{00}\u{01}\u{FC}\u{03}\u{03}",
        "SSH-2.0-OpenSSH_9.2p1\r\n",
        "\u{0}\u{0}\u{0}\u{18}ftypmp42",
        "{\"a\": 1}",
        "<html>",
        "GET /caf\u{E9}",
        "GET http://a/ FTP",
        "EHLO example.com\r\n",
    ])
    func `what is not HTTP is refused before an empty line comes`(garbage: String) {
        #expect(requestOutcome(garbage).error != nil)
    }

    @Test func `a parser shows whether it is within a head`() throws {
        var parser = RequestHeadParser()
        var head = RequestHead()
        let bytes = latin1("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGET")
        for count in 0..<bytes.count - 3 {
            #expect(!parser.isWithinHead || count > 3)
            let progress = try parser.parse(bytes.span.extracting(0..<count), into: &head)
            #expect(progress == .needMore)
            #expect(parser.isWithinHead == (count > 2), "after \(count) bytes")
        }
        let progress = try parser.parse(bytes.span, into: &head)
        #expect(progress == .complete(headBytes: bytes.count - 3))
        #expect(!parser.isWithinHead)
        let tail = latin1("GET")
        #expect(try parser.parse(tail.span, into: &head) == .needMore)
        #expect(parser.isWithinHead)
        parser.reset()
        #expect(!parser.isWithinHead)
    }

    @Test func `after an error or a head the parser begins anew`() throws {
        var parser = RequestHeadParser()
        var head = RequestHead()
        let good = latin1("GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        let bad = latin1("GET /x HTTP/1.1\r\nHost : a\r\n\r\n")
        for _ in 0..<2 {
            #expect(throws: WireError.spaceBeforeColon) { try parser.parse(bad.span, into: &head) }
            let progress = try parser.parse(good.span, into: &head)
            #expect(progress == .complete(headBytes: good.count))
            #expect(head.fields.count == 1)
        }
    }

    @Test func `pipelined heads are found one after another`() throws {
        let one = latin1("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
        let two = latin1("GET /22 HTTP/1.1\r\nHost: b\r\n\r\n")
        let all = one + two
        var parser = RequestHeadParser()
        var head = RequestHead()
        #expect(try parser.parse(all.span, into: &head) == .complete(headBytes: one.count))
        let rest = all.span.extracting(one.count..<all.count)
        #expect(try parser.parse(rest, into: &head) == .complete(headBytes: two.count))
        #expect(two.span.text(at: head.target) == "/22")
    }
}
