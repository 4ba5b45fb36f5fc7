import ContentCoding
import HTTPCore
import Testing

@testable import Transformation

@Suite("Entity tags of changed responses (RFC 9110, section 8.8.3)")
struct EntityTagMappingTests {
    private let mapping = EntityTagMapping(identity: "1a2b3c4d")

    private func bytes(_ text: String) -> [UInt8] {
        text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }

    @Test(
        arguments: [
            ("\"abc\"", "\"abc-1a2b3c4d\""), ("W/\"abc\"", "W/\"abc-1a2b3c4d\""),
            ("\"\"", "\"-1a2b3c4d\""), ("W/\"\"", "W/\"-1a2b3c4d\""),
            ("\"a,b\"", "\"a,b-1a2b3c4d\""), ("\"\u{E9}\"", "\"\u{E9}-1a2b3c4d\""),
            ("\"a\\\"", "\"a\\-1a2b3c4d\""), ("abc", "abc-1a2b3c4d"), ("W/abc", "W/abc-1a2b3c4d"),
            ("\"W/\"", "\"W/-1a2b3c4d\""), ("\"abc-1a2b3c4d\"", "\"abc-1a2b3c4d-1a2b3c4d\""),
            ("*", "*-1a2b3c4d"),
        ])
    func `a tag gets the suffix of the rules, and gives it back`(tag: String, new: String) throws {
        let translated = try #require(mapping.translated(bytes(tag)))
        #expect(translated == bytes(new))
        #expect(mapping.original(translated) == bytes(tag))
        #expect(mapping.coding(translated) == .identity)
        #expect(EntityTagMapping(identity: "00000000").original(translated) == nil)
        for coding in EntityTagMapping.codings {
            let encoded = try #require(mapping.translated(bytes(tag), coding: coding))
            #expect(encoded != translated)
            #expect(mapping.original(encoded) == bytes(tag))
            #expect(mapping.coding(encoded) == coding)
        }
    }

    @Test func `the suffix names the coding`() {
        #expect(
            mapping.translated(bytes("W/\"a\""), coding: .gzip)
                == bytes("W/\"a-1a2b3c4d-gzip\""))
        #expect(mapping.translated(bytes("\"a\""), coding: .brotli) == bytes("\"a-1a2b3c4d-br\""))
        #expect(mapping.translated(bytes("\"a\""), coding: .deflate) == nil)
    }

    @Test(
        arguments: [
            "", "\"", "\"a", "a\"", "\"a\"b\"", "W/\"a", "w/\"a\"", "\"a b\"", "\"a\u{7F}\"",
            "\"a\", \"b\"", "a,b", "a b",
        ])
    func `what is no tag is neither translated nor taken back`(text: String) {
        #expect(mapping.translated(bytes(text)) == nil)
        #expect(mapping.original(bytes(text)) == nil)
    }

    @Test(
        arguments: [
            "\"abc\"", "\"1a2b3c4d\"", "\"abc-1A2B3C4D\"", "\"abc-1a2b3c4d-dcz\"", "-1a2b3c4d",
            "\"abc-1a2b3c4d\" ", "\"-1a2b3c4d", "*", "\"abc-1a2b3c4d-\"",
        ])
    func `a tag without the suffix is not of these rules`(text: String) {
        #expect(mapping.original(bytes(text)) == nil)
        #expect(mapping.coding(bytes(text)) == nil)
    }
}

@Suite("What is asked of origins where content is looked at")
struct UpstreamRequestChangeTests {
    private let start = ["GET /a?If-None-Match:x HTTP/1.1", "Host: h"]

    /// The field lines that are sent, without Host; `nil` if they do not change.
    private func asked(
        _ fields: [String], by change: (inout UpstreamRequestChange) -> Void
    ) throws -> [String]? {
        var asks = UpstreamRequestChange()
        change(&asks)
        #expect(!asks.isEmpty)
        let lines = headBytes(start + fields).dropLast(2)
        guard let new = asks.upstreamLines(Array(lines).span) else { return nil }
        let all = try headLines(new + [0x0D, 0x0A])
        #expect(Array(all.prefix(2)) == start)
        return Array(all.dropFirst(2))
    }

    @Test func `without anything asked lines stay`() {
        let asks = UpstreamRequestChange()
        #expect(asks.isEmpty)
        let lines = headBytes(start + ["Range: bytes=0-1"])
        #expect(asks.upstreamLines(lines.span) == nil)
    }

    @Test(arguments: [
        ("\"a\"", "\"a\"" as String?), ("\"b\"", nil), ("W/\"a\"", "\"a\""),
        ("\"b\", \"a\"", "\"a\""), ("\"b-12345678\", \"a\"", "\"b\", \"a\""),
    ])
    func `the tag of what is stored unchanged is asked about`(tags: String, sent: String?) throws {
        var asks = UpstreamRequestChange()
        asks.entityTags = EntityTagMapping(identity: "12345678")
        let lines = Array(headBytes(start + ["If-None-Match: \(tags)"]).dropLast(2))
        let new = asks.upstreamLines(lines.span, keeping: Array("\"a\"".utf8)) ?? lines
        let fields = try headLines(new + [0x0D, 0x0A]).dropFirst(2)
        #expect(Array(fields) == sent.map { ["If-None-Match: \($0)"] } ?? [])
    }

    @Test(
        arguments: [
            (["\"b\""], ["\"b\""]), (["\"a-1a2b3c4d\"", "\"b\""], ["\"a\"", "\"b\""]),
            (["\"b-1a2b3c4d\", \"c\"", "\"b\""], ["\"b\""]), (["*", "\"b\""], ["*", "\"b\""]),
            (["W/\"b-1a2b3c4d\"", "\"b\""], ["\"b\""]),
        ])
    func `the tag of what is stored in the origin's form is sent as it is, and once`(
        tags: [String], sent: [String]
    ) throws {
        var asks = UpstreamRequestChange()
        asks.entityTags = EntityTagMapping(identity: "1a2b3c4d")
        let fields = tags.map { "If-None-Match: \($0)" } + ["If-Modified-Since: x"]
        let lines = Array(headBytes(start + fields).dropLast(2))
        let new = asks.upstreamLines(lines.span, keeping: Array("\"b\"".utf8)) ?? lines
        let all = try headLines(new + [0x0D, 0x0A])
        #expect(
            Array(all.dropFirst(2))
                == sent.map { "If-None-Match: \($0)" } + ["If-Modified-Since: x"])
    }

    @Test func `nothing at all stays nothing`() {
        var asks = UpstreamRequestChange()
        asks.examinesContent = true
        #expect(asks.upstreamLines([UInt8]().span) == nil)
        #expect(asks.upstreamLines(Array("GET / HTTP/1.1".utf8).span) == nil)
    }

    @Test(
        arguments: [
            (["Range: bytes=0-1", "A: 1", "if-range: \"a\""], ["A: 1"]),
            (["range:", "Range: x"], []), (["If-Range: x"], []),
            (["TE: trailers", "X-Range: 1"], nil), ([], nil),
        ] as [([String], [String]?)])
    func `content is asked for as a whole`(fields: [String], expected: [String]?) throws {
        #expect(try asked(fields) { $0.examinesContent = true } == expected)
    }

    @Test(
        arguments: [
            (["Accept-Encoding: gzip, deflate, br, zstd"], nil), (["Accept-Encoding:"], nil),
            (["Accept-Encoding: x-gzip;q=0.5 , identity;q=0"], nil),
            (["Accept-Encoding: *;q=0"], nil), (["Accept-Encoding: gzip", "A: b"], nil),
            (["Accept-Encoding: gzip, br, zstd, dcz"], ["Accept-Encoding: gzip, br, zstd"]),
            (
                ["A: b", "accept-encoding: dcz , GZIP;q=0.1", "Accept-Encoding: dcb", "C: d"],
                ["A: b", "accept-encoding: GZIP;q=0.1", "C: d"]
            ),
            (["Accept-Encoding: dcz"], ["Accept-Encoding: identity"]),
            (["Accept-Encoding: *"], ["Accept-Encoding: gzip, deflate, br, zstd"]),
            (
                ["Accept-Encoding: br;q=1.0, gzip;q=0.8, *;q=0.1"],
                ["Accept-Encoding: br;q=1.0, gzip;q=0.8, deflate;q=0.1, zstd;q=0.1"]
            ),
            (
                ["Accept-Encoding: gzip, * ; q=0.5", "Accept-Encoding: br;q=0"],
                ["Accept-Encoding: gzip, deflate ; q=0.5, zstd ; q=0.5, br;q=0"]
            ),
            (["Accept-Encoding: *;q=x"], ["Accept-Encoding: identity"]),
            (["Accept-Encoding: identity, gz\u{FF}ip"], ["Accept-Encoding: identity"]),
            (["Accept-Encoding: gzip;q=x, dcz"], ["Accept-Encoding: gzip;q=x"]),
        ] as [([String], [String]?)])
    func `only codings that can be undone are asked for`(
        fields: [String], expected: [String]?
    ) throws {
        #expect(try asked(fields) { $0.examinesContent = true } == expected)
    }

    private func conditions(_ fields: [String]) throws -> [String]? {
        try asked(fields) { $0.entityTags = EntityTagMapping(identity: "00c0ffee") }
    }

    private let since = "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"

    @Test(
        arguments: [
            (["If-None-Match: \"a-00c0ffee\""], ["If-None-Match: \"a\""]),
            (["If-None-Match: W/\"a-00c0ffee-gzip\""], ["If-None-Match: W/\"a\""]),
            (
                ["if-none-match: \"a,b-00c0ffee\",\"c\" ,, W/\"d-00c0ffee-br\""],
                ["if-none-match: \"a,b\", W/\"d\""]
            ),
            (["If-None-Match: \"a\""], []), (["A: b", "If-None-Match: \"a\", W/\"b\""], ["A: b"]),
            (["If-None-Match: *"], nil), (["If-None-Match: *, \"a\""], ["If-None-Match: *"]),
            (
                ["If-None-Match: \"a\"", "B: c", "If-None-Match: \"d-00c0ffee\""],
                ["B: c", "If-None-Match: \"d\""]
            ),
            (["If-None-Match: a-00c0ffee, b"], ["If-None-Match: a"]),
            (["If-None-Match: \"a-00c0ffee"], []), (["If-None-Match:"], []),
            (["If-None-Match: ,"], []),
            (["If-None-Match: \"\u{FF}-00c0ffee\""], ["If-None-Match: \"\u{FF}\""]),
            (["Range: bytes=0-1", "Accept-Encoding: dcz"], nil),
        ] as [([String], [String]?)])
    func `If-None-Match keeps the tags of this translation, as the origin knows them`(
        fields: [String], expected: [String]?
    ) throws {
        #expect(try conditions(fields) == expected)
    }

    @Test func `If-Modified-Since stays with If-None-Match only, but for the gateway's`() throws {
        #expect(try conditions(["If-None-Match: \"a\"", since]) == [])
        #expect(try conditions([since, "If-None-Match:"]) == [])
        #expect(
            try conditions([since, "If-None-Match: \"a-00c0ffee\""])
                == [since, "If-None-Match: \"a\""])
        #expect(try conditions(["If-None-Match: *", since]) == nil)
        #expect(try conditions([since]) == [])
        var asks = UpstreamRequestChange()
        asks.entityTags = EntityTagMapping(identity: "00c0ffee")
        let lines = Array(headBytes(start + [since]).dropLast(2))
        #expect(asks.upstreamLines(lines.span, keepsDate: true) == nil)
    }

    @Test(
        arguments: [
            (["If-Match: \"a-00c0ffee\", \"b\""], ["If-Match: \"a\", \"b\""]),
            (["If-Match: \"b\""], nil), (["If-Match: *"], nil), (["If-Match:"], nil),
            (["If-Match: W/\"a-00c0ffee\""], ["If-Match: W/\"a\""]),
            (
                ["If-Match: \"a\"", "If-Match: \"b-00c0ffee-gzip\""],
                ["If-Match: \"a\"", "If-Match: \"b\""]
            ),
            (["If-Unmodified-Since: x"], nil),
        ] as [([String], [String]?)])
    func `If-Match keeps all its tags, for it protects what the origin has`(
        fields: [String], expected: [String]?
    ) throws {
        #expect(try conditions(fields) == expected)
    }

    @Test(
        arguments: [
            ([], ["Accept: application/json"]), (["Accept: application/json"], nil),
            (
                ["A: b", "accept: application/x-plist, */*;q=0.1", "Accept: c/d", "E: f"],
                ["A: b", "accept: application/json", "E: f"]
            ),
        ] as [([String], [String]?)])
    func `the type that a translation needs is asked for in place of the client's`(
        fields: [String], expected: [String]?
    ) throws {
        #expect(try asked(fields) { $0.accept = "application/json" } == expected)
    }

    @Test func `all is asked for at once, and what is not asked about keeps its bytes`() throws {
        #expect(
            try asked([
                "TE:trailers ", "Range: bytes=0-", "x:  \u{FF}", "If-None-Match: \"a-00c0ffee\"",
                "Accept-Encoding: dcz",
            ]) {
                $0.examinesContent = true
                $0.entityTags = EntityTagMapping(identity: "00c0ffee")
                $0.accept = "a/b"
            } == [
                "TE:trailers ", "x:  \u{FF}", "If-None-Match: \"a\"", "Accept-Encoding: identity",
                "Accept: a/b",
            ])
    }

    @Test func `a long list of tags is mapped in time`() throws {
        let tags = (0..<20_000).map { "\"\($0)\($0 % 2 == 0 ? "-00c0ffee" : "")\"" }
        let expected = stride(from: 0, to: 20_000, by: 2).map { "\"\($0)\"" }
        #expect(
            try conditions(["If-None-Match: " + tags.joined(separator: ",")])
                == ["If-None-Match: " + expected.joined(separator: ", ")])
    }
}
