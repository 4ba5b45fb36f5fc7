import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

/// The authentication scheme of a proxy.
enum ProxyScheme: CaseIterable, Sendable {
    case basic, digest

    static let user = UserCredentials(user: "Aladdin", password: "open sesame")
    private static let digestChallenge =
        "Digest realm=\"office\", qop=\"auth\", algorithm=SHA-256, nonce=\"n1\""

    var challenge: String { self == .basic ? "Basic realm=\"office\"" : Self.digestChallenge }

    /// Whether a request proves knowledge of the user's password.
    func accepts(_ request: TestRequest) -> Bool {
        guard let field = request.field("proxy-authorization") else { return false }
        if self == .basic { return field == (try? Self.user.basic()) }
        let parts = request.startLine.split(separator: " ").map(String.init)
        guard field.hasPrefix("Digest "),
            let sent = try? HTTPChallenge.parse(field),
            let challenges = try? HTTPChallenge.parse(
                Self.digestChallenge),
            let challenge = challenges.first.flatMap({ DigestChallenge($0) }),
            let own = sent.first?.parameters, let count = Int(own["nc"] ?? "", radix: 16)
        else { return false }
        var session = DigestSession(challenge, clientNonce: own["cnonce"] ?? "")
        var expected: String?
        for _ in 0..<count {
            expected = try? session.authorization(
                method: parts[0], target: parts[1], credentials: Self.user)
        }
        return expected == field
    }

    /// A proxy that challenges each request, and serves the authenticated ones.
    func proxy(to origin: TestServer) throws -> TestServer {
        try TestServer { connection, request in
            guard accepts(request) else {
                connection.respond("407 Who", ["Proxy-Authenticate: \(challenge)"], "who?")
                return !request.startLine.hasPrefix("CONNECT ")
            }
            guard request.startLine.hasPrefix("CONNECT ") else {
                connection.respond("200 OK", [], "\(request.path) \(request.text)")
                return true
            }
            connection.send("HTTP/1.1 200 Connection established\r\n\r\n")
            connection.relay(to: origin.endpoint)
            return false
        }
    }
}

@Suite("A proxy that asks for credentials")
struct ProxyChallengeTests {
    private typealias Space = PinfoldClient.ProtectionSpace

    private static let right = Credential(user: "Aladdin", password: "open sesame")

    private func with(
        _ scheme: ProxyScheme, credentials: String = "", _ hook: ChallengeHook? = nil,
        _ body: (TestServer, TestServer, SessionManager) async throws -> Void
    ) async throws {
        let origin = try TestOrigin.server { connection, request in
            let field = request.field("proxy-authorization") ?? "none"
            if request.path == "/407" {
                connection.respond("407 Who", ["Proxy-Authenticate: \(scheme.challenge)"], "who?")
            } else {
                connection.respond("200 OK", [], "\(request.path) \(request.text)\(field)")
            }
            return true
        }
        let proxy = try scheme.proxy(to: origin)
        let runtime = try ClientRuntime()
        defer {
            runtime.close()
            proxy.close()
            origin.close()
        }
        var configuration = try SessionConfiguration.through(
            proxy, credentials: credentials, policy: try TestOrigin.policy(.none))
        configuration.challenges = hook
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        try await body(proxy, origin, session)
    }

    @Test func `with an unreadable challenge gives its 407 and the reason`() async throws {
        let proxy = try TestServer { connection, request in
            let challenge = "Proxy-Authenticate: Digest realm=\"office"
            connection.respond("407 Who", [challenge], "who?")
            return !request.startLine.hasPrefix("CONNECT ")
        }
        let runtime = try ClientRuntime()
        defer {
            runtime.close()
            proxy.close()
        }
        let configuration = try SessionConfiguration.through(proxy, credentials: "u:p@")
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        session.credentials.set(Self.right, for: Space(try Proxy(proxy.url), realm: "office"))
        let refused = await failure {
            _ = try await session.data(for: try HTTPRequest(.get, "https://origin.test/"))
        }
        #expect(refused?.reason == .proxyAuthenticationRequired)
        #expect(refused?.proxyResponse?.status.code == 407)
        #expect(refused?.explanation.contains("unterminated quoted string") == true)
        let answer = try await session.data(for: try HTTPRequest(.get, "http://origin.test/"))
        #expect(answer.head.status.code == 407 && answer.text == "who?")
    }

    @Test(arguments: ProxyScheme.allCases)
    func `receives the session's credentials for its tunnels`(scheme: ProxyScheme) async throws {
        try await with(scheme) { proxy, origin, session in
            let request = try HTTPRequest(.post, "https://origin.test/a")
            let refused = await failure { _ = try await session.data(for: request) }
            #expect(refused?.reason == .proxyAuthenticationRequired)
            session.credentials.set(
                Self.right, for: Space(try Proxy(proxy.url), realm: "office"))
            let asked = proxy.requests.count
            let response = try await session.data(for: request, content: .text("content "))
            // The server in the tunnel learns nothing of it.
            #expect(response.text == "/a content none")
            #expect(response.metrics.transactions.map(\.status) == [nil, 200])
            #expect(response.metrics.transactions.last?.cause == .challenge)
            #expect(proxy.requests.count == asked + 2)
            // Later ones are authenticated preemptively, if they need a new tunnel at all.
            #expect(try await session.data(for: request).text == "/a none")
            #expect(proxy.requests.count == asked + 2)
            let other = try HTTPRequest(.get, "https://other.test/b")
            #expect(try await session.data(for: other).metrics.transactions.count == 1)
            #expect(proxy.requests.count == asked + 3)
            // A server's own 407 does not call the hook.
            let odd = try HTTPRequest(.get, "https://origin.test/407")
            let answer = try await session.data(for: odd)
            #expect(answer.head.status.code == 407)
            #expect(answer.metrics.transactions.count == 1)
            #expect(origin.requests.count == 4)
        }
    }

    @Test(arguments: ProxyScheme.allCases)
    func `receives the session's credentials with forwarded requests`(scheme: ProxyScheme)
        async throws
    {
        try await with(scheme) { proxy, _, session in
            session.credentials.set(
                Self.right, for: Space(try Proxy(proxy.url), realm: "office"))
            let request = try HTTPRequest(.post, "http://origin.test/a?b=c")
            let first = try await session.data(for: request, content: .text("content"))
            #expect(first.text == "http://origin.test/a?b=c content")
            #expect(first.metrics.transactions.map(\.status) == [407, 200])
            let second = try await session.data(for: request)
            #expect(second.metrics.transactions.map(\.status) == [200])
            // Content that can be read only once is not sent again.
            session.credentials.removeAll()
            let parts = AsyncStream<[UInt8]> { continuation in
                continuation.yield([65])
                continuation.finish()
            }
            let once = try await session.data(for: request, content: .stream(parts))
            #expect(once.head.status.code == 407)
        }
    }

    @Test(arguments: ProxyScheme.allCases, [true, false])
    func `receives the hook's credentials`(scheme: ProxyScheme, isForSession: Bool) async throws {
        let log = HookLog()
        let hook = log.hook { challenge in
            guard challenge.method != .serverTrust else { return .performDefaultHandling }
            var credential = Self.right
            credential.persistence = isForSession ? .forSession : .none
            if challenge.previousFailureCount == 0 { credential.password = "close" }
            return .useCredential(credential)
        }
        try await with(scheme, hook) { proxy, _, session in
            for url in ["https://origin.test/a", "http://origin.test/a"] {
                let response = try await session.data(for: try HTTPRequest(.get, url))
                #expect(response.head.status.code == 200)
            }
            let challenges = log.challenges.filter { $0.method != .serverTrust }
            // The wrong one is rejected, and the hook called once more; for each task, if the
            // credential is not to be kept.
            #expect(
                challenges.map(\.previousFailureCount) == (isForSession ? [0, 1] : [0, 1, 0, 1]))
            let space = Space(try Proxy(proxy.url), realm: "office")
            #expect(challenges.allSatisfy { $0.protectionSpace == space })
            #expect(challenges.first?.response?.status.code == 407)
            let kept = session.credentials.credential(for: space)
            #expect(kept == (isForSession ? Self.right : nil))
        }
    }

    @Test func `receives the user given with it by Digest, for each task`() async throws {
        try await with(.digest, credentials: "Aladdin:open%20sesame@") { proxy, _, session in
            for url in ["https://origin.test/a", "http://origin.test/a"] {
                let response = try await session.data(for: try HTTPRequest(.get, url))
                #expect(response.head.status.code == 200)
                #expect(response.metrics.transactions.count == 2)
            }
            #expect(proxy.requests.count == 4)
        }
    }

    @Test func `rejects the user given with it, and is not asked again`() async throws {
        try await with(.basic, credentials: "Aladdin:close@") { proxy, _, session in
            let secure = try HTTPRequest(.get, "https://origin.test/a")
            let error = await failure { _ = try await session.data(for: secure) }
            #expect(error?.reason == .proxyAuthenticationRequired)
            #expect(proxy.requests.count == 1)
            let plain = try HTTPRequest(.get, "http://origin.test/a")
            #expect(try await session.data(for: plain).head.status.code == 407)
            #expect(proxy.requests.count == 2)
        }
    }
}
