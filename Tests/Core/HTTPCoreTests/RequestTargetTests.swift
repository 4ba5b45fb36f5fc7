import HTTPCore
import Testing

@Suite("The request target (RFC 9112 §3.2)")
struct RequestTargetTests {
    struct Parts: Sendable, CustomStringConvertible {
        var line: String
        var form: TargetForm
        var scheme = Scheme.http
        var host: String
        var kind = HostKind.name
        var port: UInt16
        var path: String
        /// The target as sent to a server.
        var origin: String
        var description: String { line }
    }

    static let accepted: [Parts] = [
        Parts(line: "GET /", form: .origin, host: "own", port: 80, path: "/", origin: "/"),
        Parts(
            line: "GET //x/../%00?a=b&c={\"|^`\\[]}", form: .origin, host: "own", port: 80,
            path: "//x/../%00?a=b&c={\"|^`\\[]}", origin: "//x/../%00?a=b&c={\"|^`\\[]}"),
        Parts(
            line: "GET http://a.example/b?c", form: .absolute, host: "a.example", port: 80,
            path: "/b?c", origin: "/b?c"),
        Parts(
            line: "GET HTTP://A.Example", form: .absolute, host: "A.Example", port: 80, path: "",
            origin: "/"),
        Parts(
            line: "GET http://a?q=1", form: .absolute, host: "a", port: 80, path: "?q=1",
            origin: "/?q=1"),
        Parts(
            line: "GET hTTps://a:8443/x", form: .absolute, scheme: .https, host: "a", port: 8443,
            path: "/x", origin: "/x"),
        Parts(
            line: "GET https://a./", form: .absolute, scheme: .https, host: "a", port: 443,
            path: "/", origin: "/"),
        Parts(
            line: "GET http://a:/", form: .absolute, host: "a", port: 80, path: "/", origin: "/"),
        Parts(
            line: "GET http://[2001:DB8::1]:81/", form: .absolute, host: "2001:DB8::1", kind: .ipv6,
            port: 81, path: "/", origin: "/"),
        Parts(
            line: "GET http://[::1]", form: .absolute, host: "::1", kind: .ipv6, port: 80, path: "",
            origin: "/"),
        Parts(
            line: "GET http://127.0.0.1:65535/", form: .absolute, host: "127.0.0.1", kind: .ipv4,
            port: 65535, path: "/", origin: "/"),
        Parts(
            line: "GET http://a/http://b@c:1/", form: .absolute, host: "a", port: 80,
            path: "/http://b@c:1/", origin: "/http://b@c:1/"),
        Parts(
            line: "OPTIONS *", form: .asterisk, host: "own", port: 80, path: "*", origin: "*"),
        Parts(
            line: "OPTIONS http://a", form: .absolute, host: "a", port: 80, path: "", origin: "*"),
        Parts(
            line: "OPTIONS http://a/", form: .absolute, host: "a", port: 80, path: "/",
            origin: "/"),
        Parts(
            line: "OPTIONS http://a?x", form: .absolute, host: "a", port: 80, path: "?x",
            origin: "/?x"),
        Parts(
            line: "CONNECT a.example:443", form: .authority, host: "a.example", port: 443, path: "",
            origin: ""),
        Parts(
            line: "CONNECT [::1]:8443", form: .authority, host: "::1", kind: .ipv6, port: 8443,
            path: "", origin: ""),
    ]

    @Test(arguments: accepted)
    func `the target's form gives scheme, host, port and path`(parts: Parts) throws {
        let text = "\(parts.line) HTTP/1.1\r\nHost: own\r\n\r\n"
        #expect(requestOutcome(text).isComplete)
        let head = try requestHead(text)
        let bytes = latin1(text)
        #expect(head.form == parts.form)
        #expect(head.scheme == parts.scheme)
        #expect(bytes.span.text(at: head.host) == parts.host)
        #expect(head.hostKind == parts.kind)
        #expect(head.port == parts.port)
        #expect(bytes.span.text(at: head.path) == parts.path)
        #expect(head.hostConflicts == (parts.host != "own"))
        #expect(written { $0.appendOriginForm(of: head, in: bytes.span) } == parts.origin)
    }

    @Test(
        arguments: [
            ("GET *", .targetFormForbidden),
            ("OPTIONS **", .malformedTarget),
            ("OPTIONS */x", .malformedTarget),
            ("GET example.com", .malformedTarget),
            ("GET example.com:443", .malformedTarget),
            ("GET ?x", .malformedTarget),
            ("GET http:/a/", .malformedTarget),
            ("GET http:a", .malformedTarget),
            ("GET ://a/", .malformedTarget),
            ("GET http//a", .malformedTarget),
            ("GET ftp://a/", .unsupportedScheme),
            ("GET httpx://a/", .unsupportedScheme),
            ("GET ws://a/", .unsupportedScheme),
            ("GET file:///etc/passwd", .unsupportedScheme),
            ("GET http://", .malformedAuthority),
            ("GET http:///x", .malformedAuthority),
            ("GET http://?x", .malformedAuthority),
            ("GET http://:80/", .malformedAuthority),
            ("GET http://user@a/", .userinfoInTarget),
            ("GET http://user:pass@a:80/", .userinfoInTarget),
            ("GET http://@a/", .userinfoInTarget),
            ("GET http://a\\@b/", .userinfoInTarget),
            ("GET http://a\\b/", .malformedAuthority),
            ("GET http://a:0/", .malformedAuthority),
            ("GET http://a:65536/", .malformedAuthority),
            ("GET http://a:000080/", .malformedAuthority),
            ("GET http://a:+80/", .malformedAuthority),
            ("GET http://a:8x/", .malformedAuthority),
            ("GET http://a:80:80/", .malformedAuthority),
            ("GET http://a/#f", .fragmentInTarget),
            ("GET /#", .fragmentInTarget),
            ("GET #", .fragmentInTarget),
            ("GET /\u{7F}", .badTargetByte),
            ("GET /\u{0}", .badTargetByte),
            ("GET /\u{1F}x", .badTargetByte),
            ("GET /\u{80}", .badTargetByte),
            ("GET /caf\u{C3}\u{A9}", .badTargetByte),
            ("CONNECT /", .targetFormForbidden),
            ("CONNECT *", .targetFormForbidden),
            ("CONNECT http://a:443/", .targetFormForbidden),
            ("CONNECT a", .malformedAuthority),
            ("CONNECT a:", .malformedAuthority),
            ("CONNECT :443", .malformedAuthority),
            ("CONNECT a:443/", .malformedAuthority),
            ("CONNECT a:443?x", .malformedAuthority),
            ("CONNECT u@a:443", .userinfoInTarget),
            ("CONNECT [::1]", .malformedAuthority),
            ("CONNECT ::1:443", .malformedAuthority),
        ] as [(String, WireError)])
    func `a target in no form, or in one its method may not have, is refused`(
        line: String, error: WireError
    ) {
        #expect(requestOutcome("\(line) HTTP/1.1\r\nHost: own\r\n\r\n").error == error)
    }

    @Test func `every byte that no target may hold is refused wherever it stands`() {
        for byte in UInt8.min...UInt8.max {
            for position in 1...17 {
                var target = [UInt8](repeating: 0x61, count: 18)
                target[0] = 0x2F
                target[position] = byte
                let bytes =
                    latin1("GET ") + target + latin1(" HTTP/1.1\r\nHost: a\r\n\r\n")
                let isFine = byte > 0x20 && byte < 0x7F && byte != 0x23
                // A space splits the target into two parts, the second of which is not a version.
                #expect(parseRequest(bytes).isComplete == isFine, "\(byte) at \(position)")
                #expect(
                    parseRequest(bytes, .byteByByte) == parseRequest(bytes),
                    "\(byte) at \(position)")
            }
        }
    }

    @Test(arguments: [
        ("http://a/", "a", false), ("http://a/", "A", false), ("http://a/", "a:80", false),
        ("http://a:80/", "a", false), ("https://a/", "a:443", false), ("https://a/", "a:80", true),
        ("http://a/", "b", true), ("http://a/", "a:81", true), ("http://a:81/", "a", true),
        ("http://a:81/", "a:81", false), ("http://a./", "a", false),
    ])
    func `the target takes precedence over Host, and a conflict is reported`(
        target: String, host: String, conflicts: Bool
    ) throws {
        let text = "GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n"
        let head = try requestHead(text)
        #expect(head.hostConflicts == conflicts)
        #expect(latin1(text).span.text(at: head.host) == "a")
    }
}

/// What a block writes, as text.
func written(capacity: Int = 4096, _ body: (inout HeadWriter) -> Void) -> String {
    withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) { memory in
        var writer = HeadWriter(memory)
        body(&writer)
        return String(decoding: memory[..<writer.count], as: UTF8.self)
    }
}
