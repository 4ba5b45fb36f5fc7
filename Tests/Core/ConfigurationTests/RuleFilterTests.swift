import HTTPCore
import PinfoldConfiguration
import Testing
import Trust

@Suite("What no rule can match")
struct RuleFilterTests {
    private static let get = "GET from 192.0.2.1"

    /// Whether a rule may match `METHOD from CLIENT` of nobody known.
    private func mayMatch(
        _ request: String, isKnown: Bool = false, _ change: (inout AccessRule) throws -> Void
    ) throws -> Bool {
        var rule = AccessRule()
        try change(&rule)
        let words = request.split(separator: " ").map(String.init)
        let method = Method.allCases.first { "\($0.name)" == words[0] } ?? .other
        let client = try #require(IPAddress(words[2]))
        return RuleFilter([rule]).mayMatch(method, from: client, isKnown: isKnown)
    }

    @Test func `is told by the method`() throws {
        for method in Method.allCases where method != .other {
            let request = "\(method.name) from 192.0.2.1"
            #expect(try mayMatch(request) { _ in })
            #expect(try mayMatch(request) { $0.methods = ["FOO", "\(method.name)"] })
            #expect(
                try !mayMatch(request) { rule in
                    rule.methods = Method.allCases.filter { $0 != method }.map { "\($0.name)" }
                })
        }
        // Of methods without a case, the names are not compared.
        #expect(try mayMatch("FOO from 192.0.2.1") { $0.methods = ["BAR"] })
        #expect(try !mayMatch("FOO from 192.0.2.1") { $0.methods = ["GET"] })
        #expect(try !mayMatch("get from 192.0.2.1") { $0.methods = ["GET"] })
    }

    @Test(arguments: [
        ("192.0.2.0/24", true), ("192.0.2.1", true), ("0.0.0.0/0", true), ("192.0.0.0/14", true),
        ("192.0.2.2/31", false), ("192.0.2.0/32", false), ("10.0.0.0/8", false),
        ("2001:db8::/32", false), ("::/0", false),
    ])
    func `is told by an IPv4 client`(network: String, matches: Bool) throws {
        let network = try #require(IPNetwork(network))
        let other = try #require(IPNetwork("198.51.100.0/24"))
        #expect(try mayMatch(Self.get) { $0.clients = [network] } == matches)
        #expect(try mayMatch(Self.get) { $0.clients = [other, network] } == matches)
        // Of those with IPv6 nothing is told.
        #expect(try mayMatch("GET from 2001:db8::1") { $0.clients = [network] })
        #expect(try mayMatch("GET from ::ffff:192.0.2.1") { $0.clients = [network] })
    }

    @Test func `is told by whether anybody is known`() throws {
        #expect(try !mayMatch(Self.get) { $0.users = ["ann"] })
        #expect(try !mayMatch(Self.get) { $0.groups = ["staff"] })
        #expect(try mayMatch(Self.get, isKnown: true) { $0.users = ["ann"] })
        #expect(try mayMatch(Self.get, isKnown: true) { $0.groups = ["staff"] })
    }

    @Test func `is not told by anything else`() throws {
        #expect(
            try mayMatch(Self.get) { rule in
                rule.listeners = ["other"]
                rule.ports = [1]
                rule.paths = [try PathPattern("/v1/**")]
            })
    }

    @Test func `is told by all rules together`() throws {
        var one = AccessRule()
        one.methods = ["POST"]
        var two = AccessRule()
        two.clients = [try #require(IPNetwork("10.0.0.0/8"))]
        let client = try #require(IPAddress("192.0.2.1"))
        let inside = try #require(IPAddress("10.1.2.3"))
        #expect(!RuleFilter([one, two]).mayMatch(.get, from: client, isKnown: false))
        #expect(RuleFilter([one, two]).mayMatch(.post, from: client, isKnown: false))
        #expect(RuleFilter([one, two]).mayMatch(.get, from: inside, isKnown: false))
        #expect(!RuleFilter([AccessRule]()).mayMatch(.get, from: client, isKnown: false))
    }
}
