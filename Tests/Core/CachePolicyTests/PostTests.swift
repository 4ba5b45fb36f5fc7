import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Responses to POST that a GET would get (RFC 9110 §9.3.3, RFC 9111 §3)")
struct PostTests {
    private func refusal(
        _ fields: [String], status: Int = 200, request: [String] = [], key: String? = nil,
        method: String = "POST"
    ) -> NotStoredReason? {
        let post = Request(request, method: method, to: "http://a.example/dir/x?q")
        let response = Response(fields, status: status)
        let decision = StoreDecision.decide(
            on: response.head, in: response.bytes.span, to: post.head, in: post.bytes.span,
            requestTime: start, responseTime: start,
            key: CacheKey(bytes: Array((key ?? "http://a.example/dir/x?q").utf8)),
            options: PolicyOptions())
        if case .doNotStore(let reason) = decision { return reason }
        return nil
    }

    private let fresh = "Cache-Control: max-age=9"
    private let here = "Content-Location: x?q"

    @Test(
        arguments: [
            "x?q", "/dir/x?q", "//a.example/dir/x?q", "http://a.example/dir/x?q",
            "HTTP://A.EXAMPLE:80/dir/x?q", "../dir/./x?q", "x?q#part", "?q",
        ])
    func `are stored if Content-Location resolves to the target`(location: String) {
        #expect(refusal([fresh, "Content-Location: \(location)"]) == nil)
        #expect(
            refusal(
                [fresh, "Content-Location: \(location)"],
                key: "reverse1:http://a.example/dir/x?q") == nil)
    }

    @Test(
        arguments: [
            "x", "x?", "x?Q", "/x?q", "x?q&r", "https://a.example/dir/x?q",
            "http://b.example/dir/x?q", "http://a.example:81/dir/x?q", "x%3Fq", "%78?q", "",
            "http://[", "x?q x",
        ])
    func `are not stored if it is anything else`(location: String) {
        #expect(refusal([fresh, "Content-Location: \(location)"]) == .method)
    }

    @Test func `are not stored without exactly one Content-Location, or without a key`() {
        #expect(refusal([fresh]) == .method)
        #expect(refusal([fresh, here, here]) == .method)
        let post = Request(method: "POST")
        let response = Response([fresh, "Content-Location: x"])
        #expect(storing(response, for: post) == .doNotStore(.method))
    }

    @Test(
        arguments: [
            ([], .notCacheableByDefault), (["Cache-Control: public"], .notCacheableByDefault),
            (["ETag: \"a\""], .notCacheableByDefault),
            (["Last-Modified: \(date(-9999))"], .notCacheableByDefault),
            (["Cache-Control: max-age=0", "ETag: \"a\""], .notCacheableByDefault),
            (["Cache-Control: max-age=9", "Age: 9"], .notCacheableByDefault),
            (["Expires: 0"], .notCacheableByDefault), (["Expires: \(date(9))"], nil),
            (["Cache-Control: s-maxage=9"], nil), (["Cache-Control: max-age=9"], nil),
            (["Cache-Control: max-age=9, private"], .responsePrivate),
            (["Cache-Control: max-age=9, no-store"], .responseNoStore),
            (["Cache-Control: max-age=9", "Vary: *"], .varyAny),
            (["Cache-Control: max-age=9", "Set-Cookie: a=b"], .setCookie),
        ] as [([String], NotStoredReason?)])
    func `need explicit freshness, and nothing that forbids storing`(
        fields: [String], reason: NotStoredReason?
    ) {
        #expect(refusal(fields + [here]) == reason)
    }

    @Test func `need a status of success with content`() {
        for status in [200, 201, 203] { #expect(refusal([fresh, here], status: status) == nil) }
        for status in [204, 205, 301, 303, 404, 410, 500] {
            #expect(refusal([fresh, here], status: status) == .method)
        }
        #expect(refusal([fresh, here, "Content-Range: bytes 0-1/2"], status: 206) != nil)
    }

    @Test(arguments: ["PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "post"])
    func `of other methods are not stored`(method: String) {
        #expect(refusal([fresh, here], method: method) == .method)
    }

    @Test func `what the request forbids is forbidden`() {
        #expect(refusal([fresh, here], request: ["Cache-Control: no-store"]) == .requestNoStore)
        #expect(refusal([fresh, here], request: ["Authorization: x"]) == .authorization)
        #expect(refusal([fresh, here], request: ["Content-Length: 5"]) == nil)
    }
}
