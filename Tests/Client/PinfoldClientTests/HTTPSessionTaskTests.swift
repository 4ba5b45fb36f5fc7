import Documents
import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

@Suite("A task of a session of one service")
struct HTTPSessionTaskTests {
    private typealias Manager = HTTPSessionManager<JSONResponseSerializer>
    private typealias Outcome = Result<Manager.Reply, ClientError>

    /// Returns the request as JSON.
    private static let echo: TestServer.Answer = { connection, request in
        let method = request.startLine.prefix { $0 != " " }
        let type = (request.field("content-type") ?? "").prefix { $0 != ";" }
        let content = "[\"\(method)\",\"\(request.path)\",\"\(type)\"]"
        let status = request.path == "/none" ? "404 Not Found" : "200 OK"
        connection.respond(
            status, ["Content-Type: application/json"], method == "HEAD" ? "" : content)
        return true
    }

    private func with(
        _ configuration: SessionConfiguration = .patient,
        _ body: (TestServer, Manager) async throws -> Void
    ) async throws {
        try await withServer(Self.echo) { server, runtime in
            let api = try HTTPSessionManager(
                baseURL: server.url, configuration: configuration, runtime: runtime,
                responses: JSONResponseSerializer())
            try await body(server, api)
        }
    }

    @Test func `has a form for each method, and receives the response's value`()
        async throws
    {
        try await with { server, api in
            let (results, continuation) = AsyncStream.makeStream(of: Outcome.self)
            let done: Manager.Completion = { continuation.yield($0) }
            var next = results.makeAsyncIterator()
            func value() async throws -> DocumentValue? { try await next.next()?.get().value }
            func echoed(_ texts: String...) -> DocumentValue { .array(texts.map { .string($0) }) }
            let form = "application/x-www-form-urlencoded"
            try api.get("x", parameters: ["a": 1], completion: done)
            #expect(try await value() == echoed("GET", "/x?a=1", ""))
            try api.head("x", completion: done)
            #expect(try await value() == nil)
            try api.post("x", parameters: ["a": 1], completion: done)
            #expect(try await value() == echoed("POST", "/x", form))
            try api.put("x", parameters: ["a": 1], completion: done)
            #expect(try await value() == echoed("PUT", "/x", form))
            try api.patch("x", parameters: ["a": 1], completion: done)
            #expect(try await value() == echoed("PATCH", "/x", form))
            try api.delete("x", parameters: ["a": 1], completion: done)
            #expect(try await value() == echoed("DELETE", "/x?a=1", ""))
            try api.post(
                multipart: "x", build: { $0.append("b", name: "a") }, completion: done)
            #expect(try await value() == echoed("POST", "/x", "multipart/form-data"))
            try api.dataTask(.put, "x", json: ["a": 1], completion: done).resume()
            #expect(try await value() == echoed("PUT", "/x", "application/json"))
            #expect(server.requests.last?.text == "{\"a\":1}")
        }
    }

    @Test func `begins when it is resumed, and reports its progress, the end last`() async throws {
        let runs = Locked(0)
        var configuration = SessionConfiguration.patient
        configuration.callbacks = .custom { handler in
            runs.withLock { $0 += 1 }
            handler()
        }
        try await with(configuration) { server, api in
            let (values, continuation) = AsyncStream.makeStream(of: TransferProgress.Value?.self)
            let task = try api.dataTask(.post, "x", parameters: ["a": "b"]) { value in
                continuation.yield(value)
            } completion: { _ in
                continuation.yield(nil)
            }
            #expect(task.state == .ready && server.connections == 0)
            task.resume()
            var last: TransferProgress.Value?
            for await value in values {
                guard let value else { break }
                last = value
            }
            #expect(last?.sent == 3 && last?.isFinished == true)
            #expect(runs.withLock { $0 } > 1)
            #expect(task.state == .completed)
        }
    }

    @Test func `is not created if its parameters cannot be sent, and no handler is called`()
        async throws
    {
        try await with { server, api in
            var api = api
            api.requests = PropertyListRequestSerializer()
            let begun = Locked(0)
            let done: Manager.Completion = { _ in begun.withLock { $0 += 1 } }
            let error = #expect(throws: ClientError.self) {
                try api.post("x", parameters: ["a": nil], completion: done)
            }
            #expect(error?.reason == .serialization)
            let form = #expect(throws: ClientError.self) {
                try api.post(
                    multipart: "x",
                    build: { form throws(MultipartError) in
                        try form.append(file: "/nonexistent/file", name: "a")
                    }, completion: done)
            }
            #expect(form?.reason == .serialization)
            #expect(api.session.tasks.isEmpty)
            // Any callback would have come before this response.
            _ = try await api.get("x")
            #expect(begun.withLock { $0 } == 0)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `receives the error of a response that its serializer rejects`() async throws {
        try await with { _, api in
            let (results, continuation) = AsyncStream.makeStream(of: Outcome.self)
            try api.get("none") { continuation.yield($0) }
            guard case .failure(let error) = await results.first(where: { _ in true }) else {
                Issue.record("it did not fail")
                return
            }
            #expect(error.reason == .serialization)
            let underlying = try #require(error.underlying as? ResponseSerializationError)
            #expect(underlying.reason == .status(404))
        }
    }

    @Test func `can be cancelled, and calls its handler once`() async throws {
        try await with { server, api in
            let (results, continuation) = AsyncStream.makeStream(of: Outcome.self)
            let task = try api.dataTask(.get, "x") { continuation.yield($0) }
            task.cancel()
            task.resume()
            guard case .failure(let error) = await results.first(where: { _ in true }) else {
                Issue.record("it did not fail")
                return
            }
            #expect(error.reason == .cancelled)
            #expect(server.connections == 0)
        }
    }
}
