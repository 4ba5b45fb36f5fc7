import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("A session's redirects")
struct RedirectTests {
    /// `/N` redirects to `/N-1`, and `/0` is found.
    private static func counting(_ status: String) -> TestServer.Answer {
        { connection, request in
            let number = Int(request.path.dropFirst()) ?? 0
            if number == 0 {
                connection.respond("200 OK", [], "\(request.startLine) \(request.text)")
            } else {
                connection.respond(status, ["Location: \(number - 1)"], "moved")
            }
            return true
        }
    }

    @Test func `are followed on the same connection`() async throws {
        try await withServer(Self.counting("302 Found")) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let response = try await session.data(for: try HTTPRequest(.get, "\(server.url)/3"))
            #expect(response.text == "GET /0 HTTP/1.1 ")
            #expect(response.request.url == "\(server.url)/0")
            #expect(response.metrics.redirects == 3)
            #expect(server.connections == 1)
        }
    }

    @Test(arguments: [
        ("307 Temporary", "POST /0 HTTP/1.1 text"), ("303 Other", "GET /0 HTTP/1.1 "),
    ])
    func `send the content again if they keep the method`(
        status: String, expected: String
    ) async throws {
        try await withServer(Self.counting(status)) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let response = try await session.data(
                for: try HTTPRequest(.post, "\(server.url)/2"), content: .text("text"))
            #expect(response.text == expected)
        }
    }

    @Test func `lead to the bytes of the Location field, UTF-8 or not`() throws {
        let request = try HTTPRequest(.get, "http://a.test/b/c")
        for (location, url) in [
            (Array("/caf".utf8) + [0xE9] + Array("?q= ".utf8) + [0xFF], "/caf%E9?q=%20%FF"),
            (Array("/café".utf8), "/caf%C3%A9"), (Array("/%E9".utf8), "/%E9"),
        ] {
            var response = HTTPResponse(status: .found)
            response.headerFields.append(HTTPField(name: .location, value: location))
            let target = try #require(try RedirectRule.target(of: response, after: request))
            #expect(target.request.url == "http://a.test\(url)")
            #expect(target.request.hasHTTPURL)
        }
    }

    @Test func `have the host of the URL that they lead to`() throws {
        let host = try #require(HTTPField.Name("Host"))
        let request = try HTTPRequest(.get, "http://a.test/", fields: [host: "a.test"])
        for place in ["/b", "http://b.test/"] {
            let response = HTTPResponse(status: .found, headerFields: [.location: place])
            let target = try #require(try RedirectRule.target(of: response, after: request))
            #expect(!target.request.headerFields.contains(host))
        }
    }

    @Test func `are an error when there are too many`() async throws {
        try await withServer(Self.counting("302 Found")) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = RequestOptions()
            options.redirects = .follow(maximum: 2)
            let request = try HTTPRequest(.get, "\(server.url)/3")
            let error = await failure { [options] in
                _ = try await session.data(for: request, options: options)
            }
            #expect(error?.reason == .tooManyRedirects)
        }
    }

    @Test func `can be refused by a hook`() async throws {
        try await withServer(Self.counting("302 Found")) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = RequestOptions()
            options.redirects = .follow { $0.count == 2 ? nil : $0.next }
            let response = try await session.data(
                for: try HTTPRequest(.get, "\(server.url)/3"), options: options)
            #expect(response.head.status.code == 302)
            #expect(response.text == "moved")
            #expect(response.request.path == "/2")
        }
    }

    @Test func `of content that can be read only once are an error`() async throws {
        try await withServer(Self.counting("307 Temporary")) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let parts = AsyncStream<[UInt8]> { continuation in
                continuation.yield([1])
                continuation.finish()
            }
            let error = await failure {
                _ = try await session.data(
                    for: try HTTPRequest(.post, "\(server.url)/1"), content: .stream(parts))
            }
            #expect(error?.reason == .contentNotRepeatable)
        }
    }

    @Test func `do not carry session fields that the rules remove`() async throws {
        try await withServer { connection, _ in
            connection.respond("200 OK", [], "x")
            return true
        } _: { other, runtime in
            let away = "Location: \(other.url)/x"
            let server = try TestServer { connection, _ in
                connection.respond("302 Found", [away])
                return true
            }
            defer { server.close() }
            var configuration = SessionConfiguration.patient
            configuration.fields = [
                .authorization: "Basic x", .cookie: "a=b", .contentType: "text/plain",
                .accept: "text/html",
            ]
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let request = try HTTPRequest(.post, server.url, fields: [.accept: "*/*"])
            _ = try await session.data(for: request, content: .text("x"))
            let (first, second) = (
                try #require(server.requests.first), try #require(other.requests.first)
            )
            #expect(first.field("authorization") == "Basic x")
            #expect(first.field("content-type") == "text/plain")
            #expect(second.startLine == "GET /x HTTP/1.1")
            for name in ["authorization", "cookie", "content-type"] {
                #expect(second.field(name) == nil)
            }
            #expect(first.field("accept") == "*/*")
            #expect(second.field("accept") == "*/*")
        }
    }

    @Test func `are responses if none is followed, wherever they lead`() async throws {
        try await withServer { connection, _ in
            connection.respond("302 Found", ["Location: ftp://a.test/"], "moved")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            var options = RequestOptions()
            options.redirects = RedirectRule.none
            let response = try await session.data(for: request, options: options)
            #expect(response.head.status.code == 302)
            #expect(response.text == "moved")
            let error = await failure { _ = try await session.data(for: request) }
            #expect(error?.reason == .redirectRefused)
        }
    }

    @Test(arguments: ["ftp://user:secret@a.test/", "http://user:secret@a.test/"])
    func `to another scheme or with credentials are seen by the hook`(location: String) async throws
    {
        try await withServer { connection, request in
            guard request.path == "/" else {
                connection.respond("200 OK", [], request.path)
                return true
            }
            connection.respond("302 Found", ["Location: \(location)"], "moved")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            func response(_ hook: @escaping RedirectRule.Hook) async throws -> DataResponse {
                var options = RequestOptions()
                options.redirects = .follow(hook: hook)
                return try await session.data(for: request, options: options)
            }
            let elsewhere = try HTTPRequest(.get, "\(server.url)/there")
            let replaced = try await response { proposal in
                proposal.next.url == location ? elsewhere : nil
            }
            #expect(replaced.text == "/there")
            #expect(try await response { _ in nil }.text == "moved")
            let error = await failure { _ = try await response { $0.next } }
            #expect(error?.reason == .redirectRefused)
            #expect(error?.description.contains("***@") == true)
            #expect(error?.description.contains("secret") == false)
        }
    }

    @Test func `do not wait for content that is not read`() async throws {
        try await withServer { connection, request in
            guard request.path == "/1" else {
                connection.respond("200 OK", [], "there")
                return true
            }
            connection.send(
                "HTTP/1.1 302 Found\r\nLocation: 0\r\nContent-Length: 10\r\n\r\n12345")
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 1
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let response = try await session.data(for: try HTTPRequest(.get, "\(server.url)/1"))
            #expect(response.text == "there")
            #expect(server.connections == 2)
        }
    }
}
