import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("The requests that an entry's rules apply to")
struct RuleReachTests {
    private static let rules = "response: { validate: json }"
    private static let reverse =
        "listeners: [{ address: '127.0.0.1:1', kind: reverse, upstream: '"

    /// The errors and warnings for an entry for `a.test` with a rule.
    private func found(
        _ entry: String, rules: String = Self.rules, match: String = "a.test", rest: String = ""
    ) -> (errors: [String], warnings: [String]) {
        let text = "hosts: [{ match: ['\(match)'], \(rules), \(entry) }]\n\(rest)"
        let errors = errors(of: text)
        return (errors, errors.isEmpty ? (try? warnings(of: text)) ?? ["?"] : [])
    }

    private let passed =
        "gateway.yaml:1: hosts[0].response: does not apply to tunnels to these hosts, which the "
        + "gateway cannot read; write intercept: true, or tunnel: refuse to prevent "
        + "that"

    @Test(arguments: [
        "tunnel: auto", "tunnel: pass", "upgrade: https", "upgrade: https, tunnel: inspect",
        "clearText: allow",
    ])
    func `tunnels that bypass them cause a warning`(entry: String) {
        let found = found(entry)
        #expect(found.errors == [])
        #expect(found.warnings == [passed])
    }

    @Test(arguments: [
        "tunnel: refuse", "tunnel: refuse, upgrade: https", "tunnel: refuse, clearText: refuse",
    ])
    func `refused tunnels do not bypass them`(entry: String) {
        let found = found(entry)
        #expect(found.errors == [])
        #expect(found.warnings == [])
    }

    @Test(arguments: [
        "request: { headers: { remove: [X-A] } }", "request: { path: { prefixes: { /a: /b } } }",
        "request: { query: { remove: [a] } }", "request: { body: { from: form, to: json } }",
        "request: { parameters: byMethod }", "response: { statusCodes: [200] }",
        "response: { image: {} }",
    ])
    func `every rule counts`(rules: String) {
        let found = found("tunnel: pass", rules: rules)
        #expect(found.errors == [])
        #expect(found.warnings.count == 1)
    }

    @Test(arguments: [
        "request: { timeout: 1s }", "request: { cachePolicy: reloadIgnoringCache }",
        "request: {}", "response: {}", "cache: { form: translated }",
    ])
    func `settings that do not concern tunnels cause no warning`(rules: String) {
        let found = found("tunnel: pass, clearText: refuse", rules: rules)
        #expect(found.errors == [])
        #expect(found.warnings == [])
    }

    @Test(arguments: [
        ("tunnel: pass, clearText: refuse", "a.test", "clear text to them is refused"),
        ("clearText: refuse", "a.test", "clear text to them is refused"),
        ("tunnel: inspect, clearText: refuse", "a.test", "clear text to them is refused"),
        ("tunnel: pass", "a.test:443", "the entry is for port 443"),
    ])
    func `rules that all requests bypass are an error`(entry: String, match: String, reason: String)
    {
        #expect(
            found(entry, match: match).errors == [
                "gateway.yaml:1: hosts[0].response: applies to no request: the gateway cannot read "
                    + "tunnels to these hosts, and \(reason); expected intercept: true, "
                    + "upgrade: https, or a reverse listener for these hosts"
            ])
    }

    @Test func `a reverse listener makes them apply`() {
        for entry in ["tunnel: pass, clearText: refuse", "tunnel: auto"] {
            // No tunnels are possible.
            let found = found(entry, rest: Self.reverse + "https://a.test' }]")
            #expect(found.errors == [])
            #expect(found.warnings == [])
        }
        let both =
            "listeners: [{ address: '127.0.0.1:1' }, "
            + "{ address: '127.0.0.1:2', kind: reverse, upstream: 'https://a.test' }]"
        #expect(found("tunnel: pass, clearText: refuse", rest: both).warnings == [passed])
    }

    @Test func `without a listener that leads to the hosts there is an error`() {
        let other = Self.reverse + "https://b.test' }]"
        #expect(
            found("tunnel: refuse", rest: other).errors == [
                "gateway.yaml:1: hosts[0].response: applies to no request: there is no forward "
                    + "listener, and no reverse listener leads to these hosts; "
                    + "expected a listener that does"
            ])
    }

    @Test func `if no tunnel may be opened there is no warning`() {
        let found = found("tunnel: pass", rest: "access: { connectPorts: [] }")
        #expect(found.errors == [])
        #expect(found.warnings == [])
    }

    @Test(
        arguments: [
            ("", nil),
            (
                ", tunnel: pass",
                "tunnels without TLS, and tunnels of clients that keep rejecting the "
                    + "interception's certificates,"
            ),
            (
                ", tunnel: inspect",
                "tunnels of clients that keep rejecting the interception's certificates"
            ),
        ] as [(String, String?)])
    func `only intercepted tunnels that fall back bypass them`(
        entry: String, tunnels: String?
    ) throws {
        try withAuthority { folder in
            let found = try warnings(
                of: """
                    hosts:
                    - { match: [a.test], \(Self.rules), intercept: true, clearText: refuse\(entry) }
                    interception: { certificate: ca.pem, key: ca.key }
                    """, folder: folder + "/")
            let expected = tunnels.map {
                "\(folder)/gateway.yaml:2: hosts[0].response: does not apply to \($0) to these "
                    + "hosts, which the gateway cannot read; write tunnel: refuse to "
                    + "prevent that"
            }
            #expect(found == [expected].compactMap { $0 })
        }
    }

    @Test(arguments: ["returnCacheElseLoad", "returnCacheDontLoad"])
    func `cache policies that need stored responses require a cache`(policy: String) {
        let rules = "request: { cachePolicy: \(policy) }"
        let place = "gateway.yaml:1: hosts[0].request.cachePolicy: \(policy) requires "
        for cache in ["enabled: false", "memory: 0, disk: 0"] {
            #expect(
                found("tunnel: auto", rules: rules, rest: "cache: { \(cache) }").errors == [
                    place + "a cache, but there is none; expected useProtocol, or a cache"
                ])
        }
        #expect(
            found("cache: { store: false }", rules: rules).errors == [
                place + "stored responses, but cache.store is false; expected useProtocol, or "
                    + "cache: { store: true }"
            ])
        #expect(found("tunnel: auto", rules: rules, rest: "cache: { memory: 0 }").errors == [])
    }

    @Test(arguments: [
        ("tunnel: refuse", "", "", true),
        ("tunnel: refuse", ", clearText: allow", "", false),
        ("tunnel: refuse, upgrade: https", "", "", false),
        ("tunnel: refuse, clearText: refuse", "", "", false),
        ("tunnel: refuse", "", reverse + "http://a.test' }]", true),
        ("tunnel: refuse", "", reverse + "https://a.test' }]", false),
    ])
    func `credentials that would only be sent in clear text cause a warning`(
        entry: String, clearText: String, listeners: String, isWarned: Bool
    ) throws {
        var environment = testEnvironment
        environment.variables = .fixed(["T": "t"])
        let text =
            "hosts: [{ match: [a.test], \(entry), request: { authorization: "
            + "{ bearer: { tokenVariable: T }\(clearText) } } }]\n\(listeners)"
        let found = try ConfigurationLoader(environment: environment)
            .load(text: Array(text.utf8), name: "gateway.yaml").warnings.map(\.description)
        let warning =
            "gateway.yaml:1: hosts[0].request.authorization: is never added: all "
            + "requests that the "
            + "gateway can read are sent in clear text, for which it is refused; write upgrade: "
            + "https, or clearText: allow here to let anyone on the network path read it"
        #expect(found == (isWarned ? [warning] : []))
    }

    @Test func `allowing credentials in clear text that is never used causes a warning`() throws {
        var environment = testEnvironment
        environment.variables = .fixed(["T": "t"])
        let text =
            "hosts: [{ match: [a.test], tunnel: refuse, upgrade: https, request: { authorization: "
            + "{ bearer: { tokenVariable: T }, clearText: allow } } }]"
        let found = try ConfigurationLoader(environment: environment)
            .load(text: Array(text.utf8), name: "gateway.yaml").warnings.map(\.description)
        #expect(
            found == [
                "gateway.yaml:1: hosts[0].request.authorization.clearText: has no effect with "
                    + "upgrade: https"
            ])
    }
}
