import Documents
import FoundationEssentials
import HTTPTypes
import Testing

@testable import PinfoldClient

private struct User: Codable, Sendable, Equatable {
    var name: String
    var createdAt: Date?
}

@Suite("What a response says")
struct ResponseReadingTests {
    private static let url = "http://a.test/"

    /// The response to a request that is answered like this.
    private func response(
        _ content: [UInt8], type: String? = nil, status: HTTPResponse.Status = .ok
    ) async throws -> DataResponse {
        let fields: HTTPFields = type.map { [.contentType: $0] } ?? [:]
        let mock = MockTransport { _ in
            TransportResponse(status: status, fields: fields, content: content)
        }
        var found: DataResponse?
        try await withMock(mock) { session in
            found = try await session.data(for: try HTTPRequest(.get, Self.url))
        }
        return try #require(found)
    }

    @Test(
        arguments: [
            ("ä", nil, [0xC3, 0xA4]), ("ä", "text/plain; charset=utf-8", [0xC3, 0xA4]),
            ("ä", "text/plain; charset=ISO-8859-1", [0xE4]),
            ("\u{FFFD}", "text/plain; charset=unknown", [0xE4]), ("\u{FFFD}", nil, [0xE4]),
            ("a", nil, [0xEF, 0xBB, 0xBF, 0x61]), ("", nil, []),
        ] as [(String, String?, [UInt8])])
    func `is text in its encoding`(text: String, type: String?, bytes: [UInt8]) async throws {
        #expect(try await response(bytes, type: type).text == text)
    }

    @Test func `is JSON, whatever its type and status`() async throws {
        let content = Array(#"{"name": "Ada", "tags": ["a", "b"]}"#.utf8)
        let found = try await response(content, type: "text/x", status: .notFound)
        let json = try found.json
        #expect(json["tags"]?[-1]?.stringValue == "b")
        #expect(json.description == #"{"name":"Ada","tags":["a","b"]}"#)
        let user = try found.decoded(as: User.self)
        #expect(user == User(name: "Ada"))
        #expect(try json.decoded(as: User.self) == user)
        let broken = try await response(Array("{".utf8))
        for read in [
            { _ = try broken.json }, { _ = try broken.decoded(as: User.self) },
            { _ = try DocumentValue.null.decoded(as: User.self) },
        ] as [() throws -> Void] {
            let error = #expect(throws: ClientError.self) { try read() }
            #expect(error?.reason == .serialization)
        }
    }

    @Test func `is decoded with the decoder of the call`() async throws {
        let found = try await response(Array(#"{"name": "Ada", "created_at": 0}"#.utf8))
        let user = try found.decoded(as: User.self) {
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            decoder.dateDecodingStrategy = .secondsSince1970
            return decoder
        }
        #expect(user.createdAt == Date(timeIntervalSince1970: 0))
    }

    @Test func `is collected from a stream in the same forms`() async throws {
        let mock = MockTransport { _ in TransportResponse(stream: parts([#"{"na"#, #"me":"A"}"#])) }
        try await withMock(mock) { session in
            let request = try HTTPRequest(.get, Self.url)
            let text = try await session.response(for: request).text()
            #expect(text == #"{"name":"A"}"#)
            let json = try await session.response(for: request).json()
            #expect(json["name"]?.stringValue == "A")
            let user = try await session.response(for: request).decoded(as: User.self)
            #expect(user.name == "A")
            let error = await failure {
                _ = try await session.response(for: request).text(atMost: 3)
            }
            #expect(error?.reason == .contentTooLong)
        }
    }

    @Test func `has trailers once it has been read, but none that must not be there`()
        async throws
    {
        let trailer = try #require(HTTPField.Name("X-Checksum"))
        let mock = MockTransport { _ in
            var response = TransportResponse(stream: parts(["one", "two"]))
            response.trailers = [trailer: "1", .setCookie: "a=1", .contentType: "text/x"]
            return response
        }
        try await withMock(mock) { session in
            let request = try HTTPRequest(.get, Self.url)
            let data = try await session.data(for: request)
            #expect(data.trailers == [trailer: "1"])
            let streamed = try await session.response(for: request)
            for try await _ in streamed.content {}
            #expect(streamed.trailers == [trailer: "1"])
        }
        let whole = MockTransport { _ in
            var response = TransportResponse(text: "one")
            response.trailers = [trailer: "1"]
            response.laterTrailers = { [trailer: "2"] }
            return response
        }
        try await withMock(whole) { session in
            let data = try await session.data(for: try HTTPRequest(.get, Self.url))
            #expect(data.text == "one")
            #expect(data.trailers[values: trailer] == ["1", "2"])
        }
        let answer: TestServer.Answer = { connection, _ in
            connection.send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
                    + "X-Checksum: 2\r\n\r\n")
            return true
        }
        try await withServer(answer) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let data = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(data.text == "a")
            #expect(data.trailers == [trailer: "2"])
            // Also through another session that records it.
            var configuration = SessionConfiguration.patient
            configuration.transport = HARRecorder(session.transport)
            let recording = try SessionManager(configuration: configuration, runtime: runtime)
            let recorded = try await recording.data(for: try HTTPRequest(.get, server.url))
            #expect(recorded.text == "a")
            #expect(recorded.trailers == [trailer: "2"])
        }
    }

    // MARK: Lines

    private static let samples: [(String, [String])] = [
        ("", []), ("a", ["a"]), ("a\n", ["a"]), ("a\nb", ["a", "b"]), ("\n", [""]),
        ("\n\n", ["", ""]), ("a\r\nb\r\n", ["a", "b"]), ("a\rb\r", ["a", "b"]),
        ("a\r\rb", ["a", "", "b"]), ("a\r\n\r\nb", ["a", "", "b"]), ("a\n\rb", ["a", "", "b"]),
        ("ä\nö", ["ä", "ö"]),
    ]

    @Test(arguments: samples)
    func `is lines, however it is divided into parts`(text: String, lines: [String]) {
        let bytes = Array(text.utf8)
        for size in 1...max(1, bytes.count) {
            var splitter = LineSplitter(maximum: 4)
            var found: [String] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                splitter.add(Array(bytes[start..<min(start + size, bytes.count)]))
                while let line = splitter.next() {
                    found.append(String(decoding: line, as: UTF8.self))
                }
            }
            splitter.finish()
            while let line = splitter.next() { found.append(String(decoding: line, as: UTF8.self)) }
            #expect(found == lines, "\(size) bytes at a time")
            #expect(!splitter.isTooLong)
        }
    }

    @Test func `has no line that is too long, whether it ends or not`() {
        for text in ["12345", "12345\n", "a\n12345", "a\n12345\nb"] {
            for isWhole in [true, false] {
                var splitter = LineSplitter(maximum: 4)
                for byte in isWhole ? [] : Array(text.utf8) {
                    splitter.add([byte])
                    while splitter.next() != nil {}
                }
                if isWhole { splitter.add(Array(text.utf8)) }
                splitter.finish()
                while splitter.next() != nil {}
                #expect(splitter.isTooLong)
            }
        }
    }

    @Test func `is lines as they arrive`() async throws {
        let mock = MockTransport { _ in
            TransportResponse(stream: parts(["one\ntw", "o\r", "\nlong line", "\n"]))
        }
        try await withMock(mock) { session in
            let request = try HTTPRequest(.get, Self.url)
            var lines: [String] = []
            for try await line in try await session.response(for: request).content.lines {
                lines.append(line)
            }
            #expect(lines == ["one", "two", "long line"])
            let error = await failure {
                let content = try await session.response(for: request).content
                for try await _ in content.lines(atMost: 5) {}
            }
            #expect(error?.reason == .contentTooLong)
        }
    }

    // MARK: Values

    @Test func `is read by subscripts, and written as literals`() {
        let value: DocumentValue = [
            "users": [["name": "Ada", "age": 36, "score": 1.5, "isNew": true, "last": .null]]
        ]
        let user = value["users"]?[0]
        #expect(user?["name"]?.stringValue == "Ada")
        #expect(user?["age"]?.integerValue == 36)
        #expect(user?["age"]?.doubleValue == 36)
        #expect(user?["score"]?.doubleValue == 1.5)
        #expect(user?["score"]?.integerValue == nil)
        #expect(user?["isNew"]?.booleanValue == true)
        #expect(user?["last"]?.isNull == true)
        #expect(user?["missing"] == nil)
        #expect(user?["name"]?["x"] == nil)
        #expect(value["users"]?[1] == nil)
        #expect(value["users"]?[-2] == nil)
        #expect(value["users"]?.arrayValue?.count == 1)
        #expect(user?.dictionaryValue?.members.map(\.key).first == "name")
        #expect(value[0] == nil)
        let expected = #"{"name":"Ada","age":36,"score":1.5,"isNew":true,"last":null}"#
        #expect(user?.description == expected)
    }

    // MARK: curl

    @Test func `can be asked for with curl`() throws {
        let fields: HTTPFields = [.authorization: "Bearer secret", .accept: "it's"]
        let get = try HTTPRequest(.get, "http://a.test/?q=1&b", fields: fields)
        #expect(
            get.curlDescription() == "curl --header 'Authorization: ***' "
                + #"--header 'Accept: it'\''s' 'http://a.test/?q=1&b'"#)
        #expect(get.curlDescription(showsSecrets: true).contains("'Authorization: Bearer secret'"))
        let url = "http://a.test/"
        let typed: HTTPFields = [.contentType: "text/plain"]
        for (request, content, words) in [
            (try HTTPRequest(.head, url), nil, "--head"),
            (try HTTPRequest(.delete, url), nil, "--request DELETE"),
            (try HTTPRequest(.post, url), nil, "--request POST"),
            (
                try HTTPRequest(.post, url, fields: typed), .text("a b"),
                "--header 'Content-Type: text/plain' --data-binary 'a b'"
            ),
            (
                try HTTPRequest(.put, url), .text("@file"),
                "--request PUT --header 'Content-Type:' --data-binary @-"
            ),
            (
                try HTTPRequest(.put, url, fields: typed), .bytes([0]),
                "--request PUT --header 'Content-Type: text/plain' --data-binary @-"
            ),
        ] as [(HTTPRequest, RequestContent?, String)] {
            #expect(request.curlDescription(content: content) == "curl \(words) \(url)")
        }
        let listed = try HTTPRequest(.get, "http://a.test/?a[1]=b")
        #expect(listed.curlDescription() == "curl --globoff '\(listed.url)'")
    }
}
