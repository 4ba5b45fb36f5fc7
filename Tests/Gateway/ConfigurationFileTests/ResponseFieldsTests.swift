import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Gateway

private func hosts(_ headers: String, rest: String = "") -> String {
    "hosts: [{ match: [a.test], tunnel: refuse, response: { headers: \(headers)\(rest) } }]"
}

private let key = "gateway.yaml:1: hosts[0].response.headers"

@Suite("The key response.headers of an entry")
struct ResponseFieldsTests {
    @Test func `has the steps of request.headers`() throws {
        let entry = try load(
            hosts(
                """
                { remove: [Server], rename: { X-Old: X-New }, set: { X-A: "1" },
                  add: { Set-Cookie: [a=1, b=2], Vary: Origin }, defaults: { X-B: b } }
                """)
        ).hosts.entries[0]
        var rules = HeaderRules()
        rules.remove = ["Server"]
        rules.rename = [NamedValue("X-Old", "X-New")]
        rules.set = [NamedValue("X-A", "1")]
        rules.add = [
            NamedValue("Set-Cookie", "a=1"), NamedValue("Set-Cookie", "b=2"),
            NamedValue("Vary", "Origin"),
        ]
        rules.defaults = [NamedValue("X-B", "b")]
        #expect(entry.response.headers == rules)
        #expect(entry.request.headers == HeaderRules())
    }

    @Test func `what is printed loads to the same`() throws {
        let snapshot = try load(
            hosts("{ set: { X-A: \"1\" }, add: { X-B: [b, c] } }") + "\nvia: front\n")
        #expect(try load(snapshot.effectiveYAML()) == snapshot)
        #expect(try load("{}").effectiveYAML().contains("via") == false)
    }

    @Test(arguments: [
        ("{ set: { Content-Length: 1 } }", "set.Content-Length", "the gateway sets it to match"),
        ("{ remove: [transfer-encoding] }", "remove[0]", "the gateway sets it to match"),
        ("{ add: { Connection: close } }", "add.Connection", "it concerns a single connection"),
        ("{ remove: [Content_Length] }", "remove[0]", "the gateway sets it to match"),
        ("{ rename: { X-A: Via } }", "rename.X-A", "it describes the request's path"),
        ("{ set: { Content-Encoding: gzip } }", "set.Content-Encoding", "it says how the content"),
        ("{ remove: [Content-Range] }", "remove[0]", "it says how the content"),
        ("{ remove: [Age] }", "remove[0]", "caches calculate with it"),
        ("{ defaults: { Date: now } }", "defaults.Date", "caches calculate with it"),
        ("{ set: { ETag: x } }", "set.ETag", "the client's conditions are compared"),
        ("{ rename: { X-A: Last-Modified } }", "rename.X-A", "the client's conditions"),
        ("{ remove: [Vary] }", "remove[0]", "caches depend on it"),
        ("{ set: { Vary: Origin } }", "set.Vary", "caches depend on it"),
        ("{ add: { Cache-Status: x } }", "add.Cache-Status", "the gateway writes it"),
        ("{ set: { Proxy-Status: x } }", "set.Proxy-Status", "it concerns a single"),
        ("{ set: { Host: x } }", "set.Host", "it is a field of requests"),
    ])
    func `fields that must stay are an error`(headers: String, place: String, reason: String) {
        let found = errors(of: hosts(headers))
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix("\(key).\(place): ") ?? false, "\(found)")
        #expect(found.first?.contains("cannot be changed here: \(reason)") ?? false, "\(found)")
    }

    @Test(arguments: [
        "{ remove: [Server, ETag, Last-Modified, Cache-Status, Set-Cookie] }",
        "{ set: { Cache-Control: no-store, Content-Type: text/plain, Location: / } }",
        "{ rename: { ETag: X-Tag } }", "{ add: { Vary: Origin } }",
    ])
    func `instructions and what only tells something may be changed`(headers: String) {
        #expect(errors(of: hosts(headers)) == [])
    }

    @Test(arguments: [
        ("{ set: { \"A B\": x } }", "set.\"A B\""), ("{ set: { A: \"x\\r\\nB: y\" } }", "set.A"),
        ("{ add: { A: [\"x\\x01\"] } }", "add.A[0]"), ("{ defaults: { A: \" x\" } }", "defaults.A"),
        ("{ remove: [\"a:\"] }", "remove[0]"),
    ])
    func `names and values are strict`(headers: String, place: String) {
        let found = errors(of: hosts(headers))
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix("\(key).\(place): ") ?? false, "\(found)")
    }

    @Test func `contradictions are errors`() {
        let found = errors(of: hosts("{ remove: [X-A], set: { x-a: 1 } }"))
        #expect(found.count == 1)
        #expect(found.first?.contains("appears in both remove and set") ?? false, "\(found)")
    }

    @Test func `the type of translated content stays`() {
        let found = errors(
            of: hosts("{ set: { Content-Type: x/y } }", rest: ", body: { from: json, to: xml }"))
        #expect(found.count == 1)
        #expect(found.first?.contains("response.body determines it") ?? false, "\(found)")
    }

    // MARK: The name

    @Test func `via is a name, and an entry may have another one`() throws {
        let snapshot = try load(
            "via: front\nhosts: [{ match: [a.test], via: Inner-2 }, { match: [b] }]")
        #expect(snapshot.via == GatewayName("front"))
        #expect(snapshot.name(entry: nil) == GatewayName("front"))
        #expect(snapshot.name(entry: 0) == GatewayName("Inner-2"))
        #expect(snapshot.name(entry: 1) == GatewayName("front"))
        #expect(snapshot.names?.map(\.text) == ["front", "Inner-2", "front"])
        #expect(try load("{}").names == nil)
    }

    @Test(arguments: ["1a", "a b", "\"a\\r\\nb\"", "a/b", "\"\"", "[a]", "a:80"])
    func `what is no name is an error`(text: String) {
        for (yaml, place) in [
            ("via: \(text)", "via"), ("hosts: [{ match: [a.test], via: \(text) }]", "hosts[0].via"),
        ] {
            let found = errors(of: yaml)
            #expect(found.count == 1, "\(yaml)")
            #expect(found.first?.hasPrefix("gateway.yaml:1: \(place): ") ?? false, "\(found)")
        }
    }

    @Test func `what a name does not cover is warned of`() throws {
        let entry = try warnings(of: "hosts: [{ match: [a.test], via: front }]")
        #expect(entry.count == 1)
        #expect(entry.first?.contains("write via at the top level for these") ?? false)
        #expect(try warnings(of: "via: front") == [])
    }
}
