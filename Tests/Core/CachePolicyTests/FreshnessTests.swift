import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Freshness and age are computed by RFC 9111 §4.2")
struct FreshnessTests {
    @Test(
        arguments: [
            (["Cache-Control: max-age=3600"], 3600, FreshnessSource.maxAge),
            (["Cache-Control: max-age=0"], 0, .maxAge),
            (["Cache-Control: s-maxage=60"], 60, .sharedMaxAge),
            (["Cache-Control: max-age=3600, s-maxage=1"], 1, .sharedMaxAge),
            (["Cache-Control: s-maxage=3600, max-age=1"], 3600, .sharedMaxAge),
            (["Cache-Control: max-age=3600", "Cache-Control: s-maxage=1"], 1, .sharedMaxAge),
            (["Expires: \(date(100))", "Date: \(date())"], 100, .expires),
            (["Cache-Control: max-age=3600", "Expires: \(date(-9))"], 3600, .maxAge),
            (["Cache-Control: max-age=3600", "Expires: 0"], 3600, .maxAge),
            (["Cache-Control: max-age=0", "Expires: \(date(9))"], 0, .maxAge),
            (["Cache-Control: s-maxage=0", "Expires: \(date(9))"], 0, .sharedMaxAge),
            (["Cache-Control: max-age=x", "Expires: \(date(9))"], 0, .maxAge),
            (["Cache-Control: foobar", "Expires: \(date(9))"], 9, .expires),
            (["ETag: \"a\""], 0, .none),
        ] as [([String], Int64, FreshnessSource)])
    func `the lifetime is that of the first that is there: s-maxage, max-age, Expires`(
        fields: [String], lifetime: Int64, source: FreshnessSource
    ) {
        let stored = Stored(fields)
        #expect(stored.metadata.lifetime == lifetime)
        #expect(stored.metadata.source == source)
    }

    @Test(
        arguments: [
            (["Expires: \(date(100))", "Date: \(date(-50))"], 150),
            (["Expires: \(date(100))", "Date: \(date(50))"], 50),
            (["Expires: \(date(100))"], 100),
            (["Expires: \(date(100))", "Date: yesterday"], 100),
            (["Expires: \(date(-100))", "Date: \(date(-200))"], 100),
            (["Expires: \(date())", "Date: \(date())"], 0),
            (["Expires: \(date(-1))", "Date: \(date())"], 0),
            (["Expires: Thu, 18 Aug 2050 02:01:18 GMT", "Date: \(date())"], 844_400_878),
            (["Expires: Wed, 18 Aug 9050 02:01:18 GMT", "Date: \(date())"], 1 << 31),
            // Obsolete formats must be understood (RFC 9110 §5.6.7).
            (["Expires: Tuesday, 14-Nov-23 22:14:20 GMT", "Date: \(date())"], 60),
            (["Expires: Tue Nov 14 22:14:20 2023", "Date: \(date())"], 60),
        ] as [([String], Int64)])
    func `Expires counts from Date, or from the receipt when there is no Date (§4.2.1)`(
        fields: [String], lifetime: Int64
    ) {
        #expect(Stored(fields).metadata.lifetime == lifetime)
    }

    @Test(arguments: ["0", "-1", "", "never", "Thu, 18 Aug 2050 02:01:18 UTC", "3600"])
    func `an Expires that is no date has already passed (§5.3)`(value: String) {
        let fields = ["Expires: \(value)", "Last-Modified: \(date(-1000))"]
        let metadata = Stored(fields).metadata
        #expect(metadata.lifetime == 0)
        #expect(metadata.source == .expires)
    }

    @Test func `of several Expires the earliest counts, one that is no date most of all`() {
        #expect(Stored(["Expires: \(date(9))", "Expires: \(date(5))"]).metadata.lifetime == 5)
        #expect(Stored(["Expires: \(date(5))", "Expires: \(date(9))"]).metadata.lifetime == 5)
        #expect(Stored(["Expires: \(date(5))", "Expires: 0"]).metadata.lifetime == 0)
        #expect(Stored(["Expires: 0", "Expires: \(date(5))"]).metadata.lifetime == 0)
    }

    @Test(
        arguments: [
            (-1000, 100), (-5, 0), (-10, 1), (-864_000, 86_400), (-864_010, 86_400),
            (-863_990, 86_399), (0, 0), (1000, 0),
        ] as [(Int64, Int64)])
    func
        `a heuristic lifetime is a tenth of the time since the last change, a day at most (§4.2.2)`(
            modified: Int64, lifetime: Int64
        )
    {
        let fields = ["Last-Modified: \(date(modified))", "Date: \(date())"]
        let metadata = Stored(fields).metadata
        #expect(metadata.lifetime == lifetime)
        #expect(metadata.source == (modified < 0 ? .heuristic : .none))
    }

    @Test(
        arguments: [
            (200, true), (203, true), (204, true), (300, true), (301, true), (308, true),
            (404, true), (405, false), (410, true), (414, false), (501, false), (201, false),
            (202, false), (302, false), (303, false), (307, false), (400, false), (403, false),
            (500, false), (502, false), (503, false), (504, false), (599, false),
        ])
    func `a heuristic is for what is stored by default, and others with public`(
        status: Int, allowed: Bool
    ) {
        let fields = ["Last-Modified: \(date(-1000))", "Date: \(date())"]
        #expect(Stored(fields, status: status).metadata.lifetime == (allowed ? 100 : 0))
        let isPublic = fields + ["Cache-Control: public"]
        #expect(Stored(isPublic, status: status).metadata.lifetime == 100)
        let explicit = fields + ["Cache-Control: max-age=7"]
        #expect(Stored(explicit, status: status).metadata.lifetime == 7)
    }

    @Test
    func `there is no heuristic for a URI with a query unless asked for, nor against Pragma`() {
        let fields = ["Last-Modified: \(date(-1000))", "Date: \(date())"]
        #expect(Stored(fields, hasQuery: true).metadata.lifetime == 0)
        var options = PolicyOptions()
        options.heuristicForQueries = true
        #expect(Stored(fields, hasQuery: true, options: options).metadata.lifetime == 100)
        options.heuristicPercent = 0
        #expect(Stored(fields, options: options).metadata.lifetime == 0)
        options.heuristicPercent = 50
        options.heuristicMaximumSeconds = 499
        #expect(Stored(fields, options: options).metadata.lifetime == 499)
        #expect(Stored(fields + ["Pragma: no-cache"]).metadata.lifetime == 0)
        let explicit = fields + ["Cache-Control: max-age=9"]
        #expect(Stored(explicit, hasQuery: true).metadata.lifetime == 9)
    }

    @Test(
        arguments: [
            (["Age: 30"], 30), (["Age: 0"], 0), (["Age: abc"], 0), (["Age: -7200"], 0),
            (["Age: 7200.0"], 0), (["Age: 7200,0"], 7200), (["Age: 7200 , 0"], 7200),
            (["Age: 0,7200"], 0), (["Age: 7200", "Age: 0"], 7200), (["Age: 0", "Age: 7200"], 0),
            (["Age: abc, 7200"], 0), (["Age:"], 0), (["Age: \"30\""], 0),
            (["Age: 99999999999"], 1 << 31),
        ] as [([String], Int64)])
    func `the first member of Age counts; what is no number is ignored (§5.1)`(
        fields: [String], expected: Int64
    ) {
        #expect(Stored(fields + ["Date: \(date())"]).metadata.times.initialAge == expected)
    }

    @Test(
        arguments: [
            // date, age, request, response → corrected initial age
            (0, 0, 0, 0, 0), (-10, 0, 0, 0, 10), (0, 10, 0, 0, 10), (-10, 5, 0, 0, 10),
            (-10, 15, 0, 0, 15), (0, 0, 0, 4, 4), (0, 10, 0, 4, 14), (0, 10, 4, 0, 10),
            (50, 0, 0, 0, 0), (50, 3, 0, 1, 4),
        ] as [(Int64, Int64, Int64, Int64, Int64)])
    func `the initial age is the larger of apparent age and Age plus delay (§4.2.3)`(
        date offset: Int64, age: Int64, asked: Int64, got: Int64, expected: Int64
    ) {
        let response = Response(["Date: \(date(offset))", "Age: \(age)"])
        let facts = ResponseFacts(
            response.head, in: response.bytes.span, responseTime: start + got)
        #expect(facts.initialAge(requestTime: start + asked) == expected)
    }

    @Test
    func `a response is fresh while its lifetime exceeds its age, and not in the second it ends`() {
        let metadata = Stored(["Cache-Control: max-age=10"]).metadata
        #expect(metadata.isFresh(at: start))
        #expect(metadata.isFresh(at: start + 9))
        #expect(!metadata.isFresh(at: start + 10))
        #expect(metadata.age(at: start + 10) == 10)
        let aged = Stored(["Cache-Control: max-age=10", "Age: 4", "Date: \(date())"]).metadata
        #expect(aged.age(at: start + 5) == 9)
        #expect(aged.isFresh(at: start + 5))
        #expect(!aged.isFresh(at: start + 6))
        let old = Stored(["Cache-Control: max-age=10", "Age: 15"]).metadata
        #expect(!old.isFresh(at: start))
        #expect(!Stored(["Cache-Control: max-age=0"]).metadata.isFresh(at: start))
    }

    @Test
    func `a clock that went back makes a response stale, and its age no less than on arrival`() {
        let metadata = Stored(["Cache-Control: max-age=10", "Age: 3", "Date: \(date())"]).metadata
        #expect(!metadata.isFresh(at: start - 1))
        #expect(metadata.age(at: start - 1000) == 3)
    }

    @Test func `a Date in the future makes no negative age and lengthens nothing`() {
        let metadata = Stored(["Date: \(date(500))", "Cache-Control: max-age=10"]).metadata
        #expect(metadata.times.initialAge == 0)
        #expect(metadata.freshUntil == start + 10)
    }

    @Test func `times from a damaged database are put into bounds, so that sums cannot overflow`() {
        let times = StoredTimes(requestTime: .min, responseTime: .max, initialAge: .max)
        #expect(times.requestTime == 0)
        #expect(times.responseTime == StoredTimes.maximumTime)
        let head = Array("HTTP/1.1 200 OK\r\nCache-Control: max-age=99999999999\r\n".utf8)
        let metadata = StoredMetadata(
            storedHead: head.span, times: times, hasQuery: false, options: PolicyOptions())
        #expect(metadata?.isFresh(at: .max) == false)
        #expect(metadata?.isFresh(at: .min) == false)
        #expect((metadata?.age(at: .max)).map { $0 >= 0 } == true)
    }
}
