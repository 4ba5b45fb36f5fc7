import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

/// Adapters are asked again before the answer to a challenge is sent.
@Suite("The answer to a challenge of a request that is adapted")
struct AdaptedChallengeTests {
    private static let right = Credential(user: "Aladdin", password: "open sesame")
    private static let wrong = Credential(user: "x", password: "y")
    private static let challenge = "Digest realm=cave, nonce=n, qop=auth, algorithm=SHA-256"

    /// An adapter that knows how often it was asked before.
    private static func counting(
        _ body: @escaping @Sendable (inout HTTPRequest, Int) throws -> Void
    ) -> Adapter {
        let count = Locked(0)
        return Adapter { request, _ in
            let number = count.withLock { count in
                defer { count += 1 }
                return count
            }
            var request = request
            try body(&request, number)
            return request
        }
    }

    @Test(arguments: ["Basic realm=cave", challenge])
    func `is not sent to another origin, which gets its own`(challenge: String) async throws {
        let answer: TestServer.Answer = { connection, request in
            connection.respond("401 Who", ["WWW-Authenticate: \(challenge)"], "who?")
            return true
        }
        try await withServer(answer) { other, _ in
            try await withServer(answer) { server, runtime in
                let authority = try HTTPRequest(.get, other.url).authority
                var configuration = SessionConfiguration.patient
                configuration.interceptor = Self.counting { request, number in
                    if number > 0 { request.authority = authority }
                }
                let session = try SessionManager(configuration: configuration, runtime: runtime)
                session.credentials.set(
                    Self.right, for: try ProtectionSpace(server.url, realm: "cave"))
                session.credentials.set(
                    Self.wrong, for: try ProtectionSpace(other.url, realm: "cave"))
                let response = try await session.data(for: try HTTPRequest(.get, server.url))
                #expect(response.request.url == "\(other.url)/")
                #expect(server.requests.count == 1)
                let fields = other.requests.map { $0.field("authorization") }
                #expect(fields.count == 2)
                #expect(fields.first == .some(nil))
                let own = try Self.wrong.credentials.basic()
                if challenge.hasPrefix("Basic") { #expect(fields.last == own) }
                // Only the other server has refused one.
                let spaces = try [server.url, other.url].map {
                    try ProtectionSpace($0, realm: "cave")
                }
                #expect(
                    spaces.map { session.credentials.credential(for: $0) } == [Self.right, nil])
            }
        }
    }

    /// Whether a request proves knowledge of the password, for its own method and target and as the
    /// first one with the nonce.
    private static func isRight(_ request: TestRequest) -> Bool {
        let parts = request.startLine.split(separator: " ").map(String.init)
        guard let field = request.field("authorization"),
            let sent = try? HTTPChallenge.parse(field).first?.parameters,
            let challenge = try? HTTPChallenge.parse(challenge).first.flatMap({
                DigestChallenge($0)
            })
        else { return false }
        var session = DigestSession(challenge, clientNonce: sent["cnonce"] ?? "")
        let expected = try? session.authorization(
            method: parts[0], target: parts[1], credentials: right.credentials)
        return field == expected
    }

    @Test(arguments: [Credential.Persistence.forSession, .none])
    func `is for its target as it is then`(persistence: Credential.Persistence) async throws {
        try await withServer { connection, request in
            if Self.isRight(request) {
                connection.respond("200 OK", [], request.startLine)
            } else {
                connection.respond("401 Who", ["WWW-Authenticate: \(Self.challenge)"])
            }
            return true
        } _: { server, runtime in
            var credential = Self.right
            credential.persistence = persistence
            var configuration = SessionConfiguration.patient(
                challenges: { [credential] _ in .useCredential(credential) })
            configuration.interceptor = Self.counting { request, number in
                request.path = "/?signature=\(number)"
                if number > 0 { request.method = .head }
            }
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.head.status.code == 200)
            #expect(
                server.requests.map(\.startLine) == [
                    "GET /?signature=0 HTTP/1.1", "HEAD /?signature=1 HTTP/1.1",
                ])
            let space = try ProtectionSpace(server.url, realm: "cave")
            let kept = session.credentials.credential(for: space)
            #expect(kept == (persistence == .none ? nil : Self.right))
        }
    }

    @Test func `gives up after as many stale nonces as without`() async throws {
        let count = Locked(0)
        try await withServer { connection, _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            connection.respond(
                "401 Who",
                ["WWW-Authenticate: Digest realm=cave, nonce=n\(number), qop=auth, stale=true"])
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.interceptor = Self.counting { $0.path = "/\($1)" }
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let space = try ProtectionSpace(server.url, realm: "cave")
            session.credentials.set(Self.right, for: space)
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.head.status.code == 401)
            #expect(server.requests.count == 4)
            #expect(session.credentials.credential(for: space) == Self.right)
        }
    }
}
