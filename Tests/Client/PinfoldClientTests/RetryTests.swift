import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

@Suite("A session's retries")
struct RetryTests {
    /// A policy without delays.
    private static let policy = RetryPolicy(
        maximumAttempts: 3, firstDelayMilliseconds: 0, maximumElapsedMilliseconds: 3_600_000)

    private func withSession(
        retries: RetryPolicy = policy, _ answer: @escaping TestServer.Answer,
        _ body: (TestServer, SessionManager) async throws -> Void
    ) async throws {
        try await withServer(answer) { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.retries = retries
            try await body(
                server, try SessionManager(configuration: configuration, runtime: runtime))
            #expect(await runtime.transferCount == 0)
        }
    }

    /// Answers with a status a number of times, then successfully.
    private static func failing(
        _ times: Int, _ status: String, _ fields: [String] = []
    ) -> TestServer.Answer {
        let count = Locked(0)
        return { connection, request in
            let isGood = count.withLock { count in
                count += 1
                return count > times
            }
            if isGood {
                connection.respond("200 OK", [], request.text + "!")
            } else {
                connection.respond(status, fields, "not yet")
            }
            return true
        }
    }

    @Test func `send the same request again, and report it`() async throws {
        try await withSession(Self.failing(2, "503 No", ["Retry-After: 0"])) { server, session in
            let response = try await session.data(
                for: try HTTPRequest(.put, server.url), content: .text("x"))
            #expect(response.text == "x!")
            #expect(response.metrics.transactions.map(\.status) == [503, 503, 200])
            #expect(response.metrics.transactions.map(\.cause) == [.task, .retry, .retry])
            #expect(response.metrics.retries == 2)
            #expect(response.metrics.redirects == 0)
            #expect(server.requests.map(\.text) == ["x", "x", "x"])
            #expect(server.connections == 1)
        }
    }

    @Test func `use another connection for a misdirected request`()
        async throws
    {
        try await withSession(Self.failing(1, "421 Misdirected Request")) { server, session in
            let request = try HTTPRequest(.post, server.url)
            let response = try await session.data(for: request, content: .text("x"))
            #expect(response.text == "x!")
            #expect(server.requests.map(\.connection) == [0, 1])
        }
    }

    @Test func `end with the last response at the maximum`() async throws {
        try await withSession(Self.failing(9, "503 No")) { server, session in
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.head.status.code == 503)
            #expect(response.text == "not yet")
            #expect(server.requests.count == 3)
        }
    }

    @Test func `are made for no request by default`() async throws {
        #expect(SessionConfiguration().retries == .never)
        try await withSession(retries: .never, Self.failing(1, "503 No")) { server, session in
            let request = try HTTPRequest(.get, server.url)
            #expect(try await session.data(for: request).head.status.code == 503)
            #expect(server.requests.count == 1)
        }
        try await withSession(retries: .never, Self.failing(1, "503 No")) { server, session in
            var options = RequestOptions()
            options.retries = Self.policy
            let request = try HTTPRequest(.get, server.url)
            #expect(try await session.data(for: request, options: options).text == "!")
        }
    }

    @Test func `are not made for what must not be repeated`() async throws {
        try await withSession(Self.failing(1, "503 No")) { server, session in
            let request = try HTTPRequest(.post, server.url)
            #expect(try await session.data(for: request).head.status.code == 503)
        }
    }

    @Test func `are made if there was no response`() async throws {
        let count = Locked(0)
        try await withSession { connection, request in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            guard !isFirst else { return false }
            connection.respond("200 OK", [], "there")
            return true
        } _: { server, session in
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.text == "there")
            #expect(response.metrics.transactions.map(\.status) == [nil, 200])
        }
    }

    @Test func `are made for interrupted content, unless some of it was read`() async throws {
        let count = Locked(0)
        try await withSession { connection, request in
            let isOdd = count.withLock { count in
                count += 1
                return count % 2 == 1
            }
            if isOdd {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
                return false
            }
            connection.respond("200 OK", [], "all")
            return true
        } _: { server, session in
            let request = try HTTPRequest(.get, server.url)
            let response = try await session.data(for: request)
            #expect(response.text == "all")
            #expect(response.metrics.transactions.map(\.status) == [200, 200])
            let streamed = try await session.response(for: request)
            let error = await failure { for try await _ in streamed.content {} }
            #expect(error?.reason == .connectionLost)
        }
    }

    @Test func `read repeatable content again`() async throws {
        let made = Locked(0)
        try await withSession(Self.failing(1, "503 No")) { server, session in
            let content = RequestContent.stream(repeating: {
                made.withLock { $0 += 1 }
                return AsyncStream<[UInt8]> { continuation in
                    continuation.yield(Array("ab".utf8))
                    continuation.yield(Array("cd".utf8))
                    continuation.finish()
                }
            })
            let response = try await session.data(
                for: try HTTPRequest(.put, server.url), content: content)
            #expect(response.text == "abcd!")
            #expect(server.requests.map(\.text) == ["abcd", "abcd"])
            #expect(made.withLock { $0 } == 2)
        }
    }

    @Test func `are not made if the content is not repeatable`() async throws {
        try await withSession(Self.failing(1, "503 No")) { server, session in
            let parts = AsyncStream<[UInt8]> { $0.finish() }
            let response = try await session.data(
                for: try HTTPRequest(.put, server.url), content: .stream(parts))
            #expect(response.head.status.code == 503)
        }
    }

    @Test func `report content that cannot be created again`() async throws {
        struct GoneError: Error {}
        try await withSession(Self.failing(1, "503 No")) { server, session in
            let made = Locked(0)
            let content = RequestContent.stream(repeating: { () throws -> AsyncStream<[UInt8]> in
                try made.withLock { made in
                    made += 1
                    if made > 1 { throw GoneError() }
                }
                return AsyncStream { $0.finish() }
            })
            let error = await failure {
                _ = try await session.data(
                    for: try HTTPRequest(.put, server.url), content: content)
            }
            #expect(error?.reason == .contentFailed)
            #expect(error?.underlying is GoneError)
        }
    }
}
