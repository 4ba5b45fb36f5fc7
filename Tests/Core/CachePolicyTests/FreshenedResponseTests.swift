import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Updating a stored response, by RFC 9111 §3.2, §4.3.4 and §4.3.5")
struct FreshenedResponseTests {
    private func freshen(
        _ stored: Stored, with update: [String], status: Int = 304,
        for request: Request = Request(),
        at offset: Int64 = 100, options: PolicyOptions = PolicyOptions()
    ) throws -> FreshenedResponse {
        let response = Response(update, status: status)
        let result = FreshenedResponse(
            merging: stored.metadata, storedHead: stored.head.span, with: response.head,
            in: response.bytes.span, request: request.head, in: request.bytes.span,
            requestTime: start + offset, responseTime: start + offset, hasQuery: false,
            options: options)
        return try #require(result)
    }

    private func fields(_ head: [UInt8]) -> [String] {
        text(head).split(separator: "\r\n").dropFirst().map(String.init)
    }

    @Test(
        arguments: [
            "Test-Header", "X-Test-Header", "Content-Foo", "X-Content-Foo", "Content-Type",
            "Content-MD5", "Content-Location", "Content-Security-Policy", "X-Frame-Options",
            "X-XSS-Protection", "Cache-Control", "Expires", "Clear-Site-Data", "Public-Key-Pins",
            "Content-Language", "Via", "Link",
        ])
    func `a field in the update replaces every stored line of that name`(name: String) throws {
        let stored = Stored(["Date: \(date())", "\(name): a", "Kept: 1", "\(name): b"])
        let result = try freshen(stored, with: ["Date: \(date(100))", "\(name): c"])
        #expect(fields(result.head) == ["Kept: 1", "Date: \(date(100))", "\(name): c"])
        let other = try freshen(stored, with: ["Date: \(date(100))", "\(name.uppercased()): c"])
        #expect(
            fields(other.head) == ["Kept: 1", "Date: \(date(100))", "\(name.uppercased()): c"])
    }

    @Test func `fields that the update lacks stay, new ones are added`() throws {
        let stored = Stored(["Date: \(date())", "A: 1", "B: 2"], status: 404)
        let result = try freshen(stored, with: ["Date: \(date(100))", "C: 3", "C: 4"])
        #expect(
            text(result.head)
                == "HTTP/1.1 404 Reason\r\nA: 1\r\nB: 2\r\nDate: \(date(100))\r\nC: 3\r\nC: 4\r\n")
    }

    @Test(
        arguments: [
            "Content-Length: 7", "Content-Encoding: br", "Content-Range: bytes 0-1/9",
            "Connection: close", "Keep-Alive: timeout=1", "Transfer-Encoding: chunked",
            "Proxy-Authenticate: Basic", "Age: 9", "Trailer: x",
        ])
    func `fields that describe the stored bytes, or end at this hop, are not taken over`(
        field: String
    ) throws {
        let stored = Stored([
            "Date: \(date())", "Content-Length: 100", "Content-Encoding: gzip",
        ])
        let result = try freshen(stored, with: ["Date: \(date(100))", field])
        #expect(
            fields(result.head) == [
                "Content-Length: 100", "Content-Encoding: gzip", "Date: \(date(100))",
            ])
        #expect(result.metadata.bodyBytes == 100)
    }

    @Test func `fields that the update's Connection names are not taken over`() throws {
        let stored = Stored(["Date: \(date())", "A: 1"])
        let result = try freshen(
            stored, with: ["Date: \(date(100))", "Connection: a", "A: 2"])
        #expect(fields(result.head) == ["A: 1", "Date: \(date(100))"])
    }

    @Test
    func `a new Cache-Control gives a new freshness lifetime, counted from the update`() throws {
        let stored = Stored(["Date: \(date())", "Cache-Control: max-age=1", "ETag: \"a\""])
        let result = try freshen(
            stored, with: ["Date: \(date(98))", "Cache-Control: max-age=3600", "Age: 5"])
        #expect(result.metadata.lifetime == 3600)
        #expect(result.metadata.times.initialAge == 5)
        #expect(result.metadata.freshUntil == start + 100 + 3595)
        #expect(result.storage == .replaceHead)
        let hit = result.hit(.full, at: start + 110)
        #expect(hit == CacheHit(form: .full, age: 15, timeToLive: 3585, stale: nil))
    }

    @Test func `an update without Cache-Control starts the stored lifetime anew`() throws {
        let stored = Stored(["Date: \(date())", "Cache-Control: max-age=10", "ETag: \"a\""])
        for update in [["Date: \(date(100))"], [], ["Date: invalid"]] {
            let result = try freshen(stored, with: update)
            #expect(result.metadata.times.initialAge == 0)
            #expect(result.metadata.isFresh(at: start + 109))
            #expect(!result.metadata.isFresh(at: start + 110))
            #expect(fields(result.head).contains("Date: \(date(100))"))
        }
    }

    @Test func `the metadata's ranges are those of the new head`() throws {
        let stored = Stored(["ETag: \"a\"", "X: 1", "Last-Modified: \(date(-9))"])
        let result = try freshen(stored, with: ["X: a much longer value", "ETag: \"a\""])
        #expect(text(result.head[result.metadata.entityTag.indices]) == "\"a\"")
        #expect(text(result.head[result.metadata.lastModified.indices]) == date(-9))
        #expect(result.metadata.headBytes == result.head.count)
        #expect(result.metadata.bodyBytes == 100)
    }

    @Test(
        arguments: [
            ("Cache-Control: no-store", NotStoredReason.responseNoStore),
            ("Cache-Control: private", .responsePrivate), ("Vary: *", .varyAny),
            ("Cache-Control: max-age=5; x", .malformedCacheControl),
        ])
    func `an update that forbids storing lets the response answer once, and removes it`(
        field: String, reason: NotStoredReason
    ) throws {
        let stored = Stored(["Cache-Control: max-age=10", "ETag: \"a\""])
        #expect(try freshen(stored, with: [field]).storage == .remove(reason))
    }

    @Test
    func `an update for an authorized request is not stored for others unless shared`() throws {
        let request = Request(["Authorization: x"])
        let stored = Stored(["Cache-Control: max-age=10", "ETag: \"a\""])
        let personal = try freshen(stored, with: ["User: bob"], for: request)
        #expect(personal.storage == .leave(.authorization))
        let shared = try freshen(stored, with: ["Cache-Control: public"], for: request)
        #expect(shared.storage == .replaceHead)
    }

    @Test
    func `an update for a request with no-store leaves the stored response as it was`() throws {
        let request = Request(["Cache-Control: no-store"])
        let stored = Stored(["Cache-Control: max-age=10", "ETag: \"a\""])
        #expect(
            try freshen(stored, with: ["A: 1"], for: request).storage == .leave(.requestNoStore))
    }

    @Test(arguments: ["Set-Cookie", "Set-Cookie2"])
    func `a cookie in an update is for the client that asked, and is never stored`(
        name: String
    ) throws {
        let cookie = "\(name): session=1"
        let stored = Stored(["Date: \(date())", "Cache-Control: max-age=10"])
        let shared = Stored(["Cache-Control: max-age=10, public", "\(name): session=0"])
        var always = PolicyOptions()
        always.setCookie = .always
        for (stored, options) in [(stored, PolicyOptions()), (shared, always), (stored, always)] {
            let before = fields(stored.head).filter { $0.hasPrefix(name) }
            let update = ["A: 1", cookie, "B: 2", "Set-Cookie: b=2; Path=/"]
            let result = try freshen(stored, with: update, options: options)
            #expect(fields(result.head).filter { $0.hasPrefix(name) } == before)
            #expect(result.storage == .replaceHead)
            #expect(text(result.personalFields) == "\(cookie)\r\nSet-Cookie: b=2; Path=/\r\n")
        }
        #expect(try freshen(stored, with: ["A: 1"]).personalFields.isEmpty)
    }

    @Test func `the Vary key is made anew from the request that was answered`() throws {
        let request = Request(["Foo: 1", "Bar: 2"])
        let stored = Stored(["Cache-Control: max-age=10", "Vary: Foo"])
        let same = try freshen(stored, with: [], for: request)
        #expect(same.vary.matches(Request(["Foo: 1"])))
        #expect(!same.vary.matches(Request(["Foo: 2"])))
        let changed = try freshen(stored, with: ["Vary: Bar"], for: request)
        #expect(changed.vary.matches(Request(["Bar: 2"])))
        #expect(!changed.vary.matches(Request(["Foo: 1"])))
    }

    @Test func `a damaged stored head is not merged`() {
        let stored = Stored(["A: 1"])
        let response = Response([], status: 304)
        let request = Request()
        let broken = Array(stored.head.dropLast())
        let result = FreshenedResponse(
            merging: stored.metadata, storedHead: broken.span, with: response.head,
            in: response.bytes.span, request: request.head, in: request.bytes.span,
            requestTime: start, responseTime: start, hasQuery: false, options: PolicyOptions())
        #expect(result == nil)
    }

    @Test(
        arguments: [
            ([], HeadUpdate.freshen), (["ETag: \"a\""], .freshen),
            (["ETag: \"b\""], .invalidate), (["ETag: W/\"a\""], .invalidate),
            (["Last-Modified: \(date(-9))"], .freshen),
            (["Last-Modified: \(date(-8))"], .invalidate),
            (["Last-Modified: x"], .invalidate), (["Content-Length: 100"], .freshen),
            (["Content-Length: 101"], .invalidate), (["Other: 1"], .freshen),
            (["ETag: \"a\"", "Content-Length: 99"], .invalidate),
        ] as [([String], HeadUpdate)])
    func `a 200 to HEAD updates what it agrees with and outdates what it does not (§4.3.5)`(
        fields: [String], expected: HeadUpdate
    ) {
        let stored = Stored(["ETag: \"a\"", "Last-Modified: \(date(-9))"])
        func update(_ status: Int, _ stored: Stored) -> HeadUpdate {
            let response = Response(fields, status: status, method: .head)
            return HeadUpdate.of(
                response.head, in: response.bytes.span, stored: stored.metadata,
                storedHead: stored.head.span)
        }
        #expect(update(200, stored) == expected)
        #expect(update(404, stored) == .none)
        #expect(update(200, Stored(["ETag: \"a\""], status: 404)) == .none)
    }

    @Test func `a HEAD that brings a validator which the stored response lacks outdates it`() {
        let stored = Stored(["Cache-Control: max-age=9"])
        let response = Response(["ETag: \"a\""], method: .head)
        let update = HeadUpdate.of(
            response.head, in: response.bytes.span, stored: stored.metadata,
            storedHead: stored.head.span)
        #expect(update == .invalidate)
    }

    @Test func `the update by a HEAD keeps the body's length and takes the new fields`() throws {
        let stored = Stored(["Cache-Control: max-age=1", "Template-A: 1", "B: 1"])
        let result = try freshen(
            stored, with: ["Template-A: 2", "Cache-Control: max-age=1000", "Content-Length: 100"],
            status: 200, for: Request(method: "HEAD"))
        #expect(fields(result.head).contains("Template-A: 2"))
        #expect(fields(result.head).contains("B: 1"))
        #expect(result.metadata.lifetime == 1000)
        #expect(result.metadata.bodyBytes == 100)
        #expect(result.storage == .replaceHead)
    }
}
