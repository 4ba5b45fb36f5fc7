import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Whether a stored response answers a request, by RFC 9111 §4")
struct CacheDecisionTests {
    private let fresh = ["Cache-Control: max-age=100", "ETag: \"a\""]

    @Test func `a fresh response answers GET whole and HEAD with its head`() {
        let stored = Stored(fresh + ["Age: 10", "Date: \(date())"])
        let hit = CacheHit(form: .full, age: 15, timeToLive: 85, stale: nil)
        #expect(stored.decide(Request(), after: 5) == .hit(hit))
        let head = CacheHit(form: .headOnly, age: 15, timeToLive: 85, stale: nil)
        #expect(stored.decide(Request(method: "HEAD"), after: 5) == .hit(head))
    }

    @Test func `the short way and the long way give the same answer`() {
        let responses = [
            fresh, ["Cache-Control: max-age=0", "ETag: \"a\""], ["Cache-Control: max-age=100"],
            ["Cache-Control: max-age=100, no-cache", "ETag: \"a\""],
        ]
        for fields in responses {
            let stored = Stored(fields)
            for offset in [-10, -1, 0, 50, 99, 100, 101, 5000] as [Int64] {
                // An empty Cache-Control prevents the fast path.
                let long = stored.decide(Request(["Cache-Control:"]), after: offset)
                let short = stored.decide(Request(), after: offset)
                #expect(short == long, "\(fields) after \(offset)")
            }
        }
    }

    @Test(
        arguments: [
            (["ETag: \"a\""], 100, "validate (stale)"),
            (["Last-Modified: \(date(-9))"], 100, "validate (stale)"),
            ([], 100, "forward (stale)"), ([], 99, "hit"), (["ETag: \"a\""], 99, "hit"),
        ] as [([String], Int64, String)])
    func `a stale response is validated if it has a validator and refetched if not`(
        fields: [String], offset: Int64, expected: String
    ) {
        let stored = Stored(fields + ["Cache-Control: max-age=100"])
        #expect(stored.decide(Request(), after: offset).summary == expected)
    }

    @Test(arguments: ["no-cache", "No-CaChE", "no-cache=\"\""])
    func `no-cache in the response means validation however fresh (§5.2.2.4)`(
        directive: String
    ) {
        let stored = Stored(["Cache-Control: max-age=100, \(directive)", "ETag: \"a\""])
        #expect(stored.decide(Request()).summary == "validate (no-cache)")
        #expect(
            stored.decide(Request(["Cache-Control: max-stale"])).summary == "validate (no-cache)")
    }

    @Test(
        arguments: [
            // request, seconds after receipt, answer; the response is fresh for 100 s
            ("no-cache", 0, "validate (request-no-cache)"),
            ("no-store", 0, "forward (request-no-store)"),
            ("max-age=0", 0, "validate (request-max-age)"), ("max-age=1", 0, "hit"),
            ("max-age=1", 1, "hit"), ("max-age=1", 2, "validate (request-max-age)"),
            ("max-age=1000", 50, "hit"), ("max-age=1000", 100, "validate (stale)"),
            ("max-age=x", 0, "validate (request-max-age)"),
            ("min-fresh=50", 50, "hit"), ("min-fresh=50", 51, "validate (request-min-fresh)"),
            ("min-fresh=101", 0, "validate (request-min-fresh)"),
            ("max-stale", 100, "stale hit (max-stale)"),
            ("max-stale", 1_000_000, "stale hit (max-stale)"),
            ("max-stale=10", 99, "hit"), ("max-stale=10", 110, "stale hit (max-stale)"),
            ("max-stale=10", 111, "validate (stale)"),
            ("max-stale=0", 100, "stale hit (max-stale)"),
            ("max-stale=0", 101, "validate (stale)"), ("max-stale=x", 101, "validate (stale)"),
            ("max-stale, max-age=10", 50, "validate (request-max-age)"),
            ("max-stale, max-age=1000", 150, "stale hit (max-stale)"),
            ("max-stale, min-fresh=10", 95, "validate (request-min-fresh)"),
            ("only-if-cached", 0, "hit"), ("only-if-cached", 100, "504 (stale)"),
            ("only-if-cached, max-stale", 100, "stale hit (max-stale)"),
            ("only-if-cached, no-cache", 0, "504 (request-no-cache)"),
            ("only-if-cached, no-store", 0, "504 (request-no-store)"),
            ("no-transform", 0, "hit"), ("foo=bar", 0, "hit"), ("public", 0, "hit"),
        ])
    func `request directives are honoured (§5.2.1)`(
        directives: String, offset: Int64, expected: String
    ) {
        let request = Request(["Cache-Control: \(directives)"])
        #expect(Stored(fresh).decide(request, after: offset).summary == expected)
    }

    @Test(
        arguments: [
            // response beyond max-age=100, request, seconds after receipt, answer
            ("stale-while-revalidate=10", [], 99, "hit"),
            ("stale-while-revalidate=10", [], 100, "stale hit (stale-while-revalidate)"),
            ("stale-while-revalidate=10", [], 110, "stale hit (stale-while-revalidate)"),
            ("stale-while-revalidate=10", [], 111, "validate (stale)"),
            ("stale-while-revalidate=0", [], 100, "validate (stale)"),
            ("stale-while-revalidate=x", [], 100, "validate (stale)"),
            ("stale-while-revalidate", [], 100, "validate (stale)"),
            ("stale-while-revalidate=10, must-revalidate", [], 105, "validate (stale)"),
            ("stale-while-revalidate=10, proxy-revalidate", [], 105, "validate (stale)"),
            ("stale-while-revalidate=10, s-maxage=100", [], 105, "validate (stale)"),
            ("stale-while-revalidate=10, no-cache", [], 105, "validate (no-cache)"),
            ("stale-while-revalidate=10", ["no-cache"], 105, "validate (request-no-cache)"),
            ("stale-while-revalidate=10", ["max-age=1000"], 105, "validate (stale)"),
            ("stale-while-revalidate=10", ["min-fresh=0"], 100, "validate (stale)"),
            ("stale-while-revalidate=10", ["max-stale"], 105, "stale hit (max-stale)"),
            (
                "stale-while-revalidate=10", ["only-if-cached"], 105,
                "stale hit (stale-while-revalidate)"
            ),
        ] as [(String, [String], Int64, String)])
    func `stale-while-revalidate lets a stale response be served in its window (RFC 5861 §3)`(
        directives: String, asked: [String], offset: Int64, expected: String
    ) {
        let stored = Stored(["Cache-Control: max-age=100, \(directives)", "ETag: \"a\""])
        let request = Request(asked.map { "Cache-Control: \($0)" })
        #expect(stored.decide(request, after: offset).summary == expected)
    }

    @Test(arguments: ForwardReason.allCases)
    func `only a plain GET whose answer is not there, or stale, waits for another's response`(
        reason: ForwardReason
    ) {
        let waits = [.uriMiss, .varyMiss, .policy, .stale].contains(reason)
        func mayCollapse(_ request: Request) -> Bool {
            CacheDecision.mayCollapse(
                request.head.method, with: request.head.fields.present, reason)
        }
        #expect(mayCollapse(Request(["Cookie: a=b"])) == waits)
        let others = [
            Request(method: "HEAD"), Request(method: "POST"), Request(["Cache-Control: no-cache"]),
            Request(["Cache-Control: no-store"]), Request(["Cache-Control: max-age=0"]),
            Request(["Pragma: no-cache"]), Request(["Authorization: Basic eDp5"]),
            Request(["Range: bytes=0-1"]), Request(["If-None-Match: \"a\""]),
            Request(["If-Modified-Since: \(date())"]), Request(["If-Match: \"a\""]),
        ]
        for request in others {
            #expect(!mayCollapse(request), "\(text(request.bytes))")
        }
    }

    @Test(arguments: ForwardReason.allCases)
    func `a request for a part may read what another asked for whole`(reason: ForwardReason) {
        let waits = [.uriMiss, .varyMiss, .policy, .stale].contains(reason)
        func mayFollow(_ fields: [String], method: String = "GET") -> Bool {
            let request = Request(fields, method: method)
            return CacheDecision.mayFollow(
                request.head.method, with: request.head.fields.present, reason)
        }
        #expect(mayFollow(["Range: bytes=0-1"]) == waits)
        #expect(mayFollow(["Range: bytes=0-1", "If-Range: \"a\"", "Cookie: a=b"]) == waits)
        #expect(!mayFollow([]))
        #expect(!mayFollow(["If-Range: \"a\""]))
        #expect(!mayFollow(["Range: bytes=0-1", "If-Match: \"a\""]))
        #expect(!mayFollow(["Range: bytes=0-1", "Authorization: Basic eDp5"]))
        #expect(!mayFollow(["Range: bytes=0-1"], method: "HEAD"))
    }

    @Test func `what is asked in the background is whether the stored response still holds`() {
        let request = Request()
        func asked(_ fields: [String]) -> String {
            let stored = Stored(fields)
            let decision = CacheDecision.inBackground(
                stored.metadata, storedHead: stored.head.span, for: request.head,
                in: request.bytes.span)
            guard case .validate(let validation) = decision else { return decision.summary }
            return written {
                validation.appendFields(
                    for: request.head, in: request.bytes.span, storedHead: stored.head.span, to: &$0
                )
            }
        }
        #expect(asked(["ETag: \"a\""]) == "If-None-Match: \"a\"\r\n")
        #expect(asked(["Last-Modified: \(date())"]) == "If-Modified-Since: \(date())\r\n")
        #expect(asked([]) == "forward (stale)")
    }

    @Test func `an Age that came with the response counts for request directives`() {
        let stored = Stored(["Cache-Control: max-age=3600", "Age: 1800", "ETag: \"a\""])
        let old = Request(["Cache-Control: max-age=600"])
        #expect(stored.decide(old).summary == "validate (request-max-age)")
        let short = Request(["Cache-Control: min-fresh=1801"])
        #expect(stored.decide(short).summary == "validate (request-min-fresh)")
        let late = Stored(["Cache-Control: max-age=1500", "Age: 2000"])
        let hit = late.decide(Request(["Cache-Control: max-stale=1000"])).asHit
        #expect(hit == CacheHit(form: .full, age: 2000, timeToLive: -500, stale: .maxStale))
    }

    @Test func `Pragma: no-cache means validation when there is no Cache-Control (§5.4)`() {
        let stored = Stored(fresh)
        #expect(
            stored.decide(Request(["Pragma: no-cache"])).summary == "validate (request-no-cache)")
        #expect(stored.decide(Request(["Pragma: foo"])).summary == "hit")
        #expect(
            stored.decide(Request(["Pragma: no-cache", "Cache-Control: max-age=9"])).summary
                == "hit")
    }

    @Test(arguments: ["must-revalidate", "proxy-revalidate", "s-maxage=100"])
    func `max-stale does not help where the origin forbids stale use (§4.2.4)`(directive: String) {
        let stored = Stored(["Cache-Control: max-age=100, \(directive)", "ETag: \"a\""])
        #expect(stored.decide(Request(), after: 50).summary == "hit")
        let request = Request(["Cache-Control: max-stale"])
        #expect(stored.decide(request, after: 100).summary == "validate (stale)")
    }

    @Test(arguments: ["", ", no-cache", ", must-revalidate", ", s-maxage=100"])
    func `whatever is stored answers who takes that, but no request that forbids it`(
        directives: String
    ) {
        let stored = Stored(["Cache-Control: max-age=100\(directives)", "ETag: \"a\""])
        for field in ["Cache-Control: only-if-cached, max-stale", "Authorization: Basic Zm9v"] {
            let request = Request([field])
            #expect(stored.decide(request, after: 50, acceptsAnyStored: true).summary == "hit")
            #expect(
                stored.decide(request, after: 9999, acceptsAnyStored: true).summary
                    == "stale hit (max-stale)")
        }
        let never = Request(["Cache-Control: no-store"])
        #expect(
            stored.decide(never, acceptsAnyStored: true).summary == "forward (request-no-store)")
    }

    @Test
    func `a reload does not ask again about an immutable response, no-cache does (RFC 8246)`() {
        let stored = Stored(["Cache-Control: max-age=100, immutable", "ETag: \"a\""])
        let reload = Request(["Cache-Control: max-age=0"])
        #expect(stored.decide(reload).summary == "hit")
        #expect(stored.decide(reload, after: 100).summary == "validate (request-max-age)")
        let force = Request(["Cache-Control: no-cache"])
        #expect(stored.decide(force).summary == "validate (request-no-cache)")
    }

    @Test(
        arguments: [
            ("max-age=100", "validate (authorization)"), ("max-age=100, public", "hit"),
            ("s-maxage=100", "hit"), ("max-age=100, must-revalidate", "hit"),
            ("max-age=100, proxy-revalidate", "validate (authorization)"),
        ])
    func `what is not marked as shared does not answer a request with Authorization unvalidated`(
        value: String, expected: String
    ) {
        let stored = Stored(["Cache-Control: \(value)", "ETag: \"a\""])
        #expect(stored.decide(Request(["Authorization: Basic Zm9v"])).summary == expected)
    }

    @Test func `If-Match and If-Unmodified-Since are for the origin to evaluate (§4.3.2)`() {
        let stored = Stored(fresh)
        #expect(stored.decide(Request(["If-Match: \"a\""])).summary == "forward (precondition)")
        let since = Request(["If-Unmodified-Since: \(date())"])
        #expect(stored.decide(since).summary == "forward (precondition)")
        let only = Request(["If-Match: \"a\"", "Cache-Control: only-if-cached"])
        #expect(stored.decide(only).summary == "504 (precondition)")
    }

    @Test func `a clock set back is noticed, one that differs by moments is not`() {
        let stored = Stored(fresh)
        let tolerance = Reuse.clockToleranceSeconds
        #expect(stored.decide(Request(), after: -tolerance).summary == "hit")
        #expect(stored.decide(Request(), after: -tolerance - 1).summary == "validate (clock)")
        #expect(stored.decide(Request(), after: -1).asHit?.age == 0)
    }

    @Test func `with nothing stored the request is forwarded, or gets 504 if only-if-cached`() {
        func decide(_ reason: ForwardReason, _ fields: [String]) -> String {
            let request = Request(fields)
            return CacheDecision.missing(
                reason, for: request.head, in: request.bytes.span
            ).summary
        }
        #expect(decide(.uriMiss, []) == "forward (uri-miss)")
        #expect(decide(.varyMiss, []) == "forward (vary-miss)")
        #expect(decide(.uriMiss, ["Cache-Control: no-cache"]) == "forward (uri-miss)")
        #expect(decide(.uriMiss, ["Cache-Control: only-if-cached"]) == "504 (uri-miss)")
        #expect(decide(.varyMiss, ["Cache-Control: only-if-cached"]) == "504 (vary-miss)")
        #expect(
            decide(.uriMiss, ["Cache-Control: only-if-cached, no-store"])
                == "504 (request-no-store)")
    }

    @Test func `only GET and HEAD without a body or upgrade are looked up`() {
        func reason(_ request: Request) -> ForwardReason? {
            CacheDecision.reasonAgainstLookup(of: request.head)
        }
        #expect(reason(Request()) == nil)
        #expect(reason(Request(method: "HEAD")) == nil)
        #expect(reason(Request(["Content-Length: 0"])) == reason(Request(["Content-Length: 1"])))
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "M-SEARCH"] {
            #expect(reason(Request(method: method)) == .method)
        }
        #expect(reason(Request(["Content-Length: 3"])) == .requestContent)
        #expect(reason(Request(["Connection: upgrade", "Upgrade: websocket"])) == .upgrade)
        #expect(reason(Request(["Range: bytes=0-1", "Authorization: x"])) == nil)
    }

    @Test func `every reason has a token of its own and a fwd value of RFC 9211 §2.2`() {
        let tokens = ForwardReason.allCases.map { "\($0.token)" }
        #expect(Set(tokens).count == tokens.count)
        #expect(tokens.allSatisfy { isToken($0) })
        let registered: Set = [
            "bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial",
        ]
        #expect(ForwardReason.allCases.allSatisfy { registered.contains("\($0.cacheStatus)") })
        #expect(StaleUse.allCases.allSatisfy { isToken("\($0.token)") })
    }
}
