import HTTPCore
import Testing

@testable import CachePolicy

@Suite("CDN-Cache-Control, by RFC 9213")
struct TargetedDirectivesTests {
    private let targeted = {
        var options = PolicyOptions()
        options.route.targetedFields = [PolicyOptions.cdnCacheControl]
        return options
    }()

    /// The lifetime of a response with CDN-Cache-Control lines and a max-age of one year; `nil` if
    /// it is not stored.
    private func lifetime(_ lines: String..., others: [String] = []) -> Int64? {
        let fields =
            lines.map { "CDN-Cache-Control: \($0)" }
            + ["Cache-Control: max-age=31536000", "ETag: \"a\"", "Date: \(date())"] + others
        guard case .store(let storable) = storing(Response(fields), options: targeted) else {
            return nil
        }
        return storable.lifetime
    }

    @Test(
        arguments: [
            ("max-age=60", 60), ("max-age=0", 0), ("max-age=-5", 0),
            ("max-age=99999999999", 1 << 31), ("max-age=60, s-maxage=7", 7),
            ("foobar, max-age=60", 60), ("max-age=60;x;y=\"z\"", 60), ("max-age=1, max-age=60", 60),
            ("a=\"max-age=9, \\\"b\\\"\", max-age=60", 60), ("b=:YWJj:, max-age=60", 60),
            ("c=(1 \"two\";p three), max-age=60", 60), ("d=1.5,\tmax-age=60", 60),
            ("*key=to/ken:x, max-age=60", 60), ("i=(), max-age=60", 60),
            ("no-store=?0, max-age=60", 60), ("no-store, max-age=60, no-store=?0", 60),
            ("no-cache, max-age=60", 60), ("public", 0), ("max-age", 0), ("max-age=\"60\"", 0),
        ] as [(String, Int64)])
    func `its directives take the place of Cache-Control's and Expires`(
        value: String, seconds: Int64
    ) {
        #expect(lifetime(value) == seconds)
        #expect(lifetime(value, others: ["Expires: \(date(9999))"]) == seconds)
    }

    @Test(
        arguments: [
            "no-store", "no-store=?1", "max-age=60, no-store", "private", "private=\"a\"",
            "max-age=60, private",
        ])
    func `what it forbids is forbidden, whatever Cache-Control has`(value: String) {
        #expect(lifetime(value) == nil)
    }

    @Test(
        arguments: [
            "", "max-age=60,", ",max-age=60", "max-age=60, &&&&&", "max-age=60, , a",
            "MaX-aGe=60", "max-age =60", "max-age= 60", "max-age=60 no-store", "max-age=60;",
            "max-age=60;A", "max-age=1234567890123456", "max-age=1.", "max-age=1.2345", "max-age=-",
            "a=\"b", "a=\"\\b\"", "a=:b", "a=?2", "a=(1", "a=(1\"b\")", "a=(1 2)b", "1a", "a=",
            "a=&",
            "no-store, &",
        ])
    func `empty or malformed it counts as absent`(value: String) {
        #expect(lifetime(value) == 31_536_000, "\(value)")
    }

    @Test func `all lines are one dictionary`() {
        #expect(lifetime("foo", "max-age=60") == 60)
        #expect(lifetime("max-age=60", "no-store") == nil)
        #expect(lifetime("no-store", "&") == 31_536_000)
    }

    @Test func `it can allow what Cache-Control forbids`() {
        let fields = ["CDN-Cache-Control: max-age=60", "Cache-Control: no-store"]
        #expect(refusal(fields, options: targeted) == nil)
        #expect(refusal(fields) == .responseNoStore)
    }

    @Test func `only a cache that it is meant for heeds it`() {
        let fields = ["CDN-Cache-Control: no-store", "Cache-Control: max-age=60"]
        #expect(refusal(fields) == nil)
        #expect(Stored(fields).metadata.lifetime == 60)
    }

    @Test func `what is rebuilt from the stored head is the same`() {
        let stored = Stored(
            [
                "CDN-Cache-Control: max-age=60, stale-if-error=5, stale-while-revalidate=6",
                "Cache-Control: max-age=1, must-revalidate", "Expires: \(date(9))",
            ], options: targeted
        ).metadata
        #expect(stored.lifetime == 60)
        #expect(stored.staleIfErrorSeconds == 5)
        #expect(stored.staleWhileRevalidateSeconds == 6)
        #expect(!stored.flags.contains(.neverStale))
    }
}
