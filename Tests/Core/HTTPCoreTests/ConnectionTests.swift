import HTTPCore
import Testing

@Suite("Connection and persistence (RFC 9112 §9)")
struct ConnectionTests {
    @Test(arguments: [
        ("1.1", "", true), ("1.0", "", false),
        ("1.1", "Connection: close\r\n", false), ("1.0", "Connection: close\r\n", false),
        ("1.1", "Connection: keep-alive\r\n", true), ("1.0", "Connection: keep-alive\r\n", true),
        ("1.0", "connection:Keep-ALIVE\r\n", true), ("1.1", "connection: CLOSE\r\n", false),
        ("1.0", "Connection: keep-alive, close\r\n", false),
        ("1.1", "Connection: x, close\r\n", false),
        ("1.1", "Connection: x\r\nConnection: close\r\n", false),
        ("1.1", "Connection: closed\r\n", true), ("1.1", "Connection: x-close\r\n", true),
        ("1.0", "Connection: keep-alive-x\r\n", false),
        ("1.0", "Connection: ,, keep-alive ,\t,\r\n", true),
        ("1.1", "Connection:\r\n", true), ("1.0", "Connection: ,\r\n", false),
        ("1.0", "Proxy-Connection: Keep-Alive\r\n", true),
        ("1.0", "Proxy-Connection: close\r\n", false),
        ("1.0", "Proxy-Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.0", "Proxy-Connection: keep-alive\r\nConnection: x\r\n", false),
        ("1.0", "Proxy-Connection: keep-alive\r\nProxy-Connection: keep-alive\r\n", false),
        ("1.1", "Proxy-Connection: close\r\n", true),
    ])
    func `the connection persists by version and options`(
        version: String, fields: String, persists: Bool
    ) throws {
        let text = "GET / HTTP/\(version)\r\nHost: a\r\n\(fields)\r\n"
        #expect(requestOutcome(text).isComplete)
        #expect(try requestHead(text).keepAlive == persists)
        guard !fields.contains("Proxy") else { return }
        let response = "HTTP/\(version) 304 x\r\n\(fields)\r\n"
        #expect(responseOutcome(response).isComplete)
        #expect(try responseHead(response).keepAlive == persists)
    }

    @Test(arguments: [
        "close;x", "\"close\"", "close keep-alive", "a b", "x\u{80}", "close/1", "(x)", "close, @",
    ])
    func `Connection is a list of tokens or refused`(value: String) {
        let fields = "Connection: \(value)\r\n\r\n"
        #expect(
            requestOutcome("GET / HTTP/1.1\r\nHost: a\r\n" + fields).error == .malformedConnection)
        #expect(responseOutcome("HTTP/1.1 200 OK\r\n" + fields).error == .malformedConnection)
    }

    @Test func `Connection nominates fields that nothing is decided by`() throws {
        let text = """
            GET / HTTP/1.1\r
            X-a: 1\r
            Host: a\r
            Connection: x-A, Host, content-length, cookie, cache-control, via, close, x-none\r
            Content-Length: 0\r
            X-B: 2\r
            Cookie: c\r
            x-A: 3\r
            Cache-Control: no-store\r
            connection: authorization, X-C, x-a\r
            Authorization: z\r
            X-C: 4\r
            Via: 1.1 v\r
            \r

            """
        #expect(requestOutcome(text).isComplete)
        let head = try requestHead(text)
        #expect(head.fields.hasNominated)
        let nominated = head.fields.filter(\.isNominated).map {
            latin1(text).span.text(at: $0.name)
        }
        #expect(nominated == ["X-a", "Cookie", "x-A", "X-C"])
    }

    @Test func `nothing is nominated where no option is a field's name`() throws {
        let head = try requestHead(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, x-b\r\nX-A: 1\r\n\r\n")
        #expect(!head.fields.hasNominated)
        #expect(!head.fields.contains { $0.isNominated })
    }

    @Test(arguments: [
        ("1.1", "Connection: upgrade\r\nUpgrade: websocket\r\n", true),
        ("1.1", "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n", true),
        ("1.1", "Upgrade: websocket\r\n", false),
        ("1.1", "Connection: upgrade\r\n", false),
        ("1.1", "Connection: upgrade\r\nUpgrade:\r\n", false),
        ("1.1", "Connection: upgrade\r\nUpgrade: h2c\r\n", false),
        ("1.1", "Connection: upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n", true),
        ("1.0", "Connection: upgrade\r\nUpgrade: websocket\r\n", false),
    ])
    func `an upgrade is asked for by both fields in HTTP 1.1`(
        version: String, fields: String, wants: Bool
    ) throws {
        let head = try requestHead("GET / HTTP/\(version)\r\nHost: a\r\n\(fields)\r\n")
        #expect(head.wantsUpgrade == wants)
    }

    @Test(
        arguments: [
            (["websocket"], ["websocket"]), (["h2c"], []), (["H2C"], []), (["h2"], []),
            (["h3"], []), (["h2c-16"], []), (["HTTP/2.0"], []), (["http/1.1"], []),
            (["HTTP"], []), (["TLS/1.0"], []), (["tls"], []), (["TLS/1.2, HTTP/1.1"], []),
            (["h2c, websocket"], ["websocket"]), (["websocket , H2C"], ["websocket"]),
            (["h2c", "a/1,TLS/1.0, b"], ["a/1", "b"]), (["SPDY/3.1", ""], ["SPDY/3.1"]),
            ([",, websocket,,"], ["websocket"]), (["WebSocket/13"], ["WebSocket/13"]),
            // A member that does not follow the grammar may be h2c to another reader.
            (["h2c websocket"], []), (["websocket h2c"], []), (["\"h2c\""], []), (["a/"], []),
            (["/1"], []), (["a/b/c"], []), (["a;h2c"], []),
        ] as [([String], [String])])
    func `protocols that are HTTP or TLS are not passed on (RFC 9110 §7.8)`(
        lines: [String], forwarded: [String]
    ) throws {
        let fields = lines.map { "Upgrade: \($0)\r\n" }.joined()
        let text = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\(fields)\r\n"
        let head = try requestHead(text)
        let bytes = latin1(text)
        let found = UpgradeProtocols.forwarded(of: head.fields, in: bytes.span)
        #expect(found.map { bytes.span.text(at: $0) } == forwarded)
        #expect(head.wantsUpgrade == !forwarded.isEmpty)
    }

    /// Each protocol that a server names is searched for among them.
    @Test(arguments: [1, 15, 16, 17, 2000])
    func `no more than sixteen protocols are passed on`(count: Int) throws {
        let names = (0..<count).map { "p\($0)" }
        let half = count / 2
        for lines in [[names], [Array(names[..<half]), Array(names[half...])]] {
            let fields = lines.map { "Upgrade: h2c, \($0.joined(separator: ","))\r\n" }.joined()
            let text = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\(fields)\r\n"
            let head = try requestHead(text)
            let bytes = latin1(text)
            let found = UpgradeProtocols.forwarded(of: head.fields, in: bytes.span)
            #expect(found.map { bytes.span.text(at: $0) } == Array(names.prefix(16)))
        }
    }

    @Test(arguments: [
        ("1.1", "Expect: 100-continue\r\n", true), ("1.1", "expect: 100-Continue\r\n", true),
        ("1.0", "Expect: 100-continue\r\n", false), ("1.1", "", false),
        ("1.1", "Expect: 100-continue\r\nExpect: 100-continue\r\n", true),
        ("1.1", "Expect: 100-continue, 100-Continue\r\n", true),
        ("1.1", "Expect: , 100-continue ,,\r\n", true), ("1.1", "Expect:\r\n", false),
        ("1.1", "Expect: ,\r\n", false), ("1.1", "Expect:\r\nExpect: 100-continue\r\n", true),
        ("1.0", "Expect: 100-continue, 100-continue\r\n", false),
    ])
    func `100-continue is expected in HTTP 1.1 only`(
        version: String, fields: String, expects: Bool
    ) throws {
        let text = "PUT / HTTP/\(version)\r\nHost: a\r\nContent-Length: 1\r\n\(fields)\r\n"
        #expect(requestOutcome(text).isComplete)
        #expect(try requestHead(text).expectsContinue == expects)
    }

    @Test(arguments: [
        "100", "100-continue, x", "x, 100-continue", "100-continue 100-continue", "\"\"",
        "100-continue;x", "x", "200-ok", "100-continue\r\nExpect: x",
    ])
    func `any other expectation is refused with 417`(value: String) {
        for version in ["1.0", "1.1"] {
            let text = "PUT / HTTP/\(version)\r\nHost: a\r\nExpect: \(value)\r\n\r\n"
            #expect(requestOutcome(text).error == .unknownExpectation)
        }
    }

    @Test(arguments: [
        ("TE: trailers\r\n", true), ("TE: deflate;q=0.5, TRAILERS\r\n", true),
        ("TE: gzip\r\nTE: trailers\r\n", true), ("TE: trailers;q=1\r\n", false),
        ("TE: xtrailers\r\n", false), ("TE:\r\n", false), ("TE: ,trailers ,\r\n", true),
        ("Trailer: trailers\r\n", false),
    ])
    func `TE may announce that trailers are accepted`(fields: String, accepts: Bool) throws {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n"
        #expect(requestOutcome(text).isComplete)
        #expect(try requestHead(text).acceptsTrailers == accepts)
    }
}
