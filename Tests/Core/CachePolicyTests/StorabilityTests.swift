import HTTPCore
import Testing

@testable import CachePolicy

@Suite("What may be stored, by RFC 9111 §3")
struct StorabilityTests {
    private let fresh = "Cache-Control: max-age=60"

    @Test(arguments: ["HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "M-SEARCH", "get"])
    func `only a response to GET is stored`(method: String) {
        #expect(refusal([fresh], for: Request(method: method)) == .method)
        #expect(refusal([fresh], for: Request()) == nil)
    }

    @Test func `a request with a body is more than its key, so its response is not stored`() {
        #expect(refusal([fresh], for: Request(["Content-Length: 3"])) == .requestContent)
        #expect(refusal([fresh], for: Request(["Transfer-Encoding: chunked"])) == .requestContent)
    }

    /// The decision about a response by its status alone.
    private enum Rule {
        case byDefault, whenExplicit
        case never(NotStoredReason)
    }

    /// Every status that is not stored like any other with explicit freshness.
    private static func rule(_ status: Int) -> Rule {
        switch status {
        case 100..<200: .never(.notFinal)
        case 200, 203, 204, 300, 301, 308, 404, 410: .byDefault
        // Without Content-Range it is unknown which part it is.
        case 206: .never(.partialContent)
        case 304: .never(.notModified)
        case 226: .never(.aboutThisRequestOnly)
        case 400, 401, 402, 406, 407, 408, 409, 411, 412, 413, 414, 415, 416, 417,
            421, 422, 423, 424, 425, 426, 428, 429, 431,
            501, 505, 506, 510, 511:
            .never(.aboutThisRequestOnly)
        default: .whenExplicit
        }
    }

    @Test(arguments: 100...599)
    func `every status is stored by default, with explicit freshness, or never`(status: Int) {
        let explicit = [
            ["Cache-Control: max-age=60"], ["Cache-Control: s-maxage=60"],
            ["Expires: \(date(60))", "Date: \(date())"], ["Cache-Control: public", "ETag: \"a\""],
        ]
        let silent = ["ETag: \"a\"", "Last-Modified: \(date(-1000))"]
        let expected: (explicit: NotStoredReason?, silent: NotStoredReason?)
        switch Self.rule(status) {
        case .byDefault: expected = (nil, nil)
        case .whenExplicit: expected = (nil, .notCacheableByDefault)
        case .never(let reason): expected = (reason, reason)
        }
        for fields in explicit { #expect(refusal(fields, status: status) == expected.explicit) }
        #expect(refusal(silent, status: status) == expected.silent)
    }

    @Test func `the answer to a request with Cookie gets no heuristic freshness`() {
        let asking = Request(["Cookie: session=1"])
        let modified = "Last-Modified: \(date(-1000))"
        #expect(refusal([modified]) == nil)
        #expect(refusal([modified], for: asking) == .cookie)
        #expect(refusal([modified, "ETag: \"a\""], for: asking) == .cookie)
        #expect(refusal([modified, fresh], for: asking) == nil)
        #expect(refusal(["ETag: \"a\""], for: asking) == nil, "to be validated at each use")
    }

    @Test(
        arguments: [
            ("bytes 0-1/9", [], nil), ("bytes 0-1/9", ["Range: bytes=0-1"], nil),
            ("bytes 0-1/9", ["Range: bytes=0-1", "If-Range: \"a\""], .partialContent),
            ("bytes 0-1/*", [], .partialContent), ("bytes */9", [], .partialContent),
            ("bytes 1-0/9", [], .partialContent), ("bytes 0-9/9", [], .partialContent),
            ("bytes 0-0/9", [], .partialContent), ("lines 0-1/9", [], .partialContent),
        ] as [(String, [String], NotStoredReason?)])
    func `a 206 is stored if its place is known, and its fields are complete (§3.3)`(
        range: String, request: [String], expected: NotStoredReason?
    ) {
        let fields = [fresh, "Content-Range: \(range)", "Content-Length: 2"]
        #expect(refusal(fields, status: 206, for: Request(request)) == expected)
    }

    @Test func `Content-Range means nothing in a whole response`() {
        #expect(refusal([fresh, "Content-Range: bytes 0-1/9"]) == nil)
    }

    @Test func `parts, updates and interim responses are never stored as a response`() {
        #expect(refusal([fresh], status: 206) == .partialContent)
        #expect(
            refusal([fresh, "Content-Range: bytes 0-1/9"], for: Request(["Range: bytes=0-1"]))
                == .partialContent)
        #expect(refusal([fresh], status: 304) == .notModified)
        #expect(refusal([fresh], status: 103) == .notFinal)
    }

    @Test(
        arguments: [
            (["Cache-Control: no-store"], NotStoredReason.responseNoStore),
            (["Cache-Control: max-age=10000, no-store", "Expires: \(date(99))"], .responseNoStore),
            (["Cache-Control: No-StOrE, public"], .responseNoStore),
            (["Cache-Control: max-age=60", "Cache-Control: no-store"], .responseNoStore),
            (["Cache-Control: private, max-age=3600"], .responsePrivate),
            (["Cache-Control: private=\"\", max-age=3600"], .responsePrivate),
            (["Cache-Control: private, public"], .responsePrivate),
        ] as [([String], NotStoredReason)])
    func `no-store on either side, and private, forbid storing, even with freshness`(
        fields: [String], reason: NotStoredReason
    ) {
        #expect(refusal(fields) == reason)
        #expect(refusal([fresh], for: Request(["Cache-Control: no-store"])) == .requestNoStore)
        #expect(refusal([fresh], for: Request(["Cache-Control: no-cache"])) == nil)
    }

    @Test
    func `must-understand overrides no-store where the status is understood (§5.2.2.3)`() {
        let fields = ["Cache-Control: max-age=60, must-understand, no-store"]
        #expect(refusal(fields) == nil)
        #expect(refusal(fields, status: 404) == nil)
        #expect(refusal(fields, status: 299) == .statusNotUnderstood)
        #expect(refusal(fields + ["Cache-Control: private"]) == .responsePrivate)
        let without = ["Cache-Control: max-age=60, must-understand"]
        #expect(refusal(without, status: 599) == .statusNotUnderstood)
    }

    @Test(
        arguments: [
            ("max-age=3600", false), ("max-age=3600, public", true),
            ("max-age=3600, must-revalidate", true), ("s-maxage=3600", true),
            ("max-age=3600, proxy-revalidate", false), ("no-cache, max-age=9", false),
        ])
    func `a request with Authorization needs public, must-revalidate or s-maxage (§3.5)`(
        value: String, allowed: Bool
    ) {
        let request = Request(["Authorization: Basic Zm9v"])
        let fields = ["Cache-Control: \(value)", "ETag: \"a\""]
        #expect(refusal(fields, for: request) == (allowed ? nil : .authorization))
        #expect(refusal(fields) == nil)
    }

    @Test func `Expires alone does not make an authorized response shared`() {
        let request = Request(["Authorization: Basic Zm9v"])
        #expect(refusal(["Expires: \(date(900))"], for: request) == .authorization)
    }

    @Test(
        arguments: [
            (["Vary: *"], NotStoredReason.varyAny), (["Vary: *, *"], .varyAny),
            (["Vary: *", "Vary: *"], .varyAny), (["Vary: , *"], .varyAny),
            (["Vary:", "Vary: *"], .varyAny), (["Vary: *, Foo"], .varyAny),
            (["Vary: Foo, *"], .varyAny), (["Vary: Foo", "Vary: *"], .varyAny),
            (["Vary: Foo Bar"], .varyAny), (["Vary: \"Foo\""], .varyAny),
            (["Vary: Foo;Bar"], .varyAny),
        ] as [([String], NotStoredReason)])
    func `Vary with * anywhere, or that cannot be read, matches nothing and is not stored (§4.1)`(
        fields: [String], reason: NotStoredReason
    ) {
        #expect(refusal(fields + [fresh]) == reason)
    }

    @Test func `Vary may nominate as many names as the limit, and no more`() {
        func vary(_ count: Int) -> String {
            "Vary: " + (0..<count).map { "Name-\($0)" }.joined(separator: ", ")
        }
        let limit = PolicyOptions().maximumVaryNames
        #expect(refusal([fresh, vary(limit)]) == nil)
        #expect(refusal([fresh, vary(limit + 1)]) == .varyNames)
        #expect(refusal([fresh, vary(limit), vary(limit)]) == nil)
    }

    @Test func `the nominated values may be as long as the limit, and no longer`() {
        // Version, name's length, name, presence and value's length go before the value.
        let room = PolicyOptions().maximumVaryKeyBytes - 1 - 1 - 3 - 1 - 2
        func request(_ count: Int) -> Request {
            Request(["Foo: " + String(repeating: "a", count: count)])
        }
        #expect(refusal([fresh, "Vary: Foo"], for: request(room)) == nil)
        #expect(refusal([fresh, "Vary: Foo"], for: request(room + 1)) == .varyValues)
    }

    @Test(
        arguments: [
            ("max-age=60", SetCookiePolicy.whenShared, false),
            ("max-age=60, public", .whenShared, true), ("s-maxage=60", .whenShared, true),
            ("max-age=60, public", .never, false), ("s-maxage=60", .never, false),
            ("max-age=60", .always, true),
        ])
    func `a cookie is stored only with a response marked as shared, unless configured otherwise`(
        value: String, policy: SetCookiePolicy, allowed: Bool
    ) {
        var options = PolicyOptions()
        options.setCookie = policy
        for name in ["Set-Cookie", "Set-Cookie2", "set-COOKIE2"] {
            let fields = ["Cache-Control: \(value)", "\(name): a=b"]
            #expect(refusal(fields, options: options) == (allowed ? nil : .setCookie))
        }
    }

    @Test func `a request with a Cookie changes nothing`() {
        #expect(refusal([fresh], for: Request(["Cookie: a=b"])) == nil)
    }

    @Test(
        arguments: [
            ([], NotStoredReason.uselessWithoutValidator),
            (["Cache-Control: max-age=0"], .uselessWithoutValidator),
            (["Cache-Control: max-age=10", "Age: 10"], .uselessWithoutValidator),
            (["Cache-Control: max-age=10", "Age: 9"], nil),
            (["Expires: 0"], .uselessWithoutValidator),
            (["Cache-Control: no-cache, max-age=60"], .uselessWithoutValidator),
            (["Cache-Control: no-cache", "ETag: \"a\""], nil),
            (["Cache-Control: max-age=0", "ETag: W/\"a\""], nil),
            (["Cache-Control: max-age=0", "Last-Modified: \(date(-9))"], nil),
            (["Cache-Control: max-age=0", "Last-Modified: gestern"], .uselessWithoutValidator),
            (["Cache-Control: max-age=0, stale-if-error=60"], nil),
            (["Cache-Control: max-age=0, stale-while-revalidate=60"], nil),
            (
                ["Cache-Control: max-age=0, stale-while-revalidate=60, must-revalidate"],
                .uselessWithoutValidator
            ),
            (
                ["Cache-Control: max-age=0, stale-if-error=60, must-revalidate"],
                .uselessWithoutValidator
            ),
        ] as [([String], NotStoredReason?)])
    func `what is stale on arrival and cannot be validated is not stored`(
        fields: [String], reason: NotStoredReason?
    ) {
        #expect(refusal(fields) == reason)
    }

    @Test func `Cache-Control that does not follow the grammar may forbid anything`() {
        #expect(refusal(["Cache-Control: max-age=60; private"]) == .malformedCacheControl)
        #expect(refusal(["Cache-Control: max-age =60"]) == .malformedCacheControl)
    }

    @Test func `a body known to be over the limit is not stored, one at the limit is`() {
        var options = PolicyOptions()
        options.maximumObjectBytes = 1000
        #expect(refusal([fresh, "Content-Length: 1000"], options: options) == nil)
        #expect(refusal([fresh, "Content-Length: 1001"], options: options) == .tooLarge)
        #expect(refusal([fresh, "Transfer-Encoding: chunked"], options: options) == nil)
    }

    @Test func `no field that Connection names can hide Cache-Control`() {
        #expect(
            refusal(["Connection: cache-control", "Cache-Control: no-store", "ETag: \"a\""])
                == .responseNoStore)
    }

    @Test func `what is stored comes with its times, lifetime and Vary key`() throws {
        let response = Response([
            "Cache-Control: max-age=60", "Age: 7", "Date: \(date(-3))", "Vary: Accept-Encoding",
        ])
        let request = Request(["Accept-Encoding: gzip"])
        let decision = StoreDecision.decide(
            on: response.head, in: response.bytes.span, to: request.head,
            in: request.bytes.span, requestTime: start - 2, responseTime: start,
            options: PolicyOptions())
        guard case .store(let storable) = decision else {
            Issue.record("not stored: \(decision)")
            return
        }
        #expect(
            storable.times
                == StoredTimes(
                    requestTime: start - 2, responseTime: start, initialAge: 9))
        #expect(storable.lifetime == 60)
        #expect(storable.source == .maxAge)
        #expect(storable.vary.matches(request))
        let other = Request(["Accept-Encoding: br"])
        #expect(!storable.vary.matches(other))
    }

    @Test func `a heuristic lifetime is not given to a URI with a query`() {
        let fields = ["Last-Modified: \(date(-1000))", "Date: \(date())"]
        func lifetime(_ target: String) -> Int64? {
            guard case .store(let storable) = storing(Response(fields), for: Request(to: target))
            else { return nil }
            return storable.lifetime
        }
        #expect(lifetime("http://a.example/x") == 100)
        #expect(lifetime("http://a.example/x?y") == 0)
        #expect(lifetime("http://a.example?y") == 0)
    }

    @Test func `every reason has a token of its own that Cache-Status can carry`() {
        let tokens = NotStoredReason.allCases.map { "\($0.token)" }
        #expect(Set(tokens).count == tokens.count)
        #expect(tokens.allSatisfy { isToken($0) })
    }
}

/// Whether text is a structured field's token (RFC 8941 §3.3.4).
func isToken(_ text: String) -> Bool {
    text.first?.isLetter == true
        && text.utf8.allSatisfy { ByteClass.isToken($0) }
}
