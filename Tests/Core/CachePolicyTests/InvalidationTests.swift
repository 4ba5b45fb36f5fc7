import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Invalidation by unsafe requests, by RFC 9111 §4.4")
struct InvalidationTests {
    private func keys(
        _ fields: [String] = [], status: Int = 200, method: String = "POST",
        base: String = "http://a.example/dir/x?q"
    ) -> [String] {
        let request = Request(method: method, to: "http://a.example/dir/x?q")
        let response = Response(fields, status: status)
        return Invalidation.keys(
            for: request.head, key: CacheKey(bytes: Array(base.utf8)), response: response.head,
            in: response.bytes.span
        ).map { text($0.bytes) }
    }

    private let target = "http://a.example/dir/x?q"

    @Test(arguments: [
        "POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "PURGE", "PROPPATCH", "query", "SEARCHES",
    ])
    func `a successful unsafe request invalidates its target; an unknown method counts as unsafe`(
        method: String
    ) {
        for status in [200, 201, 204, 301, 303, 399] {
            #expect(keys(status: status, method: method) == [target])
        }
        for status in [400, 404, 412, 500, 503] {
            #expect(keys(status: status, method: method) == [])
        }
    }

    @Test(arguments: CacheRoute.all)
    func `the URI is the same whichever route the unsafe request took`(route: CacheRoute) {
        let base = "http://a.example/dir/x"
        let routed = "\(route.prefix)\(base)"
        #expect(
            keys(["Location: /other"], base: routed) == [base, "http://a.example/other"])
        let key = CacheKey(bytes: Array(base.utf8))
        #expect(key.along(route).along(.direct) == key)
        #expect(text(key.along(route).bytes) == routed)
    }

    @Test(arguments: CacheRoute.all)
    func `by other ways the same URI has another key`(route: CacheRoute) {
        let base = "http://a.example/dir/x"
        let key = CacheKey(bytes: Array(base.utf8))
        let one = key.along(route, by: 0xab)
        #expect(one != key.along(route) && one != key.along(route, by: 0xac))
        #expect(one.along(.direct) == key)
        #expect(one.along(.upgraded, by: 1) == key.along(.upgraded, by: 1))
        #expect(text(one.bytes) == route.prefix(by: 0xab) + base)
        // What an unsafe request by these ways changes is the URI.
        #expect(
            keys(["Location: /other"], base: text(one.bytes)) == [base, "http://a.example/other"])
        #expect(one.ofQuery != key.along(route).ofQuery)
        #expect(one.ofQuery.along(.direct) == key)
    }

    @Test func `no two routes by the same or other ways have the same prefix`() {
        let all = CacheRoute.all.flatMap { route in [nil, 1, 2].map { route.prefix(by: $0) } }
        #expect(Set(all).count == all.count)
    }

    @Test(arguments: [
        "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "QUERY", "REPORT", "SEARCH",
    ])
    func `safe methods invalidate nothing`(method: String) {
        #expect(keys(["Location: /other"], method: method) == [])
    }

    @Test(
        arguments: [
            ("/other", "http://a.example/other"),
            ("http://a.example/other", "http://a.example/other"),
            ("HTTP://A.EXAMPLE:80/other", "http://a.example/other"),
            ("http://a.example:/other", "http://a.example/other"),
            ("http://a.example", "http://a.example/"),
            ("http://a.example?z", "http://a.example/?z"),
            ("//a.example/other", "http://a.example/other"),
            ("other", "http://a.example/dir/other"), ("./other", "http://a.example/dir/other"),
            ("../other", "http://a.example/other"), ("../../other", "http://a.example/other"),
            ("..", "http://a.example/"), (".", "http://a.example/dir/"),
            ("?z", "http://a.example/dir/x?z"), ("/a/./b/../c", "http://a.example/a/c"),
            ("/a/b/..", "http://a.example/a/"), ("/a?x=/../b", "http://a.example/a?x=/../b"),
            ("/other#fragment", "http://a.example/other"), ("/a//b", "http://a.example/a//b"),
            ("a:b/c", nil), ("/a:b", "http://a.example/a:b"),
        ] as [(String, String?)])
    func `Location and Content-Location of the same origin are invalidated too`(
        value: String, expected: String?
    ) {
        for name in ["Location", "Content-Location"] {
            #expect(keys(["\(name): \(value)"]) == [target] + (expected.map { [$0] } ?? []))
        }
    }

    @Test(
        arguments: [
            "http://b.example/other", "https://a.example/other", "http://a.example:8080/other",
            "//b.example/other", "http://x@a.example/other", "ftp://a.example/other",
            "mailto:a@a.example", "http://", "http:///x", "http://a.example.b.example/",
            "https:other", "/with space", "/caf\u{E9}",
        ])
    func `another origin's entries are left alone`(value: String) {
        #expect(keys(["Location: \(value)"]) == [target])
    }

    @Test
    func `the target itself is named once, as are equal locations; two Locations are ignored`() {
        #expect(keys(["Location: x?q", "Content-Location: #f"]) == [target])
        let other = "http://a.example/other"
        #expect(keys(["Location: /other", "Content-Location: ../other"]) == [target, other])
        #expect(keys(["Location: /a", "Location: /b"]) == [target])
        #expect(keys(["Location:"]) == [target])
    }

    @Test func `origins with a port and IPv6 literals are distinguished`() {
        let base = "http://[::1]:8080/x"
        #expect(keys(["Location: /y"], base: base) == [base, "http://[::1]:8080/y"])
        #expect(
            keys(["Location: http://[::1]:8080/y"], base: base) == [base, "http://[::1]:8080/y"])
        #expect(keys(["Location: http://[::1]/y"], base: base) == [base])
    }

    @Test func `a reference that makes too long a key is left out`() {
        let path = "/" + String(repeating: "p", count: CacheKey.maximumBytes)
        #expect(TargetReference.resolve(Array(path.utf8).span, against: Array(target.utf8)) == nil)
    }
}
