import HTTPCore
import Testing

@Suite("Heads assembled from HTTP/2")
struct StreamHeadTests {
    private static let requestRest = "host: a.example\r\naccept: */*\r\n\r\n"

    // MARK: The start line

    @Test(
        arguments: [
            ("GET /a?b", .origin), ("OPTIONS *", .asterisk), ("GET https://a.example/a", .absolute),
            ("POST http://a.example/", .absolute), ("CONNECT a.example:443", .authority),
        ] as [(String, TargetForm)])
    func `a request is read like one of HTTP/1, with its own version`(
        _ line: String, _ form: TargetForm
    ) throws {
        let head = try requestHead("\(line) HTTP/2.0\r\n\(Self.requestRest)", over: .http2)
        let isRead = head.version == .http2 && head.form == form && head.keepAlive
        let asksForMore = head.framing != .none || head.wantsUpgrade || head.expectsContinue
        #expect(isRead && !asksForMore)
    }

    @Test(arguments: ["1.0", "1.1", "2.1", "3.0", "0.9"])
    func `over HTTP/2 no other version is accepted`(_ version: String) {
        #expect(throws: WireError.unsupportedVersion) {
            _ = try requestHead("GET / HTTP/\(version)\r\n\(Self.requestRest)", over: .http2)
        }
        #expect(throws: WireError.unsupportedVersion) {
            try responseHead("HTTP/\(version) 200 \r\n\r\n", over: .http2)
        }
    }

    @Test func `over HTTP/1 no head of HTTP/2 is accepted`() {
        #expect(throws: WireError.unsupportedVersion) {
            _ = try requestHead("GET / HTTP/2.0\r\n\(Self.requestRest)")
        }
        #expect(throws: WireError.unsupportedVersion) {
            try responseHead("HTTP/2.0 200 \r\n\r\n")
        }
    }

    @Test func `a head may arrive in pieces`() throws {
        let bytes = latin1("GET /a HTTP/2.0\r\n\(Self.requestRest)")
        var parser = RequestHeadParser(carrier: .http2)
        var head = RequestHead()
        for count in 0...bytes.count {
            let progress = try parser.parse(Array(bytes[..<count]).span, into: &head)
            #expect(
                progress == (count < bytes.count ? .needMore : .complete(headBytes: bytes.count)))
        }
        let version = head.version
        #expect(version == .http2)
    }

    // MARK: What its version does not have

    @Test(
        arguments: [("websocket", true), ("connect-udp", true), ("h2c", false), ("tls", false)])
    func `an extended CONNECT asks for its protocol, unless that is HTTP or TLS`(
        _ name: String, _ wants: Bool
    ) throws {
        let head = try requestHead(
            "GET / HTTP/2.0\r\nhost: a\r\nconnection: upgrade\r\nupgrade: \(name)\r\n\r\n",
            over: .http2)
        let wantsUpgrade = head.wantsUpgrade
        #expect(wantsUpgrade == wants)
    }

    @Test func `transfer codings are refused in both directions`() {
        #expect(throws: WireError.transferEncodingInHTTP10) {
            _ = try requestHead(
                "POST / HTTP/2.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n", over: .http2)
        }
        #expect(throws: WireError.transferEncodingInHTTP10) {
            try responseHead(
                "HTTP/2.0 200 \r\ntransfer-encoding: chunked\r\n\r\n", over: .http2)
        }
    }

    @Test func `a request without a host is refused`() {
        #expect(throws: WireError.hostMissing) {
            _ = try requestHead("GET / HTTP/2.0\r\naccept: */*\r\n\r\n", over: .http2)
        }
    }

    @Test func `101 does not exist (RFC 9113 §8.6)`() {
        #expect(throws: WireError.unexpectedSwitch) {
            try responseHead("HTTP/2.0 101 \r\n\r\n", over: .http2)
        }
    }

    @Test func `a length is given once, in responses too`() {
        #expect(throws: WireError.repeatedContentLength) {
            try responseHead(
                "HTTP/2.0 200 \r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n", over: .http2)
        }
    }

    @Test(
        arguments: [
            (HTTPCarrier.http1, "", false), (.http1, "te: trailers\r\n", true),
            (.http2, "", true), (.http2, "te: trailers\r\n", true),
        ])
    func `trailers need not be asked for, but what is asked for is passed on`(
        _ carrier: HTTPCarrier, _ field: String, _ takes: Bool
    ) throws {
        let version = carrier == .http1 ? "1.1" : "2.0"
        let head = try requestHead(
            "GET / HTTP/\(version)\r\nhost: a\r\n\(field)\r\n", over: carrier)
        let (taken, asked) = (head.takesTrailers, head.acceptsTrailers)
        #expect(taken == takes && asked == !field.isEmpty)
    }

    // MARK: Content (RFC 9113 §8.1)

    @Test(
        arguments: [
            ("POST /", "", true, .chunked, nil), ("POST /", "", false, BodyFraming.none, nil),
            ("POST /", "3", true, .length(3), nil), ("POST /", "3", false, .none, .truncatedBody),
            ("POST /", "0", true, .length(0), nil), ("POST /", "0", false, .length(0), nil),
            ("TRACE /", "", false, .none, nil), ("TRACE /", "", true, .none, .contentInTrace),
            ("CONNECT a:1", "", true, .none, nil), ("CONNECT a:1", "", false, .none, nil),
        ] as [(String, String, Bool, BodyFraming, WireError?)])
    func `a request's content is what its stream carries`(
        _ line: String, _ length: String, _ follows: Bool, _ framing: BodyFraming,
        _ error: WireError?
    ) throws {
        let field = length.isEmpty ? "" : "content-length: \(length)\r\n"
        var head = try requestHead("\(line) HTTP/2.0\r\nhost: a:1\r\n\(field)\r\n", over: .http2)
        do throws(WireError) {
            try head.decideContent(follows: follows)
            let decided = head.framing
            #expect(error == nil && decided == framing)
        } catch let thrown {
            #expect(thrown == error)
        }
    }

    @Test(
        arguments: [
            (200, .get, "", true, .chunked, nil), (200, .get, "", false, .length(0), nil),
            (200, .get, "3", true, .length(3), nil),
            (200, .get, "3", false, .none, .truncatedBody),
            (200, .get, "0", false, .length(0), nil), (200, .head, "3", false, .none, nil),
            (200, .head, "", false, .none, nil), (304, .get, "3", false, .none, nil),
            (204, .get, "", true, BodyFraming.none, nil), (200, .connect, "", true, .none, nil),
            (407, .connect, "", true, .chunked, nil),
        ] as [(Int, Method, String, Bool, BodyFraming, WireError?)])
    func `a response's content is what its stream carries, and its end is always seen`(
        _ status: Int, _ method: Method, _ length: String, _ follows: Bool,
        _ framing: BodyFraming, _ error: WireError?
    ) throws {
        let field = length.isEmpty ? "" : "content-length: \(length)\r\n"
        var head = try responseHead(
            "HTTP/2.0 \(status) \r\n\(field)\r\n", to: method, over: .http2)
        #expect(head.keepAlive && !head.framing.endsWithConnection && head.reason.isEmpty)
        do throws(WireError) {
            try head.decideContent(follows: follows)
            #expect(error == nil && head.framing == framing)
        } catch let thrown {
            #expect(thrown == error)
        }
    }
}
