import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Responses to QUERY (draft-ietf-httpbis-safe-method-w-body)")
struct QueryTests {
    private static let json = "Content-Type: application/json"

    private static func query(_ fields: [String] = [json], method: String = "QUERY") -> Request {
        Request(fields, method: method)
    }

    private func digest(_ fields: [String], _ content: String = "q") throws -> ContentDigest {
        let request = Self.query(fields)
        let bytes = Array(content.utf8)
        let digest = ContentDigest(
            of: bytes.span, describedBy: request.head, in: request.bytes.span)
        return try #require(digest)
    }

    @Test(
        arguments: [
            ([json], nil), ([json, "Content-Length: 65536"], nil),
            ([json, "Transfer-Encoding: chunked"], nil), ([json, "Content-Encoding: gzip"], nil),
            ([json, "Content-Length: 65537"], .requestContent), ([], .requestContent),
            (["Content-Type:"], .requestContent), ([json, json], .requestContent),
            ([json, "Range: bytes=0-1"], .requestContent),
            ([json, "Connection: Upgrade", "Upgrade: x"], .upgrade),
        ] as [([String], ForwardReason?)])
    func `are looked up and stored only with a Content-Type and content that is not too long`(
        fields: [String], reason: ForwardReason?
    ) {
        let request = Self.query(fields)
        let found = CacheDecision.reasonAgainstLookup(ofQuery: request.head)
        #expect(found == reason)
        let stored = storing(Response(["Cache-Control: max-age=9"]), for: request)
        if reason == nil, case .store = stored { return }
        #expect(stored == .doNotStore(.requestContent))
    }

    @Test(
        arguments: [
            (["Cache-Control: max-age=9"], [], 200, nil),
            (["Last-Modified: \(date(-9999))"], [], 200, nil),
            (["Cache-Control: max-age=9", "Content-Location: /x"], [], 200, nil),
            (["Cache-Control: max-age=9"], ["Authorization: x"], 200, .authorization),
            (["Cache-Control: max-age=9, public"], ["Authorization: x"], 200, nil),
            (["Cache-Control: max-age=9"], ["Cache-Control: no-store"], 200, .requestNoStore),
            (["Cache-Control: no-store"], [], 200, .responseNoStore),
            (["Cache-Control: max-age=9", "Vary: *"], [], 200, .varyAny),
            (["Cache-Control: max-age=9", "Content-Range: bytes 0-1/2"], [], 206, .partialContent),
            ([], [], 303, .notCacheableByDefault),
        ] as [([String], [String], Int, NotStoredReason?)])
    func `are stored by the rules for GET`(
        fields: [String], asked: [String], status: Int, reason: NotStoredReason?
    ) {
        let stored = storing(
            Response(fields, status: status), for: Self.query([Self.json] + asked))
        if reason == nil, case .store = stored { return }
        #expect(reason.map { stored == .doNotStore($0) } ?? false)
    }

    @Test func `belong to the content and the fields that describe it, as received`() throws {
        let fields = [Self.json, "Content-Encoding: gzip"]
        let own = try digest(fields)
        #expect(try digest(["content-type: application/json"] + fields.dropFirst()) == own)
        #expect(try digest(fields + ["Accept: a", "Content-Length: 1"]) == own)
        let others = [
            try digest(fields, "q "), try digest(fields, ""), try digest([Self.json]),
            try digest(["Content-Type: application/json ;a=b"] + fields.dropFirst()),
            try digest(["Content-Type: Application/json"] + fields.dropFirst()),
            try digest([Self.json, "Content-Encoding: br"]),
            try digest(fields + ["Content-Language: de"]),
            // The border between content and fields is part of the digest.
            try digest([], "qcontent-type:application/json\n"),
        ]
        #expect(Set(others + [own]).count == others.count + 1)
    }

    @Test(arguments: [[], ["accept"], ["accept", "x-kind"]])
    func `are variants by content and by Vary`(names: [String]) throws {
        let fields = [Self.json, "Accept: a"]
        let (request, own) = (Self.query(fields), try digest(fields))
        let listed = names.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        let made = VaryKey(names: listed, for: request.head, in: request.bytes.span)
        let plain = try #require(made)
        let key = plain.of(content: own)
        #expect(VaryKey(bytes: key.bytes) == key, "it can be stored")
        #expect(key.of(content: own) == key)
        #expect(try plain.of(content: digest(fields, "other")).of(content: own) == key)
        // From the names alone, as the disk tier keeps them.
        let named = VaryKey(names: key.names, for: request.head, in: request.bytes.span)
        #expect(named?.of(content: own) == key)

        func matches(_ key: VaryKey, _ request: Request, _ content: ContentDigest) -> Bool {
            key.matches(request.head, in: request.bytes.span, content: content)
        }
        #expect(matches(key, request, own))
        #expect(try !matches(key, request, digest(fields, "other")))
        #expect(!matches(plain, request, own), "nothing that was stored for GET")
        #expect(matches(key, Self.query([Self.json, "Accept: b"]), own) == names.isEmpty)
        let matchesWithout = key.matches(request.head, in: request.bytes.span)
        #expect(!matchesWithout, "nothing without content")
    }

    @Test(
        arguments: [
            ("http://a.example/x?q", "query:http://a.example/x?q"),
            ("upgraded:https://a.example/", "upgraded-query:https://a.example/"),
            ("reverse3:http://a.example/x", "reverse3-query:http://a.example/x"),
        ])
    func `have a key of their own for each route`(get: String, query: String) {
        let key = CacheKey(bytes: Array(get.utf8))
        #expect(text(key.ofQuery.bytes) == query)
        for route in CacheRoute.all {
            #expect(key.ofQuery.along(route) == key.along(route))
        }
    }

    @Test func `are validated in the foreground`() {
        let stored = Stored([
            "Cache-Control: max-age=10, stale-while-revalidate=100", "ETag: \"a\"",
        ])
        #expect(stored.decide(Request(), after: 20).summary == "stale hit (stale-while-revalidate)")
        #expect(stored.decide(Self.query(), after: 20).summary == "validate (stale)")
        #expect(stored.decide(Self.query(), after: 5).summary == "hit")
    }
}
