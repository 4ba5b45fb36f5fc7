import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

private struct NoSessionError: Error {}

/// The content of these responses is longer than what their channels and connections take, so they
/// have not ended when interceptors and hooks are asked about them.
@Suite("A long response about which is decided")
struct ReleasedPlaceTests {
    private static let length = 8 << 20

    /// Sends a session's own requests, from an interceptor or a hook of that session.
    private final class Own: Sendable {
        private let found = Locked<(SessionManager, HTTPRequest)?>(nil)

        func set(_ session: SessionManager, _ url: String) throws {
            let request = try HTTPRequest(.get, "\(url)/own")
            found.withLock { $0 = (session, request) }
        }

        func clear() { found.withLock { $0 = nil } }

        func send() async throws {
            guard let (session, request) = found.withLock({ $0 }) else { throw NoSessionError() }
            _ = try await session.data(for: request)
        }
    }

    /// Answers the first request to a path with a long response, and every other one with 200.
    private static func answer(_ status: String, _ fields: [String] = []) -> TestServer.Answer {
        let refused = Locked(0)
        return { connection, request in
            let accepted = ["Basic dTpw", "Bearer new"].contains(request.field("authorization"))
            guard request.path.hasPrefix("/long"), !accepted else {
                connection.respond("200 OK", [], request.path)
                return true
            }
            refused.withLock { $0 += 1 }
            let lines = ["HTTP/1.1 \(status)", "Content-Length: \(length)"] + fields
            connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
            return connection.send([UInt8](repeating: 0x78, count: length))
        }
    }

    /// Runs a test with a session of one place.
    private func withPlace(
        _ answer: @escaping TestServer.Answer,
        _ configure: (inout SessionConfiguration, TestServer, Own) throws -> Void,
        _ body: (TestServer, SessionManager) async throws -> Void
    ) async throws {
        try await withServer(answer) { server, runtime in
            let own = Own()
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 1
            try configure(&configuration, server, own)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            try own.set(session, server.url)
            defer { own.clear() }
            try await body(server, session)
        }
    }

    private func text(_ path: String, _ server: TestServer, _ session: SessionManager)
        async throws -> String
    {
        let response = try await session.data(for: try HTTPRequest(.get, server.url + path))
        return response.content.count == Self.length ? "long" : response.text
    }

    @Test func `leaves its place to the refresh of its credential`() async throws {
        try await withPlace(Self.answer("401 Who")) { configuration, server, own in
            configuration.interceptor = try AuthenticationInterceptor(
                BearerAuthenticator { _ in
                    try await own.send()
                    return BearerCredential(token: "new")
                }, credential: BearerCredential(token: "old"), for: [server.url])
        } _: { server, session in
            let found = try await text("/long", server, session)
            #expect(found == "/long")
            #expect(server.requests.map(\.path) == ["/long", "/own", "/long"])
        }
    }

    @Test(arguments: [true, false])
    func `leaves its place to a hook that is asked for credentials`(isAnswered: Bool) async throws {
        let answer = Self.answer("401 Who", ["WWW-Authenticate: Basic realm=cave"])
        try await withPlace(answer) { configuration, _, own in
            configuration.challenges = { _ in
                guard (try? await own.send()) != nil, isAnswered else {
                    return .performDefaultHandling
                }
                return .useCredential(Credential(user: "u", password: "p"))
            }
        } _: { server, session in
            let found = try await text("/long", server, session)
            #expect(found == (isAnswered ? "/long" : "long"))
            #expect(server.requests.map(\.path).prefix(2) == ["/long", "/own"])
        }
    }

    @Test(arguments: [true, false])
    func `leaves its place to the hook of redirects`(isFollowed: Bool) async throws {
        let answer = Self.answer("302 Found", ["Location: /next"])
        try await withPlace(answer) { configuration, _, own in
            configuration.redirects = .follow { proposal in
                guard (try? await own.send()) != nil, isFollowed else { return nil }
                return proposal.next
            }
        } _: { server, session in
            let found = try await text("/long", server, session)
            #expect(found == (isFollowed ? "/next" : "long"))
            #expect(server.requests.map(\.path).prefix(2) == ["/long", "/own"])
        }
    }

    @Test(arguments: ["404 No", "200 OK"])
    func `counts again once the task gets it`(status: String) async throws {
        let seen = Locked(0)
        try await withPlace(Self.answer(status)) { configuration, _, _ in
            configuration.interceptor = Retrier { _, _, _ in
                seen.withLock { $0 += 1 }
                return .doNotRetry
            }
        } _: { server, session in
            let first = try await session.response(for: try HTTPRequest(.get, "\(server.url)/long"))
            #expect(seen.withLock { $0 } == 1)
            var options = RequestOptions()
            options.timeout = .milliseconds(1)
            // It has the only place.
            let error = await failure {
                _ = try await session.data(
                    for: try HTTPRequest(.get, "\(server.url)/waits"), options: options)
            }
            #expect(error?.underlying is QueueTimeoutError)
            #expect(server.requests.map(\.path) == ["/long"])
            #expect(try await first.content.collect(atMost: Self.length).count == Self.length)
            #expect(try await text("/last", server, session) == "/last")
        }
    }
}
