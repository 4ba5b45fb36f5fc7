import HTTPCore
import Testing

@testable import CachePolicy

@Suite("private and no-cache with fields, by RFC 9111 §5.2.2.4 and §5.2.2.7")
struct QualifiedFieldsTests {
    private func flags(_ value: String) -> CacheDirectives.Flags {
        var directives = CacheDirectives()
        directives.add(ByteRange(from: 0, to: value.utf8.count), in: Array(value.utf8).span)
        return directives.flags
    }

    private func fields(_ head: [UInt8]) -> [String] {
        text(head).split(separator: "\r\n").dropFirst().map(String.init)
    }

    /// The stored head of a response; `nil` if it is not stored.
    private func storedHead(
        _ fields: [String], options: PolicyOptions = PolicyOptions()
    ) -> [UInt8]? {
        let response = Response(fields)
        guard case .store(let storable) = storing(response, options: options) else { return nil }
        return StoredHead.bytes(of: response.head, in: response.bytes.span, for: storable)
    }

    /// What a hit with this form writes, without the fields that a cache adds.
    private func served(_ stored: Stored, _ form: HitForm = .full) -> [String] {
        let hit = CacheHit(form: form, age: 0, timeToLive: 9, stale: nil)
        return fields(
            Array(written { append(hit, stored.metadata, stored.head, nil, to: &$0) }.utf8)
        )
        .filter { !$0.hasPrefix("Age: ") && !$0.hasPrefix("Cache-Status: ") }
    }

    // MARK: Arguments

    @Test(
        arguments: [
            "\"a\"", "\"a, b\"", "\" a ,, b \"", "\"X-One,X-Two\"", "a", "Set-Cookie",
            "\"set-cookie, set-cookie2\"", "\"~!#\"",
            "\"" + (1...16).map { "n\($0)" }.joined(separator: ",") + "\"",
        ])
    func `a list of field names qualifies the directive`(argument: String) {
        #expect(flags("private=\(argument)") == .privateFields)
        #expect(flags("PRIVATE=\(argument), max-age=5") == .privateFields)
        #expect(flags("no-cache=\(argument)") == .noCacheFields)
    }

    @Test(
        arguments: [
            "", "=\"\"", "=\",\"", "=\" \"", "=\"a b\"", "=\"a;b\"", "=\"a\\\"b\"", "=\"a:\"",
            "=\"a, (b)\"", "=\"a, b=c\"", "=\"\\a\"", "=\"ä\"",
            "=\"" + (1...17).map { "n\($0)" }.joined(separator: ",") + "\"",
        ])
    func `an argument that is no list of names counts as none`(argument: String) {
        #expect(flags("private\(argument)") == .isPrivate)
        #expect(flags("no-cache\(argument)") == .noCache)
    }

    @Test(
        arguments: [
            "Content-Length", "Transfer-Encoding", "Content-Encoding", "content-type",
            "Content-Range", "ETag", "Last-Modified", "VARY", "Cache-Control", "CDN-Cache-Control",
            "Date", "Age", "Expires", "Pragma", "Connection", "Trailer", "Via", "Cache-Status",
            "Location",
        ])
    func `a field that the response cannot do without makes the list count as none`(name: String) {
        #expect(flags("private=\"a, \(name)\"") == .isPrivate)
        #expect(flags("no-cache=\"\(name), b\"") == .noCache)
    }

    @Test func `after a syntax error, or with the whole response named too, that counts`() {
        #expect(flags("private=\"a\"b") == [.isPrivate, .malformed])
        #expect(flags("private=\"a") == [.isPrivate, .malformed])
        #expect(flags("no-cache=a b") == [.noCache, .malformed])
        #expect(refusal(["Cache-Control: private=\"a\", max-age=9, private"]) == .responsePrivate)
        let stored = Stored(["Cache-Control: no-cache=\"a\", max-age=9, no-cache", "ETag: \"a\""])
        #expect(stored.decide(Request()).summary == "validate (no-cache)")
    }

    @Test func `the number of fields is bounded for all directives together`() {
        let eight = (1...8).map { "n\($0)" }.joined(separator: ",")
        #expect(
            flags("private=\"\(eight)\", no-cache=\"\(eight)\"")
                == [.privateFields, .noCacheFields])
        #expect(
            flags("private=\"\(eight)\", no-cache=\"\(eight)\", private=a")
                == [.privateFields, .noCacheFields, .isPrivate])
    }

    @Test func `in a request an argument of no-cache means nothing`() {
        let stored = Stored(["Cache-Control: max-age=9", "ETag: \"a\""])
        for field in ["Cache-Control: no-cache=\"a\"", "Pragma: no-cache=\"a\""] {
            #expect(stored.decide(Request([field])).summary == "validate (request-no-cache)")
        }
    }

    // MARK: private

    @Test func `a shared cache stores all but the fields that private names`() {
        let response = [
            "Date: \(date())", "Cache-Control: max-age=9, private=\"x-user, X-Two\"", "A: 1",
            "X-User: bob", "x-user: again", "X-TWO: 2", "X-User2: all",
        ]
        #expect(
            storedHead(response).map(fields) == [
                "Date: \(date())", "Cache-Control: max-age=9, private=\"x-user, X-Two\"", "A: 1",
                "X-User2: all",
            ])
        var own = PolicyOptions()
        own.isShared = false
        #expect(storedHead(response, options: own).map(fields) == response)
    }

    @Test func `all lines of Cache-Control count, and a Date is made`() {
        let head = storedHead([
            "Cache-Control: max-age=9, private=a", "Cache-Control: private=\"b\"", "A: 1", "B: 2",
            "C: 3", "Connection: c, close",
        ])
        #expect(
            head.map(fields) == [
                "Cache-Control: max-age=9, private=a", "Cache-Control: private=\"b\"",
                "Date: \(date())",
            ])
    }

    @Test(
        arguments: [
            ("private=\"set-cookie\"", ["Set-Cookie: a=1"], nil),
            ("private=set-cookie", ["Set-Cookie: a=1", "Set-Cookie: b=1"], nil),
            ("private=\"set-cookie\"", ["Set-Cookie2: a=1"], .setCookie),
            ("private=\"set-cookie, set-cookie2\"", ["Set-Cookie2: a=1"], nil),
            ("private=\"x\"", ["Set-Cookie: a=1"], .setCookie),
            ("no-cache=\"set-cookie\"", ["Set-Cookie: a=1"], nil),
            ("no-cache=\"x\"", ["Set-Cookie: a=1"], .setCookie),
            ("no-cache", ["Set-Cookie: a=1", "ETag: \"a\""], .setCookie),
        ] as [(String, [String], NotStoredReason?)])
    func `a cookie that is not stored is no reason against storing the rest`(
        directive: String, cookies: [String], reason: NotStoredReason?
    ) {
        let response = ["Cache-Control: max-age=9, \(directive)"] + cookies
        #expect(refusal(response) == reason)
        if reason == nil {
            #expect(storedHead(response).map { text($0).lowercased().contains("a=1") } == false)
        }
    }

    @Test func `the targeted field replaces the names as well`() {
        var options = PolicyOptions()
        options.route.targetedFields = [PolicyOptions.cdnCacheControl]
        let control = "Cache-Control: max-age=9, private=\"a\""
        let targeted = ["Date: \(date())", control, "A: 1", "CDN-Cache-Control: max-age=5"]
        #expect(storedHead(targeted, options: options).map(fields) == targeted)
        // In a structured field it counts as unqualified.
        let own = [control, "CDN-Cache-Control: max-age=5, private=\"a\""]
        #expect(refusal(own, options: options) == .responsePrivate)
        // Read under a configuration without it, the stored field is not for all.
        let bytes = storedHead(targeted, options: options) ?? []
        let metadata = StoredMetadata(
            storedHead: bytes.span,
            times: StoredTimes(requestTime: start, responseTime: start, initialAge: 0),
            hasQuery: false, options: PolicyOptions())
        #expect(metadata?.flags.contains(.withholdsPrivate) == true)
    }

    // MARK: no-cache

    private let unvalidated = [
        "Date: \(date())", "Cache-Control: max-age=9, no-cache=\"x-user, ab\"", "ETag: \"a\"",
        "X-User: bob", "Content-Length: 100", "X-USER: again", "Kept: 1",
    ]

    @Test func `a hit leaves out what must not be used without validation`() {
        let stored = Stored(unvalidated)
        #expect(stored.head == storedHead(unvalidated))
        #expect(stored.metadata.flags.contains(.withholdsUnvalidated))
        #expect(stored.decide(Request()).summary == "hit")
        let all = unvalidated.filter { !$0.lowercased().hasPrefix("x-user") }
        #expect(served(stored) == all)
        #expect(served(stored, .headOnly) == all)
        #expect(!served(stored, .notModified).contains { $0.lowercased().hasPrefix("x-user") })
        let part = served(stored, .partial(first: 0, last: 1, complete: 100))
        #expect(part.contains("Kept: 1"))
        #expect(!part.contains { $0.lowercased().hasPrefix("x-user") })
    }

    @Test func `after validation all of it is sent`() {
        var stored = Stored(unvalidated)
        stored.metadata = stored.metadata.confirmed
        #expect(served(stored) == unvalidated)
    }

    @Test func `stale responses leave it out as well, where they may be served`() {
        let stored = Stored([
            "Cache-Control: max-age=9, no-cache=\"a\", stale-while-revalidate=99", "A: 1",
        ])
        #expect(
            stored.decide(Request(), after: 20).summary == "stale hit (stale-while-revalidate)")
        #expect(!served(stored).contains("A: 1"))
    }

    @Test func `fields that the response does not have cost nothing`() {
        let stored = Stored(["Cache-Control: max-age=9, no-cache=\"set-cookie\", private=\"x\""])
        #expect(!stored.metadata.flags.isWithholding)
        #expect(stored.decide(Request()).summary == "hit")
    }

    // MARK: Updates

    private func freshen(_ stored: Stored, with update: [String]) throws -> FreshenedResponse {
        let response = Response(update, status: 304)
        let request = Request()
        let result = FreshenedResponse(
            merging: stored.metadata, storedHead: stored.head.span, with: response.head,
            in: response.bytes.span, request: request.head, in: request.bytes.span,
            requestTime: start, responseTime: start, hasQuery: false, options: PolicyOptions())
        return try #require(result)
    }

    @Test func `a 304 brings the fields of one client, which are not stored`() throws {
        let control = "Cache-Control: max-age=9, private=\"x-user\""
        let stored = Stored(["Date: \(date())", "ETag: \"a\"", control])
        let fresh = try freshen(stored, with: ["X-User: bob", "B: 2", "Date: \(date())"])
        #expect(fields(fresh.head) == ["ETag: \"a\"", control, "B: 2", "Date: \(date())"])
        #expect(text(fresh.personalFields) == "X-User: bob\r\n")
        #expect(fresh.storage == .replaceHead)
    }

    @Test func `a 304 that names a field as private removes the one that is stored`() throws {
        let stored = Stored(["Date: \(date())", "ETag: \"a\"", "X-User: ann", "B: 1"])
        let control = "Cache-Control: max-age=9, private=\"x-user\""
        let fresh = try freshen(stored, with: [control, "Date: \(date())"])
        #expect(fields(fresh.head) == ["ETag: \"a\"", "B: 1", control, "Date: \(date())"])
        #expect(text(fresh.head[fresh.metadata.entityTag.indices]) == "\"a\"")
    }

    @Test func `a stored cookie goes once a 304 names it`() throws {
        let stored = Stored(["Cache-Control: public, max-age=9", "ETag: \"a\"", "Set-Cookie: a=1"])
        for control in ["private=\"set-cookie\"", "no-cache=\"set-cookie\""] {
            let fresh = try freshen(stored, with: ["Cache-Control: max-age=9, \(control)"])
            #expect(fresh.storage == .replaceHead)
            #expect(!text(fresh.head).contains("a=1"))
        }
        let kept = try freshen(stored, with: ["Cache-Control: max-age=9"])
        #expect(kept.storage == .remove(.setCookie))
    }
}
