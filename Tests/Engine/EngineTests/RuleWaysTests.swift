import CachePolicy
import EngineTestSupport
import HTTPCore
import PinfoldConfiguration
import Testing

@testable import PinfoldEngine

@Suite("Ways that rules name")
struct RuleWaysTests {
    private let table = OriginTable()

    private static let text = """
        parents:
          corp: { url: "http://192.0.2.1:3128" }
          other: { url: "socks5://192.0.2.2:1080" }
        ways: { parents: [other], noProxy: [near.test] }
        hosts: [{ match: [up.test], upgrade: https }]
        access:
          rules:
            - { name: deny, hosts: [never.test], action: deny }
            - { name: path, paths: [/v1/**], action: allow, parents: [corp, direct] }
            - { name: report, action: report }
            - { name: client, clients: [192.0.2.9], action: allow, parents: [direct] }
        """

    private func origin(_ host: String, _ policy: PolicySnapshot) throws -> Origin {
        let bytes = Array(host.utf8)
        let found = table.origin(host: bytes.span, port: 80, scheme: .http, policy: policy)
        return try #require(found)
    }

    private func request(
        _ path: String, from client: String = "192.0.2.3", method: HTTPCore.Method = .get,
        scope: AccessRules.Scope = .path
    ) throws -> AccessRequest {
        AccessRequest(
            subject: AccessRules.Subject(
                listener: "proxy", client: try #require(IPAddress(client)), method: method),
            methodName: Array("\(method.name)".utf8), scope: scope, path: Array(path.utf8), at: 0)
    }

    @Test(arguments: [
        ("a.test", "/v1/a", "192.0.2.3", ["corp", "direct"]),
        ("a.test", "/v2/a", "192.0.2.3", []), ("a.test", "/v2/a", "192.0.2.9", ["direct"]),
        // The first rule that matches decides.
        ("a.test", "/v1/a", "192.0.2.9", ["corp", "direct"]),
        ("never.test", "/v1/a", "192.0.2.9", []),
    ])
    func `are those of the rule that allows the request`(
        host: String, path: String, client: String, expected: [String]
    ) throws {
        let policy = try testPolicy(Self.text)
        let asked = try request(path, from: client)
        let names = policy.ruleWays(of: asked, to: BoundAuthority(host: host, port: 80))
        #expect(names.map(\.text) == expected)
    }

    @Test func `are those of the rule for a tunnel, whose path is not seen`() throws {
        let policy = try testPolicy(Self.text)
        let authority = BoundAuthority(host: "a.test", port: 443)
        func names(_ client: String) throws -> [String] {
            let asked = try request("", from: client, method: .connect, scope: .authority)
            return policy.ruleWays(of: asked, to: authority).map(\.text)
        }
        #expect(try names("192.0.2.9") == ["direct"])
        #expect(try names("192.0.2.3") == [])
        #expect(policy.ruleWays(of: nil, to: authority).isEmpty)
        // Its way is one of the rule's, or of the host's where the rule names none.
        let known = policy.configuration
        for (client, parent, isAllowed) in [
            ("192.0.2.9", nil, true), ("192.0.2.9", "other", false), ("192.0.2.3", "other", true),
            ("192.0.2.3", nil, false),
        ] as [(String, String?, Bool)] {
            #expect(
                policy.allows(
                    parent.flatMap { known.parent(named: $0) }, to: authority,
                    for: try request("", from: client, method: .connect, scope: .authority))
                    == isAllowed, "\(client) \(parent ?? "direct")")
        }
    }

    @Test(arguments: [
        // Nothing allows the tunnel unread: the first rule that allows some of the requests.
        ("deny", "{ name: a, methods: [GET], action: allow, parents: [corp] }", ["corp"]),
        ("deny", "{ name: a, paths: [/v1/**], action: allow, parents: [corp] }", ["corp"]),
        (
            "deny",
            "{ name: d, methods: [PUT], action: deny }, { name: r, action: report }, "
                + "{ name: a, methods: [GET], action: allow, parents: [other, direct] }, "
                + "{ name: b, paths: [/v1/**], action: allow, parents: [corp] }",
            ["other", "direct"]
        ),
        ("deny", "{ name: a, methods: [GET], action: allow }", []),
        (
            "deny",
            "{ name: d, action: deny }, "
                + "{ name: a, methods: [GET], action: allow, parents: [corp] }",
            []
        ),
        // The rule, or the default, that allows it as it is.
        ("allow", "{ name: a, methods: [GET], action: allow, parents: [corp] }", []),
        (
            "deny",
            "{ name: a, methods: [GET], action: allow, parents: [corp] }, "
                + "{ name: b, methods: [CONNECT], action: allow, parents: [other] }",
            ["other"]
        ),
    ])
    func `of an intercepted tunnel are those of requests in it, if no rule allows it unread`(
        byDefault: String, rules: String, expected: [String]
    ) throws {
        let policy = try testPolicy(
            """
            parents:
              corp: { url: "http://192.0.2.1:3128" }
              other: { url: "socks5://192.0.2.2:1080" }
            access: { default: \(byDefault), rules: [\(rules)] }
            """)
        let tunnel = try request("", method: .connect, scope: .authority)
        let names = policy.ruleWays(
            ofIntercepted: tunnel, to: BoundAuthority(host: "a.test", port: 443))
        #expect(names.map(\.text) == expected)
    }

    @Test func `lead from an origin to another one of the same server`() throws {
        let policy = try testPolicy(Self.text)
        let base = try origin("a.test", policy)
        let names: [WayName] = [.parent("corp"), .direct]
        let ruled = table.origin(of: base, by: names)
        #expect(ruled !== base && ruled.base === base && ruled.carrier === base)
        #expect(table.origin(of: base, by: names) === ruled)
        #expect(table.origin(of: base, by: []) === base)
        #expect(ruled.ways?.ways.map { $0.proxy?.standing?.name } == ["corp", nil])
        #expect(base.ways?.ways.map { $0.proxy?.standing?.name } == ["other"])
        #expect(ruled.authority == base.authority && ruled.entryIndex == base.entryIndex)
        // It has no connections, and is no member of the table of those that have.
        #expect(!table.all.contains { $0 === ruled })
    }

    @Test func `do not apply to hosts that no parent is asked for`() throws {
        let policy = try testPolicy(Self.text)
        let near = table.origin(of: try origin("near.test", policy), by: [.parent("corp")])
        #expect(near.ways?.ways == [.direct])
    }

    @Test func `in clear text have a part of the cache, whatever their order`() throws {
        let policy = try testPolicy(Self.text)
        let base = try origin("a.test", policy)
        let one = table.origin(of: base, by: [.parent("corp"), .direct])
        let turned = table.origin(of: base, by: [.direct, .parent("corp")])
        let other = table.origin(of: base, by: [.parent("other")])
        #expect(one.keyStart.bytes == turned.keyStart.bytes && one.trust == turned.trust)
        #expect(Set([base, one, other].map(\.trust)).count == 3)
        #expect(Set([base, one, other].map(\.keyStart.bytes)).count == 3)
        let key = CacheKey(bytes: one.keyStart.bytes + Array("/x".utf8))
        let known = CacheKey(bytes: base.keyStart.bytes + Array("/x".utf8))
        #expect(key.along(.direct) == known)
        #expect(
            policy.numbersOfRuleWays.contains { known.along(.direct, by: $0) == key },
            "an unsafe request finds it")
    }

    @Test func `are found by an unsafe request also when no rule names them any more`() throws {
        let first = try testPolicy(Self.text)
        let next = try testPolicy(
            try testConfiguration("access: { rules: [] }"), generation: 2, following: first)
        #expect(first.numbersOfRuleWays.count == 2)
        #expect(next.numbersOfRuleWays == first.numbersOfRuleWays)
        #expect(try testPolicy("{}").numbersOfRuleWays.isEmpty)
    }

    @Test func `over TLS share the cache`() throws {
        let policy = try testPolicy(Self.text)
        let base = try origin("up.test", policy)
        let ruled = table.origin(of: base, by: [.parent("corp")])
        #expect(base.key.isSecure && ruled.trust == base.trust)
        #expect(ruled.keyStart.bytes == base.keyStart.bytes)
    }

    @Test func `of a reverse route have a prefix of their own`() throws {
        let policy = try testPolicy(Self.text)
        let base = table.origin(
            of: ReverseUpstream(host: "r.test", port: 80, isSecure: false), policy: policy)
        let ruled = table.origin(of: base, by: [.parent("corp")])
        let key = CacheKey(bytes: ruled.keyStart.bytes + Array("/x".utf8))
        #expect(String(decoding: ruled.keyStart.bytes, as: UTF8.self).contains("-reverse"))
        #expect(key.along(.direct).bytes == Array("http://r.test/x".utf8))
    }

    @Test func `end with the configuration under which they were found`() throws {
        let first = try testPolicy(Self.text)
        let next = try testPolicy(
            try testConfiguration(Self.text + "\ntimeouts: { firstByte: 7s }"), generation: 2,
            following: first)
        let base = try origin("a.test", first)
        let ruled = table.origin(of: base, by: [.parent("corp")])
        _ = table.adopt(next)
        #expect(base.policy === next && ruled.policy === first)
        let again = table.origin(of: base, by: [.parent("corp")])
        #expect(again !== ruled && again.policy === next && again.base === base)
    }

    @Test func `a server on a Unix socket is reached directly`() throws {
        let policy = try testPolicy(Self.text)
        let socket = UpstreamOrigin(unixPath: "/run/a.sock")
        let upstream = ReverseUpstream(
            socket, forwarding: ForwardingConfiguration(), telling: .none)
        let base = table.origin(of: upstream, policy: policy)
        #expect(table.origin(of: base, by: [.parent("corp")]) === base)
        #expect(base.ways?.ways == [.direct])
        #expect(base.authority == Array("localhost".utf8))
        #expect(base.key.serverText == "unix:/run/a.sock")
        // Each path is a server of its own, also in the cache.
        let other = table.origin(
            of: ReverseUpstream(
                UpstreamOrigin(unixPath: "/run/b.sock"), forwarding: ForwardingConfiguration(),
                telling: .none), policy: policy)
        let tcp = table.origin(
            of: ReverseUpstream(host: "localhost", port: 80, isSecure: false), policy: policy)
        #expect(Set([base, other, tcp].map(\.keyStart.bytes)).count == 3)
        #expect(tcp.ways != nil, "the host's own ways apply to it")
    }
}
