import HTTPCore
import PinfoldConfiguration
import Testing
import Trust

@Suite("The rules of access")
struct AccessRulesTests {
    private static func rule(
        _ name: String, _ action: AccessRule.Action,
        _ change: (inout AccessRule) throws -> Void = { _ in }
    ) rethrows -> AccessRule {
        var rule = AccessRule()
        rule.name = name
        rule.action = action
        try change(&rule)
        return rule
    }

    private static let deny = AccessRule.Action.deny(AccessDenial())

    private struct Request {
        var host = "a.test"
        var port: UInt16 = 80
        var listener = "proxy"
        var client = "192.0.2.1"
        var method = "GET"
        var path = "/"
        var scope = AccessRules.Scope.path
        var minute = 0
    }

    /// `allow NAME`, `deny NAME`, `ambiguous`; `-` for the default; and what was reported.
    private func judge(
        _ rules: [AccessRule], _ request: Request = Request(), allowsByDefault: Bool = true
    ) throws -> String {
        guard let table = AccessRules(rules, allowsByDefault: allowsByDefault) else {
            return "allow -"
        }
        let client = try #require(IPAddress(request.client))
        let method = Method.allCases.first { "\($0.name)" == request.method } ?? .other
        let (name, path) = (Array(request.method.utf8), Array(request.path.utf8))
        let candidates = table.candidates(host: request.host.utf8.span, port: request.port)
        let judgement = table.judge(
            AccessRules.Subject(listener: request.listener, client: client, method: method),
            candidates,
            methodName: name.span, scope: request.scope, path: path.span,
            minuteOfWeek: { request.minute })
        let filter = RuleFilter(candidates.map { rules[$0] })
        if !filter.mayMatch(method, from: client, isKnown: false) {
            #expect(judgement.rule == nil && judgement.reported.isEmpty)
            #expect(judgement.verdict == (allowsByDefault ? .allowed : .denied))
        }
        let rule = judgement.rule.map { rules[$0].name } ?? "-"
        let reported = judgement.reported.map { " (\(rules[$0].name))" }.joined()
        switch judgement.verdict {
        case .allowed: return "allow \(rule)\(reported)"
        case .denied: return "deny \(rule)\(reported)"
        case .ambiguous: return "ambiguous"
        }
    }

    @Test func `the first rule that matches decides, and otherwise the default`() throws {
        let rules = try [
            Self.rule("one", .allow) { $0.methods = ["GET"] }, Self.rule("two", Self.deny),
        ]
        #expect(try judge(rules) == "allow one")
        #expect(try judge(rules, Request(method: "POST")) == "deny two")
        #expect(try judge(rules.reversed()) == "deny two")
        #expect(try judge([rules[0]], Request(method: "POST")) == "allow -")
        #expect(try judge([rules[0]], Request(method: "POST"), allowsByDefault: false) == "deny -")
        #expect(try judge([], allowsByDefault: false) == "deny -")
        #expect(AccessRules([], allowsByDefault: true) == nil)
    }

    @Test func `a rule that reports decides nothing`() throws {
        let rules = try [
            Self.rule("one", .report), Self.rule("two", .report) { $0.methods = ["POST"] },
            Self.rule("three", Self.deny), Self.rule("four", .report),
        ]
        #expect(try judge(rules) == "deny three (one)")
        #expect(try judge(rules, Request(method: "POST")) == "deny three (one) (two)")
        #expect(try judge([rules[0]], allowsByDefault: false) == "deny - (one)")
    }

    @Test func `all conditions must match, and one value of each`() throws {
        let rule = try Self.rule("r", Self.deny) { rule in
            rule.listeners = ["proxy", "other"]
            rule.clients = ["192.0.2.0/24", "2001:db8::/32"].compactMap { IPNetwork($0) }
            rule.hosts = try ["a.test", "**.b.test", "[::1]:80"].map { try HostPattern($0) }
            rule.ports = [80, 8080]
            rule.methods = ["GET", "PURGE"]
            rule.paths = try ["/x", "/y/**"].map { try PathPattern($0) }
            rule.times = ["mon 00:00-01:00", "tue"].compactMap { WeeklyHours($0) }
        }
        let base = Request(path: "/x")
        func change(_ change: (inout Request) -> Void) -> Request {
            var request = base
            change(&request)
            return request
        }
        let matching = [
            base, change { $0.listener = "other" }, change { $0.client = "2001:db8::9" },
            change { $0.client = "::ffff:192.0.2.9" }, change { $0.host = "x.b.test" },
            change { $0.host = "A.TEST." }, change { $0.host = "::1" }, change { $0.port = 8080 },
            change { $0.method = "PURGE" }, change { $0.path = "/y/z" }, change { $0.minute = 59 },
            change { $0.minute = 24 * 60 },
        ]
        for request in matching { #expect(try judge([rule], request) == "deny r", "\(request)") }
        let others = [
            change { $0.listener = "third" }, change { $0.client = "192.0.3.1" },
            change { $0.host = "b.a.test" }, change { $0.port = 81 },
            change {
                $0.host = "::1"
                $0.port = 8080
            }, change { $0.method = "get" },
            change { $0.method = "POST" }, change { $0.method = "PURG" },
            change { $0.path = "/x/" }, change { $0.path = "/X" }, change { $0.minute = 60 },
            change { $0.scope = .authority },
        ]
        for request in others { #expect(try judge([rule], request) == "allow -", "\(request)") }
    }

    @Test(
        arguments: [
            ("/admin", "deny admin"), ("/admin/x", "deny admin"), ("/public", "allow -"),
            // The same path, written otherwise.
            ("//admin", "ambiguous"), ("/./admin", "ambiguous"), ("/x/../admin", "ambiguous"),
            ("/%61dmin", "ambiguous"), ("/%2e/admin", "ambiguous"),
            ("/x/%2e%2e/admin", "ambiguous"),
            ("/x/..;/admin", "ambiguous"), ("/;/admin", "ambiguous"), ("/admin;x", "ambiguous"),
            ("/x%2f..%2fadmin", "ambiguous"), ("/x/..%2fadmin", "ambiguous"),
            ("/x/%252e%252e/admin", "ambiguous"), ("/%2561dmin", "ambiguous"),
            ("\\admin", "ambiguous"), ("/x\\..\\admin", "ambiguous"),
            ("/x%5c..%5cadmin", "ambiguous"),
            ("/admin/../public", "ambiguous"), ("/admin%2f../public", "allow -"),
            // However it is read, the rule does not apply, or does.
            ("/admin%00", "ambiguous"), ("/admin%3Fx", "ambiguous"), ("/admin%23", "ambiguous"),
            ("/admin%2500.png", "ambiguous"), ("/x%3F/../admin", "ambiguous"),
            ("/x%3F%2F..%2Fadmin", "ambiguous"), ("/x%00", "allow -"), ("/x%3Fadmin", "allow -"),
            // Nobody encodes five times over.
            ("/x%2525252520", "ambiguous"), ("/x%25252520", "allow -"),
            ("/x//y", "allow -"), ("/%7Euser", "allow -"), ("/a;b", "allow -"), ("", "allow -"),
            ("/admin//x", "deny admin"), ("/admin/a%2Fb", "deny admin"),
            ("/admin/a;b", "deny admin"),
        ])
    func `no way of writing a path evades a rule about it`(path: String, judgement: String) throws {
        let rule = try Self.rule("admin", Self.deny) {
            $0.paths = [try PathPattern("/admin/**")]
        }
        #expect(try judge([rule], Request(path: path)) == judgement)
        // A rule for another host makes nothing ambiguous.
        let other = try Self.rule("x", .allow)
        let withOther = try judge([rule, other], Request(path: path))
        #expect(withOther == (judgement == "allow -" ? "allow x" : judgement))
    }

    @Test func `a rule that reports makes no path ambiguous`() throws {
        let rule = try Self.rule("trial", .report) { $0.paths = [try PathPattern("/admin/**")] }
        #expect(try judge([rule], Request(path: "/x/../admin")) == "allow - (trial)")
        let two = try [
            Self.rule("a", .allow) { $0.paths = [try PathPattern("/admin/**")] },
            Self.rule("b", .allow),
        ]
        #expect(try judge(two, Request(path: "/x/../admin")) == "allow a")
    }

    @Test func `paths of other hosts are not looked at`() throws {
        let rule = try Self.rule("admin", Self.deny) {
            $0.paths = [try PathPattern("/admin/**")]
            $0.hosts = [try HostPattern("b.test")]
        }
        #expect(try judge([rule], Request(path: "//admin")) == "allow -")
    }

    @Test func `a tunnel is judged by what can be seen of it`() throws {
        let rules = try [
            Self.rule("read", .allow) { $0.methods = ["GET"] },
            Self.rule("api", .allow) { $0.paths = [try PathPattern("/v1/**")] },
            Self.rule("no-delete", Self.deny) { $0.methods = ["DELETE"] },
            Self.rule("tunnels", Self.deny) { $0.methods = ["CONNECT"] },
        ]
        let tunnel = Request(port: 443, method: "CONNECT", scope: .authority)
        #expect(try judge(rules, tunnel) == "deny tunnels")
        #expect(try judge([rules[0], rules[1]], tunnel, allowsByDefault: false) == "deny -")
        // Its requests will be judged: some of them are allowed.
        let intercepted = Request(port: 443, method: "CONNECT", scope: .interceptedTunnel)
        #expect(try judge(rules, intercepted) == "allow -")
        #expect(try judge([rules[1]], intercepted, allowsByDefault: false) == "allow -")
        // None of them is.
        #expect(try judge([rules[2]], intercepted, allowsByDefault: false) == "deny -")
        #expect(try judge([rules[2], rules[3]], intercepted) == "deny tunnels")
        #expect(try judge([rules[3], rules[0]], intercepted) == "deny tunnels")
    }

    /// What a relayed tunnel holds is not seen: only if all of it would be allowed may it be
    /// relayed in place of being intercepted.
    @Test func `a tunnel allows every request if no rule may deny one`() throws {
        let get = Self.rule("get", .allow) { $0.methods = ["GET", "CONNECT"] }
        let api = try Self.rule("api", .allow) { $0.paths = [try PathPattern("/v1/**")] }
        let all = try Self.rule("all", .allow)
        let noPost = Self.rule("no-post", Self.deny) { $0.methods = ["POST"] }
        let noAdmin = try Self.rule("no-admin", Self.deny) {
            $0.paths = [try PathPattern("/admin")]
        }
        let noTunnel = Self.rule("no-tunnel", Self.deny) { $0.methods = ["CONNECT"] }
        let other = Self.rule("other", Self.deny) {
            $0.methods = ["POST"]
            $0.clients = [IPNetwork("203.0.113.0/24")].compactMap { $0 }
        }
        let trial = Self.rule("trial", .report) { $0.methods = ["POST"] }
        let night = Self.rule("night", Self.deny) {
            $0.methods = ["POST"]
            $0.times = [WeeklyHours("22:00-06:00")].compactMap { $0 }
        }
        for (rules, allowsByDefault, expected) in [
            ([all], false, true), ([get], false, false), ([get], true, true), ([api], true, true),
            ([api, get], false, false), ([get, all], false, true), ([noPost], true, false),
            ([all, noPost], true, true), ([noPost, all], true, false), ([noAdmin], true, false),
            ([get, noPost], true, false), ([noTunnel], true, true), ([noTunnel, all], false, true),
            ([other], true, true), ([trial], true, true), ([night], true, true),
            ([trial, all], false, true), ([trial], false, false),
        ] {
            let table = try #require(AccessRules(rules, allowsByDefault: allowsByDefault))
            let client = try #require(IPAddress("192.0.2.1"))
            let allows = table.allowsEveryRequest(
                AccessRules.Subject(listener: "proxy", client: client, method: .connect),
                table.candidates(host: "a.test".utf8.span, port: 443), minuteOfWeek: { 12 * 60 })
            #expect(allows == expected, "\(rules.map(\.name)) \(allowsByDefault)")
        }
    }

    @Test(arguments: [
        "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a00:1",
        "2002:a00:1::1", "[64:ff9b::10.0.0.1]", "64:ff9b:1::10.0.0.1", "64:ff9b:1:a00:0:100::",
        "64:ff9b:1:a:0:1::", "64:ff9b:1:0:a:0:100:0",
    ])
    func `an address that embeds one is denied like it, and not allowed like it`(
        host: String
    ) throws {
        let deny = try Self.rule("no", Self.deny) { $0.hosts = [try HostPattern("10.0.0.1")] }
        let report = try Self.rule("seen", .report) { $0.hosts = [try HostPattern("10.0.0.1")] }
        let allow = try Self.rule("yes", .allow) { $0.hosts = [try HostPattern("10.0.0.1")] }
        let isMapped = host.hasPrefix("::ffff")
        #expect(try judge([deny], Request(host: host)) == "deny no")
        #expect(try judge([report], Request(host: host)) == "allow - (seen)")
        #expect(
            try judge([allow], Request(host: host), allowsByDefault: false)
                == (isMapped ? "allow yes" : "deny -"))
        #expect(try judge([deny], Request(host: "64:ff9b::10.0.0.2")) == "allow -")
    }

    @Test(arguments: ["::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::1"])
    func `a client's address that embeds one is denied like it`(client: String) throws {
        let networks = [IPNetwork("10.0.0.0/8")].compactMap { $0 }
        let deny = Self.rule("no", Self.deny) { $0.clients = networks }
        let allow = Self.rule("yes", .allow) { $0.clients = networks }
        #expect(try judge([deny], Request(client: client)) == "deny no")
        let isMapped = client.hasPrefix("::ffff")
        #expect(
            try judge([allow], Request(client: client), allowsByDefault: false)
                == (isMapped ? "allow yes" : "deny -"))
    }

    @Test func `a rule covers another if its conditions are weaker`() throws {
        func rule(_ change: (inout AccessRule) throws -> Void) rethrows -> AccessRule {
            var rule = AccessRule()
            try change(&rule)
            return rule
        }
        let all = rule { _ in }
        let get = rule { $0.methods = ["GET"] }
        let both = rule { $0.methods = ["GET", "HEAD"] }
        let wide = rule { $0.clients = [IPNetwork("10.0.0.0/8")].compactMap { $0 } }
        let narrow = rule { $0.clients = [IPNetwork("10.1.0.0/16")].compactMap { $0 } }
        let domain = try rule { $0.hosts = [try HostPattern("**.a.test")] }
        let host = try rule { $0.hosts = [try HostPattern("x.a.test")] }
        let everything = rule { $0.hosts = [.everything] }
        for (one, other, covers) in [
            (all, get, true), (get, all, false), (both, get, true), (get, both, false),
            (wide, narrow, true), (narrow, wide, false), (domain, host, true),
            (host, domain, false), (everything, domain, true), (everything, all, true),
            (domain, everything, false), (get, domain, false), (all, all, true),
        ] { #expect(one.covers(other) == covers, "\(one) \(other)") }
    }

    @Test func `a page shows the values of the request, and nothing in them is markup`() throws {
        let content = Array("<p>{{ rule }}: {{url}}</p><a href=\"{{host}}\">{{id}} {{client}}".utf8)
        let page = try DenialPage(path: "/page.html", content: content)
        let filled = page.filled { value in
            switch value {
            case .rule: "no-ads"
            case .url: "http://a/?<script>alert('x')</script>&\"`="
            case .host: "a\" onclick=b"
            case .client: "192.0.2.1"
            case .id: "00\n1"
            }
        }
        #expect(
            String(decoding: filled, as: UTF8.self)
                == "<p>no-ads: http://a/?&#60;script&#62;alert(&#39;x&#39;)"
                + "&#60;/script&#62;&#38;&#34;"
                + "&#96;&#61;</p><a href=\"a&#34; onclick&#61;b\">00 1 192.0.2.1")
    }

    @Test func `a page with an unknown value or an open brace is refused, with its line`() {
        let known = "expected {{host}}, {{url}}, {{rule}}, {{client}}, {{id}}"
        #expect(throws: PageTemplateError(line: 2, text: "there is no value {{user}}; \(known)")) {
            try DenialPage(path: "/p", content: Array("<p>\n{{user}}".utf8))
        }
        #expect(throws: PageTemplateError(line: 3, text: "'{{' is not closed")) {
            try DenialPage(path: "/p", content: Array("\n{{rule}}\n{{".utf8))
        }
    }
}
