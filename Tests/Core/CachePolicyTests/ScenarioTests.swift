import HTTPCore
import Testing

@testable import CachePolicy

/// One request of a scenario, the origin's answer to it, and the expected result.
struct Step: Sendable {
    /// How the request was answered.
    enum Outcome: Sendable, Equatable {
        /// From the cache alone.
        case cached
        /// By the origin, without conditions from the cache.
        case notCached
        /// By the cache, confirmed by the origin's 304.
        case validated
    }

    var request: [String] = []
    var method = "GET"
    var target = "http://a.example/x"
    var response: [String] = []
    var status = 200
    var body = "0123456789"
    var isUnreachable = false
    var offset: Int64 = 0
    var expect: Outcome
    var head: String?
    var expectedBody: String?
    var conditions: String?
}

/// A scenario, named after what it shows.
struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    let steps: [Step]
    var testDescription: String { name }

    init(_ name: String, _ steps: Step...) {
        self.name = name
        self.steps = steps
    }
}

@Suite("Sequences of requests through a cache that follows the policy")
struct ScenarioTests {
    @Test(arguments: validationScenarios)
    func `fresh ones answer, stale ones are validated or used where allowed`(scenario: Scenario) {
        run(scenario)
    }

    @Test(arguments: selectionScenarios)
    func `variants are kept apart, and unsafe methods invalidate`(scenario: Scenario) {
        run(scenario)
    }

    @Test(arguments: sharingScenarios)
    func `what is for one user is not shown to another`(scenario: Scenario) { run(scenario) }

    private func run(_ scenario: Scenario) {
        var cache = ModelCache()
        for (number, step) in scenario.steps.enumerated() {
            let request = Request(step.request, method: step.method, to: step.target)
            let response = Response(
                step.response, status: step.status, method: request.head.method)
            var asked = ""
            let result = cache.send(request, at: step.offset) { conditions in
                asked = conditions
                return step.isUnreachable ? nil : (response, step.status == 304 ? "" : step.body)
            }
            let outcome: Step.Outcome =
                !result.isForwarded
                ? .cached
                : result.head.contains("fwd-status=304") ? .validated : .notCached
            let place: Comment = "\(scenario.name), step \(number): \(result.head)"
            #expect(outcome == step.expect, place)
            if let head = step.head { #expect(result.head.contains(head), place) }
            if let body = step.expectedBody { #expect(result.body == body, place) }
            if let conditions = step.conditions { #expect(asked == conditions, place) }
        }
    }
}

private let fresh = ["Cache-Control: max-age=3600", "Date: \(date())"]
private let becomesStale = ["Cache-Control: max-age=10", "ETag: \"a\"", "Date: \(date())"]

private let validationScenarios: [Scenario] = [
    Scenario(
        "Age grows, Date stays, the TTL shrinks",
        Step(
            response: ["Expires: \(date(100))", "Date: \(date())", "Age: 30"], expect: .notCached),
        Step(offset: 10, expect: .cached, head: "Age: 40\r\nCache-Status: pinfold; hit; ttl=60"),
        Step(offset: 69, expect: .cached, head: "Date: \(date())\r\n"),
        Step(response: fresh, offset: 70, expect: .notCached, head: "fwd=stale")),
    Scenario(
        "a stale response is confirmed, updated, and then reused",
        Step(response: becomesStale + ["A: 1"], expect: .notCached, head: "fwd=uri-miss; stored"),
        Step(
            response: ["ETag: \"a\"", "A: 2"], status: 304, offset: 10, expect: .validated,
            head: "A: 2\r\n", expectedBody: "0123456789", conditions: "If-None-Match: \"a\"\r\n"),
        Step(offset: 19, expect: .cached, head: "A: 2\r\n", expectedBody: "0123456789")),
    Scenario(
        "a stale response that changed is replaced",
        Step(response: becomesStale, body: "old", expect: .notCached),
        Step(
            response: ["Cache-Control: max-age=9", "ETag: \"b\""], body: "new", offset: 10,
            expect: .notCached, head: "fwd=stale; stored", expectedBody: "new"),
        Step(offset: 11, expect: .cached, expectedBody: "new")),
    Scenario(
        "Last-Modified alone validates too",
        Step(
            response: ["Last-Modified: \(date(-90))", "Cache-Control: max-age=1"],
            expect: .notCached),
        Step(
            response: ["Last-Modified: \(date(-90))"], status: 304, offset: 5, expect: .validated,
            conditions: "If-Modified-Since: \(date(-90))\r\n")),
    Scenario(
        "no-cache is stored but confirmed on every use",
        Step(response: ["Cache-Control: no-cache", "ETag: \"a\""], expect: .notCached),
        Step(status: 304, expect: .validated, head: "detail=no-cache"),
        Step(status: 304, expect: .validated)),
    Scenario(
        "a newer response with no-store takes the stored one's place with nothing",
        Step(response: becomesStale, expect: .notCached),
        Step(response: ["Cache-Control: no-store"], offset: 10, expect: .notCached),
        Step(offset: 10, expect: .notCached, head: "fwd=uri-miss")),
    Scenario(
        "the client's own validator is answered 304 from the cache",
        Step(response: fresh + ["ETag: \"a\""], expect: .notCached),
        Step(
            request: ["If-None-Match: \"a\""], expect: .cached, head: "304 Not Modified",
            expectedBody: "")),
    Scenario(
        "the client's own validator is passed on and answered 304 after validation",
        Step(response: becomesStale, expect: .notCached),
        Step(
            request: ["If-None-Match: \"a\""], response: ["ETag: \"a\""], status: 304, offset: 10,
            expect: .validated, head: "304 Not Modified", conditions: "If-None-Match: \"a\"\r\n"),
        Step(offset: 10, expect: .cached, expectedBody: "0123456789")),
    Scenario(
        "a 304 about a representation nobody stored is not served from the cache",
        Step(response: becomesStale, expect: .notCached),
        Step(
            request: ["If-None-Match: \"b\""], response: ["ETag: \"b\""], status: 304, offset: 10,
            expect: .notCached, head: "ETag: \"b\"",
            conditions: "If-None-Match: \"b\"\r\nIf-None-Match: \"a\"\r\n")),
    Scenario(
        "ranges are cut out of a stored response",
        Step(response: fresh, expect: .notCached),
        Step(
            request: ["Range: bytes=0-1"], expect: .cached, head: "Content-Range: bytes 0-1/10",
            expectedBody: "01"),
        Step(request: ["Range: bytes=-1"], expect: .cached, expectedBody: "9"),
        Step(request: ["Range: bytes=10-"], expect: .cached, head: "416 ", expectedBody: ""),
        Step(
            request: ["Range: bytes=0-1,4-5"], expect: .cached, head: "multipart/byteranges")),
    Scenario(
        "a range that is not stored is passed through and not stored",
        Step(
            request: ["Range: bytes=4-"], response: fresh + ["Content-Range: bytes 4-9/10"],
            status: 206, body: "456789", expect: .notCached, head: "detail=partial-content"),
        Step(expect: .notCached, head: "fwd=uri-miss")),
    Scenario(
        "stale-if-error lets a stale response stand in for an unreachable or broken origin",
        Step(
            response: ["Cache-Control: max-age=2, stale-if-error=60", "ETag: \"a\""],
            expect: .notCached),
        Step(isUnreachable: true, offset: 10, expect: .notCached, head: "detail=stale-if-error"),
        Step(status: 503, offset: 62, expect: .notCached, head: "ttl=-60"),
        Step(status: 503, offset: 63, expect: .notCached, head: "503 Reason")),
    Scenario(
        "stale-if-error needs no validator",
        Step(response: ["Cache-Control: max-age=2, stale-if-error=60"], expect: .notCached),
        Step(isUnreachable: true, offset: 10, expect: .notCached, head: "detail=stale-if-error"),
        Step(status: 500, offset: 62, expect: .notCached, head: "ttl=-60"),
        Step(status: 500, offset: 63, expect: .notCached, head: "500 Reason"),
        Step(status: 404, offset: 10, expect: .notCached, head: "404 Reason")),
    Scenario(
        "without any leave an unreachable origin is an error",
        Step(response: becomesStale, expect: .notCached),
        Step(isUnreachable: true, offset: 10, expect: .notCached, head: "502 Bad Gateway")),
    Scenario(
        "a damaged clock does not make anything fresh for ever",
        Step(response: fresh + ["ETag: \"a\""], expect: .notCached),
        Step(status: 304, offset: -1_000_000, expect: .validated, head: "detail=clock"),
        Step(offset: -1_000_000, expect: .cached)),
]

private let selectionScenarios: [Scenario] = [
    Scenario(
        "variants are kept side by side",
        Step(request: ["Foo: 1"], response: fresh + ["Vary: Foo"], body: "one", expect: .notCached),
        Step(
            request: ["Foo: 2"], response: fresh + ["Vary: Foo"], body: "two", expect: .notCached,
            head: "fwd=vary-miss; stored"),
        Step(request: ["Foo: 1"], expect: .cached, expectedBody: "one"),
        Step(request: ["Foo: 2"], expect: .cached, expectedBody: "two"),
        Step(expect: .notCached, head: "fwd=vary-miss")),
    Scenario(
        "a newer variant with another Vary is preferred where both match",
        Step(request: ["Foo: 1"], response: fresh + ["Vary: Foo"], body: "old", expect: .notCached),
        Step(request: ["Foo: 2"], response: fresh, body: "new", expect: .notCached),
        Step(request: ["Foo: 1"], expect: .cached, expectedBody: "new")),
    Scenario(
        "another query, host, port or scheme is another resource",
        Step(response: fresh, expect: .notCached),
        Step(target: "http://a.example/x?y", response: fresh, expect: .notCached),
        Step(target: "http://a.example:81/x", response: fresh, expect: .notCached),
        Step(target: "https://a.example/x", response: fresh, expect: .notCached),
        Step(target: "http://b.example/x", response: fresh, expect: .notCached),
        Step(target: "http://a.example/X", response: fresh, expect: .notCached),
        Step(target: "http://A.example:80/x", expect: .cached),
        Step(target: "http://a.example/x?y", expect: .cached)),
    Scenario(
        "HEAD is answered from a stored GET, and no GET from a HEAD",
        Step(method: "HEAD", response: fresh, body: "", expect: .notCached, head: "detail=method"),
        Step(response: fresh, expect: .notCached),
        Step(method: "HEAD", expect: .cached, head: "Content-Length: 10", expectedBody: "")),
    Scenario(
        "the response to HEAD updates the stored GET",
        Step(response: ["Cache-Control: max-age=10", "A: 1"], expect: .notCached),
        Step(
            method: "HEAD", response: ["Cache-Control: max-age=1000", "A: 2"], body: "",
            offset: 10, expect: .notCached),
        Step(offset: 500, expect: .cached, head: "A: 2\r\n", expectedBody: "0123456789")),
    Scenario(
        "the response to HEAD drops a stored GET of another length",
        Step(response: fresh, expect: .notCached),
        Step(
            request: ["Cache-Control: no-store"], method: "HEAD",
            response: ["Content-Length: 11"], body: "", expect: .notCached),
        Step(expect: .notCached, head: "fwd=uri-miss")),
    Scenario(
        "a successful POST drops what is stored, of every variant",
        Step(request: ["Foo: 1"], response: fresh + ["Vary: Foo"], expect: .notCached),
        Step(method: "POST", expect: .notCached, head: "fwd=method"),
        Step(request: ["Foo: 1"], expect: .notCached, head: "fwd=uri-miss")),
    Scenario(
        "a failed POST drops nothing",
        Step(response: fresh, expect: .notCached),
        Step(method: "POST", status: 500, expect: .notCached),
        Step(expect: .cached)),
    Scenario(
        "a POST drops what its Location names in the same origin, and not in another",
        Step(target: "http://a.example/l", response: fresh, expect: .notCached),
        Step(target: "http://b.example/l", response: fresh, expect: .notCached),
        Step(method: "POST", response: ["Location: /l"], status: 201, expect: .notCached),
        Step(
            method: "POST", response: ["Location: http://b.example/l"], status: 201,
            expect: .notCached),
        Step(target: "http://a.example/l", expect: .notCached),
        Step(target: "http://b.example/l", expect: .cached)),
    Scenario(
        "only-if-cached is answered 504 without asking the origin",
        Step(
            request: ["Cache-Control: only-if-cached"], expect: .cached,
            head: "504 Gateway Timeout")),
]

private let sharingScenarios: [Scenario] = [
    Scenario(
        "what one user got with Authorization is not given to another",
        Step(request: ["Authorization: a"], response: fresh, expect: .notCached),
        Step(request: ["Authorization: b"], expect: .notCached, head: "fwd=uri-miss"),
        Step(expect: .notCached)),
    Scenario(
        "unless the origin allows it",
        Step(
            request: ["Authorization: a"], response: ["Cache-Control: max-age=9, public"],
            expect: .notCached),
        Step(request: ["Authorization: b"], expect: .cached), Step(expect: .cached)),
    Scenario(
        "what anyone got is confirmed before a user with Authorization gets it",
        Step(response: fresh + ["ETag: \"a\""], expect: .notCached),
        Step(
            request: ["Authorization: a"], response: ["User: a"], status: 304, expect: .validated,
            head: "User: a\r\n"),
        Step(expect: .cached)),
    Scenario(
        "private, no-store and cookies are not shared",
        Step(response: ["Cache-Control: private, max-age=9"], expect: .notCached),
        Step(response: ["Cache-Control: no-store, max-age=9"], expect: .notCached),
        Step(response: fresh + ["Set-Cookie: a=b"], expect: .notCached, head: "detail=set-cookie"),
        Step(expect: .notCached)),
    Scenario(
        "a 304 with private ends the sharing",
        Step(response: becomesStale, expect: .notCached),
        Step(
            response: ["Cache-Control: private"], status: 304, offset: 10, expect: .validated,
            expectedBody: "0123456789"),
        Step(offset: 10, expect: .notCached, head: "fwd=uri-miss")),
    Scenario(
        "a request with no-store neither reads nor writes the cache",
        Step(
            request: ["Cache-Control: no-store"], response: fresh, expect: .notCached,
            head: "detail=request-no-store"),
        Step(response: fresh, expect: .notCached),
        Step(request: ["Cache-Control: no-store"], expect: .notCached, head: "fwd=request"),
        Step(expect: .cached)),
]
