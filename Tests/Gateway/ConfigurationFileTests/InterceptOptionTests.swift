import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("The option --intercept")
struct InterceptOptionTests {
    private let both = "interception: { certificate: ca.pem, key: ca.key }"

    /// Entries as text, with `p` if they have pinsets and `!` if they are intercepted.
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
            // No entry matches the hosts.
            ("", ["a.test"], ["a.test !"]),
            ("{ match: [b.test], pinsets: [p] }", ["a.test"], ["b.test p", "a.test !"]),
            // An entry matches only these hosts, in any case of letters, or some of them.
            ("{ match: [A.test], pinsets: [p] }", ["a.test"], ["a.test p !"]),
            (
                "{ match: [a.test], pinsets: [p] }, { match: [b.x.test], intercept: false }",
                ["**.test"], ["a.test p !", "b.x.test !", "**.test !"]
            ),
            (
                "{ match: [\"a.test:8443\"], pinsets: [p] }", ["a.test"],
                ["a.test:8443 p !", "a.test !"]
            ),
            // An entry matches more hosts.
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
            // Several options.
            (
                "{ match: [\"**.test\"], pinsets: [p] }", ["a.test", "b.test", "c.example"],
                ["a.test p !", "b.test p !", "**.test p", "c.example !"]
            ),
        ] as [(String, [String], [String])])
    func `--intercept keeps the settings of its hosts' entries`(
        hosts: String, patterns: [String], expected: [String]
    ) throws {
        #expect(try entries(hosts, intercepting: patterns) == expected)
    }

    @Test(
        arguments: [
            ("*.example.test:443", "api.example.test"), ("*.a.test", "**.x.a.test"),
        ])
    func `--intercept reports an entry that matches some of its hosts and others`(
        entry: String, pattern: String
    ) throws {
        try withAuthority { folder in
            var overlay = CommandLineOverlay()
            overlay.intercept = [pattern]
            let found = errors(
                of: both + "\nhosts: [{ match: [\"\(entry)\"] }]", folder: folder,
                overlay: overlay)
            #expect(found.count == 1, "\(found)")
            #expect(found.first?.contains("neither contains the other") == true, "\(found)")
        }
    }

    @Test func `--intercept reports an invalid pattern once`() throws {
        try withAuthority { folder in
            var overlay = CommandLineOverlay()
            overlay.intercept = ["a..b"]
            let found = errors(
                of: both + "\nhosts: [{ match: [a.test] }, { upgrade: https }]", folder: folder,
                overlay: overlay)
            #expect(found.count == 2, "\(found)")
            #expect(
                found.contains { $0.hasPrefix("--intercept: \"a..b\" is not a host pattern: ") },
                "\(found)")
        }
    }
}
