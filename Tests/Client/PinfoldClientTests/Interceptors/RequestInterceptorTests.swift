import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

private let field = HTTPField.Name("X-Adapted")!

/// An adapter that adds a value to a field.
private func adding(_ value: String) -> Adapter {
    Adapter { request, _ in
        var request = request
        request.headerFields.append(HTTPField(name: field, value: value))
        return request
    }
}

private struct SampleError: Error {}

@Suite("A request interceptor")
struct RequestInterceptorTests {
    private func withSession(
        _ interceptor: (any RequestInterceptor)?, resourceTimeout: Duration? = nil,
        _ answer: @escaping TestServer.Answer,
        _ body: (TestServer, SessionManager) async throws -> Void
    ) async throws {
        try await withServer(answer) { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.interceptor = interceptor
            if let resourceTimeout { configuration.resourceTimeout = resourceTimeout }
            try await body(
                server, try SessionManager(configuration: configuration, runtime: runtime))
            #expect(await runtime.transferCount == 0)
        }
    }

    /// Answers with the field of the request.
    private static let echo: TestServer.Answer = { connection, request in
        connection.respond("200 OK", [], request.field("x-adapted") ?? "none")
        return true
    }

    /// Answers 503 a number of times.
    private static func failing(_ times: Int) -> TestServer.Answer {
        let count = Locked(0)
        return { connection, request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            connection.respond(number > times ? "200 OK" : "503 No", [], request.text)
            return true
        }
    }

    /// Has requests sent again as often as this.
    private static func retrying(
        _ times: Int, _ seen: Locked<[Int?]> = Locked([]), result: RetryResult = .retry
    ) -> Retrier {
        Retrier { _, outcome, attempt in
            seen.withLock { $0.append(outcome.response?.status.code) }
            return attempt.retryCount < times ? result : .doNotRetry
        }
    }

    @Test func `adapts the request, which the server and the response's owner see`()
        async throws
    {
        try await withSession(adding("a"), Self.echo) { server, session in
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.text == "a")
            #expect(response.request.headerFields[field] == "a")
            let streamed = try await session.response(for: try HTTPRequest(.get, server.url))
            #expect(try await streamed.content.collect(atMost: 10) == Array("a".utf8))
        }
    }

    @Test func `of the request comes before that of the session, and chains keep their order`()
        async throws
    {
        let chain = Interceptor(adapters: [adding("3")], interceptors: [adding("4")])
        try await withSession(chain, Self.echo) { server, session in
            var options = RequestOptions()
            options.interceptor = Interceptor(interceptors: [adding("1"), adding("2")])
            let response = try await session.data(
                for: try HTTPRequest(.get, server.url), options: options)
            #expect(response.request.headerFields[values: field] == ["1", "2", "3", "4"])
        }
    }

    @Test func `gets the unadapted request each time`() async throws {
        let seen = Locked<[Bool]>([])
        let adapter = Adapter { request, attempt in
            seen.withLock { $0.append(request.headerFields.contains(field)) }
            var request = request
            request.headerFields[field] = "\(attempt.retryCount) \(attempt.cause)"
            return request
        }
        let chain = Interceptor(adapters: [adapter], retriers: [Self.retrying(2)])
        try await withSession(chain, Self.echo) { server, session in
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.text == "2 retry")
            #expect(seen.withLock { $0 } == [false, false, false])
            #expect(response.metrics.transactions.map(\.cause) == [.task, .retry, .retry])
        }
    }

    @Test func `can lead to another URL, to which redirects are relative`() async throws {
        let adapter = Adapter { request, _ in
            var request = request
            if request.path == "/old" { request.path = "/new/a" }
            return request
        }
        try await withSession(adapter) { connection, request in
            if request.path == "/new/a" {
                connection.respond("302 Found", ["Location: b"])
            } else {
                connection.respond("200 OK", [], request.path)
            }
            return true
        } _: { server, session in
            let response = try await session.data(
                for: try HTTPRequest(.get, "\(server.url)/old"))
            #expect(response.text == "/new/b")
        }
    }

    @Test func `that throws fails the task before anything is sent`() async throws {
        for (thrown, reason) in [
            (SampleError() as any Error, ClientError.Reason.requestAdaptationFailed),
            (ClientError(.invalidRequest, "no"), .invalidRequest),
        ] {
            let adapter = Adapter { _, _ in throw thrown }
            try await withSession(adapter, Self.echo) { server, session in
                let error = await failure {
                    _ = try await session.data(for: try HTTPRequest(.get, server.url))
                }
                #expect(error?.reason == reason)
                #expect(error?.wasNotProcessed == true)
                #expect(server.requests.isEmpty)
            }
        }
    }

    @Test func `has a request sent again that could not be adapted`() async throws {
        for (thrown, reason) in [
            (SampleError() as any Error, ClientError.Reason.requestAdaptationFailed),
            (ClientError(.connectionLost, "no"), .connectionLost),
        ] {
            let (adapted, asked) = (Locked(0), Locked<[ClientError.Reason?]>([]))
            let adapter = Adapter { request, _ in
                let number = adapted.withLock { count in
                    count += 1
                    return count
                }
                if number <= 2 { throw thrown }
                return request
            }
            let retrier = Retrier { _, outcome, attempt in
                guard outcome.response == nil else { return .doNotRetry }
                asked.withLock { $0.append(outcome.error?.reason) }
                return .retry
            }
            let chain = Interceptor(adapters: [adapter], retriers: [retrier])
            try await withSession(chain, Self.echo) { server, session in
                let response = try await session.data(for: try HTTPRequest(.get, server.url))
                #expect(response.text == "none")
                #expect(asked.withLock { $0 } == [reason, reason])
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test func `may replace the error of one that could not be adapted`() async throws {
        let chain = Interceptor(
            adapters: [Adapter { _, _ in throw SampleError() }],
            retriers: [
                Retrier { _, _, _ in .doNotRetryWithError(ClientError(.badResponse, "own")) }
            ])
        try await withSession(chain, Self.echo) { server, session in
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(error?.reason == .badResponse)
            #expect(server.requests.isEmpty)
        }
    }

    @Test(arguments: [false, true])
    func `does not see other origins unless it wants to`(wants: Bool) async throws {
        struct Everywhere: RequestInterceptor {
            let interceptsOtherOrigins: Bool
            let asked: Locked<[Bool]>

            func adapt(
                _ request: HTTPRequest, for attempt: RequestAttempt
            ) async throws -> HTTPRequest {
                var request = request
                request.headerFields[field] = "secret"
                return request
            }

            func retry(
                _ request: HTTPRequest, dueTo outcome: RequestOutcome,
                for attempt: RequestAttempt
            ) async -> RetryResult {
                asked.withLock { $0.append(attempt.isToOtherOrigin) }
                return .doNotRetry
            }
        }
        try await withServer(Self.echo) { other, _ in
            let asked = Locked<[Bool]>([])
            let member = Everywhere(interceptsOtherOrigins: wants, asked: asked)
            // In a chain with one that wants to.
            let chain = Interceptor(
                interceptors: [
                    member, Everywhere(interceptsOtherOrigins: true, asked: Locked([])),
                ])
            for interceptor in [member, chain] as [any RequestInterceptor] {
                asked.withLock { $0 = [] }
                try await withSession(interceptor) { connection, request in
                    let isFirst = request.path == "/first"
                    connection.respond(
                        "302 Found", ["Location: \(isFirst ? "/second" : other.url)"])
                    return true
                } _: { server, session in
                    let response = try await session.data(
                        for: try HTTPRequest(.get, "\(server.url)/first"))
                    #expect(server.requests.map { $0.field("x-adapted") } == ["secret", "secret"])
                    let isChain = interceptor is Interceptor
                    #expect(response.text == (wants || isChain ? "secret" : "none"))
                    #expect(asked.withLock { $0 } == (wants ? [true] : []))
                }
            }
        }
    }

    @Test func `is asked about responses of any status`() async throws {
        let seen = Locked<[Int?]>([])
        try await withSession(Self.retrying(2, seen), Self.failing(1)) { server, session in
            let response = try await session.data(
                for: try HTTPRequest(.post, server.url), content: .text("x"))
            #expect(response.text == "x")
            #expect(seen.withLock { $0 } == [503, 200, 200])
            #expect(server.requests.map(\.text) == ["x", "x", "x"])
        }
    }

    @Test func `is asked about errors, and sees both an error and the response`() async throws {
        let seen = Locked<[(Int?, ClientError.Reason?)]>([])
        let retrier = Retrier { _, outcome, attempt in
            seen.withLock { $0.append((outcome.response?.status.code, outcome.error?.reason)) }
            return outcome.error != nil && attempt.retryCount < 2 ? .retry : .doNotRetry
        }
        let count = Locked(0)
        try await withSession(retrier) { connection, request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 { return false }
            if number == 2 {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
                return false
            }
            connection.respond("200 OK", [], "all")
            return true
        } _: { server, session in
            let response = try await session.data(
                for: try HTTPRequest(.post, server.url), content: .text("x"))
            #expect(response.text == "all")
            let seen = seen.withLock { $0 }
            #expect(seen.map(\.0) == [nil, 200, 200, 200])
            #expect(seen.map(\.1) == [.connectionLost, nil, .connectionLost, nil])
        }
    }

    @Test func `waits before the next request`() async throws {
        let retrier = Self.retrying(1, result: .retryWithDelay(.milliseconds(1)))
        try await withSession(retrier, Self.failing(1)) { server, session in
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.head.status.code == 200)
        }
        // Longer than the task may take.
        let patient = Self.retrying(1, result: .retryWithDelay(.seconds(1 << 40)))
        try await withSession(patient, Self.failing(1)) { server, session in
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.head.status.code == 503)
        }
    }

    @Test func `fails the task with its own error, and is not asked about that`() async throws {
        let asked = Locked(0)
        let retrier = Retrier { _, _, _ in
            asked.withLock { $0 += 1 }
            return .doNotRetryWithError(SampleError())
        }
        try await withSession(retrier, Self.failing(1)) { server, session in
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(error?.reason == .requestRetryFailed)
            #expect(error?.underlying is SampleError)
            #expect(error?.wasNotProcessed == false)
            #expect(asked.withLock { $0 } == 1)
        }
    }

    @Test func `is asked a limited number of times`() async throws {
        let retrier = Retrier { _, _, _ in .retry }
        try await withSession(retrier, Self.failing(.max)) { server, session in
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.head.status.code == 503)
            #expect(server.requests.count == RequestAttempt.maximumRetryCount + 1)
        }
    }

    @Test func `is not asked if the content can be read only once`() async throws {
        try await withSession(Self.retrying(1), Self.failing(1)) { server, session in
            let parts = AsyncStream<[UInt8]> { $0.finish() }
            let response = try await session.data(
                for: try HTTPRequest(.post, server.url), content: .stream(parts))
            #expect(response.head.status.code == 503)
        }
    }

    @Test func `is not asked about the end of a task, and is cancelled with it`() async throws {
        let (entered, enter) = AsyncStream.makeStream(of: Void.self)
        let asked = Locked(0)
        let adapter = Adapter { request, _ in
            enter.finish()
            // Until it is cancelled.
            for await _ in AsyncStream<Void>.makeStream().stream {}
            return request
        }
        let retrier = Retrier { _, _, _ in
            asked.withLock { $0 += 1 }
            return .retry
        }
        let chain = Interceptor(adapters: [adapter], retriers: [retrier])
        try await withSession(chain, Self.echo) { server, session in
            let request = try HTTPRequest(.get, server.url)
            let task = Task { await failure { _ = try await session.data(for: request) } }
            for await _ in entered {}
            task.cancel()
            #expect(await task.value?.reason == .cancelled)
            #expect(asked.withLock { $0 } == 0)
            #expect(server.requests.isEmpty)
        }
    }

    /// Waits until it is cancelled.
    private static func waiting() async {
        for await _ in AsyncStream<Void>.makeStream().stream {}
    }

    @Test func `is cancelled when the time of the task is over`() async throws {
        let adapter = Adapter { request, _ in
            await Self.waiting()
            return request
        }
        try await withSession(adapter, resourceTimeout: .milliseconds(1), Self.echo) {
            server, session in
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(error?.reason == .timedOut)
            #expect(error?.url == "\(server.url)/")
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `is not asked again about a time that it has used up`() async throws {
        let asked = Locked(0)
        let retrier = Retrier { _, _, _ in
            asked.withLock { $0 += 1 }
            await Self.waiting()
            return .retry
        }
        // Enough for the response, in most cases. Otherwise it may not be asked at all.
        try await withSession(retrier, resourceTimeout: .milliseconds(500), Self.echo) {
            server, session in
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(error?.reason == .timedOut)
            #expect(asked.withLock { $0 } <= 1)
        }
    }

    @Test func `is looked at again in time, and seldom while its task is suspended`() {
        for (left, isSuspended, wait) in [
            (Duration.seconds(604_800), false, Int64(1000)), (.milliseconds(300), false, 300),
            (.microseconds(1), false, 10), (.milliseconds(-5), false, 10),
            (.microseconds(1), true, 1000),
        ] {
            #expect(InterceptorWatch.wait(left, isSuspended: isSuspended) == wait)
        }
    }

    @Test func `is asked after the session's own retries`() async throws {
        let seen = Locked<[Int?]>([])
        try await withSession(Self.retrying(1, seen), Self.failing(3)) { server, session in
            var options = RequestOptions()
            options.retries = RetryPolicy(
                maximumAttempts: 2, firstDelayMilliseconds: 0,
                maximumElapsedMilliseconds: 3_600_000)
            let response = try await session.data(
                for: try HTTPRequest(.get, server.url), options: options)
            // Two attempts by the policy, then one by the retrier.
            #expect(response.head.status.code == 503)
            #expect(server.requests.count == 3)
            #expect(seen.withLock { $0 } == [503, 503])
        }
    }
}
