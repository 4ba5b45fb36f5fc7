import EngineTestSupport
import Testing

@testable import Engine

@Suite("What would become of a request")
struct RouteExplanationTests {
    private func explain(
        _ text: String, host: String = "a.test", port: UInt16 = 443, isSecure: Bool = true
    ) throws -> RouteExplanation {
        let policy = try PolicySnapshot(asking: testConfiguration(text))
        return RouteExplanation(policy, host: host, port: port, isSecure: isSecure)
    }

    /// A word for each way, the reason's token of a refusal.
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
    func `each way is what the policy says of it`(
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
        ("169.254.169.254", "refused"), ("a.test", "decided by each address"),
        ("b.lab.test", "private networks are allowed"), ("bad.test", "refused"),
    ])
    func `the rules of access are told for names and addresses`(host: String, word: String) throws {
        let text = """
            access: { destinations: { allow: ["**.lab.test"], deny: [bad.test] } }
            """
        let route = try explain(text, host: host)
        #expect(route.destination.text.contains(word), "\(route.destination)")
    }

    @Test func `the cache is told off where it is`() throws {
        #expect(try explain("{}").cacheIsUsed)
        #expect(try !explain("cache: { enabled: false }").cacheIsUsed)
        #expect(try !explain(text(", cache: { store: false }")).cacheIsUsed)
        #expect(try explain(text(", cache: { store: false }"), host: "b.test").cacheIsUsed)
    }
}
