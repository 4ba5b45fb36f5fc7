import Documents
import HTTPCore
import PinfoldMetrics
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// Room without a limit.
final class BoundlessLease: ContentLease {
    func take(_ bytes: Int) -> Bool { true }
}

extension KeptContents {
    /// What was kept of these bodies.
    static func of(
        request: [UInt8] = [], response: [UInt8] = [], limit: Int = 1 << 20,
        lease: any ContentLease = BoundlessLease()
    ) -> KeptContents {
        let contents = KeptContents(limit: limit, lease: lease)
        request.withUnsafeBytes { contents.received($0) }
        response.withUnsafeBytes { contents.sent($0) }
        return contents
    }
}

extension RecordingOptions {
    static func all(
        isFull: Bool = true, bodyBytes: Int = 1 << 20, hasSecrets: Bool = false
    ) throws -> RecordingOptions {
        RecordingOptions(
            try FlowFilter(AdminQuery(target: "/"), isFull: isFull), isFull: isFull,
            bodyBytes: bodyBytes, hasSecrets: hasSecrets)
    }
}

@Suite("An entry of an HTTP Archive")
struct HAREntryTests {
    static let names = FlowNames(listeners: LabelTable(["proxy"]), hosts: LabelTable(["api"]))

    private func entry(
        _ flow: HeldFlow, _ contents: KeptContents? = nil, _ options: RecordingOptions? = nil
    ) throws -> DocumentValue {
        let options = try options ?? .all()
        return HAREntry(RecordedFlow(flow, contents), Self.names, options).json
    }

    private func answered(_ fields: String, _ request: String = "") -> HeldFlow {
        HeldFlow(
            "POST http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\(request)\r\n",
            extra: HeldFlow.Extra(
                responseHead: Array("HTTP/1.1 200 Very well\r\n\(fields)\r\n".utf8)))
    }

    @Test func `has every member that HAR requires`() throws {
        let value = try entry(answered("Content-Type: text/plain\r\nLocation: /y\r\n"))
        #expect(value["startedDateTime"] == .string("2026-11-21T04:40:13.123Z"))
        #expect(value["cache"] == .dictionary([:]))
        let request = value["request"]
        #expect(request?["method"] == .string("POST"))
        #expect(request?["url"] == .string("http://a.test/x"))
        #expect(request?["httpVersion"] == .string("HTTP/1.1"))
        #expect(
            request?["headers"]
                == .array([.dictionary(["name": .string("Host"), "value": .string("a.test")])]))
        for name in ["cookies", "queryString"] { #expect(request?[name] == .array([])) }
        for name in ["headersSize", "bodySize"] { #expect(request?[name] != nil) }
        let response = value["response"]
        #expect(response?["status"] == .number(200))
        #expect(response?["statusText"] == .string("Very well"))
        #expect(response?["redirectURL"] == .string("/y"))
        #expect(response?["content"]?["mimeType"] == .string("text/plain"))
        for name in ["httpVersion", "cookies", "headers", "headersSize", "bodySize"] {
            #expect(response?[name] != nil)
        }
    }

    @Test func `divides the time as HAR does`() throws {
        let flow = HeldFlow { record in
            record.phases.add(.queue, 1500)
            record.phases.add(.connect, 2000)
            record.phases.add(.tls, 3000)
            record.phases.add(.firstByte, 4000)
            record.phases.add(.body, 250)
        }
        let value = try entry(flow)
        #expect(
            value["timings"]?.description
                == "{\"blocked\":1.5,\"dns\":-1,\"connect\":5,\"ssl\":3,\"send\":0,\"wait\":4,"
                + "\"receive\":0.25}")
        #expect(value["time"]?.description == "10.75")
    }

    @Test func `says what HAR has no member for under a name with an underscore`() throws {
        let flow = HeldFlow(
            isFailed: true, notes: FlowNotes(rule: Array("no".utf8), user: Array("ada".utf8)),
            extra: HeldFlow.Extra(detail: Array("it was so".utf8)))
        let value = try entry(flow)
        #expect(value["_reason"] == .string(Reason.tokens[3]))
        #expect(value["_detail"] == .string("it was so"))
        #expect(value["_rule"] == .string("no"))
        #expect(value["_user"] == .string("ada"))
        #expect(value["_cache"] == .string("none"))
        #expect(value["_id"] == .string("0000000000000001"))
        guard case .dictionary(let members) = value else { return }
        let standard: Set<String> = [
            "startedDateTime", "time", "request", "response", "cache", "timings",
            "serverIPAddress",
        ]
        #expect(members.members.allSatisfy { $0.key.hasPrefix("_") || standard.contains($0.key) })
    }

    @Test func `has neither heads nor a query nor who asked without proof`() throws {
        let flow = HeldFlow(
            "GET http://a.test/x?key=c2VjcmV0 HTTP/1.1\r\nHost: a.test\r\nX: c2VjcmV0\r\n\r\n",
            notes: FlowNotes(user: Array("c2VjcmV0".utf8)))
        let contents = KeptContents.of(response: Array("c2VjcmV0".utf8))
        let value = try entry(flow, contents, .all(isFull: false, bodyBytes: 0))
        #expect(!value.description.contains("c2VjcmV0"))
        #expect(value["request"]?["url"] == .string("http://a.test/x?***"))
        #expect(value["request"]?["headersSize"] == .number(-1))
        #expect(value["_client"] == nil)
    }

    @Test func `leaves out the line in which a head is cut, however short the head`() throws {
        let flow = HeldFlow(
            extra: HeldFlow.Extra(
                responseHead: Array("HTTP/1.1 302 Found\r\nA: b\r\nLocation: http://u:SEC".utf8),
                isResponseHeadCut: true))
        let value = try entry(flow)
        #expect(!value.description.contains("SEC"))
        #expect(value["response"]?["headersSize"] == .number(-1))
        #expect(value["response"]?["statusText"] == .string("Found"))
    }

    @Test(arguments: [false, true])
    func `has the values of secret fields only if that was asked for`(isAskedFor: Bool) throws {
        let flow = answered(
            "Set-Cookie: sid=c2VjcmV0; Path=/\r\n", "Cookie: a=c2VjcmV0; b=2\r\n")
        let value = try entry(flow, nil, .all(hasSecrets: isAskedFor))
        #expect(value.description.contains("c2VjcmV0") == isAskedFor)
        #expect(
            value["request"]?["cookies"]?.description
                == (isAskedFor
                    ? "[{\"name\":\"a\",\"value\":\"c2VjcmV0\"},{\"name\":\"b\",\"value\":\"2\"}]"
                    : "[]"))
        #expect(value["response"]?["cookies"]?.description.contains("sid") == isAskedFor)
    }

    // MARK: URLs

    static let targets = [
        ("GET http://a.test/x?a=1&b=%20c+d", "http://a.test/x?a=1&b=%20c+d"),
        ("GET /é \"x", "http://h.test/%C3%A9"), ("OPTIONS *", "http://h.test/*"),
        ("CONNECT a.test:443", "https://a.test:443/"),
        ("GET ftp://a.test/x", "http://a.test/x"),
        ("GET http://user:secret@a.test/", "http://a.test/"),
        ("GET http://a{b/", "http://unknown.invalid/"), ("GET x", "http://unknown.invalid/"),
    ]

    @Test(arguments: targets)
    func `has a URL that every reader takes`(start: String, url: String) throws {
        let flow = HeldFlow(start + " HTTP/1.1\r\nHost: h.test\r\n\r\n")
        #expect(try entry(flow)["request"]?["url"] == .string(url))
    }

    @Test(arguments: [
        "a.test", "a.test:8080", "a.test:", "a.test.", "a_b.test", "-", "1a.test", "127.0.0.1:80",
        "[::1]", "[::1]:443", "0xg", "xn--bcher-kva.test", "xn--e1afmkfd.xn--p1ai",
        "xn--mgbh0fb.xn--kgbechtv:80", "xn--strae-oqa.test",
    ])
    func `has every host that URL parsers accept`(host: String) throws {
        #expect(HARHost.isReadable(host))
        let flow = HeldFlow("GET /x HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        #expect(try entry(flow)["request"]?["url"] == .string("http://\(host)/x"))
    }

    @Test(arguments: [
        "xn--", "xn--a", "xn--a:80", "a.xn--zzzzzzzz99999", "xn--abc-", "xn--0-0hc", "xn--6a.test",
        "xn--xnk", "1.2.3.4.5", "999.1.1.1", "a.1", "a.1.", "a.0x1", "a.0x", "a.08", "4294967296",
        "a.test:65536", "a.test:x", "a:b:c", "[::1", "[]", "[::1]x", "[1.2.3.4]", "a b", "a%41",
    ])
    func `has no host that URL parsers refuse`(host: String) throws {
        #expect(!HARHost.isReadable(host))
        let flow = HeldFlow("GET /x HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        let value = try entry(flow)
        #expect(value["request"]?["url"] == .string("http://unknown.invalid/x"))
        #expect(value["_host"] == .string(host))
    }

    @Test func `has the parts of a query, decoded`() throws {
        let flow = HeldFlow("GET http://a.test/x?a=1&b=%20c+d&e HTTP/1.1\r\nHost: a.test\r\n\r\n")
        #expect(
            try entry(flow)["request"]?["queryString"]?.description
                == "[{\"name\":\"a\",\"value\":\"1\"},{\"name\":\"b\",\"value\":\" c d\"},"
                + "{\"name\":\"e\",\"value\":\"\"}]")
    }

    // MARK: Bodies

    private func content(
        _ fields: String, _ bytes: [UInt8], limit: Int = 1 << 20
    ) throws -> DocumentValue? {
        let response = try entry(
            answered(fields), .of(response: bytes), .all(bodyBytes: limit))["response"]
        return response?["content"]
    }

    /// `hello ` twenty times.
    private static let compressed =
        Base64.decode("H4sIAAAAAAACA8tIzcnJV8igOwkAL/r4SHgAAAA=".utf8) ?? []

    @Test func `has a text as it is`() throws {
        let value = try content("Content-Type: text/plain\r\n", Array("grüße".utf8))
        #expect(value?["text"] == .string("grüße"))
        #expect(value?["encoding"] == nil)
        #expect(value?["size"] == .number(7))
        let latin = try content("Content-Type: text/plain; charset=ISO-8859-1\r\n", [0x67, 0xFC])
        #expect(latin?["text"] == .string("gü"))
    }

    @Test(arguments: [[0x00, 0x01, 0x61], [0x67, 0xFC]])
    func `has anything else in base64`(bytes: [UInt8]) throws {
        let value = try content("Content-Type: image/png\r\n", bytes)
        #expect(value?["text"] == .string(Base64.encode(bytes)))
        #expect(value?["encoding"] == .string("base64"))
    }

    @Test func `has a body without its codings`() throws {
        let value = try content("Content-Encoding: gzip\r\n", Self.compressed)
        #expect(value?["text"] == .string(String(repeating: "hello ", count: 20)))
        #expect(value?["size"] == .number(120))
    }

    @Test(arguments: ["gzip", "unheard-of", "gzip, gzip, gzip"])
    func `says that codings could not be undone`(coding: String) throws {
        let value = try content("Content-Encoding: \(coding)\r\n", Array("no gzip".utf8))
        #expect(value?["_isCoded"] == .boolean(true))
        #expect(value?["encoding"] == .string("base64"))
    }

    @Test func `has no more of a body than was asked for, decoded or not`() throws {
        let plain = try content("", Array("0123456789".utf8), limit: 4)
        #expect(plain?["text"] == .string("0123"))
        #expect(plain?["_isCut"] == .boolean(true))
        let decoded = try content("Content-Encoding: gzip\r\n", Self.compressed, limit: 60)
        #expect(decoded?["text"] == .string(String(repeating: "hello ", count: 10)))
        #expect(decoded?["_isCut"] == .boolean(true))
        let beginning = try content(
            "Content-Encoding: gzip\r\n", Self.compressed, limit: 20)
        #expect(beginning?["_isCut"] == .boolean(true))
        #expect(beginning?["_isCoded"] == nil)
        let inCharacter = try content("", Array("aü".utf8), limit: 2)
        #expect(inCharacter?["text"] == .string("a"))
    }

    @Test func `has no content of what was counted and not kept, such as a WebSocket's`() throws {
        let flow = HeldFlow { record in
            (record.counted.requestBytes, record.counted.responseBytes) = (3, 5000)
        }
        let value = try entry(flow, .of())
        #expect(value["request"]?["postData"] == nil)
        #expect(value["request"]?["bodySize"] == .number(3))
        let content = value["response"]?["content"]
        #expect(content?["size"] == .number(5000))
        #expect(content?["text"] == nil)
        #expect(content?["compression"] == nil)
    }

    @Test func `has what was posted`() throws {
        let flow = HeldFlow(
            "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Type: a/b\r\n\r\n"
        ) { $0.counted.requestBytes = 3 }
        let text = try entry(flow, .of(request: Array("a=1".utf8)))["request"]?["postData"]
        #expect(text?.description == "{\"mimeType\":\"a/b\",\"text\":\"a=1\"}")
        let binary = try entry(flow, .of(request: [0, 1, 2]))["request"]?["postData"]
        #expect(binary?["_encoding"] == .string("base64"))
        #expect(try entry(flow)["request"]?["postData"] == nil)
    }
}
