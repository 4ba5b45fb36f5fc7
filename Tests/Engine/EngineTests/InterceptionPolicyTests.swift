import Activity
import Clocks
import EngineTestSupport
import PinfoldConfiguration
import PinfoldTLS
import Testing

@testable import PinfoldEngine

@Suite("The interception policy")
struct InterceptionPolicyTests {
    private let issuer: CertificateIssuer
    private let authority: InterceptionAuthority

    init() throws {
        issuer = try CertificateIssuer()
        authority = try Self.makeAuthority()
    }

    static func makeAuthority() throws -> InterceptionAuthority {
        let now = Clock.wallSeconds()
        let files = try CertificateAuthority.make(
            AuthorityProfile(
                key: .ecdsaP256, commonName: "Test CA", validity: now - 3600...now + 86_400))
        return InterceptionAuthority(
            certificatePath: "/ca.pem", keyPath: "/ca.key", certificatePEM: files.certificatePEM,
            keyPEM: files.keyPEM)
    }

    private func policy(
        _ text: String, byDefault: InterceptMode = .never, generation: UInt64 = 1,
        following previous: PolicySnapshot? = nil, issuer: CertificateIssuer?,
        authority: InterceptionAuthority?
    ) throws -> PolicySnapshot {
        var configuration = try testConfiguration(text)
        configuration.interception.authority = authority
        configuration.interception.byDefault = byDefault
        return try PolicySnapshot(
            configuration, generation: generation, following: previous,
            sessions: TLSSessionCache(), issuer: issuer, labels: RouteLabels()
        ) { EntryReachability(label: $0) }
    }

    private let hosts = """
        hosts:
          - { match: ["odd.test:8443"], tunnel: pass }
          - { match: [odd.test, "**.pinned.test"], pinsets: [p] }
          - { match: [left.pinned.test, "*.plain.test"] }
        pinsets: { p: { mode: none } }
        """

    @Test(
        arguments: [
            ("odd.test", 443, true, true), ("odd.test", 8443, false, false),
            ("pinned.test", 443, true, true), ("a.b.pinned.test", 1, true, true),
            ("left.pinned.test", 443, true, true), ("a.plain.test", 443, false, false),
            ("plain.test", 443, false, true), ("192.0.2.1", 443, false, true),
            ("2001:db8::1", 443, false, true),
        ] as [(String, UInt16, Bool, Bool)])
    func `is found by the entry for host and port, and else by the default`(
        host: String, port: UInt16, isFound: Bool, isFoundByDefault: Bool
    ) throws {
        let asked = BoundAuthority(host: host, port: port)
        for (mode, expected) in [(.never, isFound), (.auto, isFound), (.always, isFoundByDefault)]
            as [(InterceptMode, Bool)]
        {
            let policy = try policy(hosts, byDefault: mode, issuer: issuer, authority: authority)
            #expect((policy.interception(for: asked, by: .none) != nil) == expected)
        }
    }

    @Test func `is absent without an authority, or without an issuer`() throws {
        let asked = BoundAuthority(host: "pinned.test", port: 443)
        let without = [
            try policy(hosts, byDefault: .always, issuer: nil, authority: authority),
            try policy(hosts, issuer: issuer, authority: nil),
        ]
        #expect(without.allSatisfy { $0.interception(for: asked, by: .none) == nil })
    }

    @Test func `continues through a reload that changes nothing, and through no other`() throws {
        let first = try policy(hosts, issuer: issuer, authority: authority)
        let same = try policy(
            hosts, generation: 2, following: first, issuer: issuer, authority: authority)
        #expect(same.interception === first.interception)
        let other = try policy(
            hosts, generation: 3, following: same, issuer: issuer,
            authority: try Self.makeAuthority())
        #expect(other.interception !== first.interception)
        #expect(
            other.interception?.authority.fingerprint != first.interception?.authority.fingerprint)
        let changed = try policy(
            "workers: 1", generation: 4, following: first, issuer: issuer, authority: authority)
        // Sessions given out before are bound to the configuration that they were given out under.
        #expect(changed.interception !== first.interception)
        #expect(
            changed.interception?.authority.fingerprint == first.interception?.authority.fingerprint
        )
    }

    @Test func `is refused with the authority's fault when that cannot be used`() throws {
        var broken = authority
        broken.keyPEM = try Self.makeAuthority().keyPEM
        #expect(throws: TLSContextError.self) {
            try policy(hosts, issuer: issuer, authority: broken)
        }
    }
}
