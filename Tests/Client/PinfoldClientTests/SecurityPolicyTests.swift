import HTTPTypes
import Testing

@testable import PinfoldClient
@testable import PinfoldEngine
@testable import PinfoldTLS

@Suite("A session's security policy")
struct SecurityPolicyTests {
    private func ask(_ policy: SecurityPolicy, secure isSecure: Bool = true) async throws
        -> ClientError?
    {
        var error: ClientError?
        try await withServer(secure: isSecure) { connection, _ in
            connection.respond("200 OK", [], "secret")
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.securityPolicy = policy
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            error = await failure {
                let response = try await session.data(for: try HTTPRequest(.get, server.url))
                #expect(response.text == "secret")
                #expect((response.metrics.transactions[0].handshake != nil) == isSecure)
            }
            // Nothing is sent to a server that is not trusted.
            #expect(server.requests.count == (error == nil ? 1 : 0))
        }
        return error
    }

    @Test(arguments: [false, true])
    func `costs nothing until TLS is used with a server`(isSecure: Bool) async throws {
        try await withServer(secure: isSecure) { connection, _ in
            connection.respond("200 OK", [])
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.securityPolicy = try TestAuthority.policy()
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let context = session.policy.tls(entryIndex: 0)
            #expect(!context.hasLibrary)
            _ = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(context.hasLibrary == isSecure)
            #expect(!session.policy.tls(entryIndex: nil).hasLibrary)
        }
    }

    @Test func `trusts a private authority if configured`() async throws {
        #expect(try await ask(try TestAuthority.policy()) == nil)
    }

    @Test func `trusts no other server`() async throws {
        let error = try await ask(.default)
        #expect(error?.reason == .secureConnectionFailed)
        #expect(error?.host == "127.0.0.1")
    }

    @Test func `accepts a pinned certificate and no other`() async throws {
        var policy = try TestAuthority.policy()
        policy.mode = .certificate
        policy.pins = try CertificatePin.pins(in: TestAuthority.certificate)
        #expect(try await ask(policy) == nil)
        policy.mode = .publicKey
        #expect(try await ask(policy) == nil)
        policy.pins = [try CertificatePin("sha256/" + String(repeating: "A", count: 43) + "=")]
        let error = try await ask(policy)
        #expect(error?.reason == .secureConnectionFailed)
        #expect(error?.token == "tls-no-pin-matches")
        let presented = try #require(error?.presentedPins.first)
        policy.pins = [try CertificatePin(presented)]
        #expect(try await ask(policy) == nil)
    }

    @Test func `with pins refuses clear text`() async throws {
        var policy = try TestAuthority.policy()
        policy.mode = .publicKey
        policy.pins = try CertificatePin.pins(in: TestAuthority.certificate)
        #expect(try await ask(policy, secure: false)?.reason == .clearTextRefused)
    }

    @Test func `without pins allows clear text`() async throws {
        var policy = SecurityPolicy.default
        policy.validatesDomainName = false
        #expect(try await ask(policy, secure: false) == nil)
        policy.allowsInvalidCertificates = true
        #expect(try await ask(policy, secure: false) == nil)
    }

    @Test func `that would reject every server is refused immediately`() throws {
        var configuration = SessionConfiguration.patient
        configuration.securityPolicy = SecurityPolicy(mode: .publicKey)
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        let error = #expect(throws: ClientError.self) {
            _ = try SessionManager(configuration: configuration, runtime: runtime)
        }
        #expect(error?.reason == .invalidSecurityPolicy)
    }
}
