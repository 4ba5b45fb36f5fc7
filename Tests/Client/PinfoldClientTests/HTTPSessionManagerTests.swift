import Documents
import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

extension DocumentValue {
    fileprivate static func echoed(_ texts: String...) -> DocumentValue {
        .array(texts.map { .string($0) })
    }
}

@Suite("A session of one service")
struct HTTPSessionManagerTests {
    /// Returns the request as JSON.
    private static let echo: TestServer.Answer = { connection, request in
        let method = request.startLine.prefix { $0 != " " }
        let type = request.field("content-type") ?? ""
        let content = method == "HEAD" ? "" : "[\"\(method)\",\"\(request.path)\",\"\(type)\"]"
        connection.respond("200 OK", ["Content-Type: application/json"], content)
        return true
    }

    @Test(
        arguments: [
            ("", "users", "/users"), ("/v1", "users", "/v1/users"), ("/v1/", "users", "/v1/users"),
            ("/v1", "/users", "/users"), ("/v1?a=b", "?c=d", "/v1/?c=d"), ("/v1/", "", "/v1/"),
            ("/v1/", "../x y", "/x%20y"),
        ])
    func `requests URLs relative to its base`(
        base: String, url: String, path: String
    ) async throws {
        try await withServer(Self.echo) { server, runtime in
            let api = try HTTPSessionManager(
                baseURL: server.url + base, configuration: .patient, runtime: runtime,
                responses: HTTPResponseSerializer())
            _ = try await api.get(url)
            #expect(server.requests.map(\.path) == [path])
        }
    }

    @Test func `has a call for each method, with parameters if the method has them`()
        async throws
    {
        try await withServer(Self.echo) { server, runtime in
            let api = try HTTPSessionManager(
                baseURL: server.url, configuration: .patient, runtime: runtime,
                responses: JSONResponseSerializer())
            let form = "application/x-www-form-urlencoded"
            let replies = [
                try await api.get("x", parameters: ["a": 1]),
                try await api.post("x", parameters: ["a": 1]),
                try await api.put("x", parameters: ["a": 1]),
                try await api.patch("x", parameters: ["a": 1]),
                try await api.delete("x", parameters: ["a": 1]),
            ]
            #expect(
                replies.map(\.value) == [
                    .echoed("GET", "/x?a=1", ""), .echoed("POST", "/x", form),
                    .echoed("PUT", "/x", form),
                    .echoed("PATCH", "/x", form), .echoed("DELETE", "/x?a=1", ""),
                ])
            #expect(server.requests.map(\.text) == ["", "a=1", "a=1", "a=1", ""])
            let head = try await api.head("x")
            #expect(head.value == nil)
            #expect(head.response.head.status.code == 200)
        }
    }

    @Test func `sends the call's fields instead of the serializer's`() async throws {
        try await withServer(Self.echo) { server, runtime in
            var api = try HTTPSessionManager(
                baseURL: server.url, configuration: .patient, runtime: runtime,
                responses: HTTPResponseSerializer())
            api.requests.defaults[.accept] = "text/plain"
            api.requests.defaults.setAuthorization(user: "a", password: "b")
            _ = try await api.get("x", fields: [.accept: "text/html"])
            let seen = try #require(server.requests.first)
            #expect(seen.field("accept") == "text/html")
            #expect(seen.field("authorization") == "Basic YTpi")
            #expect(seen.field("user-agent") == UserAgent.standard)
        }
    }

    @Test func `sends a form with a file`() async throws {
        try await withServer(Self.echo) { server, runtime in
            let api = try HTTPSessionManager(
                baseURL: server.url, configuration: .patient, runtime: runtime,
                responses: HTTPResponseSerializer())
            let file = [UInt8](repeating: 65, count: 200_000)
            _ = try await api.post(multipart: "x", parameters: ["a": "b"]) { form in
                form.append(file, name: "f", fileName: "f.txt", contentType: "text/plain")
            }
            let seen = try #require(server.requests.first)
            #expect(seen.field("content-type")?.hasPrefix("multipart/form-data; boundary=") == true)
            #expect(seen.field("content-length") == "\(seen.content.count)")
            #expect(seen.content.firstRange(of: file) != nil)
            #expect(seen.text.contains("name=\"a\"\r\n\r\nb\r\n"))
        }
    }

    private static func byIndices() -> [any RequestSerializer] {
        var form = HTTPRequestSerializer()
        form.arrayStyle = .indices
        var json = JSONRequestSerializer()
        json.query.arrayStyle = .indices
        var list = PropertyListRequestSerializer()
        list.arrayStyle = .indices
        return [form, json, list]
    }

    @Test(arguments: byIndices())
    func `writes arrays in a multipart form like its serializer`(
        requests: any RequestSerializer
    ) async throws {
        try await withServer(Self.echo) { server, runtime in
            var api = try HTTPSessionManager(
                baseURL: server.url, configuration: .patient, runtime: runtime,
                responses: HTTPResponseSerializer())
            let parameters: RequestParameters = ["a": ["x", "y"]]
            _ = try await api.post(multipart: "x", parameters: parameters) { _ in }
            api.requests = requests
            _ = try await api.post(multipart: "x", parameters: parameters) { _ in }
            _ = try await api.get("x", parameters: parameters)
            let seen = server.requests
            #expect(seen[0].text.ranges(of: "name=\"a[]\"").count == 2)
            #expect(seen[1].text.contains("name=\"a[0]\"\r\n\r\nx\r\n"))
            #expect(seen[1].text.contains("name=\"a[1]\"\r\n\r\ny\r\n"))
            #expect(seen[2].path.hasSuffix("?a%5B0%5D=x&a%5B1%5D=y"))
        }
    }

    @Test func `reports what its serializer rejects, with the response`() async throws {
        try await withServer { connection, _ in
            connection.respond("404 Not Found", ["Content-Type: application/json"], "[\"no\"]")
            return true
        } _: { server, runtime in
            let api = try HTTPSessionManager(
                baseURL: server.url, configuration: .patient, runtime: runtime,
                responses: JSONResponseSerializer())
            let error = await failure { _ = try await api.get("x") }
            #expect(error?.reason == .serialization)
            let underlying = try #require(error?.underlying as? ResponseSerializationError)
            #expect(underlying.reason == .status(404))
            #expect(underlying.content == Array("[\"no\"]".utf8))
        }
    }

    @Test func `reports parameters that cannot be sent before sending anything`() async throws {
        try await withServer(Self.echo) { server, runtime in
            var api = try HTTPSessionManager(
                baseURL: server.url, configuration: .patient, runtime: runtime,
                responses: HTTPResponseSerializer())
            api.requests = PropertyListRequestSerializer()
            let error = await failure { _ = try await api.post("x", parameters: ["a": nil]) }
            #expect(error?.reason == .serialization)
            #expect(server.connections == 0)
        }
    }

    @Test func `with pins requires an https base URL`() throws {
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        var configuration = SessionConfiguration.patient
        configuration.securityPolicy = try TestAuthority.policy()
        configuration.securityPolicy.mode = .publicKey
        configuration.securityPolicy.pins = try CertificatePin.pins(in: TestAuthority.certificate)
        func make(_ base: String) throws {
            _ = try HTTPSessionManager(
                baseURL: base, configuration: configuration, runtime: runtime,
                responses: HTTPResponseSerializer())
        }
        let error = #expect(throws: ClientError.self) { try make("http://a.test/") }
        #expect(error?.reason == .invalidSecurityPolicy)
        try make("https://a.test/")
    }
}

@Suite("A session's tasks")
struct SessionTaskTests {
    @Test func `call back once each`() async throws {
        try await withServer { connection, request in
            connection.respond("200 OK", [], request.path)
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 1
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let (results, continuation) = AsyncStream.makeStream(of: String.self)
            var tasks: [SessionTask<DataResponse>] = []
            for number in 0..<20 {
                tasks.append(
                    session.dataTask(for: try HTTPRequest(.get, "\(server.url)/\(number)")) {
                        continuation.yield((try? $0.get())?.text ?? "failed")
                    })
            }
            for task in tasks { task.resume() }
            var seen: [String] = []
            for await result in results {
                seen.append(result)
                if seen.count == tasks.count { break }
            }
            #expect(seen.sorted() == (0..<20).map { "/\($0)" }.sorted())
            #expect(tasks.allSatisfy { $0.state == .completed })
            #expect(server.connections == 1)
        }
    }

    @Test func `that are cancelled before they began call back once`() async throws {
        try await withServer { _, _ in
            false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let (results, continuation) = AsyncStream.makeStream(of: ClientError.Reason?.self)
            let task = session.dataTask(for: try HTTPRequest(.get, server.url)) { result in
                if case .failure(let error) = result { continuation.yield(error.reason) }
            }
            #expect(task.state == .ready)
            task.cancel()
            task.cancel()
            task.resume()
            #expect(await results.first { _ in true } == .cancelled)
            #expect(server.connections == 0)
        }
    }

    /// Reports when its last reference is released.
    private final class Witness: Sendable {
        let continuation: AsyncStream<Void>.Continuation

        init(_ continuation: AsyncStream<Void>.Continuation) { self.continuation = continuation }

        deinit { continuation.finish() }
    }

    @Test func `do not continue if they are started and cancelled immediately`() async throws {
        let request = try HTTPRequest(.get, "http://127.0.0.1/")
        let (callbacks, missed) = (CallbackQueue(.serial), Locked(0))
        let registry = TaskRegistry(callbacks, nil, nil) {}
        for _ in 0..<2000 {
            let (gone, whenGone) = AsyncStream.makeStream(of: Void.self)
            let (called, whenCalled) = AsyncStream.makeStream(of: Void.self)
            let (gate, opened) = AsyncStream.makeStream(of: Void.self)
            let task = SessionTask<Void>(request, TransferProgress(), registry, callbacks) { _ in
                whenCalled.yield()
            } work: { [witness = Witness(whenGone)] handle in
                for await _ in gate {}
                if !Task.isCancelled { missed.withLock { $0 += 1 } }
                withExtendedLifetime(witness) {}
                handle.complete(TaskCompletion(of: handle, error: .cancelled()))
                return .failure(.cancelled())
            }
            async let begun: Void = task.resume()
            task.cancel()
            await begun
            opened.finish()
            _ = await called.first { true }
            // The work has been done, or never will be.
            for await _ in gone {}
            #expect(task.state == .completed)
        }
        #expect(missed.withLock { $0 } == 0)
    }

    @Test func `report their progress`() async throws {
        let content = [UInt8](repeating: 1, count: 500_000)
        try await withServer { connection, request in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(request.content.count)\r\n\r\n")
            connection.send(request.content)
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let progress = TransferProgress()
            var options = RequestOptions()
            options.progress = progress
            let updates = progress.updates()
            _ = try await session.data(
                for: try HTTPRequest(.put, server.url), content: .bytes(content), options: options)
            #expect(
                progress.value
                    == TransferProgress.Value(
                        sent: 500_000, expectedToSend: 500_000, received: 500_000,
                        expectedToReceive: 500_000, isFinished: true))
            var last: TransferProgress.Value?
            for await value in updates { last = value }
            #expect(last?.isFinished == true)
        }
    }
}

private struct Echo: Codable, Sendable, Equatable {
    var method: String
    var content: String
}

@Suite("A session of one service, with types of the caller's own")
struct CodableSessionTests {
    private static let echo: TestServer.Answer = { connection, request in
        let method = request.startLine.prefix { $0 != " " }
        let text = String(decoding: request.text.utf8.filter { $0 != 0x22 }, as: UTF8.self)
        connection.respond(
            "200 OK", ["Content-Type: application/json"],
            request.path == "/empty" ? "" : #"{"method":"\#(method)","content":"\#(text)"}"#)
        return true
    }

    @Test func `reads responses into a type, and sends values as JSON`() async throws {
        try await withServer(Self.echo) { server, runtime in
            let api = try HTTPSessionManager(
                baseURL: server.url, configuration: .patient, runtime: runtime,
                responses: HTTPResponseSerializer())
            let got = try await api.get("x", as: Echo.self)
            #expect(got == Echo(method: "GET", content: ""))
            let sent = try await api.send(.put, "x", json: ["a": 1], as: Echo.self)
            #expect(sent == Echo(method: "PUT", content: "{a:1}"))
            let reply = try await api.send(.post, "x", json: [1, 2])
            #expect(reply.response.head.status == .ok)
            #expect(server.requests.last?.field("content-type") == "application/json")
        }
    }

    @Test func `no content is an error if a value is required`() async throws {
        try await withServer(Self.echo) { server, runtime in
            let api = try HTTPSessionManager(
                baseURL: server.url, configuration: .patient, runtime: runtime,
                responses: HTTPResponseSerializer())
            let error = await #expect(throws: ClientError.self) {
                _ = try await api.get("empty", as: Echo.self)
            }
            #expect(error?.reason == .serialization)
        }
    }
}
