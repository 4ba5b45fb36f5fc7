import HTTPTypes
import PinfoldTLS
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("A challenge for the client's certificate")
struct CertificateChallengeTests {
    private static let known = TestAuthority.makePEM(name: "known")
    private static let unknown = TestAuthority.makePEM(name: "unknown")

    private struct Outcome {
        var error: ClientError?
        var requests = 0
        var connections = 0
    }

    /// Sends two requests to a server that requires a certificate of ``known``.
    private func ask(
        _ hook: @escaping ChallengeHook,
        _ change: (inout SessionConfiguration) throws -> Void = {
            $0.securityPolicy = try TestAuthority.policy()
        }
    ) async throws -> Outcome {
        var outcome = Outcome()
        let context = try TestAuthority.server(
            askingForClientsOf: TestAuthority.certificate(of: Self.known))
        try await withServer(context: context) { connection, _ in
            connection.respond("200 OK", [], "secret")
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient(challenges: hook)
            try change(&configuration)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            outcome.error = await failure {
                for _ in 0..<2 {
                    let response = try await session.data(for: try HTTPRequest(.get, server.url))
                    #expect(response.text == "secret")
                }
            }
            outcome.requests = server.requests.count
            outcome.connections = server.connections
        }
        return outcome
    }

    private func certificate(
        _ pem: [UInt8] = Self.known, for hosts: [String] = ["127.0.0.1"]
    ) throws -> ClientCertificate {
        try ClientCertificate(certificates: pem, key: pem, hosts: hosts)
    }

    /// Trusts every server, and responds to a challenge for a certificate.
    private func showing(_ disposition: ChallengeDisposition) -> ChallengeHook {
        { $0.method == .clientCertificate ? disposition : .performDefaultHandling }
    }

    @Test func `comes once for a connection, after the one for the server's trust`() async throws {
        let log = HookLog()
        let certificate = try certificate()
        let outcome = try await ask(log.hook(showing(.useCertificate(certificate))))
        #expect(outcome.error == nil && outcome.requests == 2 && outcome.connections == 1)
        #expect(log.challenges.map(\.method) == [.serverTrust, .clientCertificate])
        let challenge = try #require(log.challenges.last)
        let space = challenge.protectionSpace
        #expect(space.host == "127.0.0.1" && space.scheme == "https")
        #expect(challenge.response == nil && challenge.request == nil)
        let own = try CertificatePin.pins(in: TestAuthority.certificate).compactMap(\.certificate)
        #expect(challenge.serverTrust?.certificates == own)
        // CN=known.
        #expect(challenge.acceptedAuthorities.count == 1)
        #expect(challenge.acceptedAuthorities.allSatisfy { $0.contains(Array("known".utf8)) })
        #expect(log.challenges.first?.acceptedAuthorities == [])
    }

    @Test(arguments: [
        ChallengeDisposition.performDefaultHandling, .rejectProtectionSpace,
        .useCredential(Credential(user: "u", password: "p")),
    ])
    func `presents no certificate if the hook has none`(disposition: ChallengeDisposition)
        async throws
    {
        let outcome = try await ask(showing(disposition))
        #expect(outcome.error?.reason == .clientCertificateRequired)
        #expect(outcome.requests == 0)
    }

    @Test func `presents a certificate to its hosts only`() async throws {
        let certificate = try certificate(for: ["**.example.com", "127.0.0.1:1"])
        let outcome = try await ask(showing(.useCertificate(certificate)))
        #expect(outcome.error?.reason == .clientCertificateRequired)
    }

    @Test func `reports that the server does not know the certificate`() async throws {
        let certificate = try certificate(Self.unknown)
        let outcome = try await ask(showing(.useCertificate(certificate)))
        #expect(outcome.error?.reason == .clientCertificateRejected)
    }

    @Test func `ends the connection if the hook cancels`() async throws {
        let outcome = try await ask(showing(.cancel))
        #expect(outcome.error?.reason == .secureConnectionFailed)
        #expect(outcome.requests == 0)
    }

    @Test func `does not come if the hook rejects the server`() async throws {
        let log = HookLog()
        let outcome = try await ask(log.hook { _ in .cancel })
        #expect(outcome.error?.token == "server-trust-refused" && outcome.requests == 0)
        #expect(log.challenges.map(\.method) == [.serverTrust])
    }

    @Test func `does not come if the policy rejects the server`() async throws {
        let log = HookLog()
        let outcome = try await ask(log.hook { _ in .performDefaultHandling }) { _ in }
        #expect(outcome.error?.reason == .secureConnectionFailed)
        #expect(log.challenges.isEmpty)
    }

    @Test func `does not come if the session has a certificate for the host`() async throws {
        let log = HookLog()
        let outcome = try await ask(log.hook { _ in .performDefaultHandling }) {
            $0.securityPolicy = try TestAuthority.policy()
            $0.clientCertificates = [try certificate()]
        }
        #expect(outcome.error == nil)
        #expect(log.challenges.map(\.method) == [.serverTrust])
    }

    @Test func `does not answer a challenge for a password`() async throws {
        let certificate = try certificate()
        try await withServer { connection, _ in
            connection.respond("401 Who", ["WWW-Authenticate: Basic realm=r"])
            return true
        } _: { server, runtime in
            let session = try SessionManager(
                configuration: .patient(challenges: { _ in .useCertificate(certificate) }),
                runtime: runtime)
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.head.status == .unauthorized)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `is no longer reviewed when the session ends`() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let context = try TestAuthority.server(
            askingForClientsOf: TestAuthority.certificate(of: Self.known))
        try await withServer(context: context) { _, _ in
            false
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient(challenges: { challenge in
                guard challenge.method == .clientCertificate else {
                    return .performDefaultHandling
                }
                begin.yield()
                for await _ in AsyncStream<Void>.makeStream().stream {}
                end.yield()
                return .performDefaultHandling
            })
            configuration.securityPolicy = try TestAuthority.policy()
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            let task = Task { await failure { _ = try await session.data(for: request) } }
            for await _ in begun { break }
            session.invalidate(cancelling: true)
            #expect(await task.value?.reason == .sessionInvalidated)
            for await _ in ended { break }
        }
    }
}
