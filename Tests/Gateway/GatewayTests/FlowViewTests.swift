import Documents
import HTTPCore
import PinfoldMetrics
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("Flows: what is shown")
struct FlowViewTests {
    private static let names = FlowNames(
        listeners: LabelTable(["proxy"]), hosts: LabelTable(["api"]))

    private func json(_ flow: HeldFlow, isFull: Bool) -> DocumentValue {
        FlowView.shape.json(FlowView(flow, Self.names, isFull: isFull))
    }

    private func detail(_ flow: HeldFlow, isFull: Bool = true) -> String {
        FlowDetail.shape.json(FlowDetail(view: FlowView(flow, Self.names, isFull: isFull)))
            .description
    }

    // MARK: The target

    static let targets: [(String, scheme: String?, host: String, path: String?)] = [
        ("GET http://a.test/x?y=1", "http", "a.test", "/x?***"),
        ("GET HTTP://A.Test:81", "http", "a.test:81", "/"),
        ("GET http://a.test?y", "http", "a.test", "/?***"),
        ("GET http://user:secret@a.test/", "http", "a.test", "/"),
        ("GET http://user:se@cret@a.test/", "http", "a.test", "/"),
        ("CONNECT a.test:443", nil, "a.test:443", nil),
        ("CONNECT user@a.test:443", nil, "a.test:443", nil),
        ("GET /x?", "http", "h.test", "/x?***"), ("OPTIONS *", "http", "h.test", "*"),
        ("GET user:secret@a.test", nil, "", nil), ("GET ", nil, "", nil),
    ]

    @Test(arguments: targets)
    func `a target is shown without what is secret in it`(
        start: String, scheme: String?, host: String, path: String?
    ) {
        let flow = HeldFlow(start + " HTTP/1.1\r\nHost: h.test\r\n\r\n")
        let target = FlowTarget(flow)
        #expect(target.scheme == scheme)
        #expect(target.host == host)
        #expect(target.text(withQuery: false) == path)
        #expect(!json(flow, isFull: false).description.contains("secret"))
    }

    @Test func `a host is found in the tunnel, or what a transparent listener knows`() {
        var notes = FlowNotes()
        notes.authority = Array("b.test:80".utf8)
        let target = FlowTarget(HeldFlow("GET /x HTTP/1.1\r\nHost: h.test\r\n\r\n", notes: notes))
        #expect(target.host == "b.test:80")
        #expect(target.hostAndPort.host == "b.test")
        #expect(target.hostAndPort.port == 80)
    }

    // MARK: Secrets

    static let secret = [
        "Authorization: Basic c2VjcmV0", "AUTHORIZATION:c2VjcmV0",
        "Proxy-Authorization: Bearer c2VjcmV0", "Cookie: a=c2VjcmV0", "X-Purge-Token: c2VjcmV0",
        "x_purge-token: c2VjcmV0", "Proxy_Authorization: c2VjcmV0",
    ]

    @Test(arguments: secret)
    func `a secret field is masked, whoever asks`(line: String) {
        let flow = HeldFlow("GET /x HTTP/1.1\r\nHost: a\r\n\(line)\r\nX-Seen: yes\r\n\r\n")
        let shown = detail(flow)
        #expect(!shown.contains("c2VjcmV0"))
        #expect(shown.contains("\"***\""))
        #expect(shown.contains("X-Seen"))
        #expect(!detail(flow, isFull: false).contains("X-Seen"), "heads need the token")
    }

    @Test func `a response's secrets are masked as well`() {
        let head = "HTTP/1.1 200 OK\r\nSet-Cookie: sid=c2VjcmV0\r\nServer: x\r\n"
        let shown = detail(
            HeldFlow(extra: HeldFlow.Extra(responseHead: Array(head.utf8))))
        #expect(!shown.contains("c2VjcmV0"))
        #expect(shown.contains("HTTP/1.1 200 OK"))
    }

    @Test func `a head of HTTP/2 has no start line`() {
        let head = MaskedHead(Array("server: x\r\nset-cookie: a\r\n".utf8), isCut: false)
        #expect(head.start == nil)
        #expect(head.fields.map(\.value) == ["x", "***"])
    }

    @Test func `what a head was cut in is not shown`() {
        let head = MaskedHead(Array("GET / HTTP/1.1\r\nHost: a\r\nAuthoriz".utf8), isCut: true)
        #expect(head.fields.map(\.name) == ["Host"])
        let line = MaskedHead(Array("GET / HTTP/1.1\r\nc2VjcmV0\r\n".utf8), isCut: false)
        #expect(line.fields.map(\.value) == ["***"], "what is no field is not shown")
    }

    @Test func `userinfo in a head is masked`() {
        let text =
            "GET http://u:c2VjcmV0@a/ HTTP/1.1\r\nReferer: http://u:c2VjcmV0@b/x\r\nHost: a\r\n"
        let head = MaskedHead(Array(text.utf8), isCut: false)
        #expect(head.start == "GET http://***@a/ HTTP/1.1")
        #expect(head.fields.first?.value == "http://***@b/x")
    }

    static let urls = [
        ("Location: http://u:c2VjcmV0@b/x", "http://***@b/x"),
        ("Content-Location: //u:c2VjcmV0@b", "//***@b"),
        (
            "Link: <http://a/>,<http://u:c2VjcmV0@b/>; rel=next",
            "<http://a/>,<http://***@b/>; rel=next"
        ),
        ("Destination: HTTPS://c2VjcmV0@b?q", "HTTPS://***@b?q"),
        ("X-Any: see http://u:c2@VjcmV0@b and http://c/@d", "see http://***@b and http://c/@d"),
        ("X-Mail: someone@example.com", "someone@example.com"),
    ]

    @Test(arguments: urls)
    func `userinfo of a URL in any field is masked`(line: String, value: String) {
        let head = MaskedHead(Array("HTTP/1.1 200 OK\r\n\(line)\r\n".utf8), isCut: false)
        #expect(head.fields.first?.value == value)
    }

    @Test func `of a target that is cut before its host ends no host is shown`() {
        let long = String(repeating: "c2VjcmV0", count: 1000)
        for target in ["http://u:\(long)@a.test/", "\(long)@a.test:443"] {
            let method = target.hasPrefix("http") ? "GET" : "CONNECT"
            let flow = HeldFlow("\(method) \(target) HTTP/1.1\r\nHost: a.test\r\n\r\n")
            #expect(FlowTarget(flow).host.isEmpty)
            #expect(FlowTarget(flow).path == nil)
        }
        let path = HeldFlow("GET http://a.test/\(long) HTTP/1.1\r\nHost: a.test\r\n\r\n")
        #expect(FlowTarget(path).host == "a.test")
    }

    // MARK: Who sees what

    @Test func `who asked is only for those who have proved to be operators`() {
        let flow = HeldFlow(
            "GET http://a.test/x?query=1 HTTP/1.1\r\nHost: a\r\n\r\n", client: 0x0a01_0203,
            notes: FlowNotes(rule: Array("ruled".utf8), user: Array("alice".utf8))
        ) { $0.setUpstream(Endpoint(address: .v4(0x0a09_0909), port: 443)) }
        let hidden = ["10.1.2.3", "ruled", "alice", "query=1", "10.9.9.9"]
        let masked = json(flow, isFull: false).description
        let full = json(flow, isFull: true).description
        for text in hidden {
            #expect(!masked.contains(text))
            #expect(full.contains(text))
        }
        for text in ["a.test", "\"GET\"", "/x?***"] { #expect(masked.contains(text)) }
    }

    @Test func `a hostile text stays one in JSON`() throws {
        let text = try #require(
            JSONDocument.value(
                of: json(
                    HeldFlow("GET http://a/<script>\"\\\u{1}\u{2028} HTTP/1.1\r\n\r\n"),
                    isFull: true
                ).jsonLine)["path"])
        guard case .string(let path) = text else { return #expect(Bool(false)) }
        #expect(path.hasPrefix("/<script>\"\\"))
    }

    // MARK: Filters

    private func accepts(_ query: String, _ flow: HeldFlow, isFull: Bool = true) throws -> Bool {
        try FlowFilter(AdminQuery(target: "/f?" + query), isFull: isFull)
            .accepts(FlowView(flow, Self.names, isFull: isFull))
    }

    static let matching = [
        "", "host=**.test", "host=b.a.test:80", "method=GET", "status=502", "status=5xx",
        "failed=true", "client=10.1.2.3", "client=10.0.0.0/8", "user=alice", "rule=ruled",
        "cache=none", "kind=request", "entry=api", "host=b.a.test&status=502&user=alice",
    ]
    static let other = [
        "host=a.test", "host=*.test", "host=**.test:81", "method=POST", "status=503", "status=4xx",
        "client=10.1.2.4", "user=bob", "rule=other", "cache=hit", "kind=tunnel", "entry=other",
        "pin=passed", "host=b.a.test&status=503", "after=0", "cursor=0",
    ]
    private static let flow = HeldFlow(
        "GET http://b.a.test/ HTTP/1.1\r\nHost: b.a.test\r\n\r\n", client: 0x0a01_0203,
        isFailed: true, notes: FlowNotes(rule: Array("ruled".utf8), user: Array("alice".utf8))
    ) { $0.counted.status = 502 }

    @Test func `a filter finds what it asks for, and nothing else`() throws {
        for query in Self.matching { #expect(try accepts(query, Self.flow), "\(query)") }
        for query in Self.other { #expect(try !accepts(query, Self.flow), "\(query)") }
        let token = Reason.tokens[3]
        #expect(try accepts("reason=\(token)", Self.flow))
        #expect(try !accepts("reason=\(Reason.tokens[4])", Self.flow))
    }

    static let wrong = [
        "host=a..b", "status=50", "status=xx5", "status=600x", "failed=false", "client=x",
        "cache=maybe", "pin=no", "kind=x", "reason=x", "limit=0", "limit=1001", "cursor=x",
        "after=-1", "sort=x",
    ]

    @Test(arguments: wrong)
    func `a wrong filter is refused with what was expected`(query: String) throws {
        let error = #expect(throws: AdminError.self) { try accepts(query, Self.flow) }
        #expect(error?.status == 400)
        #expect(error?.detail.contains("expected") ?? false)
    }

    @Test(arguments: ["client=10.1.2.3", "user=alice", "rule=ruled"])
    func `nobody learns by a filter what they are not shown`(query: String) throws {
        let error = #expect(throws: AdminError.self) {
            try accepts(query, Self.flow, isFull: false)
        }
        #expect(error?.status == 403)
    }
}
