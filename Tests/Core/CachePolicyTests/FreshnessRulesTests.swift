import Testing

@testable import CachePolicy

/// A policy with rules.
func withRules(_ change: (inout RouteOptions) -> Void) -> PolicyOptions {
    var options = PolicyOptions()
    change(&options.route)
    return options
}

func overriding(_ overrides: PolicyOverrides, keyedBy fields: [String] = [])
    -> PolicyOptions
{
    var policy = withRules { $0.freshness.overrides = overrides }
    policy.nominatedFields = fields.map { Array($0.utf8) }
    return policy
}

@Suite("What a route says about freshness")
struct FreshnessRulesTests {
    private let rules = withRules {
        $0.freshness.defaultSeconds = 600
        $0.freshness.minimumSeconds = 60
        $0.freshness.maximumSeconds = 3600
        var byStatus = StatusLifetimes()
        byStatus.set(30, for: .code(404))
        byStatus.set(5, for: .ofClass(4))
        byStatus.set(2, for: .code(503))
        byStatus.set(120, for: .code(302))
        $0.freshness.byStatus = byStatus
    }

    /// The lifetime of a response; `nil` if it is not stored.
    private func lifetime(
        _ fields: [String], status: Int = 200, for request: Request = Request(),
        _ options: PolicyOptions
    ) -> Int64? {
        let response = Response(fields + ["Date: \(date())", "ETag: \"a\""], status: status)
        guard case .store(let storable) = storing(response, for: request, options: options) else {
            return nil
        }
        // What is stored says the same again.
        let head = StoredHead.bytes(of: response.head, in: response.bytes.span, for: storable)
        let stored = StoredMetadata(
            storedHead: head.span, times: storable.times, hasQuery: false, options: options)
        #expect(stored?.lifetime == storable.lifetime && stored?.source == storable.source)
        return storable.lifetime
    }

    @Test(
        arguments: [
            (200, [], 600), (404, [], 30), (410, [], 5), (403, [], 5), (503, [], 2), (302, [], 120),
            (200, ["Cache-Control: max-age=300"], 300), (200, ["Cache-Control: max-age=10"], 60),
            (200, ["Cache-Control: max-age=9999"], 3600), (200, ["Cache-Control: max-age=0"], 60),
            (200, ["Expires: 0"], 60), (200, ["Pragma: no-cache"], 60),
            (404, ["Cache-Control: max-age=300"], 300), (404, ["Cache-Control: max-age=1"], 1),
            (404, ["Cache-Control: max-age=9999"], 3600),
            (503, ["Cache-Control: max-age=9"], 9), (204, ["Cache-Control: public"], 600),
            (302, ["Cache-Control: max-age=5"], 5), (307, ["Cache-Control: max-age=5"], 60),
        ] as [(Int, [String], Int64)])
    func `the lifetime is what is stated, or else the rule's, within both limits`(
        status: Int, fields: [String], seconds: Int64
    ) {
        #expect(lifetime(fields, status: status, rules) == seconds)
    }

    @Test(arguments: [(303, []), (500, []), (307, []), (500, ["Pragma: x"])] as [(Int, [String])])
    func `a default is only for responses that may be given a lifetime`(
        status: Int, fields: [String]
    ) {
        #expect(lifetime(fields, status: status, rules) == nil)
    }

    @Test(arguments: [400, 401, 407, 412, 416, 429])
    func `responses about one request are not stored, whatever is said about their class`(
        status: Int
    ) {
        #expect(lifetime([], status: status, rules) == nil)
        #expect(!StatusLifetimes.mayHave(UInt16(status)))
    }

    @Test(
        arguments: [
            ("no-store", PolicyOverrides.noStore, NotStoredReason.responseNoStore),
            ("private", .isPrivate, .responsePrivate),
        ])
    func `what is overridden does not count, but for whoever says who they are`(
        directive: String, override: PolicyOverrides, reason: NotStoredReason
    ) {
        let fields = ["Cache-Control: \(directive), max-age=60", "ETag: \"a\""]
        #expect(refusal(fields) == reason)
        #expect(refusal(fields, options: overriding(override)) == nil)
        for personal in ["Cookie: a=1", "Authorization: Basic YTpi"] {
            let request = Request([personal])
            #expect(refusal(fields, for: request, options: overriding(override)) == reason)
        }
        // The other override says nothing about it.
        let others = PolicyOverrides(rawValue: 63).subtracting(override)
        #expect(refusal(fields, options: overriding(others)) == reason)
    }

    @Test func `with the cookie in the key, private is overridden for each cookie by itself`() {
        let fields = ["Cache-Control: private, max-age=60", "ETag: \"a\""]
        let keyed = overriding(.isPrivate, keyedBy: ["cookie"])
        let one = Request(["Cookie: a=1"])
        guard case .store(let storable) = storing(Response(fields), for: one, options: keyed) else {
            Issue.record("not stored")
            return
        }
        #expect(storable.isPersonal)
        #expect(storable.vary.matches(one))
        #expect(!storable.vary.matches(Request(["Cookie: a=2"])))
        #expect(!storable.vary.matches(Request()))
        // Authorization is another field.
        let both = Request(["Cookie: a=1", "Authorization: Basic YTpi"])
        #expect(refusal(fields, for: both, options: keyed) == .responsePrivate)
    }

    @Test func `with Authorization in the key, each user has a private response of their own`() {
        let fields = ["Cache-Control: private, max-age=60", "Date: \(date())"]
        let keyed = overriding(.isPrivate, keyedBy: ["authorization"])
        let one = Request(["Authorization: Basic YTpi"])
        let response = Response(fields)
        guard case .store(let storable) = storing(response, for: one, options: keyed) else {
            Issue.record("not stored")
            return
        }
        #expect(!storable.vary.matches(Request(["Authorization: Basic YTpj"])))
        let head = StoredHead.bytes(of: response.head, in: response.bytes.span, for: storable)
        let stored = StoredMetadata(
            storedHead: head.span, times: storable.times, hasQuery: false, options: keyed)
        #expect(stored?.flags.contains(.sharedWithAuthorized) == true)
        // Without the override nothing changes, whatever the key has.
        let plain = overriding([], keyedBy: ["authorization"])
        #expect(refusal(fields, for: one, options: plain) == .responsePrivate)
    }

    @Test func `fields that private names are for one client whatever is overridden`() {
        let fields = ["Cache-Control: private=\"x-user\", max-age=60", "X-User: me", "ETag: \"a\""]
        let response = Response(fields)
        let policy = overriding([.isPrivate, .noCache])
        guard case .store(let storable) = storing(response, options: policy) else {
            Issue.record("not stored")
            return
        }
        let head = StoredHead.bytes(of: response.head, in: response.bytes.span, for: storable)
        #expect(!text(head).contains("X-User"))
    }

    @Test func `no-cache that does not count lets a response be used without asking`() {
        let fields = ["Cache-Control: no-cache, max-age=60", "ETag: \"a\"", "Date: \(date())"]
        #expect(Stored(fields).decide(Request(), after: 1).summary == "validate (no-cache)")
        let stored = Stored(fields, options: overriding(.noCache))
        #expect(stored.decide(Request(), after: 1).summary == "hit")
        let request = Request(["Cookie: a=1"])
        #expect(refusal(fields, for: request, options: overriding(.noCache)) == .cookie)
    }

    @Test(arguments: ["Cache-Control: no-cache", "Cache-Control: max-age=0", "Pragma: no-cache"])
    func `a reload does not count where the route says so`(field: String) {
        let stored = Stored(["Cache-Control: max-age=60", "Date: \(date())", "ETag: \"a\""])
        let request = Request([field])
        func decision(_ options: PolicyOptions) -> String {
            CacheDecision.decide(
                for: request.head, in: request.bytes.span, stored: stored.metadata,
                storedHead: stored.head.span, now: start + 1, options: options
            ).summary
        }
        #expect(decision(PolicyOptions()).hasPrefix("validate"))
        #expect(decision(overriding(.requestNoCache)) == "hit")
    }

    @Test(arguments: ["must-revalidate", "proxy-revalidate", "s-maxage=60"])
    func `a response may be served stale where must-revalidate does not count`(directive: String) {
        let fields = ["Cache-Control: max-age=60, \(directive)", "Date: \(date())"]
        #expect(Stored(fields).metadata.flags.contains(.neverStale))
        let stored = Stored(fields, options: overriding(.mustRevalidate))
        #expect(!stored.metadata.flags.contains(.neverStale))
        #expect(
            stored.decide(Request(["Cache-Control: max-stale"]), after: 90).summary
                == "stale hit (max-stale)")
    }

    @Test func `a lifetime that nobody states is not for requests with a cookie`() {
        let cookie = Request(["Cookie: a=1"])
        for fields in [[], ["Cache-Control: max-age=1"]] {
            let fields = fields + ["ETag: \"a\"", "Date: \(date())"]
            #expect(refusal(fields, for: cookie, options: rules) == .cookie)
        }
        #expect(lifetime(["Cache-Control: max-age=300"], for: cookie, rules) == 300)
        var overridden = rules
        overridden.route.freshness.overrides = .requestCookie
        #expect(lifetime([], for: cookie, overridden) == 600)
        var keyed = rules
        keyed.nominatedFields = [Array("cookie".utf8)]
        #expect(lifetime([], for: cookie, keyed) == 600)
    }

    @Test(
        arguments: [
            "max-age=0, must-revalidate", "must-revalidate", "s-maxage=0", "public, max-age=0",
        ])
    func `a lifetime by rule is not for requests with Authorization`(control: String) {
        let authorized = Request(["Authorization: Basic YTpi"])
        let fields = ["Cache-Control: \(control)", "Date: \(date())", "ETag: \"a\""]
        #expect(refusal(fields, for: authorized) == nil)
        #expect(refusal(fields, for: authorized, options: rules) == .authorization)
        // Nor does what an anonymous request got answer them, unless it is for all.
        let stored = Stored(fields, options: rules)
        #expect(
            stored.metadata.flags.contains(.sharedWithAuthorized) == control.contains("public"))
        var keyed = rules
        keyed.nominatedFields = [Array("authorization".utf8)]
        #expect(refusal(fields, for: authorized, options: keyed) == nil)
    }

    @Test(
        arguments: [
            withRules { $0.isOffline = true }, withRules { $0.staleIfErrorSeconds = 60 },
        ])
    func `what states no lifetime is not kept for others from requests that say who asks`(
        unasked: PolicyOptions
    ) {
        let fields = ["ETag: \"a\"", "Date: \(date())"]
        let cookie = Request(["Cookie: a=1"])
        let authorized = Request(["Authorization: Basic YTpi"])
        #expect(refusal(fields, for: cookie) == nil && refusal(fields, options: unasked) == nil)
        #expect(refusal(fields, for: cookie, options: unasked) == .cookie)
        let shared = fields + ["Cache-Control: max-age=0, must-revalidate"]
        #expect(refusal(shared, for: authorized, options: unasked) == .authorization)
        #expect(
            refusal(fields + ["Cache-Control: max-age=9"], for: cookie, options: unasked) == nil)
    }

    @Test func `stripped cookies are not stored, and the response is`() {
        var strip = PolicyOptions()
        strip.setCookie = .stripped
        var never = strip
        never.setCookie = .never
        let fields = ["Cache-Control: max-age=60", "set-cookie: a=1", "Set-Cookie: b=2", "X-A: 1"]
        #expect(refusal(fields) == .setCookie)
        #expect(refusal(fields + ["Cache-Control: public"]) == nil)
        #expect(refusal(fields + ["Cache-Control: public"], options: never) == .setCookie)
        let response = Response(fields)
        guard case .store(let storable) = storing(response, options: strip) else {
            Issue.record("not stored")
            return
        }
        let head = text(StoredHead.bytes(of: response.head, in: response.bytes.span, for: storable))
        #expect(!head.lowercased().contains("set-cookie"))
        #expect(head.contains("X-A: 1"))
        // Fields that private names are left out, too.
        let both = Response(fields + ["Cache-Control: private=\"x-a\""])
        guard case .store(let named) = storing(both, options: strip) else {
            Issue.record("not stored")
            return
        }
        let rest = text(StoredHead.bytes(of: both.head, in: both.bytes.span, for: named))
        #expect(!rest.contains("X-A") && !rest.lowercased().contains("set-cookie"))
    }

    @Test(
        arguments: [
            ("", 300, true), ("", 301, false), (", stale-if-error=5", 300, false),
            (", stale-if-error=900", 301, true), (", must-revalidate", 1, false),
            (", stale-if-error=0", 1, false), (", s-maxage=60", 1, false),
            (", proxy-revalidate", 1, false),
        ] as [(String, Int64, Bool)])
    func `a stale response stands in for an error as the route says, if its server does not`(
        directives: String, staleness: Int64, isServed: Bool
    ) {
        let policy = withRules { $0.staleIfErrorSeconds = 300 }
        let stored = Stored(
            ["Cache-Control: max-age=60\(directives)", "Date: \(date())"], options: policy)
        for failure in [OriginErrorReason.unreachable, .status(503), .status(500)] {
            let request = Request()
            let hit = CacheHit.inPlaceOfFailure(
                failure, stored: stored.metadata, storedHead: stored.head.span, for: request.head,
                in: request.bytes.span, now: start + 60 + staleness, options: policy)
            #expect((hit != nil) == isServed, "\(failure)")
        }
    }

    @Test func `offline, any stored response is used, but no anonymous one for Authorization`() {
        let policy = withRules { $0.isOffline = true }
        let fields = [
            "Cache-Control: max-age=60, must-revalidate", "Date: \(date())", "ETag: \"a\"",
        ]
        let stored = Stored(fields, options: policy)
        func decision(_ request: Request, of stored: Stored, after offset: Int64) -> String {
            CacheDecision.decide(
                for: request.head, in: request.bytes.span, stored: stored.metadata,
                storedHead: stored.head.span, now: start + offset, options: policy
            ).summary
        }
        #expect(decision(Request(), of: stored, after: 10) == "hit")
        #expect(decision(Request(), of: stored, after: 1 << 30) == "stale hit (offline)")
        let reload = Request(["Cache-Control: no-cache"])
        #expect(decision(reload, of: stored, after: 10) == "hit")
        let conditional = Request(["If-None-Match: \"a\""])
        #expect(decision(conditional, of: stored, after: 100) == "304")
        let authorized = Request(["Authorization: Basic YTpi"])
        #expect(decision(authorized, of: stored, after: 100) == "stale hit (offline)")
        let unusable = Stored(fields + ["Cache-Control: no-cache"], options: policy)
        #expect(decision(Request(), of: unusable, after: 1) == "validate (no-cache)")
        let anonymous = Stored(["Cache-Control: max-age=60", "Date: \(date())"], options: policy)
        #expect(decision(authorized, of: anonymous, after: 1) == "forward (authorization)")
    }

    @Test(arguments: ["Edge-Control", "X-CDN", "CDN-Cache-Control"])
    func `the first targeted field that is there counts`(name: String) {
        let policy = withRules {
            $0.targetedFields = [Array("missing".utf8), Array(name.lowercased().utf8)]
        }
        let fields = ["Cache-Control: no-store", "Expires: 0"]
        #expect(lifetime(fields + ["\(name): max-age=90"], policy) == 90)
        #expect(lifetime(fields + ["\(name): max-age=90,"], policy) == nil)
        #expect(lifetime(fields, policy) == nil)
        #expect(lifetime(fields + ["\(name): max-age=90", "Missing: max-age=7"], policy) == 7)
        #expect(lifetime(fields + ["\(name): max-age=90"], PolicyOptions()) == nil)
    }

    @Test(
        arguments: [
            ("404", "404"), ("4xx", "4xx"), ("200", "200"), ("5xx", "5xx"), ("1xx", nil),
            ("600", nil), ("4XX", nil), ("40", nil), ("4x4", nil), ("", nil), ("abc", nil),
        ] as [(String, String?)])
    func `statuses are a code or a class`(text: String, printed: String?) {
        #expect(StatusLifetimes.Statuses(text)?.description == printed)
    }

    @Test func `what a path does not say is as in its entry`() {
        var entry = FreshnessRules()
        entry.defaultSeconds = 1
        entry.overrides = .noStore
        var path = FreshnessRules()
        path.defaultSeconds = 2
        path.overrides = []
        path.maximumSeconds = 3
        let both = path.over(entry)
        #expect(both.defaultSeconds == 2 && both.overrides == [] && both.maximumSeconds == 3)
        #expect(FreshnessRules().over(entry) == entry)
    }
}
