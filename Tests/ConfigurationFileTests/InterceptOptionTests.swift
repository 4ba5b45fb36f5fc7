import CertificateAuthority
import Clocks
import Configuration
import Foundation
import Testing

@testable import ConfigurationFile

@Suite("The option --intercept")
struct InterceptOptionTests {
    private let both = "interception: { certificate: ca.pem, key: ca.key }"

    /// A folder with an authority in `ca.pem` and `ca.key`.
    private func withAuthority<Result>(_ body: (String) throws -> Result) throws -> Result {
        let now = Clock.coarseWallSeconds()
        let files = try CertificateAuthority.make(
            AuthorityProfile(
                key: .ecdsaP256, commonName: "Test CA", validity: now - 60...now + 365 * 86_400))
        return try withTemporaryFolder { folder in
            for (name, content) in [("ca.pem", files.certificatePEM), ("ca.key", files.keyPEM)] {
                let path = "\(folder)/\(name)"
                try Data(content).write(to: URL(fileURLWithPath: path))
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o600], ofItemAtPath: path)
            }
            return try body(folder)
        }
    }

    /// Entries with `p` where they have pinsets and `!` where they are intercepted in words.
    private func entries(_ hosts: String, intercepting patterns: [String]) throws -> [String] {
        try withAuthority { folder in
            var overlay = CommandLineOverlay()
            overlay.intercept = patterns
            let snapshot = try load(
                """
                interception: { certificate: ca.pem, key: ca.key }
                hosts: [\(hosts)]
                pinsets: { p: { mode: none } }
                """, folder: folder, overlay: overlay)
            return snapshot.hosts.entries.map { entry in
                let match = entry.match.map(\.description).joined(separator: " ")
                return match + (entry.pinsets.isEmpty ? "" : " p")
                    + (entry.intercept == .always ? " !" : "")
            }
        }
    }

    @Test(
        arguments: [
            // No entry has the hosts.
            ("", ["a.test"], ["a.test !"]),
            ("{ match: [b.test], pinsets: [p] }", ["a.test"], ["b.test p", "a.test !"]),
            // An entry has them alone, in whatever letters, or some of them.
            ("{ match: [A.test], pinsets: [p] }", ["a.test"], ["a.test p !"]),
            (
                "{ match: [a.test], pinsets: [p] }, { match: [b.x.test], intercept: false }",
                ["**.test"], ["a.test p !", "b.x.test !", "**.test !"]
            ),
            (
                "{ match: [\"a.test:8443\"], pinsets: [p] }", ["a.test"],
                ["a.test:8443 p !", "a.test !"]
            ),
            // An entry has more.
            (
                "{ match: [\"**.test\"], pinsets: [p], name: n }", ["a.test"],
                ["a.test p !", "**.test p"]
            ),
            (
                "{ match: [a.test], pinsets: [p] }", ["a.test:8443"],
                ["a.test:8443 p !", "a.test p"]
            ),
            (
                "{ match: [a.test, b.example], pinsets: [p] }", ["**.test"],
                ["a.test p !", "b.example p", "**.test !"]
            ),
            (
                "{ match: [x.test, \"**.b.test\"], pinsets: [p] }, { match: [\"**.test\"] }",
                ["*.b.test"], ["*.b.test p !", "x.test **.b.test p", "**.test"]
            ),
            // Several of them.
            (
                "{ match: [\"**.test\"], pinsets: [p] }", ["a.test", "b.test", "c.example"],
                ["a.test p !", "b.test p !", "**.test p", "c.example !"]
            ),
        ] as [(String, [String], [String])])
    func `--intercept leaves its hosts what their entries say of them`(
        hosts: String, patterns: [String], expected: [String]
    ) throws {
        #expect(try entries(hosts, intercepting: patterns) == expected)
    }

    @Test func `--intercept reports a pattern that is none once`() throws {
        try withAuthority { folder in
            var overlay = CommandLineOverlay()
            overlay.intercept = ["a..b"]
            let found = errors(
                of: both + "\nhosts: [{ match: [a.test] }, { upgrade: https }]", folder: folder,
                overlay: overlay)
            #expect(found.count == 2, "\(found)")
            #expect(
                found.contains { $0.hasPrefix("--intercept: hosts[2].match[0]: ") }, "\(found)")
        }
    }
}
