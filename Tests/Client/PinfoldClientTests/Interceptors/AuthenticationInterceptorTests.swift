import Clocks
import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

private struct RefreshError: Error {}

@Suite("An authentication interceptor")
struct AuthenticationInterceptorTests {
    /// Tokens `t1`, `t2` and so on, each made by one refresh.
    private final class Tokens: Sendable {
        let count = Locked(0)
        /// The token that the server accepts, or `nil` for none.
        let accepted: Locked<String?>

        init(accepts token: String?) { accepted = Locked(token) }

        func next() -> BearerCredential {
            let number = count.withLock { count in
                count += 1
                return count
            }
            return BearerCredential(token: "t\(number)")
        }

        var refreshes: Int { count.withLock { $0 } }

        /// Answers 401 unless the token is the accepted one. A gate holds back the refused ones.
        func answer(_ gate: AnswerGate? = nil) -> TestServer.Answer {
            { [self] connection, request in
                let field = request.field("authorization") ?? "none"
                if let token = accepted.withLock({ $0 }), field == "Bearer \(token)" {
                    connection.respond("200 OK", [], field)
                } else {
                    gate.map { connection.wait(at: $0) }
                    connection.respond("401 Unauthorized", ["WWW-Authenticate: Bearer"], field)
                }
                return true
            }
        }
    }

    private typealias Bearer = AuthenticationInterceptor<BearerAuthenticator>

    private func withSession(
        _ answer: @escaping TestServer.Answer, _ first: BearerCredential?,
        maximumRetries: Int = 1, window: RefreshWindow? = nil,
        refresh: @escaping @Sendable (BearerCredential?) async throws -> BearerCredential,
        _ body: (TestServer, SessionManager, Bearer) async throws -> Void
    ) async throws {
        try await withServer(answer) { server, runtime in
            let interceptor = try Bearer(
                BearerAuthenticator(refresh: refresh), credential: first, for: [server.url],
                refreshWindow: window, maximumRetries: maximumRetries)
            var configuration = SessionConfiguration.patient
            configuration.interceptor = interceptor
            configuration.maximumRequestsPerOrigin = 64
            try await body(
                server, try SessionManager(configuration: configuration, runtime: runtime),
                interceptor)
        }
    }

    @Test func `refreshes once for many requests that were refused together`() async throws {
        let tokens = Tokens(accepts: "t1")
        let gate = try AnswerGate()
        try await withSession(
            tokens.answer(gate), BearerCredential(token: "t0")
        ) { _ in
            tokens.next()
        } _: { server, session, _ in
            let request = try HTTPRequest(.get, server.url)
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<40 {
                    group.addTask { try await session.data(for: request).text }
                }
                // All of them have the old token.
                await gate.arrival(of: 40)
                gate.open()
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(texts == [String](repeating: "Bearer t1", count: 40))
            #expect(tokens.refreshes == 1)
            #expect(server.requests.count == 80)
        }
    }

    @Test func `obtains the first credential by a refresh, and one that expires before its use`()
        async throws
    {
        for first in [nil, BearerCredential(token: "old", expiresAt: 1)] {
            let tokens = Tokens(accepts: "t1")
            let old = Locked<[String?]>([])
            try await withSession(tokens.answer(), first) { credential in
                old.withLock { $0.append(credential?.token) }
                return tokens.next()
            } _: { server, session, _ in
                let response = try await session.data(for: try HTTPRequest(.get, server.url))
                #expect(response.text == "Bearer t1")
                #expect(server.requests.count == 1)
                #expect(old.withLock { $0 } == [first?.token])
            }
        }
    }

    @Test func `sends a request again no more often than allowed`() async throws {
        for maximum in [0, 1, 3] {
            let tokens = Tokens(accepts: nil)
            try await withSession(
                tokens.answer(), BearerCredential(token: "t0"), maximumRetries: maximum
            ) { _ in
                tokens.next()
            } _: { server, session, _ in
                let response = try await session.data(for: try HTTPRequest(.get, server.url))
                #expect(response.head.status.code == 401)
                #expect(server.requests.count == maximum + 1)
                #expect(tokens.refreshes == maximum)
            }
        }
    }

    @Test func `does not count what others have sent again`() async throws {
        let count = Locked(0)
        // Busy twice, then the old token is refused, and the second one, too.
        let answer: TestServer.Answer = { connection, request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            let status = number <= 2 ? "503 No" : "401 Unauthorized"
            connection.respond(status, [], request.field("authorization") ?? "none")
            return true
        }
        let tokens = Tokens(accepts: nil)
        try await withServer(answer) { server, runtime in
            let patience = Retrier { _, outcome, _ in
                outcome.response?.status.code == 503 ? .retry : .doNotRetry
            }
            let first = BearerCredential(token: "t0")
            let bearer = try Bearer(
                BearerAuthenticator { _ in tokens.next() }, credential: first, for: [server.url])
            var configuration = SessionConfiguration.patient
            configuration.interceptor = Interceptor(interceptors: [patience, bearer])
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.head.status.code == 401)
            #expect(response.text == "Bearer t1")
            #expect(server.requests.count == 4)
            #expect(tokens.refreshes == 1)
        }
    }

    @Test func `takes all retries for its own where it cannot know`() async throws {
        let tokens = Tokens(accepts: nil)
        let bearer = try Bearer(
            BearerAuthenticator { _ in tokens.next() }, credential: nil, for: ["http://a.test"])
        let request = try HTTPRequest(.get, "http://a.test/")
        let outcome = RequestOutcome(response: HTTPResponse(status: .unauthorized))
        for (count, isRetried) in [(0, true), (1, false)] {
            let attempt = RequestAttempt(retryCount: count)
            let result = await bearer.retry(request, dueTo: outcome, for: attempt)
            var isRetry = false
            if case .retry = result { isRetry = true }
            #expect(isRetry == isRetried)
        }
        #expect(tokens.refreshes == 1)
    }

    @Test func `fails requests when there are too many refreshes`() async throws {
        let tokens = Tokens(accepts: nil)
        let window = RefreshWindow(interval: .seconds(3600), maximumAttempts: 2)
        try await withSession(
            tokens.answer(), BearerCredential(token: "t0"), maximumRetries: 9, window: window
        ) { _ in
            tokens.next()
        } _: { server, session, _ in
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(error?.reason == .requestRetryFailed)
            let underlying = error?.underlying as? AuthenticationInterceptorError
            #expect(underlying == .excessiveRefresh(window))
            #expect(tokens.refreshes == 2)
        }
    }

    @Test(arguments: [(Int64(3600), 8), (-3600, 2)])
    func `sends a credential that would be refreshed too often until it expires`(
        lifetime: Int64, served: Int
    ) async throws {
        let tokens = Tokens(accepts: nil)
        let window = RefreshWindow(interval: .seconds(36_000), maximumAttempts: 2)
        let answer: TestServer.Answer = { connection, request in
            connection.respond("200 OK", [], request.field("authorization") ?? "none")
            return true
        }
        try await withSession(answer, nil, window: window) { _ in
            var credential = tokens.next()
            credential.expiresAt = Clock.wallSeconds() + lifetime
            credential.margin = 7200
            return credential
        } _: { server, session, _ in
            for number in 1...8 {
                let request = try HTTPRequest(.get, server.url)
                guard number > served else {
                    #expect(
                        try await session.data(for: request).text == "Bearer t\(min(number, 2))")
                    continue
                }
                let error = await failure { _ = try await session.data(for: request) }
                let underlying = error?.underlying as? AuthenticationInterceptorError
                #expect(underlying == .excessiveRefresh(window))
            }
            #expect(tokens.refreshes == 2)
        }
    }

    @Test func `fails the requests that wait for a refresh that fails`() async throws {
        let tokens = Tokens(accepts: nil)
        try await withSession(tokens.answer(), BearerCredential(token: "t0")) { _ in
            throw RefreshError()
        } _: { server, session, interceptor in
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(error?.reason == .requestRetryFailed)
            #expect(error?.underlying is RefreshError)
            // Before a request is sent.
            interceptor.credential = nil
            let early = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(early?.reason == .requestAdaptationFailed)
            #expect(early?.underlying is RefreshError)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `uses a credential that was replaced meanwhile without a refresh`() async throws {
        let tokens = Tokens(accepts: "new")
        let gate = try AnswerGate()
        try await withSession(
            tokens.answer(gate), BearerCredential(token: "t0")
        ) { _ in
            tokens.next()
        } _: { server, session, interceptor in
            let request = try HTTPRequest(.get, server.url)
            let task = Task { try await session.data(for: request).text }
            await gate.arrival()
            interceptor.credential = BearerCredential(token: "new")
            gate.open()
            #expect(try await task.value == "Bearer new")
            #expect(tokens.refreshes == 0)
        }
    }

    @Test func `goes on refreshing for the others when a request is cancelled`() async throws {
        let tokens = Tokens(accepts: "t1")
        let (entered, enter) = AsyncStream.makeStream(of: Void.self)
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        try await withSession(tokens.answer(), nil) { _ in
            enter.finish()
            for await _ in opened {}
            return tokens.next()
        } _: { server, session, interceptor in
            let request = try HTTPRequest(.get, server.url)
            let first = Task { await failure { _ = try await session.data(for: request) } }
            for await _ in entered {}
            first.cancel()
            #expect(await first.value?.reason == .cancelled)
            let second = Task { try await session.data(for: request).text }
            open.finish()
            #expect(try await second.value == "Bearer t1")
            #expect(tokens.refreshes == 1)
            #expect(interceptor.credential?.token == "t1")
        }
    }

    @Test(arguments: ["own", nil])
    func `does not let requests wait for a refresh when its credential is set`(
        own: String?
    ) async throws {
        let tokens = Tokens(accepts: "own")
        let (entered, enter) = AsyncStream.makeStream(of: Void.self)
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        try await withSession(tokens.answer(), nil) { _ in
            enter.finish()
            for await _ in opened {}
            return tokens.next()
        } _: { server, session, interceptor in
            let request = try HTTPRequest(.get, server.url)
            let task = Task {
                await Result { () async throws(ClientError) in
                    try await session.data(for: request).text
                }
            }
            for await _ in entered {}
            interceptor.credential = own.map { BearerCredential(token: $0) }
            switch await task.value {
            case .success(let text):
                #expect(own != nil)
                #expect(text == "Bearer own")
            case .failure(let error):
                #expect(own == nil)
                #expect(error.reason == .requestAdaptationFailed)
                let underlying = error.underlying as? AuthenticationInterceptorError
                #expect(underlying == .missingCredential)
            }
            // Only now, so that nobody has waited for it.
            open.finish()
            #expect(interceptor.credential?.token == own)
        }
    }

    @Test func `is never sent to another origin, by a redirect or otherwise`() async throws {
        let seen = Tokens(accepts: nil)
        try await withServer(seen.answer()) { other, _ in
            let answer: TestServer.Answer = { connection, request in
                connection.respond("302 Found", ["Location: \(other.url)/x"])
                return true
            }
            try await withSession(
                answer, BearerCredential(token: "t0")
            ) { _ in
                seen.next()
            } _: { server, session, _ in
                for url in [server.url, other.url] {
                    let response = try await session.data(for: try HTTPRequest(.get, url))
                    #expect(response.head.status.code == 401)
                    #expect(response.text == "none")
                }
                #expect(server.requests.map { $0.field("authorization") } == ["Bearer t0"])
                #expect(other.requests.count == 2)
                #expect(seen.refreshes == 0)
            }
        }
    }

    @Test func `stays with a redirect within its origin`() async throws {
        let answer: TestServer.Answer = { connection, request in
            if request.path == "/" {
                connection.respond("302 Found", ["Location: /x"])
            } else {
                connection.respond("200 OK", [], request.field("authorization") ?? "none")
            }
            return true
        }
        try await withSession(answer, BearerCredential(token: "t0")) { _ in
            throw RefreshError()
        } _: { server, session, _ in
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.text == "Bearer t0")
        }
    }

    @Test func `lets a refresh use the same session`() async throws {
        let holder = Locked<(SessionManager, HTTPRequest)?>(nil)
        let answer: TestServer.Answer = { connection, request in
            let field = request.field("authorization") ?? "none"
            let isToken = request.path == "/token"
            connection.respond(
                isToken || field == "Bearer fresh" ? "200 OK" : "401 Unauthorized", [],
                isToken ? field : "ok")
            return true
        }
        try await withSession(answer, BearerCredential(token: "t0")) { _ in
            guard let (session, request) = holder.withLock({ $0 }) else { throw RefreshError() }
            // Neither adapted nor waiting for itself.
            guard try await session.data(for: request).text == "none" else {
                throw RefreshError()
            }
            return BearerCredential(token: "fresh")
        } _: { server, session, _ in
            let token = try HTTPRequest(.post, "\(server.url)/token")
            holder.withLock { $0 = (session, token) }
            defer { holder.withLock { $0 = nil } }
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.text == "ok")
            #expect(server.requests.map(\.path) == ["/", "/token", "/"])
        }
    }

    @Test func `does not keep the others from what its refresh sends`() async throws {
        /// Sends a key beside the token.
        struct KeyAuthenticator: RequestAuthenticator {
            func apply(_ credential: BearerCredential, to request: inout HTTPRequest) {
                request.headerFields[HTTPField.Name("X-Key")!] = credential.token
            }

            func refresh(_ credential: BearerCredential?) async throws -> BearerCredential {
                BearerCredential(token: "key")
            }
        }
        let holder = Locked<(SessionManager, HTTPRequest)?>(nil)
        let answer: TestServer.Answer = { connection, request in
            let isAccepted =
                request.path == "/token" || request.field("authorization") == "Bearer fresh"
            connection.respond(isAccepted ? "200 OK" : "401 Unauthorized", [], "ok")
            return true
        }
        try await withServer(answer) { server, runtime in
            let refreshing = BearerAuthenticator { _ in
                guard let (session, request) = holder.withLock({ $0 }) else {
                    throw RefreshError()
                }
                _ = try await session.data(for: request)
                return BearerCredential(token: "fresh")
            }
            let first = BearerCredential(token: "t0")
            let bearer = try Bearer(refreshing, credential: first, for: [server.url])
            let key = try AuthenticationInterceptor(
                KeyAuthenticator(), credential: nil, for: [server.url])
            var configuration = SessionConfiguration.patient
            configuration.interceptor = Interceptor(interceptors: [bearer, key])
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let token = try HTTPRequest(.post, "\(server.url)/token")
            holder.withLock { $0 = (session, token) }
            defer { holder.withLock { $0 = nil } }
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.head.status.code == 200)
            let requests = server.requests
            #expect(requests.map(\.path) == ["/", "/token", "/"])
            #expect(requests.map { $0.field("x-key") } == ["key", "key", "key"])
            #expect(
                requests.map { $0.field("authorization") } == ["Bearer t0", nil, "Bearer fresh"])
        }
    }

    @Test func `needs URLs with an origin`() {
        let authenticator = BearerAuthenticator { _ in throw RefreshError() }
        #expect(throws: ClientError.self) {
            try Bearer(authenticator, credential: nil, for: ["api"])
        }
    }
}
