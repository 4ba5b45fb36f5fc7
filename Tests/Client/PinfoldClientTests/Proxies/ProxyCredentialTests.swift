import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

/// Challenges by Digest, and accepts a limited number of requests for each nonce, numbered from 1
/// without gaps.
private final class StrictDigest: Sendable {
    private struct State {
        var nonce = 0
        /// The number of requests that were accepted with this nonce.
        var count = 0
        var wrong: [String] = []
    }

    private let requestsPerNonce: Int
    private let state = Locked(State())

    init(requestsPerNonce: Int) { self.requestsPerNonce = requestsPerNonce }

    /// Fields with neither an old nonce nor the expected value.
    var wrong: [String] { state.withLock { $0.wrong } }

    /// Returns the challenge to a request, or `nil` if it is accepted.
    func challenge(_ request: TestRequest) -> String? {
        state.withLock { state in
            let text =
                "Digest realm=\"office\", qop=\"auth\", algorithm=SHA-256, "
                + "nonce=\"n\(state.nonce)\""
            guard let field = request.field("proxy-authorization") else { return text }
            let sent = try? HTTPChallenge.parse(field)
            let own = sent?.first?.parameters ?? [:]
            if own["nonce"] != "n\(state.nonce)" || state.count == requestsPerNonce {
                state.nonce += 1
                state.count = 0
                return text.prefix { $0 != "," } + ", stale=true, qop=\"auth\", "
                    + "algorithm=SHA-256, nonce=\"n\(state.nonce)\""
            }
            guard field == expected(text, own["cnonce"] ?? "", state.count, request) else {
                state.wrong.append(field)
                return text
            }
            state.count += 1
            return nil
        }
    }

    /// The field of the next request with a nonce.
    private func expected(
        _ challenge: String, _ clientNonce: String, _ before: Int, _ request: TestRequest
    ) -> String? {
        let parts = request.startLine.split(separator: " ").map(String.init)
        let challenges = try? HTTPChallenge.parse(challenge)
        guard let digest = challenges?.first.flatMap({ DigestChallenge($0) }) else { return nil }
        var session = DigestSession(digest, clientNonce: clientNonce)
        var field: String?
        for _ in 0...before {
            field = try? session.authorization(
                method: parts[0], target: parts[1], credentials: ProxyScheme.user)
        }
        return field
    }
}

@Suite("Credentials for proxies")
struct ProxyCredentialTests {
    private typealias Space = PinfoldClient.ProtectionSpace

    private static let right = Credential(user: "Aladdin", password: "open sesame")

    /// A proxy that challenges as configured, and a server behind it.
    private func with(
        _ challenge: @escaping @Sendable (TestRequest) -> String?,
        _ body: (TestServer, TestServer, SessionManager) async throws -> Void
    ) async throws {
        let origin = try TestOrigin.server { connection, request in
            let field = request.field("proxy-authorization") ?? "none"
            connection.respond("200 OK", [], "\(request.content.count) \(field)")
            return true
        }
        let proxy = try TestServer { connection, request in
            if let challenge = challenge(request) {
                connection.respond("407 Who", ["Proxy-Authenticate: \(challenge)"])
                return !request.startLine.hasPrefix("CONNECT ")
            }
            guard request.startLine.hasPrefix("CONNECT ") else {
                let isOld = request.path.hasSuffix("/old")
                connection.respond(
                    isOld ? "302 Found" : "200 OK", isOld ? ["Location: https://origin.test/"] : [],
                    "\(request.content.count) \(request.field("proxy-authorization") ?? "none")")
                return true
            }
            connection.send("HTTP/1.1 200 Connection established\r\n\r\n")
            connection.relay(to: origin.endpoint)
            return false
        }
        let runtime = try ClientRuntime()
        defer {
            runtime.close()
            proxy.close()
            origin.close()
        }
        let session = try SessionManager(
            configuration: try .through(proxy, policy: try TestOrigin.policy(.none)),
            runtime: runtime)
        session.credentials.set(Self.right, for: Space(try Proxy(proxy.url), realm: "office"))
        try await body(proxy, origin, session)
    }

    @Test(arguments: ["http", "https"])
    func `count a nonce's requests from one, and take a new nonce when it is too old`(
        scheme: String
    ) async throws {
        let digest = StrictDigest(requestsPerNonce: 2)
        try await with(digest.challenge) { proxy, _, session in
            var attempts: [Int] = []
            for number in 1...5 {
                // Each has its own port, and so its own tunnel, if any.
                let request = try HTTPRequest(.get, "\(scheme)://origin.test:\(number)/a")
                let response = try await session.data(for: request)
                #expect(response.head.status.code == 200)
                attempts.append(response.metrics.transactions.count)
            }
            #expect(attempts == [2, 1, 2, 1, 2])
            #expect(digest.wrong == [])
        }
    }

    @Test(arguments: ["http", "https"])
    func `are not sent forever to a proxy that calls each nonce stale`(
        scheme: String
    ) async throws {
        let digest = StrictDigest(requestsPerNonce: 0)
        try await with(digest.challenge) { proxy, origin, session in
            let request = try HTTPRequest(.get, "\(scheme)://origin.test/a")
            if scheme == "http" {
                #expect(try await session.data(for: request).head.status.code == 407)
            } else {
                let error = await failure { _ = try await session.data(for: request) }
                #expect(error?.reason == .proxyAuthenticationRequired)
            }
            #expect(proxy.requests.count == 2 + Authenticator.maximumRenewals)
            #expect(origin.requests.isEmpty)
        }
    }

    @Test func `are sent to their proxy, and to no other`() async throws {
        let asks: @Sendable (TestRequest) -> String? = { request in
            request.field("proxy-authorization") == nil ? "Basic realm=\"office\"" : nil
        }
        try await with(asks) { first, _, session in
            let second = try TestServer { connection, _ in
                connection.respond("407 Who", ["Proxy-Authenticate: Basic realm=\"office\""])
                return true
            }
            defer { second.close() }
            var options = RequestOptions()
            options.proxies = .fixed(http: try Proxy(first.url), https: try Proxy(second.url))
            for path in ["a", "old"] {
                let request = try HTTPRequest(.get, "http://origin.test/\(path)")
                let error = await failure { [options] in
                    let response = try await session.data(for: request, options: options)
                    #expect(response.text == "0 Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
                }
                // The redirect leads through the second proxy, whose challenge is not answered.
                #expect(error?.reason == (path == "old" ? .proxyAuthenticationRequired : nil))
            }
            #expect(second.requests.map(\.startLine) == ["CONNECT origin.test:443 HTTP/1.1"])
            #expect(second.requests.allSatisfy { $0.field("proxy-authorization") == nil })
        }
    }

    @Test func `in a field set by the caller are not sent`() async throws {
        try await with { _ in
            nil
        } _: { proxy, origin, session in
            for scheme in ["http", "https"] {
                var request = try HTTPRequest(.get, "\(scheme)://origin.test/")
                request.headerFields[.proxyAuthorization] = "Basic YTpi"
                #expect(try await session.data(for: request).text == "0 none")
            }
            #expect(proxy.requests.allSatisfy { $0.field("proxy-authorization") == nil })
        }
        try await withServer { connection, _ in
            connection.respond()
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var request = try HTTPRequest(.get, server.url)
            request.headerFields[.proxyAuthorization] = "Basic YTpi"
            _ = try await session.data(for: request)
            #expect(server.requests.map { $0.field("proxy-authorization") } == [nil])
        }
    }

    @Test func `send the whole content again`() async throws {
        let digest = StrictDigest(requestsPerNonce: 1)
        try await with(digest.challenge) { proxy, origin, session in
            let content = [UInt8](repeating: 7, count: 300_000)
            for scheme in ["http", "https"] {
                let response = try await session.data(
                    for: try HTTPRequest(.post, "\(scheme)://origin.test/a"),
                    content: .bytes(content))
                #expect(response.text.hasPrefix("300000 "))
            }
            let counts = proxy.requests.map(\.content.count)
            #expect(counts == [300_000, 300_000, 0, 0])
            // No credentials are needed to request a tunnel.
            #expect(origin.requests.map(\.content.count) == [300_000])
        }
    }
}
