import Testing

@testable import Gateway

/// Warnings of valid settings that are probably not intended.
@Suite("Warnings")
struct WarningTests {
    @Test func `the defaults cause no warning`() throws {
        #expect(try warnings(of: "{}") == [])
    }

    @Test func `a pinset that no entry uses causes a warning`() throws {
        let text = """
            hosts:
              - match: [a.example.com]
                upgrade: https
                pinsets: [used]
            pinsets:
              used: { mode: none }
              forgotten: { mode: none }
            """
        #expect(
            try warnings(of: text) == [
                "gateway.yaml:7: pinsets.forgotten: no entry of hosts uses this pinset, so it "
                    + "protects nothing; add it to the pinsets of an entry"
            ])
    }

    @Test func `pins that are not compared cause a warning`() throws {
        let text = """
            hosts: [{ match: [a.test], upgrade: https, pinsets: [p] }]
            pinsets:
              p: { mode: none, pins: ["sha256/\(String(repeating: "A", count: 43))="] }
            """
        #expect(
            try warnings(of: text) == [
                "gateway.yaml:3: pinsets.p: its pins are not compared, because its mode is none; "
                    + "write mode: publicKey or mode: certificate"
            ])
    }

    /// The warnings about a list of host entries, which may name a pinset.
    private func hostWarnings(_ hosts: String, listeners: String = "") throws -> [String] {
        let used = "- { match: [used.example], upgrade: https, pinsets: [p] }"
        let text = "hosts:\n\(hosts)\n\(used)\npinsets: { p: { mode: none } }\n\(listeners)"
        return try warnings(of: text)
    }

    @Test(arguments: [
        ("a.test", "a.test"), ("a.test", "A.Test."), ("a.test", "a.test:443"),
        ("a.test:443", "a.test:443"), ("*.test", "a.test"), ("*.test", "*.test:80"),
        ("**.test", "*.test"), ("**.test", "test"), ("**.test", "a.b.test"),
        ("**.test", "**.b.test:80"), ("192.0.2.1", "192.0.2.1:80"),
        ("\"::1\"", "\"[0:0:0:0:0:0:0:1]:80\""), ("\"::ffff:192.0.2.1\"", "192.0.2.1"),
    ])
    func `a pattern that an earlier entry covers causes a warning`(earlier: String, later: String)
        throws
    {
        let found = try hostWarnings(
            "- { match: [\(quote(earlier))], upgrade: https }\n"
                + "- { match: [x.example, \(quote(later))], upgrade: https, pinsets: [p] }")
        let shadowed = try #require(found.first { $0.contains("never applies") })
        #expect(shadowed.hasPrefix("gateway.yaml:3: hosts[1].match[1]: never applies: an earlier"))
        #expect(shadowed.contains("(hosts[0], line 2)"))
        #expect(shadowed.contains("so this entry's pinsets are not applied"))
        // The earlier entry, without pinsets, refuses the requests that it was meant to allow.
        #expect(found.filter { $0 != shadowed } == ["gateway.yaml:2: hosts[0]\(refuses(1))"])
    }

    @Test(arguments: [
        ("a.test", "b.test"), ("a.test:443", "a.test"), ("a.test:443", "a.test:80"),
        ("*.test", "test"), ("*.test", "a.b.test"), ("*.test", "**.test"), ("a.test", "*.test"),
        ("**.b.test", "**.test"), ("**.test:80", "a.test"), ("**.test", "atest"),
        ("192.0.2.1", "192.0.2.2"),
    ])
    func `a pattern that an earlier entry does not cover causes no warning`(
        earlier: String, later: String
    ) throws {
        #expect(
            try hostWarnings(
                "- { match: [\(quote(earlier))] }\n- { match: [\(quote(later))], upgrade: none }")
                == [])
    }

    private func quote(_ pattern: String) -> String {
        pattern.hasPrefix("\"") ? pattern : "'\(pattern)'"
    }

    @Test func `a shadowed entry without pinsets loses no pinsets`() throws {
        let found = try hostWarnings("- { match: [a.test] }\n- { match: [a.test] }")
        #expect(
            found == [
                "gateway.yaml:3: hosts[1].match[0]: never applies: an earlier entry (hosts[0], "
                    + "line 2) matches all of a.test; put this entry before that one"
            ])
    }

    @Test(arguments: [
        (
            "{ match: [a.test], tls13Tunnel: probe }",
            ".tls13Tunnel: has no effect without tunnel: inspect; write that, or remove this key"
        ),
        (
            "{ match: [a.test], pinsets: [p], upgrade: https, tunnel: pass }",
            ".tunnel: tunnels bypass the pinsets of this entry"
        ),
        (
            "{ match: [a.test], pinsets: [p], clearText: allow }",
            ".clearText: requests in clear text bypass the pinsets of this entry"
        ),
        (
            "{ match: [a.test], upgrade: https, clearText: allow }",
            ".clearText: has no effect with upgrade: https; remove one of the two"
        ),
        (
            "{ match: [a.test], pinsets: [p] }",
            ": has pinsets but no upgrade: only requests for https:// in absolute form reach "
                + "these hosts, while clear text and CONNECT to them are refused; write "
                + "upgrade: https, or upgrade: none if that is intended"
        ),
        (
            "{ match: ['used.example:80'], upgrade: https }",
            refuses(1)
        ),
        ("{ match: ['**.example:8443'], upgrade: https }", refuses(1)),
        ("{ match: ['*.example:8443'] }", refuses(1)),
    ])
    func `settings that bypass pinsets or have no effect cause a warning`(
        entry: String, warning: String
    )
        throws
    {
        #expect(try hostWarnings("- \(entry)") == ["gateway.yaml:2: hosts[0]\(warning)"])
    }

    @Test func `an entry that allows requests to hosts pinned by another causes a warning`() throws
    {
        let found = try hostWarnings(
            "- { match: ['**.example:8443'], tunnel: pass, clearText: allow }")
        let way = "hosts that hosts[1] pins bypass their pinsets"
        #expect(
            found == [
                "gateway.yaml:2: hosts[0].tunnel: lets tunnels to \(way)",
                "gateway.yaml:2: hosts[0].clearText: lets clear text to \(way)",
                "gateway.yaml:2: hosts[0]\(refuses(1))",
            ])
    }

    @Test(arguments: [
        "{ match: [a.test], pinsets: [p], upgrade: https }",
        "{ match: [a.test], pinsets: [p], upgrade: none }",
        "{ match: [a.test], pinsets: [p], clearText: refuse, tunnel: refuse }",
        "{ match: [a.test], tunnel: pass, clearText: allow }",
        "{ match: [a.test], tunnel: refuse }",
        "{ match: [a.test], pinsets: [p], tunnel: inspect, tls13Tunnel: probe }",
        "{ match: [a.test], tunnel: inspect }",
    ])
    func `settings that are written on purpose cause no warning`(entry: String) throws {
        #expect(try hostWarnings("- \(entry)") == [])
    }

    @Test(
        arguments: [
            ("https://used.example", nil),
            ("http://used.example", "clear text to this host is refused; write https://"),
            ("http://other.test", nil),
            ("https://ports.test", nil),
            (
                "https://ports.test:8443",
                "the entry that applies to this port does not name them"
            ),
        ] as [(String, String?)])
    func `a reverse listener whose requests are all refused causes a warning`(
        upstream: String, reason: String?
    ) throws {
        let found = try hostWarnings(
            "- { match: ['ports.test:443'], upgrade: none, pinsets: [p] }",
            listeners: "listeners:\n- { address: '127.0.0.1:8081', kind: reverse, "
                + "upstream: '\(upstream)' }")
        #expect(found.count == (reason == nil ? 0 : 1))
        guard let reason, let first = found.first else { return }
        #expect(
            first.hasPrefix(
                "gateway.yaml:6: listeners[0].upstream: all requests are refused: the host has"
                    + " pinsets, and \(reason)"))
    }

    @Test func `a pinned host is reachable through a reverse listener`() throws {
        #expect(
            try hostWarnings(
                "- { match: [a.test], pinsets: [p] }",
                listeners: "listeners:\n- { address: '127.0.0.1:8081', kind: reverse, "
                    + "upstream: 'https://a.test' }") == [])
    }

    @Test(
        arguments: [
            ("limits: { connections: 400 }", nil),
            (
                "limits: { connections: 600 }",
                "limits.connections: this many connections and as many to"
            ),
            (
                "limits: { upstreamPerHost: 2000 }",
                "limits.upstreamPerHost: this many connections need"
            ),
            (
                "limits: { connections: 400, perClient: { connections: 1001 } }",
                "limits.perClient.connections: this many connections need 1001 open files"
            ),
            // The defaults were not chosen by the user.
            ("limits: { fields: 100 }", nil), ("{}", nil),
        ] as [(String, String?)])
    func `a limit above the number of files that the process may open causes a warning`(
        text: String, warning: String?
    ) throws {
        var environment = testEnvironment
        environment.openFiles = 1000
        let found = try ConfigurationLoader(environment: environment)
            .load(text: Array(text.utf8), name: "gateway.yaml").warnings.map(\.description)
        #expect(found.count == (warning == nil ? 0 : 1), "\(found)")
        if let warning { #expect(found.first?.contains(warning) == true, "\(found)") }
    }
}

/// The warning about an entry without pinsets for hosts that another entry pins.
private func refuses(_ pinning: Int) -> String {
    ": refuses requests for https to hosts that hosts[\(pinning)] pins, because it names no "
        + "pinsets; name them here too, or name a pinset with mode: none to exempt these hosts"
}
