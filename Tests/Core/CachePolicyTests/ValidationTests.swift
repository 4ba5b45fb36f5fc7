import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Validation with the origin, by RFC 9111 §4.3")
struct ValidationTests {
    private let stale = "Cache-Control: max-age=0"

    /// The conditional fields sent for a request.
    private func sent(_ fields: [String], for requestFields: [String] = []) -> String? {
        let request = Request(requestFields)
        let stored = Stored(fields + [stale])
        guard case .validate(let validation) = stored.decide(request) else { return nil }
        return written { writer in
            validation.appendFields(
                for: request.head, in: request.bytes.span, storedHead: stored.head.span,
                to: &writer)
        }
    }

    @Test func `the origin is asked with all validators that are stored (§4.3.1)`() {
        #expect(sent(["ETag: \"a\""]) == "If-None-Match: \"a\"\r\n")
        #expect(sent(["ETag: W/\"a\""]) == "If-None-Match: W/\"a\"\r\n")
        let modified = "Last-Modified: \(date(-9))"
        #expect(sent([modified]) == "If-Modified-Since: \(date(-9))\r\n")
        #expect(
            sent([modified, "ETag: \"a\""])
                == "If-None-Match: \"a\"\r\nIf-Modified-Since: \(date(-9))\r\n")
        #expect(sent(["Last-Modified: gestern"]) == nil)
    }

    @Test(
        arguments: [
            (["If-None-Match: \"b\""], "If-None-Match: \"b\"\r\nIf-None-Match: \"a\"\r\n"),
            (["If-None-Match: \"b\", \"a\""], "If-None-Match: \"b\", \"a\"\r\n"),
            (["If-None-Match: W/\"a\""], "If-None-Match: W/\"a\"\r\n"),
            (
                ["If-None-Match: \"b\"", "If-None-Match: \"c\""],
                "If-None-Match: \"b\"\r\nIf-None-Match: \"c\"\r\nIf-None-Match: \"a\"\r\n"
            ),
            (["If-None-Match: *"], "If-None-Match: \"a\"\r\n"),
            (["If-Modified-Since: \(date())"], "If-None-Match: \"a\"\r\n"),
        ] as [([String], String)])
    func `the client's own entity tags are sent too, ours only if it is not among them (§4.3.2)`(
        fields: [String], expected: String
    ) {
        #expect(sent(["ETag: \"a\""], for: fields) == expected)
    }

    @Test func `the client's If-None-Match is left out when only a date can be asked about`() {
        let request = ["If-None-Match: \"b\""]
        #expect(
            sent(["Last-Modified: \(date(-9))"], for: request)
                == "If-Modified-Since: \(date(-9))\r\n")
    }

    private func outcome(
        _ response: [String], status: Int = 304, to fields: [String],
        for requestFields: [String] = [], method: String = "GET", after offset: Int64 = 0,
        options: PolicyOptions = PolicyOptions()
    ) -> ValidationOutcome? {
        let request = Request(requestFields, method: method)
        let stored = Stored(fields + (fields.contains { $0.hasPrefix("Cache-C") } ? [] : [stale]))
        guard case .validate(let validation) = stored.decide(request, after: offset) else {
            return nil
        }
        let response = Response(response, status: status)
        return ValidationOutcome.of(
            response.head, in: response.bytes.span, to: validation, stored: stored.metadata,
            storedHead: stored.head.span, request: request.head, in: request.bytes.span,
            now: start + offset, options: options)
    }

    @Test(
        arguments: [
            (["ETag: \"a\""], ["ETag: \"a\""], true), (["ETag: \"a\""], ["ETag: \"b\""], false),
            (["ETag: W/\"a\""], ["ETag: W/\"a\""], true),
            (["ETag: W/\"a\""], ["ETag: \"a\""], true),
            (["ETag: \"a\""], ["ETag: W/\"a\""], false),
            (["Last-Modified: \(date(-9))"], ["Last-Modified: \(date(-9))"], true),
            (["Last-Modified: \(date(-8))"], ["Last-Modified: \(date(-9))"], false),
            (["Last-Modified: x"], ["Last-Modified: \(date(-9))"], false),
            (["Last-Modified: \(date(-9))"], ["ETag: \"a\""], false),
            (["ETag: \"a\""], ["Last-Modified: \(date(-9))"], false),
            (
                ["ETag: \"a\"", "Last-Modified: \(date(-8))"],
                ["ETag: \"a\"", "Last-Modified: \(date(-9))"], true
            ),
            (
                ["Last-Modified: \(date(-9))"],
                ["ETag: \"a\"", "Last-Modified: \(date(-9))"], true
            ),
            ([], ["ETag: \"a\""], true), ([], ["Last-Modified: \(date(-9))"], true),
        ] as [([String], [String], Bool)])
    func `a 304 is about our copy if its validator is ours, strongly if strong (§4.3.4)`(
        response: [String], stored: [String], isOurs: Bool
    ) {
        let expected: ValidationOutcome = isOurs ? .freshen(.full) : .retryWithoutConditions
        #expect(outcome(response, to: stored) == expected)
    }

    @Test func `a 304 about a tag only the client has is sent on`() {
        let request = ["If-None-Match: \"b\""]
        #expect(
            outcome(["ETag: \"b\""], to: ["ETag: \"a\""], for: request) == .forwardNotModified)
        #expect(outcome([], to: ["ETag: \"a\""], for: request) == .forwardNotModified)
        #expect(outcome(["ETag: \"a\""], to: ["ETag: \"a\""], for: request) == .freshen(.full))
    }

    @Test func `after a 304 the client's own condition and range are answered from the store`() {
        let stored = ["ETag: \"a\""]
        #expect(
            outcome(["ETag: \"a\""], to: stored, for: ["If-None-Match: \"a\""])
                == .freshen(.notModified))
        #expect(outcome([], to: stored, method: "HEAD") == .freshen(.headOnly))
        #expect(
            outcome([], to: stored, for: ["Range: bytes=0-1"])
                == .freshen(.partial(first: 0, last: 1, complete: 100)))
        let since = ["If-Modified-Since: \(date())"]
        let modified = ["Last-Modified: \(date(-9))"]
        #expect(outcome([], to: modified, for: since) == .freshen(.notModified))
    }

    @Test(
        arguments: [
            (200, true), (203, true), (301, true), (404, true), (410, true), (403, true),
            (400, false), (401, false), (206, false), (412, false), (416, false), (429, false),
            (500, false), (503, false),
        ])
    func `any other answer takes the stored response's place (§4.3.3)`(status: Int, outdates: Bool)
    {
        #expect(
            outcome([], status: status, to: ["ETag: \"a\""])
                == .replace(outdatesStored: outdates))
    }

    @Test(
        arguments: [
            (500, 110, true), (502, 110, true), (503, 110, true), (504, 110, true),
            (503, 111, false), (501, 105, false), (404, 105, false),
        ])
    func `stale-if-error lets the stored response replace a server error (RFC 5861 §4)`(
        status: Int, offset: Int64, allowed: Bool
    ) {
        let stored = ["ETag: \"a\"", "Cache-Control: max-age=100, stale-if-error=10"]
        let result = outcome([], status: status, to: stored, after: offset)
        let hit = CacheHit(
            form: .full, age: offset, timeToLive: 100 - offset, stale: .staleIfError)
        let replace = ValidationOutcome.replace(outdatesStored: status == 404)
        #expect(result == (allowed ? .serveStale(hit) : replace))
    }

    private func failure(
        _ failure: OriginErrorReason, response: String, request: [String] = [],
        after offset: Int64 = 105, options: PolicyOptions = PolicyOptions()
    ) -> StaleUse? {
        let stored = Stored(["ETag: \"a\"", "Cache-Control: \(response)"])
        let request = Request(request)
        return CacheHit.inPlaceOfFailure(
            failure, stored: stored.metadata, storedHead: stored.head.span, for: request.head,
            in: request.bytes.span, now: start + offset, options: options)?.stale
    }

    @Test
    func `an unreachable origin is a failure too, and the client's stale-if-error counts`() {
        let allowed = "max-age=100, stale-if-error=10"
        #expect(failure(.unreachable, response: allowed) == .staleIfError)
        #expect(failure(.unreachable, response: allowed, after: 111) == nil)
        #expect(failure(.unreachable, response: "max-age=100") == nil)
        let client = ["Cache-Control: stale-if-error=5"]
        #expect(
            failure(.unreachable, response: "max-age=100", request: client) == .staleIfError)
        #expect(
            failure(.unreachable, response: "max-age=100", request: client, after: 106) == nil)
    }

    @Test
    func `the configuration may allow stale answers while the origin is unreachable (§4.2.4)`() {
        var options = PolicyOptions()
        options.staleWhenUnreachableSeconds = 60
        let stored = "max-age=100"
        #expect(
            failure(.unreachable, response: stored, after: 160, options: options) == .unreachable)
        #expect(failure(.unreachable, response: stored, after: 161, options: options) == nil)
        #expect(failure(.status(503), response: stored, options: options) == nil)
    }

    @Test(
        arguments: [
            ("must-revalidate", []), ("proxy-revalidate", []), ("s-maxage=100", []),
            ("no-cache", []), ("max-age=100", ["Cache-Control: no-cache"]),
            ("max-age=100", ["Cache-Control: no-store"]), ("max-age=100", ["Pragma: no-cache"]),
            ("max-age=100", ["If-Match: \"a\""]), ("max-age=100", ["Authorization: x"]),
            ("max-age=100", ["If-Unmodified-Since: \(date())"]),
        ] as [(String, [String])])
    func `what forbids stale use forbids it after a failure too`(
        response: String, request: [String]
    ) {
        let directives = "max-age=100, stale-if-error=1000, \(response)"
        #expect(failure(.unreachable, response: directives, request: request) == nil)
        #expect(failure(.status(503), response: directives, request: request) == nil)
    }
}
