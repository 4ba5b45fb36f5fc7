import EngineTestSupport
import HTTPCore
import Testing

@testable import PinfoldEngine

@Suite("The explanation of a route")
struct RouteExplanationTests {
    /// Of a host with one address, which is nowhere special.
    private func explain(
        _ text: String, host: String = "a.test", port: UInt16 = 443, isSecure: Bool = true,
        addresses: [String] = ["192.0.32.1"], now: Int64 = 1_800_000_000
    ) throws -> RouteExplanation {
        let policy = try PolicySnapshot(forQueries: testConfiguration(text))
        let target = TargetURL(host: host, port: port, isSecure: isSecure)
        let found = addresses.compactMap { IPAddress($0) }
        return RouteExplanation(
            policy, target,
            addresses: found.isEmpty ? .failure(.nameNotResolved(.nxdomain)) : .success(found),
            now: now)
    }

    /// A word for each kind of handling; for a refusal, its token.
    private func words(_ route: RouteExplanation) -> [String] {
        route.ways.map { way in
            switch way.way {
            case .refused(let fault): fault.reason.token
            case .tunnel: "tunnel"
            case .inspect(let tls13): "inspect \(tls13)"
            case .intercept: "intercept"
            case .interceptOrInspect(let tls13): "interceptOrInspect \(tls13)"
            case .interceptOrPass: "interceptOrPass"
            case .upgrade(let port): "upgrade \(port)"
            case .verified: "verified"
            case .clearText: "clear"
            }
        }
    }

    private func text(_ entry: String) -> String {
        "hosts: [{ match: [a.test]\(entry) }]\npinsets: { p: { mode: none } }"
    }

    @Test(
        arguments: [
            ("", ["tunnel", "verified"], ["clear"]),
            (", pinsets: [p]", ["tunnel-refused", "verified"], ["clear-text-refused"]),
            (
                ", pinsets: [p], upgrade: https", ["tunnel-refused", "verified"], ["upgrade 443"]
            ),
            (
                ", pinsets: [p], upgrade: https, tunnel: pass", ["tunnel", "verified"],
                ["upgrade 443"]
            ),
            (
                ", tunnel: refuse, clearText: refuse", ["tunnel-refused", "verified"],
                ["clear-text-refused"]
            ),
            (", intercept: false", ["tunnel", "verified"], ["clear"]),
            (
                ", pinsets: [p], tunnel: inspect", ["inspect refuse", "verified"],
                ["clear-text-refused"]
            ),
            (
                ", tunnel: inspect, tls13Tunnel: probe", ["inspect probe", "verified"], ["clear"]
            ),
        ] as [(String, [String], [String])])
    func `each form of request is handled by the policy`(
        entry: String, secure: [String], clear: [String]
    ) throws {
        #expect(try words(explain(text(entry))) == secure)
        #expect(try words(explain(text(entry), port: 80, isSecure: false)) == clear)
    }

    @Test func `a port that CONNECT may not name is refused for CONNECT alone`() throws {
        #expect(try words(explain("{}", port: 8443)) == ["connect-port-refused", "verified"])
    }

    @Test func `an entry without pinsets for a host that is pinned elsewhere is refused`() throws {
        let text = """
            hosts: [{ match: ["a.test:443"], pinsets: [p], upgrade: https }, { match: [a.test] }]
            pinsets: { p: { mode: none } }
            access: { connectPorts: any }
            """
        let route = try explain(text, port: 8443)
        #expect(words(route) == ["pinned-port-refused", "pinned-port-refused"])
        #expect(route.entry == 1)
        #expect(route.pinsets.isEmpty)
    }

    @Test(arguments: [
        ("127.0.0.1", "refused"), ("10.0.0.1", "refused"), ("192.0.32.1", "allowed"),
        ("169.254.169.254", "refused"), ("a.test", "its addresses are checked"),
        ("b.lab.test", "private networks are allowed"), ("bad.test", "refused"),
    ])
    func `the access rules are explained for names and addresses`(host: String, word: String) throws
    {
        let text = """
            access: { destinations: { allow: ["**.lab.test"], deny: [bad.test] } }
            """
        let route = try explain(text, host: host)
        #expect(route.destination.text.contains(word), "\(route.destination)")
    }

    @Test func `the explanation shows where the cache is disabled`() throws {
        #expect(try explain("{}").cacheIsUsed)
        #expect(try !explain("cache: { enabled: false }").cacheIsUsed)
        #expect(try !explain(text(", cache: { store: false }")).cacheIsUsed)
        #expect(try explain(text(", cache: { store: false }"), host: "b.test").cacheIsUsed)
    }

    @Test func `the cache is not used by requests that are refused before the lookup`() throws {
        let refused = text(", pinsets: [p], upgrade: none")
        #expect(try !explain(refused, port: 80, isSecure: false).cacheIsUsed)
        #expect(try explain(refused).cacheIsUsed)
        #expect(try !explain("{}", host: "10.0.0.1", isSecure: false).cacheIsUsed)
        let reverse = """
            listeners: [{ address: "127.0.0.1:8080", kind: reverse, upstream: "https://a.test" }]
            """
        #expect(try explain(reverse).cacheIsUsed)
        #expect(try !explain(reverse, host: "b.test").cacheIsUsed)
        // Stored responses are served without a connection to the server.
        #expect(try explain("{}", addresses: []).cacheIsUsed)
        #expect(try explain("{}", addresses: ["10.0.0.1"]).cacheIsUsed)
    }

    // MARK: Addresses

    @Test func `a name is refused when none of its addresses may be connected to`() throws {
        let text = "access: { destinations: { allow: [a.test], deny: [0.0.0.0/0] } }"
        let words = try words(explain(text))
        #expect(words == ["destination-refused", "destination-refused"])
    }

    @Test func `a name passes when one of its addresses may be connected to`() throws {
        let route = try explain("{}", addresses: ["10.0.0.1", "192.0.32.1"])
        #expect(words(route) == ["tunnel", "verified"])
        #expect(route.addresses.map { $0.refusal?.reason.token } == ["destination-refused", nil])
    }

    @Test func `a name without an address is refused as in the reply`() throws {
        #expect(
            try words(explain("{}", addresses: [])) == ["dns-nxdomain", "dns-nxdomain"])
    }

    @Test func `the gateway's own listeners are refused`() throws {
        let text = """
            listeners: [{ address: "127.0.0.1:8080" }]
            access: { destinations: { allow: [127.0.0.0/8] } }
            """
        let route = try explain(
            text, port: 8080, isSecure: false, addresses: ["127.0.0.1"])
        #expect(words(route) == ["own-listener-refused"])
    }

    @Test func `a permission counts at the port that an upgrade leads to`() throws {
        func word(_ allowed: String) throws -> [String] {
            let text = """
                hosts: [{ match: [a.test], upgrade: https }]
                access: { destinations: { allow: ["\(allowed)"] } }
                """
            return try words(
                explain(text, port: 80, isSecure: false, addresses: ["10.0.0.1"]))
        }
        #expect(try word("a.test:443") == ["upgrade 443"])
        #expect(try word("a.test:80") == ["destination-refused"])
    }

    // MARK: Pinsets and listeners

    @Test func `an expired pinset refuses every server`() throws {
        let text = """
            hosts: [{ match: [a.test], pinsets: [p], upgrade: https, tunnel: pass }]
            pinsets: { p: { mode: none, expires: 2020-01-01 } }
            """
        #expect(try words(explain(text)) == ["tunnel", "tls-pinset-expired"])
        #expect(
            try words(explain(text, port: 80, isSecure: false)) == ["tls-pinset-expired"])
        #expect(try words(explain(text, now: 0)) == ["tunnel", "verified"])
    }

    @Test func `a reverse listener leads to its upstream alone, by no rule of access`() throws {
        let text = """
            listeners: [{ address: "127.0.0.1:8080", kind: reverse, upstream: "https://a.test" }]
            """
        let route = try explain(text, addresses: ["10.0.0.1"])
        #expect(words(route) == ["verified"])
        guard case .reverse = route.ways.first?.asking else {
            Issue.record("\(route.ways)")
            return
        }
        #expect(try explain(text, host: "b.test").ways.isEmpty)
        #expect(try explain(text, port: 80, isSecure: false).ways.isEmpty)
    }
}

@Suite("A URL, as the gateway reads it")
struct RequestTargetTests {
    @Test(
        arguments: [
            ("http://a.test", "a.test", 80, false), ("HTTPS://A.test./x?y#z", "a.test", 443, true),
            ("http://a.test:8080/x:1", "a.test", 8080, false),
            ("https://[::1]:81", "::1", 81, true),
            ("http://a_b.test/", "a_b.test", 80, false),
        ] as [(String, String, UInt16, Bool)])
    func `host, port and scheme are read`(
        url: String, host: String, port: UInt16, isSecure: Bool
    ) throws {
        let target = try TargetURL(url: url, limits: HeadLimits())
        #expect((target.host, target.port, target.isSecure) == (host, port, isSecure))
        let path = url.drop { $0 != "/" }.dropFirst(2).drop { $0 != "/" }
        #expect(target.path == Array(path.prefix { $0 != "?" && $0 != "#" }.utf8))
    }

    @Test(
        arguments: [
            ("a.test", .malformedTarget), ("ftp://a.test", .unsupportedScheme),
            ("/path", .malformedTarget), ("http://a b/", .malformedTarget),
            ("http://127.1/", .malformedAuthority), ("http://a.test:0/", .malformedAuthority),
            ("http://me@a.test/", .userinfoInTarget), ("http://bücher.test/", .badTargetByte),
            ("http://a.test/ HTTP/1.1\r\nX: y\r\n\r\n", .malformedTarget),
        ] as [(String, WireError)])
    func `what the gateway refuses is refused for the same`(url: String, error: WireError) {
        #expect(throws: error) { try TargetURL(url: url, limits: HeadLimits()) }
    }
}
