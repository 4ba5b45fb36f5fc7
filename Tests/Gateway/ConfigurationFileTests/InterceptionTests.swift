import Clocks
import Foundation
import PinfoldConfiguration
import PinfoldTLS
import TestSupport
import Testing

@testable import Gateway

@Suite("Interception")
struct InterceptionTests {
    private let both = "interception: { certificate: ca.pem, key: ca.key }"

    /// CONNECT reaches them, so there is no warning that it does not.
    @Test func `pinned hosts that are intercepted need no upgrade`() throws {
        let pinned = """
            pinsets: { some: { mode: publicKey, pins: [\(SampleCertificate.keyPin)] } }
            hosts: [{ match: [a.test], pinsets: [some] }]

            """
        try withAuthority { folder in
            func isWarnedOf(_ text: String) throws -> Bool {
                try warnings(of: text, folder: folder + "/").contains {
                    $0.contains("no upgrade")
                }
            }
            let without = try isWarnedOf(pinned)
            let with = try isWarnedOf(pinned + both)
            #expect(without && !with)
        }
    }

    @Test func `the authority's files are read with the configuration`() throws {
        try withAuthority { folder in
            let text = """
                interception:
                  certificate: ca.pem
                  key: ca.key
                  default: auto
                  maximumCertificates: 5
                  minimum: "1.3"
                  rejections: { alerts: 4, closes: 0, window: 2m, period: 1d }
                hosts:
                  - { match: [a.test], intercept: false }
                  - { match: [b.test], intercept: auto }
                  - { match: [c.test] }
                  - { match: [d.test], intercept: true, tunnel: pass }
                """
            let snapshot = try load(text, folder: folder)
            let interception = snapshot.interception
            let authority = try #require(interception.authority)
            #expect(authority.certificatePath == folder + "/ca.pem")
            #expect(authority.keyPath == folder + "/ca.key")
            let pem = try Data(contentsOf: URL(fileURLWithPath: folder + "/ca.pem"))
            #expect(authority.certificatePEM == Array(pem))
            #expect(interception.byDefault == .auto)
            #expect(interception.maximumCertificates == 5)
            #expect(interception.minimum == .tls13)
            #expect(interception.rejections.alerts == 4)
            #expect(interception.rejections.closes == 0)
            #expect(interception.rejections.windowMilliseconds == 120_000)
            #expect(interception.rejections.periodMilliseconds == 86_400_000)
            #expect(snapshot.hosts.entries.map(\.intercept) == [.never, .auto, .auto, .always])
            let printed = snapshot.effectiveYAML()
            #expect(try load(printed, folder: "/elsewhere") == snapshot)
            #expect(!printed.contains("PRIVATE"))
            #expect(try warnings(of: printed).isEmpty)
        }
    }

    @Test func `without a certificate authority nothing is intercepted`() throws {
        for text in [
            "workers: 1", "interception: {}", "interception:", "interception: { default: auto }",
        ] {
            #expect(try load(text).interception.authority == nil)
        }
    }

    @Test(
        arguments: [
            ("interception: { certificate: ca.pem }", "key", "is missing"),
            ("interception: { key: ca.key }", "certificate", "is missing"),
            ("interception: { certificate: none.pem, key: ca.key }", "certificate", "No such file"),
            ("interception: { certificate: ca.pem, key: none.key }", "key", "No such file"),
            ("interception: { certificate: ca.key, key: ca.key }", "certificate", "no certificate"),
            (
                "interception: { certificate: ca.pem, key: text }", "key",
                "no unencrypted private key"
            ),
            (
                "interception: { certificate: ca.pem, key: other.key }", "key",
                "does not belong to the certificate"
            ),
            ("interception: { certificate: ca.pem, key: . }", "key", "is a directory"),
        ])
    func `invalid authority files are reported with their key`(
        text: String, key: String, problem: String
    ) throws {
        try withAuthority { folder in
            let other = try withAuthority {
                try Data(contentsOf: URL(fileURLWithPath: $0 + "/ca.key"))
            }
            try write(Array(other), to: folder + "/other.key", mode: 0o600)
            try write(Array("text".utf8), to: folder + "/text", mode: 0o600)
            let found = errors(of: text, folder: folder)
            #expect(found.count == 1)
            #expect(
                found.first?.hasPrefix("gateway.yaml:1: interception.\(key): ") == true, "\(found)")
            #expect(found.first?.contains(problem) == true, "\(found)")
        }
    }

    @Test func `an expired authority is refused, and causes a warning before`() throws {
        try withAuthority(days: 100) { folder in
            var environment = testEnvironment
            func load(inDays days: Int64) throws -> LoadedConfiguration {
                environment.now = Clock.wallSeconds() + days * 86_400
                return try ConfigurationLoader(environment: environment)
                    .load(text: Array(both.utf8), name: folder + "/gateway.yaml")
            }
            #expect(try load(inDays: 69).warnings.isEmpty)
            let warned = try load(inDays: 90).warnings
            #expect(warned.map(\.key) == ["interception.certificate"])
            #expect(warned.first?.text.contains("expires in") == true)
            for days: Int64 in [101, -41] {
                #expect(throws: ConfigurationErrors.self) { try load(inDays: days) }
            }
        }
    }

    @Test(arguments: [0o644, 0o640, 0o660, 0o604])
    func `a key that users other than its owner may read causes a warning`(mode: Int) throws {
        try withAuthority { folder in
            let own = try Data(contentsOf: URL(fileURLWithPath: folder + "/ca.key"))
            try write(Array(own), to: folder + "/open.key", mode: mode)
            let text = "interception: { certificate: ca.pem, key: open.key }"
            let warnings = try ConfigurationLoader(environment: testEnvironment)
                .load(text: Array(text.utf8), name: folder + "/gateway.yaml").warnings
            #expect(warnings.map(\.key) == ["interception.key"])
            let octal = String(mode, radix: 8)
            #expect(
                warnings.first?.text.hasSuffix(
                    "is accessible to users other than its owner (mode 0\(octal)); "
                        + "protect it with chmod 600") == true, "\(warnings)")
        }
    }

    @Test func `a host that requires interception needs an authority`() throws {
        for (text, key) in [
            ("hosts: [{ match: [a.test], intercept: true }]", "hosts[0].intercept"),
            (
                "hosts: [{ match: [a.test], tunnel: inspect, tls13Tunnel: intercept }]",
                "hosts[0].tls13Tunnel"
            ),
            ("interception: { default: true }", "interception.default"),
        ] {
            #expect(
                errors(of: text).first
                    == "gateway.yaml:1: \(key): interception requires a certificate authority; "
                    + "expected interception.certificate and interception.key; "
                    + "`pinfold ca init` creates them")
        }
        #expect(errors(of: "hosts: [{ match: [a.test], intercept: yes }]").count == 1)
    }

    @Test func `a host may be intercepted if there is an authority`() throws {
        try withAuthority { folder in
            let snapshot = try load(
                """
                interception: { certificate: ca.pem, key: ca.key, default: true }
                hosts:
                  - { match: [a.test], intercept: true }
                  - { match: [b.test], intercept: false }
                """, folder: folder)
            #expect(snapshot.hosts.entries.map(\.intercept) == [.always, .never])
            #expect(snapshot.interception.byDefault == .always)
        }
    }

    @Test func `a host whose tunnels are inspected is intercepted on request`() throws {
        try withAuthority { folder in
            let entries = try load(
                """
                \(both)
                hosts:
                  - { match: [a.test], tunnel: inspect, tls13Tunnel: probe }
                  - { match: [b.test], tunnel: inspect, intercept: auto }
                  - { match: [c.test], tunnel: inspect, intercept: true, tls13Tunnel: intercept }
                  - { match: [d.test] }
                """, folder: folder
            ).hosts.entries
            #expect(entries.map(\.intercept) == [.never, .auto, .always, .auto])
            #expect(entries.map(\.tunnel) == [.inspect, .inspect, .inspect, .auto])
            #expect(entries.map(\.tls13Tunnel) == [.probe, .refuse, .intercept, .refuse])
        }
    }

    @Test(arguments: [("1.0", true), ("1.1", true), ("1.2", false), ("1.3", false)])
    func `an insecure minimum causes a warning`(minimum: String, isWarnedOf: Bool) throws {
        let found = try warnings(of: "interception: { minimum: \"\(minimum)\" }")
        let broken = found.contains {
            $0.contains("interception.minimum") && !$0.contains("without a certificate authority")
        }
        #expect(broken == isWarnedOf, "\(found)")
    }

    @Test(arguments: [
        ("default: auto", ["interception.default"]), ("default: false", []),
        ("minimum: \"1.3\"", ["interception.minimum"]),
        ("maximumCertificates: 5", ["interception.maximumCertificates"]),
        ("maximumCertificates: 10000, rejections: { alerts: 3 }", []),
        ("rejections: { alerts: 4 }", ["interception.rejections"]),
    ])
    func `settings without a certificate authority cause a warning`(text: String, keys: [String])
        throws
    {
        let warnings = try ConfigurationLoader(environment: testEnvironment).load(
            text: Array("interception: { \(text) }".utf8), name: "gateway.yaml"
        ).warnings.filter { $0.text.contains("without a certificate authority") }
        #expect(warnings.map(\.key) == keys)
    }

    @Test(arguments: [
        ("intercept: true, tunnel: pass", "alerts: 5", false),
        ("intercept: true, tunnel: pass", "alerts: 3", false),
        ("intercept: true", "alerts: 5", true),
        ("intercept: true", "alerts: 3", false),
        ("tunnel: pass", "alerts: 5", true),
        ("intercept: false, tunnel: pass", "period: 5m", true),
    ])
    func `rules for rejections without effect cause a warning`(
        entry: String, rules: String, isWarnedOf: Bool
    ) throws {
        try withAuthority { folder in
            let warnings = try ConfigurationLoader(environment: testEnvironment).load(
                text: Array(
                    """
                    interception: { certificate: ca.pem, key: ca.key, rejections: { \(rules) } }
                    hosts: [{ match: [a.test], \(entry) }]
                    """.utf8), name: folder + "/gateway.yaml"
            ).warnings.filter { $0.key == "interception.rejections" }
            #expect(warnings.count == (isWarnedOf ? 1 : 0), "\(warnings)")
        }
    }

    @Test(
        arguments: [
            ("minimum: 1.4", "minimum"), ("rejections: { alerts: -1 }", "rejections.alerts"),
            ("rejections: { closes: 1001 }", "rejections.closes"),
            ("rejections: { window: 0s }", "rejections.window"),
            ("rejections: { period: 31d }", "rejections.period"),
            ("rejections: { limit: 1 }", "rejections.limit"),
        ])
    func `contradictory values are refused`(text: String, key: String) {
        let found = errors(of: "interception: { \(text) }")
        #expect(found.count == 1)
        #expect(found.first?.contains("interception.\(key): ") == true, "\(found)")
    }

    @Test(arguments: [
        ("true", "tunnels without TLS, and tunnels of clients that keep rejecting"),
        ("false", "tunnels bypass"), ("auto", "tunnels bypass"),
    ])
    func `tunnels that bypass pins cause a warning`(intercept: String, text: String) throws {
        try withAuthority { folder in
            let warnings = try ConfigurationLoader(environment: testEnvironment).load(
                text: Array(
                    """
                    \(both)
                    hosts:
                      - { match: [a.test], intercept: \(intercept), tunnel: pass, pinsets: [p] }
                    pinsets: { p: { mode: none } }
                    """.utf8), name: folder + "/gateway.yaml"
            ).warnings
            #expect(warnings.map(\.key) == ["hosts[0].tunnel"])
            #expect(warnings.first?.text.hasPrefix(text) == true, "\(warnings)")
        }
    }
}
