import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

/// Records the challenges that hooks in tests receive, and answers them.
final class HookLog: Sendable {
    private let asked = Locked<[AuthenticationChallenge]>([])

    /// The challenges for credentials.
    var challenges: [AuthenticationChallenge] { asked.withLock { $0 } }

    func hook(
        _ answer: @escaping @Sendable (AuthenticationChallenge) async -> ChallengeDisposition
    ) -> ChallengeHook {
        { [asked] challenge in
            asked.withLock { $0.append(challenge) }
            return await answer(challenge)
        }
    }
}

extension SessionConfiguration {
    static func patient(challenges: ChallengeHook?) -> SessionConfiguration {
        var configuration = SessionConfiguration.patient
        configuration.challenges = challenges
        return configuration
    }
}

@Suite("Challenges of servers")
struct ChallengeTests {
    private static let right = Credential(user: "Aladdin", password: "open sesame")
    private static let field = "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="

    /// Requires a user's Basic credentials.
    private static func guarding(
        _ challenge: String = "Basic realm=\"cave\""
    ) -> TestServer.Answer {
        { connection, request in
            if request.field("authorization") == field {
                connection.respond("200 OK", [], "\(request.startLine) \(request.text)")
            } else {
                connection.respond("401 Who", ["WWW-Authenticate: \(challenge)"], "who?")
            }
            return true
        }
    }

    @Test func `call the hook once, and later requests carry the answer`() async throws {
        let log = HookLog()
        try await withServer(Self.guarding()) { server, runtime in
            let session = try SessionManager(
                configuration: .patient(challenges: log.hook { _ in .useCredential(Self.right) }),
                runtime: runtime)
            let first = try await session.data(for: try HTTPRequest(.get, "\(server.url)/a/b"))
            #expect(first.text == "GET /a/b HTTP/1.1 ")
            #expect(first.metrics.transactions.map(\.status) == [401, 200])
            // The request that a task exposes has no credentials.
            #expect(first.request.headerFields[.authorization] == nil)
            let second = try await session.data(for: try HTTPRequest(.get, "\(server.url)/a/c"))
            #expect(second.metrics.transactions.map(\.status) == [200])
            #expect(server.requests.map(\.path) == ["/a/b", "/a/b", "/a/c"])
            let challenge = try #require(log.challenges.first)
            #expect(log.challenges.count == 1)
            #expect(challenge.protectionSpace == (try ProtectionSpace(server.url, realm: "cave")))
            #expect(challenge.method == .basic && challenge.previousFailureCount == 0)
            #expect(challenge.rejectedCredential == nil && challenge.response?.status.code == 401)
            #expect(challenge.request?.url == "\(server.url)/a/b")
            #expect(session.credentials.credential(for: challenge.protectionSpace) == Self.right)
        }
    }

    @Test func `are answered with stored credentials without a hook`() async throws {
        try await withServer(Self.guarding()) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.post, server.url)
            #expect(try await session.data(for: request).head.status.code == 401)
            session.credentials.set(
                Self.right, for: try ProtectionSpace(server.url, realm: "cave"))
            let response = try await session.data(for: request, content: .text("content"))
            #expect(response.text == "POST / HTTP/1.1 content")
            session.credentials.removeAll()
            #expect(try await session.data(for: request).head.status.code == 401)
        }
    }

    @Test func `of a wrong password end with the response`() async throws {
        let wrong = Credential(user: "Aladdin", password: "close")
        let log = HookLog()
        try await withServer(Self.guarding()) { server, runtime in
            let session = try SessionManager(
                configuration: .patient(challenges: log.hook { _ in .useCredential(wrong) }),
                runtime: runtime)
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.head.status.code == 401)
            #expect(response.text == "who?")
            // A rejected credential is not sent again.
            #expect(server.requests.count == 2)
            #expect(log.challenges.map(\.previousFailureCount) == [0, 1])
            #expect(log.challenges.map(\.rejectedCredential) == [nil, wrong])
            let space = try ProtectionSpace(server.url, realm: "cave")
            #expect(session.credentials.credential(for: space) == nil)
        }
    }

    @Test func `end after a maximum of rounds, whatever the hook answers`() async throws {
        let log = HookLog()
        let hook = log.hook { challenge in
            .useCredential(Credential(user: "u", password: "\(challenge.previousFailureCount)"))
        }
        try await withServer(Self.guarding()) { server, runtime in
            let session = try SessionManager(
                configuration: .patient(challenges: hook), runtime: runtime)
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.head.status.code == 401)
            #expect(server.requests.count == AttemptRules.maximumChallenges + 1)
            #expect(
                log.challenges.map(\.previousFailureCount)
                    == Array(0..<AttemptRules.maximumChallenges))
        }
    }

    @Test func `end if every nonce is stale`() async throws {
        let nonces = Locked(0)
        try await withServer { connection, _ in
            let number = nonces.withLock { nonces in
                nonces += 1
                return nonces
            }
            let fields = "realm=r, nonce=n\(number), qop=auth, stale=true"
            connection.respond("401 Who", ["WWW-Authenticate: Digest \(fields)"])
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            session.credentials.set(Self.right, for: try ProtectionSpace(server.url, realm: "r"))
            let response = try await session.data(for: try HTTPRequest(.get, "\(server.url)/a?b"))
            #expect(response.head.status.code == 401)
            #expect(server.requests.count == 4)
            // The target is that of the request line.
            #expect(server.requests[1].field("authorization")?.contains("uri=\"/a?b\"") ?? false)
        }
    }

    @Test func `are answered with the nonce that a response named`() async throws {
        try await withServer { connection, request in
            if request.field("authorization") == nil {
                connection.respond("401 Who", ["WWW-Authenticate: Digest realm=r, nonce=n1"])
            } else {
                connection.respond("200 OK", ["Authentication-Info: nextnonce=\"n2\""])
            }
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            session.credentials.set(Self.right, for: try ProtectionSpace(server.url, realm: "r"))
            for _ in 0..<2 {
                let response = try await session.data(for: try HTTPRequest(.get, server.url))
                #expect(response.head.status == .ok)
            }
            let nonces = server.requests.map { request in
                request.field("authorization").map { $0.contains("nonce=\"n2\"") ? 2 : 1 }
            }
            #expect(nonces == [nil, 1, 2])
        }
    }

    @Test(arguments: [
        (ChallengeDisposition.performDefaultHandling, 1), (.rejectProtectionSpace, 2),
    ])
    func `that are not answered result in the response`(
        disposition: ChallengeDisposition, count: Int
    ) async throws {
        let log = HookLog()
        let server = Self.guarding("Digest realm=d, nonce=n, qop=auth, Basic realm=\"cave\"")
        try await withServer(server) { server, runtime in
            let session = try SessionManager(
                configuration: .patient(challenges: log.hook { _ in disposition }),
                runtime: runtime)
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.text == "who?")
            #expect(server.requests.count == 1)
            let methods = log.challenges.map(\.method)
            #expect(methods == Array([.digest, .basic].prefix(count)))
        }
    }

    @Test func `can be answered by the weaker of two schemes`() async throws {
        let log = HookLog()
        let server = Self.guarding("Digest realm=cave, nonce=n, qop=auth, Basic realm=\"cave\"")
        try await withServer(server) { server, runtime in
            let session = try SessionManager(
                configuration: .patient(
                    challenges: log.hook {
                        $0.method == .basic ? .useCredential(Self.right) : .rejectProtectionSpace
                    }), runtime: runtime)
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.head.status.code == 200)
        }
    }

    @Test func `can be cancelled, and the task with them`() async throws {
        let log = HookLog()
        try await withServer(Self.guarding()) { server, runtime in
            let session = try SessionManager(
                configuration: .patient(challenges: log.hook { _ in .cancel }), runtime: runtime)
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(error?.reason == .cancelled)
            #expect(error?.url == "\(server.url)/")
        }
    }

    @Test func `of many simultaneous requests call the hook once`() async throws {
        let log = HookLog()
        let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self)
        let guarding = Self.guarding()
        try await withServer { connection, request in
            if request.field("authorization") == nil { arrived.yield() }
            return guarding(connection, request)
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient(
                challenges: log.hook { _ in
                    // The others are on their way.
                    var count = 0
                    for await _ in arrivals {
                        count += 1
                        if count == 20 { break }
                    }
                    return .useCredential(Self.right)
                })
            configuration.maximumRequestsPerOrigin = 20
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        try await session.data(for: try HTTPRequest(.get, server.url)).head.status
                            .code
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses == Array(repeating: 200, count: 20))
            #expect(log.challenges.count == 1)
        }
    }

    @Test func `are prompted for again if the credential is for one task`() async throws {
        let log = HookLog()
        var credential = Self.right
        credential.persistence = .none
        let hook = log.hook { [credential] _ in .useCredential(credential) }
        try await withServer(Self.guarding()) { server, runtime in
            let session = try SessionManager(
                configuration: .patient(challenges: hook), runtime: runtime)
            for _ in 0..<2 {
                let response = try await session.data(for: try HTTPRequest(.get, server.url))
                #expect(response.head.status.code == 200)
            }
            #expect(log.challenges.count == 2)
            let space = try ProtectionSpace(server.url, realm: "cave")
            #expect(session.credentials.credential(for: space) == nil)
        }
    }

    @Test func `cancel the hook when the last waiting task is cancelled`() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let hook: ChallengeHook = { _ in
            begin.yield()
            // Waits until it is cancelled.
            for await _ in AsyncStream<Void>.makeStream().stream {}
            end.yield()
            return .cancel
        }
        try await withServer(Self.guarding()) { server, runtime in
            let session = try SessionManager(
                configuration: .patient(challenges: hook), runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            let task = Task {
                await failure { _ = try await session.data(for: request) }
            }
            for await _ in begun { break }
            task.cancel()
            #expect(await task.value?.reason == .cancelled)
            for await _ in ended { break }
        }
    }

    @Test func `leave an Authorization field of the caller as it is`() async throws {
        let log = HookLog()
        try await withServer(Self.guarding()) { server, runtime in
            let session = try SessionManager(
                configuration: .patient(challenges: log.hook { _ in .useCredential(Self.right) }),
                runtime: runtime)
            let request = try HTTPRequest(.get, server.url, fields: [.authorization: "Bearer x"])
            #expect(try await session.data(for: request).head.status.code == 401)
            #expect(log.challenges.isEmpty)
        }
    }

    @Test func `belong to a single origin, also after a redirect`() async throws {
        try await withServer(Self.guarding("Basic realm=\"other\"")) { other, _ in
            try await withServer { connection, request in
                if request.field("authorization") == Self.field {
                    connection.respond("302 Found", ["Location: \(other.url)/x"])
                } else {
                    connection.respond("401 Who", ["WWW-Authenticate: Basic realm=\"cave\""])
                }
                return true
            } _: { server, runtime in
                let session = try SessionManager(configuration: .patient, runtime: runtime)
                session.credentials.set(
                    Self.right, for: try ProtectionSpace(server.url, realm: "cave"))
                // A realm with the same name is a different one.
                session.credentials.set(
                    Credential(user: "x", password: "y"),
                    for: try ProtectionSpace(server.url, realm: "other"))
                let response = try await session.data(for: try HTTPRequest(.get, server.url))
                #expect(response.head.status.code == 401)
                #expect(response.request.url == "\(other.url)/x")
                #expect(other.requests.map { $0.field("authorization") } == [nil])
            }
        }
    }

    @Test func `of redirect targets reach the hook, too, and are distinguished by their space`()
        async throws
    {
        let log = HookLog()
        try await withServer(Self.guarding()) { other, _ in
            try await withServer { connection, request in
                connection.respond("302 Found", ["Location: \(other.url)/b"])
                return true
            } _: { server, runtime in
                let url = server.url
                let hook = log.hook { challenge in
                    let own = try? ProtectionSpace(url, realm: challenge.protectionSpace.realm)
                    guard challenge.protectionSpace == own else { return .rejectProtectionSpace }
                    return .useCredential(Self.right)
                }
                let session = try SessionManager(
                    configuration: .patient(challenges: hook), runtime: runtime)
                let response = try await session.data(for: try HTTPRequest(.get, "\(url)/a"))
                #expect(response.head.status.code == 401)
                let spaces = log.challenges.map(\.protectionSpace)
                #expect(spaces.map { "\($0.scheme)://\($0.host):\($0.port)" } == [other.url])
                #expect(other.requests.map { $0.field("authorization") } == [nil])
            }
        }
    }

    @Test(
        arguments: [
            ("Basic realm=\"cave", true), ("Digest realm=\"cave\" nonce", true),
            ("Bearer realm=\"x\"; error=y", false), ("=", false),
        ])
    func `that cannot be parsed are an error if there are credentials, otherwise a response`(
        challenge: String, isError: Bool
    ) async throws {
        let log = HookLog()
        try await withServer(Self.guarding(challenge)) { server, runtime in
            let request = try HTTPRequest(.get, server.url)
            var configuration = SessionConfiguration.patient
            configuration.challenges = log.hook { _ in .performDefaultHandling }
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            // A hook alone, and credentials for another server.
            #expect(try await session.data(for: request).text == "who?")
            session.credentials.set(
                Self.right, for: try ProtectionSpace("http://other.test:1/", realm: "cave"))
            #expect(try await session.data(for: request).head.status.code == 401)
            session.credentials.set(
                Self.right, for: try ProtectionSpace(server.url, realm: "another"))
            if isError {
                let error = await failure { _ = try await session.data(for: request) }
                #expect(error?.reason == .authenticationFailed)
                #expect(error?.explanation.contains(challenge) == true)
            } else {
                #expect(try await session.data(for: request).text == "who?")
            }
            #expect(log.challenges.isEmpty)
            #expect(server.requests.allSatisfy { $0.field("authorization") == nil })
        }
    }

    @Test func `of credentials that cannot be sent are an error`() async throws {
        try await withServer(Self.guarding()) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            session.credentials.set(
                Credential(user: "a:b", password: ""),
                for: try ProtectionSpace(server.url, realm: "cave"))
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(error?.reason == .authenticationFailed)
        }
    }
}

@Suite("Credentials and where they are valid")
struct CredentialTests {
    @Test func `do not appear in descriptions`() {
        let credential = Credential(user: "u", password: "secret")
        #expect("\(credential)" == "Credential(user: u)")
        #expect(!String(reflecting: credential).contains("secret"))
        var dumped = ""
        dump(credential, to: &dumped)
        #expect(!dumped.contains("secret"))
    }

    @Test func `belong to an origin`() throws {
        let space = try ProtectionSpace("https://[::1]:8443/a?b", realm: "r")
        #expect(space.host == "::1" && space.port == 8443 && space.scheme == "https")
        let other = try ProtectionSpace("HTTP://Example.com", realm: "r")
        #expect(other.host == "example.com" && other.port == 80)
        for url in ["example.com", "ftp://example.com", "http://u@example.com", "http://"] {
            #expect(throws: ClientError.self, "\(url)") { try ProtectionSpace(url, realm: "") }
        }
    }
}
