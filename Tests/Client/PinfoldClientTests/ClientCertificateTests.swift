import HTTPTypes
import PinfoldTLS
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("A session's client certificates")
struct ClientCertificateTests {
    private static let known = TestAuthority.makePEM(name: "known")
    private static let unknown = TestAuthority.makePEM(name: "unknown")

    /// Sends a request to a server that requires a certificate of ``known``.
    private func ask(_ certificates: [ClientCertificate]) async throws -> ClientError? {
        var error: ClientError?
        let context = try TestAuthority.server(
            askingForClientsOf: TestAuthority.certificate(of: Self.known))
        try await withServer(context: context) { connection, _ in
            connection.respond("200 OK", [], "secret")
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.securityPolicy = try TestAuthority.policy()
            configuration.clientCertificates = certificates
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            error = await failure {
                let response = try await session.data(for: try HTTPRequest(.get, server.url))
                #expect(response.text == "secret")
            }
        }
        return error
    }

    private func certificate(
        _ pem: [UInt8] = Self.known, for hosts: [String] = ["127.0.0.1"]
    ) throws -> ClientCertificate {
        try ClientCertificate(certificates: pem, key: pem, hosts: hosts)
    }

    @Test func `are presented to their hosts`() async throws {
        #expect(try await ask([certificate()]) == nil)
        #expect(
            try await ask([
                certificate(Self.unknown, for: ["*.example.com", "127.0.0.1:1"]), certificate(),
            ]) == nil)
    }

    @Test func `are presented to no other host`() async throws {
        let error = try await ask([certificate(for: ["**.example.com", "127.0.0.1:1"])])
        #expect(error?.reason == .clientCertificateRequired)
        #expect(error?.token == "tls-client-certificate-required")
    }

    @Test func `are rejected by a server that does not know them`() async throws {
        let error = try await ask([certificate(Self.unknown)])
        #expect(error?.reason == .clientCertificateRejected)
    }

    @Test func `come from files, too`() async throws {
        let folder = TemporaryFolder()
        try folder.write(String(decoding: Self.known, as: UTF8.self), to: "both.pem")
        let certificate = try ClientCertificate(
            certificatePath: folder.file("both.pem"), hosts: ["127.0.0.1"])
        #expect(try await ask([certificate]) == nil)
        #expect("\(certificate)" == "ClientCertificate(127.0.0.1)")
        var dumped = ""
        dump(certificate, to: &dumped)
        #expect(dumped.utf8.count < 200)
    }

    @Test func `report what is wrong with them`() throws {
        let folder = TemporaryFolder()
        func text(_ make: () throws -> ClientCertificate) -> String {
            do {
                _ = try make()
                return "nothing"
            } catch {
                #expect((error as? ClientError)?.reason == .invalidClientCertificate)
                return "\(error)"
            }
        }
        #expect(
            text { try certificate(for: []) }
                == "the certificate has no hosts; expected at least one")
        #expect(
            text { try certificate(for: ["*"]) }
                == "the host pattern *: a wildcard needs a domain after it, as in '*.example.com'")
        #expect(text { try certificate([]) } == "no unencrypted private key in PEM")
        #expect(
            text {
                try ClientCertificate(
                    certificates: Self.known, key: Self.unknown, hosts: ["a.test"])
            }.hasPrefix("the certificate and the key cannot be used"))
        let missing = folder.file("missing.pem")
        #expect(
            text { try ClientCertificate(certificatePath: missing, hosts: ["a.test"]) }
                .contains(missing))
    }
}

@Suite("The trust in servers, reviewed by a hook")
struct ServerTrustTests {
    private func ask(
        _ policy: SecurityPolicy, _ hook: @escaping ChallengeHook
    ) async throws -> (error: ClientError?, requests: Int) {
        var result: (ClientError?, Int) = (nil, 0)
        try await withServer(secure: true) { connection, _ in
            connection.respond("200 OK", [], "secret")
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient(challenges: hook)
            configuration.securityPolicy = policy
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let error = await failure {
                for _ in 0..<2 {
                    let response = try await session.data(for: try HTTPRequest(.get, server.url))
                    #expect(response.text == "secret")
                }
            }
            result = (error, server.requests.count)
        }
        return result
    }

    @Test func `is reviewed once for a connection, with the verified chain`() async throws {
        let log = HookLog()
        let (error, requests) = try await ask(
            try TestAuthority.policy(), log.hook { _ in .performDefaultHandling })
        #expect(error == nil && requests == 2)
        let challenge = try #require(log.challenges.first)
        #expect(log.challenges.count == 1)
        #expect(challenge.method == .serverTrust && challenge.response == nil)
        let space = challenge.protectionSpace
        #expect(space.host == "127.0.0.1" && space.scheme == "https")
        let trust = try #require(challenge.serverTrust)
        let own = try CertificatePin.pins(in: TestAuthority.certificate).compactMap(\.certificate)
        #expect(trust.certificates == own)
        // In the form in which it can be pinned.
        var policy = try TestAuthority.policy()
        policy.mode = .publicKey
        policy.pins = try trust.pins.map { try CertificatePin($0) }
        #expect(try await ask(policy) { _ in .performDefaultHandling }.error == nil)
    }

    @Test(arguments: [
        ChallengeDisposition.cancel, .rejectProtectionSpace,
        .useCredential(Credential(user: "u", password: "p")),
    ])
    func `ends before anything is sent, if the hook does not confirm it`(
        disposition: ChallengeDisposition
    ) async throws {
        let (error, requests) = try await ask(try TestAuthority.policy()) { _ in disposition }
        #expect(error?.reason == .secureConnectionFailed)
        #expect(error?.token == "server-trust-refused")
        #expect(requests == 0)
    }

    @Test func `cannot be granted by a hook if the policy does not grant it`() async throws {
        let log = HookLog()
        let (error, requests) = try await ask(
            .default, log.hook { _ in .performDefaultHandling })
        #expect(error?.reason == .secureConnectionFailed)
        #expect(error?.token != "server-trust-refused")
        #expect(requests == 0 && log.challenges.isEmpty)
    }

    @Test func `is decided by the hook alone if so configured`() async throws {
        var policy = SecurityPolicy()
        policy.allowsInvalidCertificates = true
        policy.validatesDomainName = false
        let log = HookLog()
        #expect(
            try await ask(policy, log.hook { _ in .performDefaultHandling }).error == nil)
        let own = try CertificatePin.pins(in: TestAuthority.certificate).compactMap(\.certificate)
        #expect(log.challenges.first?.serverTrust?.certificates == own)
        #expect(try await ask(policy) { _ in .cancel }.requests == 0)
    }

    @Test func `is no longer reviewed when the session ends`() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        try await withServer(secure: true) { _, _ in
            false
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient(challenges: { _ in
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
