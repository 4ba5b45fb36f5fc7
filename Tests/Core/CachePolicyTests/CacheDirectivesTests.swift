import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Cache-Control is read by RFC 9111 §5.2")
struct CacheDirectivesTests {
    private func parse(_ lines: [String]) -> CacheDirectives {
        let request = Request(lines)
        return CacheDirectives(request: request.head.fields, in: request.bytes.span)
    }

    private func parse(_ value: String) -> CacheDirectives {
        var directives = CacheDirectives()
        let bytes = Array(value.utf8)
        directives.add(ByteRange(from: 0, to: bytes.count), in: bytes.span)
        return directives
    }

    @Test(
        arguments: [
            ("no-store", CacheDirectives.Flags.noStore), ("No-StOrE", .noStore),
            ("no-cache", .noCache), ("private", .isPrivate), ("public", .isPublic),
            ("must-revalidate", .mustRevalidate), ("proxy-revalidate", .proxyRevalidate),
            ("must-understand", .mustUnderstand), ("no-transform", .noTransform),
            ("only-if-cached", .onlyIfCached), ("immutable", .immutable),
            ("  no-store  ", .noStore), (",, ,no-store,,", .noStore), ("\tno-store\t,", .noStore),
            ("no-store, no-cache", [.noStore, .noCache]),
            ("no-store,no-cache", [.noStore, .noCache]),
            ("foo, no-store, bar=1, baz=\"x\"", .noStore),
        ] as [(String, CacheDirectives.Flags)])
    func `names are case-insensitive and each sets its flag`(
        value: String, expected: CacheDirectives.Flags
    ) {
        #expect(parse(value).flags == expected)
    }

    @Test(
        arguments: [
            ("max-age=3600", 3600), ("MaX-aGe=3600", 3600), ("max-age=\"3600\"", 3600),
            ("max-age=003600", 3600), ("max-age=0", 0), ("max-age=2147483647", 2_147_483_647),
            ("max-age=2147483648", 1 << 31), ("max-age=2147483649", 1 << 31),
            ("max-age=99999999999999999999999999", 1 << 31),
            ("max-age", 0), ("max-age=", 0), ("max-age=\"\"", 0), ("max-age='3600'", 0),
            ("max-age=3600.0", 0), ("max-age=3600.5", 0), ("max-age=a3600", 0),
            ("max-age=3600a", 0), ("max-age=-100", 0), ("max-age=+100", 0),
            ("max-age =3600", 0), ("max-age= 3600", 0), ("max-age=\" 3600\"", 0),
            ("max-age=\"36\\00\"", 0), ("max-age=36 00", 0), ("max-age=\"3600", 0),
        ] as [(String, Int64)])
    func `an argument may be a token or a quoted string; else a max-age is stale`(
        value: String, expected: Int64
    ) {
        #expect(parse(value).maxAge == expected)
    }

    @Test(
        arguments: [
            ("extension=\"max-age=3600\", max-age=1", 1),
            ("max-age=1, extension=\"max-age=0, no-store\"", 1),
            ("ext=\"a\\\", max-age=0, \\\"b\", max-age=7", 7),
        ] as [(String, Int64)])
    func `what stands inside a quoted string is no directive`(value: String, expected: Int64) {
        let directives = parse(value)
        #expect(directives.maxAge == expected)
        #expect(directives.flags == [])
    }

    @Test(
        arguments: [
            (["max-age=1800, max-age=1"], 1), (["max-age=1, max-age=1800"], 1),
            (["max-age=1800", "max-age=1"], 1), (["max-age=1", "max-age=1800"], 1),
            (["max-age=5, max-age=x"], 0),
        ] as [([String], Int64)])
    func `of several arguments the more restrictive counts, on one line or several`(
        lines: [String], expected: Int64
    ) {
        #expect(parse(lines.map { "Cache-Control: \($0)" }).maxAge == expected)
    }

    @Test func `each directive with seconds goes to its own place`() {
        let directives = parse(
            "s-maxage=1, max-stale=2, min-fresh=3, stale-if-error=4, stale-while-revalidate=5")
        #expect(directives.sharedMaxAge == 1)
        #expect(directives.maxStale == 2)
        #expect(directives.minFresh == 3)
        #expect(directives.staleIfError == 4)
        #expect(directives.staleWhileRevalidate == 5)
        #expect(directives.maxAge == nil)
        #expect(directives.flags == [])
    }

    @Test func `max-stale without an argument means any staleness, an unreadable one none`() {
        #expect(parse("max-stale").maxStale == CacheDirectives.maximumSeconds)
        #expect(parse("max-stale=x").maxStale == 0)
        #expect(parse("max-stale, max-stale=5").maxStale == 5)
    }

    @Test func `min-fresh that cannot be read, or is given twice, asks for the most`() {
        #expect(parse("min-fresh=x").minFresh == CacheDirectives.maximumSeconds)
        #expect(parse("min-fresh=5, min-fresh=9").minFresh == 9)
    }

    @Test(
        arguments: [
            ("private; max-age=60", CacheDirectives.Flags([.isPrivate, .malformed])),
            ("public; max-age=60", .malformed), ("no-store foo", [.noStore, .malformed]),
            ("ext=\"unclosed, no-store", .malformed), ("=5, no-store", [.noStore, .malformed]),
            ("\"quoted\", no-store", [.noStore, .malformed]), ("public=1", []),
            ("max-age=60; private", .malformed), ("ext=, no-store", [.noStore, .malformed]),
            ("must-understand;x", .malformed),
        ] as [(String, CacheDirectives.Flags)])
    func `after a syntax error what forbids still counts, what permits does not`(
        value: String, expected: CacheDirectives.Flags
    ) {
        #expect(parse(value).flags == expected)
    }

    @Test func `Pragma: no-cache counts in a request only when there is no Cache-Control (§5.4)`() {
        #expect(parse(["Pragma: no-cache"]).flags == .noCache)
        #expect(parse(["Pragma: foo, No-Cache"]).flags == .noCache)
        #expect(parse(["Pragma: foo"]).flags == [])
        #expect(parse(["Pragma: no-cache", "Cache-Control: max-age=5"]).flags == [])
        #expect(parse(["Pragma: no-cache", "Cache-Control:"]).flags == [])
    }

    @Test func `any prefix of any value is read without going out of bounds`() {
        let value = "max-age=\"3\\600\", private=\"a, \\\"b\", x = y, s-maxage=7, \"q\\\"; no-store"
        for count in 0...value.utf8.count { _ = parse(String(value.prefix(count))) }
    }
}
