import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("What differs between two configurations")
struct DifferenceTests {
    private static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    private static let otherPin = "sha256/AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    private static let pinset = "pinsets: { p: { mode: publicKey, pins: [\(pin)] } }\n"

    private func lines(_ old: String, _ new: String) throws -> [String] {
        ConfigurationDifference.all(from: try load(old), to: try load(new)).flatMap(\.lines)
    }

    @Test(arguments: [
        ("{}", "limits: { pending: 1024 }\nlog: { level: info }\nhosts: []"),
        ("access: { connectPorts: [443, 80] }", "access: { connectPorts: [80, 443] }"),
        (
            "hosts: [{ match: [a.test, b.test], name: n }]",
            "hosts: [{ match: [b.test, a.test], name: n, tunnel: auto }]"
        ),
        (
            "hosts: [{ match: [a.test], http2: off }, { match: [b.test] }]",
            "hosts: [{ match: [b.test] }, { match: [a.test], http2: off }]"
        ),
        (
            "access: { rules: [{ name: a, ports: [80], action: deny }, "
                + "{ name: b, ports: [443], action: allow }] }",
            "access: { rules: [{ name: b, ports: [443], action: allow }, "
                + "{ name: a, ports: [80], action: deny }] }"
        ),
        (
            "access: { rules: [{ name: a, hosts: ['*.a.test'], action: deny }, "
                + "{ name: b, hosts: [a.test], action: allow }] }",
            "access: { rules: [{ name: b, hosts: [a.test], action: allow }, "
                + "{ name: a, hosts: ['*.a.test'], action: deny }] }"
        ),
        (
            "pinsets: { p: { mode: none }, q: { mode: none } }\n"
                + "hosts: [{ match: [a.test], pinsets: [p, q] }]",
            "pinsets: { q: { mode: none }, p: { mode: none } }\n"
                + "hosts: [{ match: [a.test], pinsets: [q, p] }]"
        ),
        (
            "pinsets: { p: { mode: publicKey, pins: [\(pin), \(otherPin)] } }",
            "pinsets: { p: { mode: publicKey, pins: [\(otherPin), \(pin)] } }"
        ),
        (
            "access: { rules: [{ name: a, hosts: [a.test, b.test], clients: [10.0.0.0/8, "
                + "192.0.2.0/24], methods: [GET, PUT], action: deny }] }",
            "access: { rules: [{ name: a, hosts: [b.test, a.test], clients: [192.0.2.0/24, "
                + "10.0.0.0/8], methods: [PUT, GET], action: deny }] }"
        ),
        ("admin: { hosts: [a.test, b.test] }", "admin: { hosts: [b.test, a.test] }"),
        (
            "hosts: [{ match: [a.test], cache: { bypass: { fields: [X-A, X-B] } } }]",
            "hosts: [{ match: [a.test], cache: { bypass: { fields: [X-B, X-A] } } }]"
        ),
    ])
    func `is nothing if it has no effect`(old: String, new: String) throws {
        #expect(try lines(old, new) == [])
        #expect(try lines(new, old) == [])
    }

    @Test(arguments: [
        ("{}", "timeouts: { idle: 2m }", ["timeouts: idle was 1m, is 2m"]),
        (
            "access: { connectPorts: [443] }", "access: { connectPorts: [80] }",
            ["access: connectPorts: 80 added, 443 removed"]
        ),
        (
            "access: { destinations: { allow: [10.0.0.0/8] } }", "{}",
            ["access: destinations.allow: 10.0.0.0/8 removed"]
        ),
        (
            "{}", "access: { default: deny }",
            ["access: default was allow, is deny (a request that no rule allows is refused)"]
        ),
        (
            "hosts: [{ match: [a.test] }]", "hosts: [{ match: [a.test], tunnel: refuse }]",
            ["hosts: a.test: tunnel was auto, is refuse (tunnels are refused)"]
        ),
        (
            "resolver: { servers: [192.0.2.1, 192.0.2.2] }",
            "resolver: { servers: [192.0.2.2, 192.0.2.1] }",
            [
                "resolver: servers was [192.0.2.1:53, 192.0.2.2:53], is [192.0.2.2:53, "
                    + "192.0.2.1:53]"
            ]
        ),
    ])
    func `is said with both values`(old: String, new: String, expected: [String]) throws {
        #expect(try lines(old, new) == expected)
    }

    @Test func `hosts are compared by the entry that applies to them`() throws {
        let wide = "{ match: ['*.a.test'], http2: off }"
        let narrow = "{ match: [x.a.test] }"
        #expect(
            try lines("hosts: [\(narrow), \(wide)]", "hosts: [\(wide), \(narrow)]") == [
                "hosts: x.a.test: reordered; hosts[0] (*.a.test) applies, and no longer hosts[0] "
                    + "(x.a.test):",
                "  http2 was auto, is off",
                "  name was x.a.test, is *.a.test (in metrics and logs)",
            ])
        #expect(
            try lines("hosts: [\(wide)]", "hosts: [\(narrow), \(wide)]") == [
                "hosts: x.a.test: added; hosts[0] (*.a.test) applied before:",
                "  http2 was off, is auto",
                "  name was *.a.test, is x.a.test (in metrics and logs)",
            ])
        // Another order, and the same for every host: at a port, one pattern is as narrow.
        let port = "{ match: ['**.a.test:8443'], http2: require }"
        #expect(
            try lines("hosts: [\(narrow), \(port)]", "hosts: [\(port), \(narrow)]") == [
                "hosts: x.a.test:8443: reordered; hosts[0] (**.a.test:8443) applies, and no longer "
                    + "hosts[0] (x.a.test):",
                "  http2 was auto, is require",
                "  name was x.a.test, is **.a.test:8443 (in metrics and logs)",
            ])
    }

    @Test func `what entries inherit is said once`() throws {
        let hosts = "hosts: [{ match: [a.test] }, { match: [b.test] }]\n"
        #expect(
            try lines(hosts, hosts + "tls: { minimum: '1.3' }")
                == ["tls: minimum was 1.2, is 1.3"])
    }

    @Test func `the same difference of several entries is one`() throws {
        let old = "hosts: [{ match: [a.test] }, { match: [b.test] }]"
        let new = "hosts: [{ match: [a.test], http2: off }, { match: [b.test], http2: off }]"
        #expect(try lines(old, new) == ["hosts: a.test, b.test: http2 was auto, is off"])
    }

    @Test func `hosts that are no longer listed are said`() throws {
        let listed = "access: { hosts: listed }\n"
        #expect(
            try lines(
                listed + "hosts: [{ match: [a.test], name: n }, { match: [b.test] }]",
                listed + "hosts: [{ match: [b.test] }]") == [
                    "hosts: a.test: removed; no entry applies now:",
                    "  name was n, is default (in metrics and logs)",
                    "  access was requested, is refused as not listed (access.hosts is listed)",
                ])
    }

    @Test func `pinsets are compared by name, with who uses them`() throws {
        let host = "hosts: [{ match: [a.test], pinsets: [p] }]\n"
        let loose = Self.pinset.replacing("mode:", with: "enforce: false, mode:")
        #expect(
            try lines(host + loose, host + Self.pinset) == [
                "pinsets: p: used by a.test:",
                "  enforce was false, is true (a server without a pinned key is refused)",
            ])
        #expect(
            try lines(Self.pinset, "{}") == ["pinsets: p: removed"])
    }

    @Test func `rules are compared by name, and by their order where both may match`() throws {
        let first = "{ name: a, paths: [/a], action: deny }"
        let second = "{ name: b, clients: [10.0.0.0/8], action: allow }"
        func access(_ rules: String) -> String { "access: { rules: [\(rules)] }" }
        #expect(
            try lines(access("\(first), \(second)"), access("\(second), \(first)")) == [
                "access.rules: a: reordered; it is tried after b, which may match the same requests"
            ])
        #expect(
            try lines(access(first), access("\(first), \(second)")) == [
                "access.rules: b: added; it is the rule 2 of 2: clients [10.0.0.0/8], action allow"
            ])
        #expect(
            try lines(access(first), access(first.replacing("/a", with: "/b")))
                == ["access.rules: a: paths: /b added, /a removed"])
    }

    @Test func `listeners are compared by name`() throws {
        let one = "{ name: one, address: '127.0.0.1:1', kind: forward }"
        let two = "{ name: two, address: '127.0.0.1:2', kind: socks5 }"
        #expect(try lines("listeners: [\(one), \(two)]", "listeners: [\(two), \(one)]") == [])
        #expect(
            try lines("listeners: [\(one), \(two)]", "listeners: [\(two)]")
                == ["listeners: one: removed"])
        #expect(
            try lines(
                "listeners: [\(one)]", "listeners: [\(one.replacing(":1'", with: ":3'"))]")
                == ["listeners: one: address was 127.0.0.1:1, is 127.0.0.1:3"])
    }

    @Test(arguments: [
        (
            "headers: { set: { X-Key: c2VjcmV0 } }", "headers: { set: { X-Key: b3RoZXI } }",
            "request.headers.set.X-Key was ***, is *** (another)"
        ),
        (
            "query: { set: { key: c2VjcmV0 } }", "",
            "set: { key: *** }, add: nothing, defaults: nothing }, parameters: keep }, is not set"
        ),
        (
            "path: { prefixes: { /a: /c2VjcmV0 } }", "path: { prefixes: { /a: /b3RoZXI } }",
            "request.path.prefixes./a was ***, is *** (another)"
        ),
    ])
    func `is said without the values that rules write`(
        old: String, new: String, expected: String
    ) throws {
        func hosts(_ request: String) -> String {
            "hosts: [{ match: [a.test]\(request.isEmpty ? "" : ", request: { \(request) }") }]"
        }
        let changed = try lines(hosts(old), hosts(new))
        #expect(changed.contains { $0.hasSuffix(expected) }, "\(changed)")
        for found in [changed, try lines("{}", hosts(old)), try lines(hosts(old), "{}")] {
            #expect(!found.isEmpty)
            #expect(!found.contains { $0.contains("c2VjcmV0") || $0.contains("b3RoZXI") })
        }
    }

    @Test func `is said without the userinfo and the queries of URLs`() throws {
        func probe(_ key: String) -> String {
            "hosts: [{ match: [a.test], probe: { interval: 30s, path: '/p?key=\(key)' } }]"
        }
        #expect(
            try lines(probe("c2VjcmV0"), probe("b3RoZXI"))
                == ["hosts: a.test: probe.path was /p?***, is /p?*** (another)"])
    }
}
