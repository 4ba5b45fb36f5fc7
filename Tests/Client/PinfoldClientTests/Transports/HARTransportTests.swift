import Documents
import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("A recording of requests")
struct HARTransportTests {
    private static let binary: [UInt8] = [0, 1, 0xFF]

    /// A service with text, bytes, a redirect, and cookies.
    private static func service() -> MockTransport {
        let mock = MockTransport()
        mock.on(.get, "http://a.test/text") { _ in
            TransportResponse(fields: [.setCookie: "secret=1"], text: "täxt")
        }
        mock.on(.get, "http://a.test/binary") { _ in
            TransportResponse(
                fields: [.contentType: "application/octet-stream"], content: binary)
        }
        mock.on(.post, "http://a.test/echo") { request in
            TransportResponse(content: try await request.content.collect())
        }
        mock.on(.get, "http://a.test/moved") { _ in
            TransportResponse(status: .found, fields: [.location: "/text"])
        }
        mock.on(.get, "http://a.test/stream") { _ in
            TransportResponse(stream: parts(["one", "two"]))
        }
        return mock
    }

    private func withSession(
        _ transport: any SessionTransport, _ body: (SessionManager) async throws -> Void
    ) async throws {
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        var configuration = SessionConfiguration.patient
        configuration.transport = transport
        try await body(try SessionManager(configuration: configuration, runtime: runtime))
    }

    /// Requests everything, and returns what there was.
    private func use(_ session: SessionManager) async throws -> [[UInt8]] {
        var found: [[UInt8]] = []
        for path in ["text", "binary", "moved", "stream"] {
            let fields: HTTPFields = [.authorization: "Bearer secret"]
            let request = try HTTPRequest(.get, "http://a.test/\(path)", fields: fields)
            found.append(try await session.data(for: request).content)
        }
        for content in [Array("sent".utf8), Self.binary] {
            let request = try HTTPRequest(.post, "http://a.test/echo")
            found.append(try await session.data(for: request, content: .bytes(content)).content)
        }
        return found
    }

    @Test func `answers like what was recorded, also after it was a file`() async throws {
        let recorder = HARRecorder(Self.service())
        var expected: [[UInt8]] = []
        try await withSession(recorder) { expected = try await use($0) }
        #expect(expected[0] == Array("täxt".utf8))
        #expect(expected[5] == Self.binary)
        let bytes = recorder.archive.bytes
        let archive = try HARArchive(bytes)
        #expect(archive.entries.count == recorder.archive.entries.count)
        #expect(archive.bytes == bytes)
        try await withSession(HARReplayer(archive)) {
            let replayed = try await use($0)
            #expect(replayed == expected)
        }
    }

    /// Milliseconds with a fraction are no exact binary numbers: 1.001 times 1,000 is below 1,001.
    @Test func `keeps the time of an entry to the microsecond`() throws {
        let request = try HTTPRequest(.get, "http://a.test/")
        let times = Array(0..<5000) + [1_000_001, 59_999_999, 3_600_000_001]
        let entries = times.map { microseconds in
            HARArchive.Entry(
                request: request, response: HTTPResponse(status: .ok),
                time: .microseconds(microseconds))
        }
        let read = try HARArchive(HARArchive(entries: entries).bytes)
        #expect(read.entries.map(\.time) == times.map { .microseconds($0) })
    }

    @Test func `has no secrets unless they are to be kept`() async throws {
        for keeps in [false, true] {
            let recorder = HARRecorder(Self.service(), keepsSecrets: keeps)
            try await withSession(recorder) { _ = try await use($0) }
            let text = String(decoding: recorder.archive.bytes, as: UTF8.self)
            #expect(text.contains("secret") == keeps)
            #expect(text.contains("***") != keeps)
        }
    }

    @Test func `is an HTTP Archive`() async throws {
        let recorder = HARRecorder(Self.service())
        try await withSession(recorder) { session in
            let request = try HTTPRequest(.get, "http://a.test/text?a=b+c&d")
            _ = try await session.data(for: request)
        }
        let document = try JSONDocument.value(of: recorder.archive.bytes)
        let log = try #require(document["log"])
        #expect(log["version"] == .string("1.2"))
        guard case .array(let entries)? = log["entries"], let entry = entries.first else {
            Issue.record("no entries")
            return
        }
        let query = DocumentValue.array([
            .dictionary(["name": .string("a"), "value": .string("b c")]),
            .dictionary(["name": .string("d"), "value": .string("")]),
        ])
        #expect(entry["request"]?["queryString"] == query)
        #expect(entry["response"]?["content"]?["text"] == .string("täxt"))
        #expect(entry["response"]?["content"]?["size"] == .number(5))
        for member in ["startedDateTime", "time", "cache", "timings"] {
            #expect(entry[member] != nil)
        }
    }

    @Test func `leaves out what is too long or fails`() async throws {
        let mock = Self.service()
        mock.on(.get, "http://a.test/fails") { _ in throw TransportError.connectionRefused }
        mock.on(.get, "http://a.test/cut") { _ in
            TransportResponse(stream: parts(["one"], then: TransportError.connectionLost))
        }
        let recorder = HARRecorder(mock, maximumContentBytes: 4)
        try await withSession(recorder) { session in
            for (path, isRecorded) in [
                ("text", false), ("stream", false), ("binary", true), ("fails", false),
                ("cut", false),
            ] {
                let before = recorder.archive.entries.count
                _ = try? await session.data(for: try HTTPRequest(.get, "http://a.test/\(path)"))
                #expect(recorder.archive.entries.count == before + (isRecorded ? 1 : 0))
            }
            // A request that is too long is passed on, too.
            mock.on(.post, "http://a.test/count") { request in
                TransportResponse(text: "\(try await request.content.collect().count)")
            }
            for (text, isRecorded) in [("12345", false), ("1234", true)] {
                recorder.removeAll()
                let response = try await session.data(
                    for: try HTTPRequest(.post, "http://a.test/count"), content: .text(text))
                #expect(response.text == "\(text.utf8.count)")
                let sent = recorder.archive.entries.map(\.requestContent)
                #expect(sent == (isRecorded ? [Array(text.utf8)] : []))
            }
        }
    }

    @Test(
        arguments: [
            (.head, .ok, [:]), (.get, .noContent, [:]), (.get, .notModified, [:]),
            (.get, .ok, [.contentLength: "0"]),
        ] as [(HTTPRequest.Method, HTTPResponse.Status, HTTPFields)])
    func `has responses that have no content, although nobody reads them`(
        method: HTTPRequest.Method, status: HTTPResponse.Status, fields: HTTPFields
    ) async throws {
        // It never ends.
        let (content, more) = AsyncStream<[UInt8]>.makeStream()
        let mock = MockTransport { _ in
            TransportResponse(status: status, fields: fields, stream: content)
        }
        let recorder = HARRecorder(mock)
        try await withSession(recorder) { session in
            _ = try await session.data(for: try HTTPRequest(method, "http://a.test/"))
            #expect(recorder.archive.entries.map(\.content) == [[]])
        }
        more.finish()
    }

    @Test func `is bounded in total, and begins again when it is told to`() async throws {
        let mock = MockTransport { _ in TransportResponse(text: "12345") }
        // There is room for one with its other fields, and not for two.
        let recorder = HARRecorder(mock, maximumTotalBytes: 1900)
        let fields: HTTPFields = [.accept: String(repeating: "a", count: 1000)]
        try await withSession(recorder) { session in
            for _ in 0..<2 {
                for _ in 0..<3 {
                    let request = try HTTPRequest(.get, "http://a.test/", fields: fields)
                    #expect(try await session.data(for: request).text == "12345")
                    #expect(recorder.archive.entries.count == 1)
                }
                recorder.removeAll()
                #expect(recorder.archive.entries.isEmpty)
            }
        }
    }

    @Test func `does not wait for a request's content before it passes it on`() async throws {
        let mock = MockTransport()
        let (content, more) = AsyncStream<[UInt8]>.makeStream()
        mock.on(.post, "http://a.test/early") { request in
            var iterator = request.content.makeAsyncIterator()
            let first = try await iterator.next() ?? []
            // The rest is sent only now.
            more.yield(Array("two".utf8))
            more.finish()
            var rest: [UInt8] = []
            while let part = try await iterator.next() { rest += part }
            return TransportResponse(content: first + rest)
        }
        let recorder = HARRecorder(mock)
        more.yield(Array("one".utf8))
        try await withSession(recorder) { session in
            let response = try await session.data(
                for: try HTTPRequest(.post, "http://a.test/early"), content: .stream(content))
            #expect(response.text == "onetwo")
        }
        #expect(recorder.archive.entries.map(\.requestContent) == [Array("onetwo".utf8)])
    }

    @Test func `answers with its entries in their order, and the last one again`() async throws {
        let request = try HTTPRequest(.get, "http://a.test/")
        let archive = HARArchive(
            entries: ["one", "two"].map {
                HARArchive.Entry(
                    request: request, response: HTTPResponse(status: .ok),
                    content: Array($0.utf8))
            })
        try await withSession(HARReplayer(archive)) { session in
            for text in ["one", "two", "two"] {
                let response = try await session.data(for: request)
                #expect(response.text == text)
            }
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "http://a.test/other"))
            }
            #expect(error?.reason == .transportFailed)
        }
    }

    @Test func `is read as browsers write it`() throws {
        let text = """
            {"log": {"entries": [{"startedDateTime": "2026-11-30T10:00:00.000+01:00", "time": 1.5,
            "request": {"method": "GET", "url": "https://a.test/?q", "headers": [
              {"name": ":authority", "value": "a.test"}, {"name": "accept", "value": "*/*"}]},
            "response": {"status": 200, "statusText": "", "headers": [
              {"name": "content-encoding", "value": "br"}, {"name": "etag", "value": "\\"1\\""}],
              "content": {"size": 3, "text": "AAH/", "encoding": "base64"}}}]}}
            """
        let entry = try #require(try HARArchive(Array(text.utf8)).entries.first)
        #expect(entry.request.url == "https://a.test/?q")
        #expect(entry.request.headerFields[.accept] == "*/*")
        #expect(entry.request.headerFields.count == 1)
        #expect(entry.response.headerFields == [.eTag: "\"1\""])
        #expect(entry.content == Self.binary)
        #expect(entry.time == .microseconds(1500))
    }

    @Test(arguments: [
        ("", "the archive is not JSON"), ("{}", "the archive has no log.entries"),
    ])
    func `that is not valid is refused with the reason`(text: String, problem: String) {
        let error = #expect(throws: HARError.self) { try HARArchive(Array(text.utf8)) }
        #expect(error?.description.contains(problem) == true)
    }

    @Test(
        arguments: [
            ("GET", nil, "none none "), ("OPTIONS", nil, "none none "),
            ("PROPFIND", nil, "none none "), ("POST", nil, "none 0 "),
            ("GET", .stream(parts(["a", "b"])), "chunked none ab"),
            ("DELETE", .stream(parts(["a", "b"])), "chunked none ab"),
            ("DELETE", .stream(parts(["a", "b"]), length: 2), "none 2 ab"),
            ("PUT", .bytes([]), "none 0 "), ("PROPFIND", .text("ab"), "none 2 ab"),
        ] as [(String, RequestContent?, String)])
    func `leaves the framing of a request's content as it is`(
        method: String, content: RequestContent?, expected: String
    ) async throws {
        try await withServer { connection, request in
            let fields = ["transfer-encoding", "content-length"].map {
                request.field($0) ?? "none"
            }
            connection.respond("200 OK", [], "\(fields[0]) \(fields[1]) \(request.text)")
            return true
        } _: { server, runtime in
            let network = try SessionManager(configuration: .patient, runtime: runtime)
            var configuration = SessionConfiguration.patient
            configuration.transport = network.transport
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let method = try #require(HTTPRequest.Method(rawValue: method))
            let request = try HTTPRequest(method, server.url)
            let response = try await session.data(for: request, content: content)
            #expect(response.text == expected)
        }
    }

    @Test func `is not made under policies that the session behind it lacks`() throws {
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        let pin = try CertificatePin("sha256/\(String(repeating: "A", count: 43))=")
        let pinned = SecurityPolicy(mode: .publicKey, pins: [pin])
        var anchored = SecurityPolicy.default
        anchored.anchors = [[1]]
        var rules = TrustPolicies()
        try rules.add(pinned, for: ["a.test"])

        let plain = SessionConfiguration.patient
        var withPins = plain
        withPins.securityPolicy = pinned
        var withRules = plain
        withRules.trustPolicies = rules
        var withAnchors = plain
        withAnchors.securityPolicy = anchored
        let pem = TestAuthority.makePEM(name: "known")
        var withCertificate = plain
        withCertificate.clientCertificates = [
            try ClientCertificate(certificates: pem, key: pem, hosts: ["a.test"])
        ]
        var withTLS13 = plain
        withTLS13.minimumTLS = .tls13
        func isAccepted(
            _ front: SessionConfiguration, before behind: SessionConfiguration
        ) throws -> [Bool] {
            let network = try SessionManager(configuration: behind, runtime: runtime)
            let transports: [any SessionTransport] = [
                network.transport, HARRecorder(HARRecorder(network.transport)),
            ]
            return try transports.map { transport in
                var front = front
                front.transport = transport
                do throws(ClientError) {
                    _ = try SessionManager(configuration: front, runtime: runtime)
                    return true
                } catch {
                    try #require(error.reason == .invalidSecurityPolicy)
                    return false
                }
            }
        }
        for (front, behind, expected) in [
            (plain, plain, true), (plain, withPins, true), (plain, withRules, true),
            (withPins, withPins, true), (withRules, withRules, true),
            (withCertificate, withCertificate, true), (withCertificate, plain, false),
            (withTLS13, withTLS13, true), (plain, withTLS13, true), (withTLS13, plain, false),
            (withPins, plain, false), (withRules, plain, false), (withAnchors, plain, false),
            // The rules behind would apply instead of the pins in front.
            (withPins, withRules, false), (withRules, withPins, false),
        ] {
            #expect(try isAccepted(front, before: behind) == [expected, expected])
        }
        // A transport that leads nowhere presents pins of its own.
        withPins.transport = Self.service()
        _ = try SessionManager(configuration: withPins, runtime: runtime)
    }

    @Test func `can be made of what a session gets from the network`() async throws {
        try await withServer { connection, request in
            connection.respond(
                "200 OK", ["Set-Cookie: a=1"], "\(request.startLine) \(request.text)")
            return true
        } _: { server, runtime in
            let network = try SessionManager(configuration: .patient, runtime: runtime)
            let recorder = HARRecorder(network.transport)
            var configuration = SessionConfiguration.patient
            configuration.transport = recorder
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let request = try HTTPRequest(.post, "\(server.url)/a")
            let response = try await session.data(for: request, content: .text("x"))
            #expect(response.text == "POST /a HTTP/1.1 x")
            #expect(recorder.archive.entries.map(\.content) == [response.content])
            // Cookies are those of the session in front.
            #expect(network.configuration.cookies?.cookies.isEmpty == true)
            #expect(session.configuration.cookies?.cookies.count == 1)
        }
    }
}
