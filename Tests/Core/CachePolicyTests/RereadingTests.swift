import Testing

@testable import CachePolicy

@Suite("A stored response under other rules")
struct RereadingTests {
    private let fields = ["Cache-Control: max-age=60", "Date: \(date())", "ETag: \"a\""]

    @Test func `it has the lifetime of the present rules, and its own times and length`() {
        let stored = Stored(fields)
        let shorter = withRules { $0.freshness.maximumSeconds = 6 }
        let reread = stored.metadata.reread(stored.head.span, hasQuery: false, options: shorter)
        guard case .kept(let metadata) = reread else {
            Issue.record("not kept")
            return
        }
        #expect(metadata.lifetime == 6 && metadata.times == stored.metadata.times)
        #expect(metadata.bodyBytes == stored.metadata.bodyBytes)
        let back = metadata.reread(stored.head.span, hasQuery: false, options: PolicyOptions())
        #expect(back == .kept(stored.metadata))
    }

    @Test func `a rule's lifetime is followed by another rule's, and by nothing else`() {
        let short = withRules { $0.freshness.defaultSeconds = 60 }
        let long = withRules { $0.freshness.defaultSeconds = 600 }
        let stored = Stored(["Date: \(date())", "ETag: \"a\""], options: short)
        let reread = stored.metadata.reread(stored.head.span, hasQuery: false, options: long)
        guard case .kept(let metadata) = reread else {
            Issue.record("not kept")
            return
        }
        #expect(metadata.lifetime == 600)
    }

    @Test(
        arguments: [
            ["ETag: \"a\""], ["ETag: \"a\"", "Cache-Control: max-age=0"],
            ["Cache-Control: max-age=5", "ETag: \"a\""],
        ])
    func `what stated no such lifetime does not get one, as its request may have had a cookie`(
        fields: [String]
    ) {
        let stored = Stored(fields + ["Date: \(date())"])
        let minimum = withRules { $0.freshness.minimumSeconds = 600 }
        #expect(
            stored.metadata.reread(stored.head.span, hasQuery: false, options: minimum) == .unknown)
        guard stored.metadata.lifetime == 0 else { return }
        for unasked in [
            withRules { $0.isOffline = true }, withRules { $0.staleIfErrorSeconds = 1 },
        ] {
            let reread = stored.metadata.reread(stored.head.span, hasQuery: false, options: unasked)
            #expect(reread == .unknown)
        }
    }

    @Test(
        arguments: [
            ("max-age=600", "validate (stale)"),
            ("max-age=600, must-revalidate", "validate (stale)"),
            ("max-age=600, stale-while-revalidate=60", "stale hit (stale-while-revalidate)"),
        ])
    func `a response that was made stale is stale, whatever its lifetime`(
        control: String, decision: String
    ) {
        var stored = Stored(["Cache-Control: \(control)", "Date: \(date())", "ETag: \"a\""])
        #expect(stored.decide(Request(), after: 10).summary == "hit")
        stored.metadata = stored.metadata.stale(since: start + 10)
        #expect(stored.metadata.timeToLive(at: start + 10) == 0)
        #expect(stored.decide(Request(), after: 10).summary == decision)
        #expect(stored.decide(Request(), after: 70).summary == decision)
        #expect(
            stored.decide(Request(["Cache-Control: min-fresh=1"]), after: 10).summary
                == "validate (request-min-fresh)")
        #expect(stored.decide(Request(), after: 71).summary == "validate (stale)")
    }

    @Test(
        arguments: [
            ("Cache-Control: no-store, max-age=60", PolicyOverrides.noStore),
            ("Cache-Control: private, max-age=60", .isPrivate),
        ])
    func `what was stored because of a rule that is gone is dropped`(
        field: String, override: PolicyOverrides
    ) {
        let stored = Stored([field, "Date: \(date())"], options: overriding(override))
        let reread = stored.metadata.reread(
            stored.head.span, hasQuery: false, options: PolicyOptions())
        guard case .outdated = reread else {
            Issue.record("\(reread)")
            return
        }
    }

    @Test func `one with a cookie is dropped where cookies are stripped or forbidden`() {
        let stored = Stored(fields + ["Set-Cookie: a=1", "Cache-Control: public"])
        for policy in [SetCookiePolicy.never, .stripped] {
            var options = PolicyOptions()
            options.setCookie = policy
            let reread = stored.metadata.reread(stored.head.span, hasQuery: false, options: options)
            #expect(reread == .outdated(.setCookie))
        }
    }

    @Test func `a coding is undone for others where Accept-Encoding does not count`() {
        let fields = fields + ["Content-Encoding: gzip", "Vary: Accept-Encoding"]
        #expect(!Stored(fields).metadata.flags.contains(.encoded))
        let ignoring = withRules { $0.ignoredFields = [Array("accept-encoding".utf8)] }
        #expect(Stored(fields, options: ignoring).metadata.flags.contains(.encoded))
    }
}
