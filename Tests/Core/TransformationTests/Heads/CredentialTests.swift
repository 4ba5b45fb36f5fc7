import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Transformation

@Suite("Credentials and the cache policy of a route, over request heads")
struct CredentialTests {
    private let start = ["GET /a HTTP/1.1", "Host: h"]

    private func authorization(_ value: String = "Basic YTpi") -> RequestAuthorization {
        RequestAuthorization(
            fieldValue: SecretText(value), scheme: .basic(user: "a", .file("/secret")))
    }

    @Test func `credentials are added to requests that bring none`() throws {
        #expect(
            try rewritten(start) { $0.authorization = authorization() }
                == start + ["Authorization: Basic YTpi"])
        for own in ["Authorization: Basic eDp5", "authorization:"] {
            #expect(try rewritten(start + [own]) { $0.authorization = authorization() } == nil)
        }
    }

    @Test func `the client's are replaced where a rule removes them`() throws {
        #expect(
            try rewritten(start + ["Authorization: Basic eDp5"]) {
                $0.authorization = authorization()
                $0.headers.remove = ["Authorization"]
            } == start + ["Authorization: Basic YTpi"])
    }

    @Test func `without TLS they are refused, unless they may go out in clear text`() throws {
        let refused = #expect(throws: TransformationError.self) {
            try rewritten(start, isSecure: false) { $0.authorization = authorization() }
        }
        #expect(refused?.reason == .authorizationInClearText)
        #expect(refused?.detail.contains("YTpi") == false)
        #expect(
            try rewritten(start, isSecure: false) {
                $0.authorization = authorization()
                $0.authorization?.allowsClearText = true
            } == start + ["Authorization: Basic YTpi"])
        // None of the gateway's credentials would be sent.
        #expect(
            try rewritten(start + ["Authorization: own"], isSecure: false) {
                $0.authorization = authorization()
            } == nil)
    }

    @Test func `TRACE, which shows a request to its client, gets none`() throws {
        let trace = ["TRACE /a HTTP/1.1", "Host: h"]
        for isSecure in [true, false] {
            #expect(
                try rewritten(trace, isSecure: isSecure) { $0.authorization = authorization() }
                    == nil)
        }
        #expect(
            try rewritten(["OPTIONS * HTTP/1.1", "Host: h"]) {
                $0.authorization = authorization()
            }?.last == "Authorization: Basic YTpi")
    }

    @Test(
        arguments: [
            (.reloadIgnoringCache, [], ["Cache-Control: no-cache"]),
            (.returnCacheElseLoad, [], ["Cache-Control: max-stale"]),
            (.returnCacheDontLoad, [], ["Cache-Control: only-if-cached, max-stale"]),
            (.reloadIgnoringCache, ["Cache-Control: no-cache"], nil),
            (.reloadIgnoringCache, ["Pragma: no-cache"], ["Cache-Control: no-cache"]),
            (
                .returnCacheElseLoad,
                ["A: 1", "cache-control: max-age=0, NO-STORE", "Pragma: no-cache", "B: 2"],
                ["A: 1", "cache-control: max-stale, no-store", "B: 2"]
            ),
            (
                .returnCacheDontLoad,
                ["Cache-Control: no-transform,no-cache", "A: 1", "Cache-Control: no-store"],
                ["Cache-Control: only-if-cached, max-stale, no-store, no-transform", "A: 1"]
            ),
            // In an argument, or in quotes, it is not a directive.
            (
                .reloadIgnoringCache, ["Cache-Control: x=\"a, no-store, b\", y=no-transform"],
                ["Cache-Control: no-cache"]
            ),
            (
                .reloadIgnoringCache, ["Cache-Control: \u{FF}, no-store=1"],
                ["Cache-Control: no-cache, no-store"]
            ),
            (.reloadIgnoringCache, ["Cache-Control:"], ["Cache-Control: no-cache"]),
        ] as [(RequestCachePolicy, [String], [String]?)])
    func `the policy replaces the client's directives for the cache`(
        policy: RequestCachePolicy, lines: [String], expected: [String]?
    ) throws {
        #expect(
            try rewritten(start + lines) { $0.cachePolicy = policy }
                == expected.map { start + $0 })
    }

    @Test func `it takes the place of what the rules write, too`() throws {
        #expect(
            try rewritten(start) {
                $0.headers.set = [.init("Cache-Control", "max-age=0"), .init("Pragma", "x")]
                $0.cachePolicy = .returnCacheElseLoad
            } == start + ["Cache-Control: max-stale"])
    }
}
