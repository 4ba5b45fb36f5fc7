import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("upstreams of a reverse listener")
struct UpstreamsTests {
    /// A configuration with one route.
    private static func text(_ upstreams: String, _ rest: String = "") -> String {
        """
        listeners:
          - { name: r, address: "127.0.0.1:0", kind: reverse, \(key(upstreams)) }
        \(rest)
        """
    }

    /// The key, on one line.
    private static func key(_ text: String) -> String {
        "upstreams: { \(String(text.map { $0.isNewline ? " " : $0 })) }"
    }

    private func set(_ upstreams: String) throws -> UpstreamSet {
        let kind = try load(Self.text(upstreams)).listeners[0].kind
        guard case .balanced(let set) = kind else {
            Issue.record("not several servers: \(kind)")
            return UpstreamSet()
        }
        return set
    }

    @Test func `every key is read`() throws {
        let read = try set(
            """
            servers: [{ url: https://A.example.com, weight: 2 },
              { url: "https://b.example.com:8443", backup: true, maxConnections: 100 }],
            balance: { hash: { field: X-User } },
            health: { path: /health?a=1, interval: 7s, timeout: 1s, statusCodes: ["200-299", "404"],
              rise: 4, fall: 5 },
            ejection: { failures: 6, window: 11s, period: 31s, share: 40% },
            retries: { attempts: 2, budget: 30% }, slowStart: 1m, sticky: { cookie: route },
            proxyProtocol: v2
            """)
        var expected = UpstreamSet()
        var one = UpstreamSet.Server(
            origin: UpstreamOrigin(scheme: .https, host: "a.example.com", port: 443))
        one.weight = 2
        var other = UpstreamSet.Server(
            origin: UpstreamOrigin(scheme: .https, host: "b.example.com", port: 8443))
        other.isBackup = true
        other.maxConnections = 100
        expected.servers = [one, other]
        expected.balance = .hash(.field("x-user"))
        expected.health.path = "/health?a=1"
        expected.health.intervalMilliseconds = 7_000
        expected.health.timeoutMilliseconds = 1_000
        expected.health.statusCodes = [200...299, 404...404]
        (expected.health.rise, expected.health.fall) = (4, 5)
        expected.ejection.failures = 6
        expected.ejection.windowMilliseconds = 11_000
        expected.ejection.periodMilliseconds = 31_000
        expected.ejection.sharePercent = 40
        (expected.retries.attempts, expected.retries.budgetPercent) = (2, 30)
        expected.slowStartMilliseconds = 60_000
        expected.stickyCookie = "route"
        expected.proxyProtocol = .v2
        #expect(read == expected)
    }

    @Test func `the rest has defaults`() throws {
        var expected = UpstreamSet()
        expected.servers = [.init(origin: UpstreamOrigin(scheme: .http, host: "a.test", port: 80))]
        #expect(try set("servers: [{ url: http://a.test }]") == expected)
        #expect(expected.balance == .leastRequests && expected.health.path == nil)
        #expect(expected.ejection.failures == 5 && expected.retries.attempts == 1)
    }

    @Test(
        arguments: [
            ("roundRobin", .roundRobin), ("leastRequests", .leastRequests),
            ("{ hash: client }", .hash(.client)), ("{ hash: path }", .hash(.path)),
            ("{ hash: { field: X-User } }", .hash(.field("x-user"))),
        ] as [(String, UpstreamSet.Balance)])
    func `each way to balance is read and printed`(text: String, expected: UpstreamSet.Balance)
        throws
    {
        let snapshot = try load(
            Self.text("servers: [{ url: http://a.test }], balance: \(text)"))
        guard case .balanced(let set) = snapshot.listeners[0].kind else {
            Issue.record("not several servers")
            return
        }
        #expect(set.balance == expected)
        #expect(try load(snapshot.effectiveYAML()) == snapshot)
    }

    @Test func `what is printed loads to the same`() throws {
        let snapshot = try load(
            Self.text(
                """
                servers: [{ url: http://a.test, weight: 0 }, { url: http://b.test, backup: true,
                  maxConnections: 1 }, { url: http://c.test }], health: { path: /, fall: 1 },
                sticky: { cookie: a-b }, retries: { budget: 0% }
                """))
        #expect(try load(snapshot.effectiveYAML()) == snapshot)
    }

    @Test(arguments: [
        ("servers: []", "upstreams.servers: has no servers; expected 1 to 64 servers"),
        (
            "balance: roundRobin",
            "upstreams.servers: is missing; expected a list of servers with url"
        ),
        ("servers: ~", "upstreams.servers: is empty; expected a list of servers with url"),
        ("servers: [~]", "upstreams.servers[0]: is empty; expected a mapping with url"),
        ("servers: [{ weight: 1 }]", "upstreams.servers[0].url: is missing; expected http://"),
        (
            "servers: [{ url: http://a.test/x }]",
            "upstreams.servers[0].url: \"http://a.test/x\" is not valid; expected http://host"
        ),
        (
            "servers: [{ url: http://a.test }, { url: https://b.test }]",
            "upstreams.servers[1].url: is https, and the first server is http: a route's requests "
                + "are all sent in clear text, or all over TLS; expected http://"
        ),
        (
            "servers: [{ url: http://a.test }, { url: 'http://A.test:80/' }]",
            "upstreams.servers[1].url: http://a.test is listed twice; "
                + "expected each server once, with a weight"
        ),
        (
            "servers: [{ url: http://a.test, backup: true }]",
            "upstreams.servers: has only backups; expected a server without backup: true"
        ),
        (
            "servers: [{ url: http://a.test, weight: 257 }]",
            "upstreams.servers[0].weight: 257 is out of range"
        ),
        (
            "servers: [{ url: http://a.test }], balance: random",
            "upstreams.balance: \"random\" is not valid; expected one of roundRobin, leastRequests"
        ),
        (
            "servers: [{ url: http://a.test }], balance: { hash: cookie }",
            "upstreams.balance.hash: \"cookie\" is not valid; expected one of client, path"
        ),
        (
            "servers: [{ url: http://a.test }], balance: { hash: { field: 'X User' } }",
            "upstreams.balance.hash.field: \"X User\" is not valid; expected the name of a request"
        ),
        (
            "servers: [{ url: http://a.test }], health: { interval: 1s }",
            "upstreams.health: has no path, so that nothing is checked; expected path"
        ),
        (
            "servers: [{ url: http://a.test }], health: { path: /, interval: 1s }",
            "upstreams.health: is longer than the interval, 1s; expected at most the interval"
        ),
        (
            "servers: [{ url: http://a.test }], health: { path: health }",
            "upstreams.health.path: \"health\" is not valid; expected a path that begins with /"
        ),
        (
            "servers: [{ url: http://a.test }], ejection: { share: 50 }",
            "upstreams.ejection.share: \"50\" is not valid (did you mean 50%?); expected a whole"
        ),
        (
            "servers: [{ url: http://a.test }], retries: { budget: 101% }",
            "upstreams.retries.budget: \"101%\" is not valid; expected a whole number from 0 to 100"
        ),
        (
            "servers: [{ url: http://a.test }], sticky: { cookie: 'a b' }",
            "upstreams.sticky.cookie: \"a b\" is not valid; expected the name of a cookie"
        ),
        (
            "servers: [{ url: http://a.test }], sticky: {}",
            "upstreams.sticky: names no cookie; expected cookie, such as route"
        ),
        (
            "servers: [{ url: http://a.test }], proxyProtocol: v3",
            "upstreams.proxyProtocol: \"v3\" is not valid; expected one of none, v1, v2"
        ),
    ])
    func `what is wrong is said`(upstreams: String, expected: String) {
        let found = errors(of: Self.text(upstreams))
        #expect(found.count == 1, "\(found)")
        #expect(
            found.first?.hasPrefix("gateway.yaml:2: listeners[0].\(expected)") == true, "\(found)")
    }

    @Test func `both keys at once are refused, and neither is for a forward listener`() {
        let both = """
            listeners: [{ address: "127.0.0.1:0", kind: reverse, upstream: http://a.test,
              upstreams: { servers: [{ url: http://b.test }] } }]
            """
        #expect(
            errors(of: both) == [
                "gateway.yaml:1: listeners[0].upstream: cannot be together with upstreams; "
                    + "expected only one of the two"
            ])
        let forward = """
            listeners: [{ address: "127.0.0.1:1", upstreams: { servers: [{ url: http://b.test }] }}]
            """
        #expect(
            errors(of: forward) == [
                "gateway.yaml:1: listeners[0].upstreams: does not apply to a forward listener; "
                    + "expected kind: reverse, or no upstreams"
            ])
    }

    private static let two = "servers: [{ url: http://a.test }, { url: http://b.test }]"

    @Test(
        arguments: [
            ("cache: { store: false }", "cache"), ("via: other", "via"),
            ("request: { headers: { set: { A: b } } }", "request"),
            ("switchProtocols: refuse", "switchProtocols"), ("timeouts: { connect: 1s }", nil),
            ("http2: off", nil), ("tunnel: refuse", nil),
        ] as [(String, String?)])
    func `entries of servers may not differ in what applies before one is chosen`(
        entry: String, key: String?
    ) {
        let found = errors(of: Self.text(Self.two, "hosts: [{ match: [b.test], \(entry) }]"))
        guard let key else {
            #expect(found.isEmpty, "\(found)")
            return
        }
        #expect(
            found == [
                "gateway.yaml:2: listeners[0].upstreams.servers[1]: the entries of hosts for "
                    + "a.test and b.test differ in \(key), which applies before a server is "
                    + "chosen; expected entries that differ in pinsets, tls, http2 and timeouts "
                    + "only"
            ])
        let same = Self.text(Self.two, "hosts: [{ match: [a.test, b.test], \(entry) }]")
        #expect(errors(of: same).isEmpty)
    }

    @Test func `rules may not tell the servers apart`() {
        func rules(_ hosts: String) -> [String] {
            errors(
                of: Self.text(
                    Self.two,
                    "access: { rules: [{ name: no-b, hosts: [\(hosts)], action: deny }] }"))
        }
        #expect(
            rules("b.test") == [
                "gateway.yaml:2: listeners[0].upstreams.servers[1]: the rule no-b of access.rules "
                    + "is for one of a.test and b.test, but applies before a server is chosen; "
                    + "expected rules that are for all servers of a route, or for none"
            ])
        #expect(rules("'*.test'").isEmpty && rules("c.test").isEmpty)
    }

    @Test func `a server whose pins would be bypassed is warned of`() throws {
        let pinned = Self.text(
            Self.two,
            """
            pinsets:
              p: { mode: publicKey, pins: [sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=] }
            hosts: [{ match: [b.test], pinsets: [p] }]
            """)
        let found = try warnings(of: pinned).filter { $0.contains("servers[1]") }
        #expect(found.count == 1)
        #expect(found[0].contains("it is never used: the host has pinsets"))
    }

    // MARK: Unix sockets and PROXY headers

    @Test func `a server may be on a Unix socket`() throws {
        let set = try set(
            "servers: [{ url: \"unix:/run/a.sock\" }, { url: \"unix:b.sock\" }, "
                + "{ url: http://localhost }]")
        #expect(
            set.servers.map(\.origin) == [
                UpstreamOrigin(unixPath: "/run/a.sock"), UpstreamOrigin(unixPath: "/srv/b.sock"),
                UpstreamOrigin(scheme: .http, host: "localhost", port: 80),
            ])
        #expect(
            set.servers.map(\.origin.url) == [
                "unix:/run/a.sock", "unix:/srv/b.sock", "http://localhost",
            ])
        #expect(set.servers.allSatisfy { $0.origin.authority == "localhost" })
    }

    @Test func `one server may be on a Unix socket, and is told who the client is`() throws {
        let text = """
            listeners:
              - { name: r, address: "127.0.0.1:0", kind: reverse, upstream: "unix:/run/a.sock",
                  sendProxyProtocol: v1 }
            """
        let snapshot = try load(text)
        #expect(snapshot.listeners[0].kind == .reverse(UpstreamOrigin(unixPath: "/run/a.sock")))
        #expect(snapshot.listeners[0].upstreamProxyProtocol == .v1)
        #expect(try load(snapshot.effectiveYAML()) == snapshot)
    }

    private static let longPath = "/" + String(repeating: "a", count: 107)

    @Test(arguments: [
        ("unix:", "\"unix:\" names no file; expected unix: and a path"),
        ("unix:/run/", "\"unix:/run/\" names no file; expected unix: and a path"),
        (
            "unix:" + longPath,
            "\"\(longPath)\" is too long for a Unix socket; expected a path of at most 107 bytes"
        ),
        (
            "http://unix:/run/a.sock:/",
            "\"http://unix:/run/a.sock:/\" is not valid: the socket's path follows unix: at once, "
                + "and clear text is spoken there; expected unix: and a path, such as "
                + "unix:/run/app.sock"
        ),
    ])
    func `what names no socket is an error`(url: String, problem: String) {
        #expect(
            errors(of: Self.text("servers: [{ url: \"\(url)\" }]")) == [
                "gateway.yaml:2: listeners[0].upstreams.servers[0].url: " + problem
            ])
    }

    @Test func `servers on sockets and over TLS are not mixed`() {
        let found = errors(
            of: Self.text("servers: [{ url: https://a.test }, { url: \"unix:/run/a.sock\" }]"))
        #expect(found.count == 1 && found[0].contains("the first server is https"), "\(found)")
    }

    @Test(arguments: [
        "{ name: l, address: \"unix:/run/a.sock\", kind: forward }",
        "{ name: l, address: \"unix:/run/b.sock\", kind: reverse, upstream: \"unix:/run/b.sock\" }",
    ])
    func `the gateway's own sockets are no servers`(other: String) {
        let text = """
            listeners:
              - { name: r, address: "127.0.0.1:0", kind: reverse, upstream: "unix:/run/a.sock" }
              - \(other)
            access: { clients: [unix] }
            """
        let found = errors(of: text)
        #expect(found.count == 1)
        #expect(
            found.allSatisfy { $0.contains("is where this gateway listens itself") }, "\(found)")
    }

    @Test(arguments: [
        ("upstream: https://a.test, sendProxyProtocol: v2", "upstream"),
        (
            "upstreams: { servers: [{ url: https://b.test }, { url: https://a.test }], "
                + "proxyProtocol: v1 }", "upstreams.servers[1].url"
        ),
    ])
    func `a server that must speak HTTP/2 gets no header`(keys: String, place: String) {
        let text = """
            listeners: [{ name: r, address: "127.0.0.1:0", kind: reverse, \(keys) }]
            hosts: [{ match: [a.test], http2: require }]
            """
        let found = errors(of: text)
        #expect(found.count == 1)
        #expect(
            found.allSatisfy {
                $0.hasPrefix(
                    "gateway.yaml:1: listeners[0].\(place): the entry of hosts for a.test ")
            }, "\(found)")
    }

    @Test(arguments: [
        ("kind: forward, sendProxyProtocol: v2", "does not apply to a forward listener"),
        ("kind: socks5, sendProxyProtocol: v2", "does not apply to a socks5 listener"),
        ("kind: reverse, upstream: http://a.test, sendProxyProtocol: v3", "\"v3\" is not valid"),
        (
            "kind: reverse, upstreams: { servers: [{ url: http://a }] }, sendProxyProtocol: v1",
            "does not apply to several servers; expected proxyProtocol in upstreams"
        ),
    ])
    func `headers are for the one upstream of a reverse listener`(keys: String, problem: String) {
        let found = errors(
            of: "listeners: [{ name: r, address: \"127.0.0.1:0\", \(keys) }]")
        #expect(found.count == 1)
        #expect(
            found.allSatisfy {
                $0.hasPrefix("gateway.yaml:1: listeners[0].sendProxyProtocol: " + problem)
            }, "\(found)")
    }
}
