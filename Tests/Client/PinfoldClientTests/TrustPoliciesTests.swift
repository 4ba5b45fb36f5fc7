import HTTPTypes
import PinfoldTLS
import Testing
import Trust

@testable import PinfoldClient

@Suite("Trust by host")
struct TrustPoliciesTests {
    private static let pins = ["A", "B", "C"].map {
        "sha256/\(String(repeating: $0, count: 42))A="
    }

    private static func pinned(_ index: Int) throws -> SecurityPolicy {
        SecurityPolicy(mode: .publicKey, pins: [try CertificatePin(pins[index])])
    }

    @Test func `is that of the first policy with a pattern for the host`() throws {
        var policies = TrustPolicies()
        try policies.add(try Self.pinned(0), for: ["api.example.com", "api.example.org:8443"])
        try policies.add(try Self.pinned(1), for: ["**.example.com"])
        for (host, port, index) in [
            ("api.example.com", 443, 0), ("API.example.com.", 443, 0), ("example.com", 443, 1),
            ("a.b.example.com", 80, 1), ("api.example.org", 8443, 0),
            ("api.example.org", 443, nil), ("example.net", 443, nil),
        ] as [(String, Int, Int?)] {
            let expected = try index.map { try Self.pinned($0) }
            #expect(policies.policy(for: host, port: port) == expected, "\(host):\(port)")
        }
    }

    @Test(arguments: [[], ["a..b"], ["https://a.test"], ["*"]] as [[String]])
    func `is refused for what is no pattern`(hosts: [String]) {
        var policies = TrustPolicies()
        let error = #expect(throws: ClientError.self) {
            try policies.add(.default, for: hosts)
        }
        #expect(error?.reason == .invalidSecurityPolicy)
    }

    @Test func `pins some hosts without breaking the others`() async throws {
        var policies = TrustPolicies()
        try policies.add(try Self.pinned(0), for: ["**.pinned.test"])
        let mock = MockTransport { _ in TransportResponse(text: "text") }
        for host in ["api.pinned.test", "other.test"] { mock.present([Self.pins[1]], by: host) }
        try await withMock(mock) { configuration in
            configuration.trustPolicies = policies
        } _: { session in
            for (url, reason) in [
                ("https://api.pinned.test/", .secureConnectionFailed),
                ("http://api.pinned.test/", .clearTextRefused), ("https://other.test/", nil),
                ("http://other.test/", nil),
            ] as [(String, ClientError.Reason?)] {
                let error = await failure {
                    _ = try await session.data(for: try HTTPRequest(.get, url))
                }
                #expect(error?.reason == reason, "\(url)")
            }
        }
    }

    @Test func `replaces pins of the session for a host without`() async throws {
        var policies = TrustPolicies()
        try policies.add(.default, for: ["plain.test"])
        let mock = MockTransport { _ in TransportResponse(text: "text") }
        let pinned = try Self.pinned(0)
        try await withMock(mock) { configuration in
            configuration.securityPolicy = pinned
            configuration.trustPolicies = policies
        } _: { session in
            let plain = try await session.data(for: try HTTPRequest(.get, "http://plain.test/"))
            #expect(plain.text == "text")
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "http://other.test/"))
            }
            #expect(error?.reason == .clearTextRefused)
        }
        var configuration = SessionConfiguration.patient
        configuration.securityPolicy = pinned
        configuration.trustPolicies = policies
        _ = try HTTPSessionManager(
            baseURL: "http://plain.test/", configuration: configuration,
            responses: HTTPResponseSerializer())
        #expect(throws: ClientError.self) {
            try HTTPSessionManager(
                baseURL: "http://other.test/", configuration: configuration,
                responses: HTTPResponseSerializer())
        }
    }

    @Test func `is evaluated with real servers`() async throws {
        let answer: TestServer.Answer = { connection, _ in
            connection.respond("200 OK", [], "text")
            return true
        }
        try await withServer(secure: true, answer) { server, runtime in
            var configuration = SessionConfiguration.patient
            try configuration.trustPolicies.add(TestAuthority.policy(), for: ["127.0.0.1"])
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.text == "text")
            var refusing = SessionConfiguration.patient
            refusing.securityPolicy = try TestAuthority.policy()
            try refusing.trustPolicies.add(try Self.pinned(0), for: ["127.0.0.1"])
            let other = try SessionManager(configuration: refusing, runtime: runtime)
            let error = await failure {
                _ = try await other.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(error?.reason == .secureConnectionFailed)
        }
    }

    @Test func `goes together with client certificates`() throws {
        let pem = TestAuthority.makePEM(name: "user")
        var configuration = SessionConfiguration()
        try configuration.trustPolicies.add(try Self.pinned(0), for: ["**.a.test", "b.test"])
        configuration.clientCertificates = [
            try ClientCertificate(
                certificates: TestAuthority.certificate(of: pem), key: pem,
                hosts: ["*.a.test", "**.c.test"])
        ]
        let hosts = try configuration.snapshot().hosts
        for (host, isPinned, hasCertificate) in [
            ("a.test", true, false), ("x.a.test", true, true), ("y.x.a.test", true, false),
            ("b.test", true, false), ("c.test", false, true), ("x.c.test", false, true),
            ("d.test", false, false),
        ] {
            let index = hosts.index.entry(host: Array(host.utf8).span, port: 443)
            let entry = hosts.entries[index ?? hosts.everyOther ?? 0]
            #expect(entry.pinsets.isEmpty == !isPinned, "\(host)")
            #expect((entry.tls.clientIdentity != nil) == hasCertificate, "\(host)")
        }
    }
}
