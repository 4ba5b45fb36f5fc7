import Testing

@testable import PinfoldClient

/// A time: none of these tests reads a clock.
private let now: Int64 = 1_700_000_000

private func request(
    _ host: String, _ path: String = "/", secure: Bool = true, http: Bool = true
) -> CookieRequest {
    CookieRequest(host: host, path: path, isSecure: secure, isHTTP: http)
}

@Suite("A cookie jar")
struct CookieJarTests {
    /// The Cookie field of a request after the response to another one has set a cookie.
    private func field(
        _ setCookie: String, from: CookieRequest, to: CookieRequest, after: Int64 = 0
    ) -> String? {
        var jar = CookieJar()
        jar.store(setCookie: setCookie, from: from, at: now)
        return jar.field(for: to, at: now + after)
    }

    @Test func `sends the bytes that were set, which need not be UTF-8`() {
        var jar = CookieJar()
        let asked = request("x.test")
        let field = Array("a=caf".utf8) + [0xE9] + Array("; Path=/".utf8)
        #expect(jar.store(setCookie: field, from: asked, at: now) == .stored)
        // A different name, although both have the same text.
        #expect(jar.store(setCookie: [0xFF] + Array("=1".utf8), from: asked, at: now) == .stored)
        #expect(jar.store(setCookie: [0xFE] + Array("=2".utf8), from: asked, at: now) == .stored)
        #expect(
            jar.fieldBytes(for: asked, at: now)
                == Array("a=caf".utf8) + [0xE9] + Array("; ".utf8) + [0xFF] + Array("=1; ".utf8)
                + [0xFE] + Array("=2".utf8))
        #expect(jar.cookies.first?.value == "caf\u{FFFD}")
    }

    @Test func `selects no more bytes for a request than servers accept`() throws {
        var jar = CookieJar()
        let asked = request("a.example.com")
        for number in 10..<30 {
            let value = String(repeating: "x", count: 4000)
            jar.store(
                setCookie: "c\(number)=\(value); Domain=example.com", from: asked, at: now)
        }
        jar.store(setCookie: "id=1", from: asked, at: now + 1)
        let found = jar.field(for: asked, at: now + 2)
        let field = try #require(found)
        #expect(field.utf8.count <= 8190)
        // The first ones in order, and what fits after them.
        #expect(field.split(separator: "; ").map { $0.prefix(3) } == ["c10", "c11", "id="])
        #expect(jar.cookies(for: asked, at: now + 2).count == 21)
    }

    @Test func `selects at most 150 cookies for a request`() throws {
        var jar = CookieJar()
        for number in 0..<180 {
            jar.store(setCookie: "c\(number)=1", from: request("example.com"), at: now)
        }
        let found = jar.field(for: request("example.com"), at: now)
        let field = try #require(found)
        #expect(field.split(separator: "; ") == (0..<150).map { "c\($0)=1" })
    }

    @Test(
        arguments: [
            ("a=b", "a=b"), ("  a = b ;c=d", "a=b"), ("a=b=c", "a=b=c"), ("a=", "a="),
            ("a=\"b c\"", "a=\"b c\""), ("=b", "b"), ("b", "b"), ("a=é", "a=é"),
            ("a=b;;;x;=;Secure=no", "a=b"),
        ])
    func `echoes what it received`(setCookie: String, sent: String) {
        #expect(field(setCookie, from: request("x.test"), to: request("x.test")) == sent)
    }

    @Test(
        arguments: [
            ("", CookieError.empty), (" ; Secure", .empty), ("=", .empty),
            ("a=b\u{0}", .controlCharacter), ("a=b\r\nX: y", .controlCharacter),
            ("a=b\tc", .controlCharacter), ("a=b; Path=/\u{7F}", .controlCharacter),
            ("a=" + String(repeating: "x", count: 4096), .tooLong),
            ("a=b; Domain=y.test", .foreignDomain), ("a=b; Domain=www.x.test", .foreignDomain),
            ("a=b; Domain=é.x.test", .foreignDomain), ("a=b; Domain=test", .publicSuffix),
            ("__Secure-a=b", .namePrefix), ("__host-a=b; Secure", .namePrefix),
            ("__Host-a=b; Secure; Path=/c", .namePrefix),
            ("__Host-a=b; Secure; Path=/; Domain=x.test", .namePrefix),
            ("__Secure-", .namePrefix), ("=__Host-a=b; Secure; Path=/", .namePrefix),
        ] as [(String, CookieError)])
    func `has a reason when it refuses`(setCookie: String, reason: CookieError) {
        var jar = CookieJar()
        let outcome = jar.store(setCookie: setCookie, from: request("x.test"), at: now)
        #expect(outcome == .refused(reason))
        #expect(jar.cookies.isEmpty)
    }

    @Test(
        arguments: [
            ("__Secure-a=b; Secure", "x.test"), ("__Host-a=b; Secure; Path=/", "x.test"),
            ("a=" + String(repeating: "x", count: 4095), "x.test"),
            ("a=b; Domain=.X.Test", "x.test"), ("a=b; Domain=x.test.", "www.x.test"),
            ("a=b; Domain=localhost", "localhost"), ("a=b; Domain=github.io", "github.io"),
            ("a=b; Domain=127.0.0.1", "127.0.0.1"), ("a=b; Domain=", "x.test"),
        ])
    func `stores what its rules allow`(setCookie: String, host: String) {
        var jar = CookieJar()
        #expect(jar.store(setCookie: setCookie, from: request(host), at: now) == .stored)
        #expect(jar.field(for: request(host), at: now) != nil)
    }

    @Test(
        arguments: [
            ("a=b", "x.test", "x.test", true), ("a=b", "X.TEST.", "x.test", true),
            ("a=b", "x.test", "www.x.test", false),
            ("a=b; Domain=x.test", "x.test", "www.x.test", true),
            ("a=b; Domain=x.test", "www.x.test", "x.test", true),
            ("a=b; Domain=x.test", "www.x.test", "deep.www.x.test", true),
            ("a=b; Domain=x.test", "x.test", "ax.test", false),
            ("a=b; Domain=y.test; Domain=x.test", "x.test", "www.x.test", true),
            ("a=b", "127.0.0.1", "127.0.0.1", true), ("a=b", "[::1]", "::1", true),
            ("a=b; Domain=github.io", "github.io", "me.github.io", false),
            ("a=b; Domain=example.co.uk", "a.example.co.uk", "b.example.co.uk", true),
        ])
    func `matches domains`(setCookie: String, from: String, to: String, isSent: Bool) {
        #expect((field(setCookie, from: request(from), to: request(to)) != nil) == isSent)
    }

    @Test func `does not treat an address as a domain`() {
        var jar = CookieJar()
        for (domain, host) in [("0.0.1", "127.0.0.1"), ("1", "127.1"), ("1", "x.1")] {
            let set = "a=b; Domain=\(domain)"
            #expect(
                jar.store(setCookie: set, from: request(host), at: now)
                    == .refused(.foreignDomain))
        }
    }

    @Test(
        arguments: [
            ("a=b; Domain=com", "example.com"), ("a=b; Domain=.co.uk", "example.co.uk"),
            ("a=b; Domain=github.io", "me.github.io"), ("a=b; Domain=com.", "example.com."),
        ])
    func `refuses cookies for public suffixes`(setCookie: String, host: String) {
        var jar = CookieJar()
        #expect(
            jar.store(setCookie: setCookie, from: request(host), at: now)
                == .refused(.publicSuffix))
    }

    @Test(
        arguments: [
            ("a=b", "/docs/page", "/docs/other", true), ("a=b", "/docs/page", "/docs", true),
            ("a=b", "/docs/page", "/docsx", false), ("a=b", "/docs/page", "/", false),
            ("a=b", "/docs", "/", true), ("a=b", "", "/", true),
            ("a=b", "/docs/?x=/y/z", "/docs", true),
            ("a=b; Path=/c", "/", "/c", true), ("a=b; Path=/c", "/", "/c/d", true),
            ("a=b; Path=/c", "/", "/cd", false), ("a=b; Path=/c/", "/", "/c", false),
            ("a=b; Path=/c/", "/", "/c/d", true), ("a=b; Path=c", "/", "/x", true),
            ("a=b; Path=/c; Path=", "/", "/x", true),
        ])
    func `matches paths`(setCookie: String, from: String, to: String, isSent: Bool) {
        let sent = field(setCookie, from: request("x.test", from), to: request("x.test", to))
        #expect((sent != nil) == isSent)
    }

    @Test(
        arguments: [
            ("a=b; Max-Age=10", 9, true), ("a=b; Max-Age=10", 10, false),
            ("a=b; Max-Age=0", 0, false), ("a=b; Max-Age=-1", 0, false),
            ("a=b; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 9, true),
            ("a=b; Expires=Thu, 01 Jan 2037 00:00:00 GMT; Max-Age=1", 1, false),
            ("a=b; Expires=Tue, 14 Nov 2023 22:13:30 GMT", 9, true),
            ("a=b; Expires=Tue, 14 Nov 2023 22:13:30 GMT", 10, false),
            ("a=b; Expires=never; Max-Age=ten", 1 << 40, true),
            ("a=b; Max-Age=99999999999999999999", 400 * 86_400 - 1, true),
            ("a=b; Max-Age=99999999999999999999", 400 * 86_400, false),
            ("a=b; Expires=Thu, 01 Jan 2099 00:00:00 GMT", 400 * 86_400, false),
        ] as [(String, Int64, Bool)])
    func `knows when a cookie ends`(setCookie: String, after: Int64, isSent: Bool) {
        let sent = field(
            setCookie, from: request("x.test"), to: request("x.test"), after: after)
        #expect((sent != nil) == isSent)
    }

    @Test func `does not send Secure cookies in clear text`() {
        var jar = CookieJar()
        let (clear, secure) = (request("x.test", secure: false), request("x.test"))
        #expect(
            jar.store(setCookie: "a=1; Secure", from: clear, at: now) == .refused(.notSecure))
        jar.store(setCookie: "a=1; Secure; Domain=x.test", from: secure, at: now)
        #expect(jar.field(for: clear, at: now) == nil)
        #expect(jar.store(setCookie: "a=2", from: clear, at: now) == .refused(.notSecure))
        #expect(
            jar.store(
                setCookie: "a=2; Path=/c", from: request("www.x.test", secure: false), at: now)
                == .refused(.notSecure))
        #expect(jar.store(setCookie: "c=3", from: clear, at: now) == .stored)
        #expect(jar.field(for: secure, at: now) == "a=1; c=3")
    }

    @Test func `hides HttpOnly cookies from callers other than HTTP`() {
        var jar = CookieJar()
        let script = request("x.test", http: false)
        #expect(jar.store(setCookie: "a=1; HttpOnly", from: script, at: now) == .refused(.notHTTP))
        jar.store(setCookie: "a=1; HttpOnly", from: request("x.test"), at: now)
        #expect(jar.field(for: script, at: now) == nil)
        #expect(jar.store(setCookie: "a=2", from: script, at: now) == .refused(.notHTTP))
        #expect(jar.field(for: request("x.test"), at: now) == "a=1")
    }

    @Test func `sends longer paths first, and of two the older one`() {
        var jar = CookieJar()
        let from = request("x.test", "/a/b/c")
        jar.store(setCookie: "one=1; Path=/", from: from, at: now)
        jar.store(setCookie: "two=2; Path=/a/b", from: from, at: now + 1)
        jar.store(setCookie: "three=3; Path=/a", from: from, at: now + 2)
        jar.store(setCookie: "four=4; Path=/", from: from, at: now + 2)
        // It replaces the first one, and keeps its creation time.
        jar.store(setCookie: "one=5; Path=/", from: from, at: now + 3)
        #expect(jar.field(for: from, at: now + 4) == "two=2; three=3; one=5; four=4")
    }

    @Test func `removes an expired cookie`() {
        var jar = CookieJar()
        jar.store(setCookie: "a=1", from: request("x.test"), at: now)
        let outcome = jar.store(setCookie: "a=; Max-Age=0", from: request("x.test"), at: now)
        #expect(outcome == .removed)
        #expect(jar.count == 0 && jar.cookies.isEmpty)
    }

    @Test(
        arguments: [
            ("Strict", Cookie.SameSite.strict), ("lax", .lax), ("NONE", .none),
            ("other", .unspecified), ("", .unspecified),
        ])
    func `keeps the SameSite attribute`(text: String, sameSite: Cookie.SameSite) {
        var jar = CookieJar()
        jar.store(setCookie: "a=1; SameSite=\(text)", from: request("x.test"), at: now)
        #expect(jar.cookies.map(\.sameSite) == [sameSite])
    }

    @Test func `ignores an attribute that is too long`() {
        let path = "/" + String(repeating: "x", count: 1024)
        #expect(
            field("a=b; Path=\(path)", from: request("x.test"), to: request("x.test")) == "a=b")
    }

    @Test func `limits cookies per site, and evicts Secure ones last`() {
        var jar = CookieJar(limits: CookieJar.Limits(cookiesPerSite: 3, cookies: 100))
        jar.store(setCookie: "s=0; Secure", from: request("x.test"), at: now)
        for index in 1...3 {
            let host = request("h\(index).x.test")
            jar.store(setCookie: "c\(index)=0", from: host, at: now + Int64(index))
        }
        #expect(jar.cookies.map(\.name) == ["s", "c2", "c3"])
        _ = jar.field(for: request("h2.x.test"), at: now + 10)
        jar.store(setCookie: "c4=0", from: request("x.test"), at: now + 11)
        #expect(jar.cookies.map(\.name) == ["s", "c2", "c4"])
    }

    @Test func `limits the total, and evicts the least recently used`() {
        var jar = CookieJar(limits: CookieJar.Limits(cookiesPerSite: 3, cookies: 3))
        for index in 0..<3 {
            let host = request("h\(index).test")
            jar.store(setCookie: "c\(index)=0", from: host, at: now + Int64(index))
        }
        _ = jar.field(for: request("h0.test"), at: now + 5)
        jar.store(setCookie: "c3=0", from: request("h3.test"), at: now + 6)
        #expect(jar.cookies.map(\.name) == ["c0", "c2", "c3"])
        #expect(jar.count == 3)
    }

    @Test func `evicts expired cookies first`() {
        var jar = CookieJar(limits: CookieJar.Limits(cookiesPerSite: 2, cookies: 2))
        jar.store(setCookie: "a=0", from: request("a.test"), at: now)
        jar.store(setCookie: "b=0; Max-Age=5", from: request("b.test"), at: now + 1)
        jar.store(setCookie: "c=0", from: request("c.test"), at: now + 9)
        #expect(jar.cookies.map(\.name) == ["a", "c"])
    }

    @Test func `ends a session`() {
        var jar = CookieJar()
        jar.store(setCookie: "a=1", from: request("x.test"), at: now)
        jar.store(setCookie: "b=2; Max-Age=5", from: request("x.test"), at: now)
        jar.endSession()
        #expect(jar.cookies.map(\.name) == ["b"])
        jar.removeExpired(at: now + 5)
        #expect(jar.count == 0)
    }
}
