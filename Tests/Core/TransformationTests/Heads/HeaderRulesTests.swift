import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Transformation

/// The result of applying rules to a request; `nil` if it does not change.
func rewritten(
    _ lines: [String], isSecure: Bool = true, by rules: (inout RequestRules) -> Void
) throws -> [String]? {
    var value = RequestRules()
    rules(&value)
    let heads = RequestHeadRules(value)
    #expect(!heads.isEmpty)
    let bytes = headBytes(lines)
    let new = try withRequest(bytes) { head, span in
        try heads.head(rewriting: head, in: span, isSecure: isSecure)
    }
    guard let new else { return nil }
    // What was written must be a valid head again, with the same framing.
    let framing = try withRequest(bytes) { head, _ in (head.framing, head.keepAlive) }
    let newFraming = try withRequest(new) { head, _ in (head.framing, head.keepAlive) }
    #expect(framing == newFraming)
    return try headLines(new)
}

@Suite("Header rules of a route, over request heads")
struct HeaderRulesTests {
    private let start = ["GET /a HTTP/1.1", "Host: h"]

    private func fields(
        _ lines: [String], by rules: (inout HeaderRules) -> Void
    ) throws -> [String]? {
        try rewritten(start + lines) { rules(&$0.headers) }?.dropFirst(2).map(\.self)
    }

    @Test func `without rules nothing is looked at`() throws {
        let rules = RequestHeadRules(RequestRules())
        #expect(rules.isEmpty)
        let new = try withRequest(headBytes(start)) { head, bytes in
            try rules.head(rewriting: head, in: bytes, isSecure: true)
        }
        #expect(new == nil)
        var content = RequestRules()
        content.body = RequestBodyRules(from: .form, to: .json)
        content.parameters = .byMethod
        #expect(RequestHeadRules(content).isEmpty)
    }

    @Test(
        arguments: [
            (["X-A: 1", "X-B: 2"], ["X-B: 2"]),
            (["x-a:1", "X-B:  2 \t", "X-A: 3"], ["X-B:  2 \t"]),
            (["X-A:"], []),
            (["X-AA: 1", "XA: 2"], nil),
            ([], nil),
        ] as [([String], [String]?)])
    func `fields are removed, all lines of them, and others keep their bytes`(
        lines: [String], expected: [String]?
    ) throws {
        #expect(try fields(lines) { $0.remove = ["X-A"] } == expected)
    }

    @Test(
        arguments: [
            (["X-Old:  1 ", "B: 2", "x-old:3"], ["X-New:  1 ", "B: 2", "X-New:3"]),
            (["X-New: 0", "X-Old: \u{FC}"], ["X-New: 0", "X-New: \u{FC}"]),
            (["X-Older: 1"], nil),
        ] as [([String], [String]?)])
    func `fields are renamed where they are, with their values as they were`(
        lines: [String], expected: [String]?
    ) throws {
        #expect(try fields(lines) { $0.rename = [.init("X-Old", "X-New")] } == expected)
    }

    @Test(
        arguments: [
            ([], ["X-A: new"]),
            (["X-A: old", "B: 1"], ["X-A: new", "B: 1"]),
            (["B: 1", "x-a: old", "C: 2", "X-A: older"], ["B: 1", "x-a: new", "C: 2"]),
            (["X-A:   new"], nil),
            (["X-A: new", "X-A: new"], ["X-A: new"]),
            (["X-A: New"], ["X-A: new"]),
        ] as [([String], [String]?)])
    func `a field is set on one line, where its first one was`(
        lines: [String], expected: [String]?
    ) throws {
        #expect(try fields(lines) { $0.set = [.init("X-A", "new")] } == expected)
    }

    @Test func `lines are added behind all others`() throws {
        #expect(
            try fields(["X-A: 1"]) { $0.add = [.init("X-A", "2"), .init("X-A", "")] }
                == ["X-A: 1", "X-A: 2", "X-A: "])
    }

    @Test(
        arguments: [
            (["User-Agent: curl"], nil), (["user-agent:"], nil),
            (["Accept: a"], ["Accept: a", "User-Agent: Legacy/1.0"]),
        ] as [([String], [String]?)])
    func `defaults are for requests that do not have the field`(
        lines: [String], expected: [String]?
    ) throws {
        #expect(
            try fields(lines) { $0.defaults = [.init("User-Agent", "Legacy/1.0")] } == expected)
    }

    @Test func `steps are taken in the order of the properties`() throws {
        #expect(
            try fields(["A: 1", "B: 2", "C: 3"]) {
                $0.remove = ["A"]
                $0.rename = [.init("B", "A"), .init("C", "B")]
                $0.set = [.init("B", "set")]
                $0.add = [.init("A", "added")]
                $0.defaults = [.init("A", "no"), .init("C", "default")]
            } == ["A: 2", "B: set", "A: added", "C: default"])
    }

    @Test(
        arguments: [
            "Host", "connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Upgrade",
            "Transfer-Encoding", "Content-Length", "Content_Length", "transfer_encoding", "Expect",
            "Max-Forwards", "Via", "Proxy-Authorization", "HTTP2-Settings", "Close", "", "X A",
            "X:A", "X\r\nA", "\u{FC}",
        ])
    func `fields of framing and of one connection are never changed, nor what is no name`(
        name: String
    ) {
        var rules = RequestRules()
        rules.headers.remove = [name]
        rules.headers.rename = [.init(name, "X-A"), .init("X-A", name)]
        rules.headers.set = [.init(name, "1")]
        rules.headers.add = [.init(name, "1")]
        rules.headers.defaults = [.init(name, "1")]
        #expect(RequestHeadRules(rules).isEmpty)
    }

    @Test(arguments: ["a\r\nB: c", "a\nb", "\0", "a\u{7F}"])
    func `what is no field value is never written`(value: String) {
        var rules = RequestRules()
        rules.headers.set = [.init("X-A", value)]
        #expect(RequestHeadRules(rules).isEmpty)
    }

    @Test func `values are written without whitespace around them, in UTF-8`() throws {
        #expect(
            try fields([]) { $0.set = [.init("A", " \tä b\t "), .init("B", "  ")] }
                == ["A: \u{C3}\u{A4} b", "B: "])
    }

    @Test func `the body framing and the start line stay as they are`() throws {
        #expect(
            try rewritten([
                "PATCH http://h:81/x?y HTTP/1.0", "content-length:  3", "X-A: 1",
                "Connection: keep-alive",
            ]) { $0.headers.remove = ["X-A"] } == [
                "PATCH http://h:81/x?y HTTP/1.0", "content-length:  3", "Connection: keep-alive",
            ])
        #expect(
            try rewritten(["POST /x HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"]) {
                $0.headers.add = [.init("X-A", "1")]
            } == ["POST /x HTTP/1.1", "Host: h", "Transfer-Encoding: chunked", "X-A: 1"])
    }

    @Test func `an empty line before the request is not taken along`() throws {
        let bytes = [0x0D, 0x0A] + headBytes(start)
        var rules = RequestRules()
        rules.headers.add = [.init("A", "1")]
        let new = try withRequest(bytes) { head, span in
            try RequestHeadRules(rules).head(rewriting: head, in: span, isSecure: true)
        }
        #expect(try new.map(headLines) == start + ["A: 1"])
    }

    @Test func `CONNECT is never changed`() throws {
        #expect(
            try rewritten(["CONNECT h:443 HTTP/1.1", "Host: h:443"]) {
                $0.headers.add = [.init("A", "1")]
                $0.cachePolicy = .reloadIgnoringCache
                $0.pathPrefixes = [.init("/", "/b")]
                $0.query.add = [.init("a", "b")]
            } == nil)
    }

    @Test func `a head with as many lines as may be is rewritten`() throws {
        let lines = (0..<2000).map { "X-\($0): \(String(repeating: "v", count: 200))" }
        let expected = lines.filter { $0 != lines[1000] } + ["X-Z: 1"]
        #expect(
            try fields(lines) {
                $0.remove = ["X-1000"]
                $0.add = [.init("X-Z", "1")]
            } == expected)
    }
}
