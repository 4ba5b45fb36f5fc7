import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Conditions and ranges answered from the cache, by RFC 9110 §13 and §14")
struct HitFormTests {
    private func answer(
        _ request: [String], to fields: [String], status: Int = 200, body: UInt64? = 100,
        method: String = "GET"
    ) -> String {
        let explicit = fields + ["Cache-Control: max-age=100"]
        let stored = Stored(explicit, status: status, body: body)
        return stored.decide(Request(request, method: method)).summary
    }

    @Test(
        arguments: [
            ("\"abcdef\"", "\"abcdef\"", "304"), ("\"abcdef\"", "\"abcdeg\"", "hit"),
            ("\"abcdef\"", "\"abcdef\", \"1\", \"2\"", "304"),
            ("\"abcdef\"", "\"1\", \"abcdef\", \"2\"", "304"),
            ("\"abcdef\"", "\"1\",\"2\",\"abcdef\"", "304"), ("\"abcdef\"", "\"1\", \"2\"", "hit"),
            ("\"abcdef\"", "*", "304"), ("\"abcdef\"", "\"1\", *", "304"),
            ("W/\"abcdef\"", "W/\"abcdef\"", "304"), ("W/\"abcdef\"", "\"abcdef\"", "304"),
            ("\"abcdef\"", "W/\"abcdef\"", "304"), ("W/\"abcdef\"", "W/\"abcdeg\"", "hit"),
            ("\"a,b\"", "\"a,b\"", "304"), ("\"a,b\"", "\"a\", \"b\"", "hit"),
            ("\"a b\"", "\"x\" , \"a b\"", "304"), ("\"a\\\"", "\"a\\\"", "304"),
            ("\"\"", "\"\"", "304"), ("\"\"", "", "hit"), ("\"a\"", "", "hit"),
            ("\"abcdef\u{FC}\"", "\"abcdef\u{FC}\"", "304"),
            // Not entity tags by the grammar; only the same bytes are the same tag.
            ("abcdef", "abcdef", "304"), ("abcdef", "\"abcdef\"", "hit"),
            ("\"abcdef\"", "abcdef", "hit"), ("abcdef", "1, abcdef , 2", "304"),
            ("w/\"abcdef\"", "\"abcdef\"", "hit"), ("\"abc", "\"abc", "304"),
            ("W/", "W/", "304"), ("\"abcdef\"", "\"abcdef", "hit"),
        ])
    func `If-None-Match is a list, compared weakly (§13.1.2)`(
        tag: String, condition: String, expected: String
    ) {
        #expect(answer(["If-None-Match: \(condition)"], to: ["ETag: \(tag)"]) == expected)
    }

    @Test func `If-None-Match on several lines is one list`() {
        let request = ["If-None-Match: \"1\"", "If-None-Match: \"a\""]
        #expect(answer(request, to: ["ETag: \"a\""]) == "304")
    }

    @Test func `without a stored entity tag only * matches`() {
        #expect(answer(["If-None-Match: \"a\""], to: []) == "hit")
        #expect(answer(["If-None-Match: *"], to: []) == "304")
        #expect(answer(["If-None-Match: \"\""], to: ["ETag:"]) == "hit")
    }

    @Test(
        arguments: [
            (-3000, -3000, "304"), (-3000, -2000, "304"), (-3000, -3001, "hit"),
            (nil, 0, "304"), (nil, 5, "304"), (nil, -1, "hit"),
        ] as [(Int64?, Int64, String)])
    func
        `If-Modified-Since compares with Last-Modified, or with Date without one (RFC 9111 §4.3.2)`(
            modified: Int64?, since: Int64, expected: String
        )
    {
        let fields = ["Date: \(date())"] + (modified.map { ["Last-Modified: \(date($0))"] } ?? [])
        #expect(answer(["If-Modified-Since: \(date(since))"], to: fields) == expected)
    }

    @Test func `an If-Modified-Since that is no date, or is there twice, is ignored (§13.1.3)`() {
        let fields = ["Last-Modified: \(date(-3000))"]
        #expect(answer(["If-Modified-Since: 0"], to: fields) == "hit")
        #expect(answer(["If-Modified-Since:"], to: fields) == "hit")
        let twice = ["If-Modified-Since: \(date())", "If-Modified-Since: \(date())"]
        #expect(answer(twice, to: fields) == "hit")
    }

    @Test func `If-None-Match wins over If-Modified-Since (§13.2.2)`() {
        let fields = ["ETag: \"a\"", "Last-Modified: \(date(-9))"]
        let since = "If-Modified-Since: \(date())"
        #expect(answer(["If-None-Match: \"b\"", since], to: fields) == "hit")
        let old = "If-Modified-Since: \(date(-99))"
        #expect(answer(["If-None-Match: \"a\"", old], to: fields) == "304")
    }

    @Test func `conditions apply to HEAD, and to no stored status but 200`() {
        #expect(answer(["If-None-Match: \"a\""], to: ["ETag: \"a\""], method: "HEAD") == "304")
        #expect(
            answer(["If-None-Match: \"b\""], to: ["ETag: \"a\""], method: "HEAD") == "head hit")
        for status in [203, 301, 404, 410] {
            #expect(answer(["If-None-Match: \"a\""], to: ["ETag: \"a\""], status: status) == "hit")
            #expect(answer(["Range: bytes=0-1"], to: ["ETag: \"a\""], status: status) == "hit")
        }
    }

    @Test(
        arguments: [
            ("bytes=0-1", "206 0-1/100"), ("bytes=0-0", "206 0-0/100"),
            ("bytes=1-", "206 1-99/100"), ("bytes=0-", "206 0-99/100"),
            ("bytes=99-", "206 99-99/100"), ("bytes=-1", "206 99-99/100"),
            ("bytes=-100", "206 0-99/100"), ("bytes=-101", "206 0-99/100"),
            ("bytes=50-99", "206 50-99/100"), ("bytes=50-100", "206 50-99/100"),
            ("bytes=50-99999999999999999999999", "206 50-99/100"),
            ("bytes=-99999999999999999999999", "206 0-99/100"),
            ("BYTES=0-1", "206 0-1/100"), ("bytes= 0-1", "206 0-1/100"),
            ("bytes=100-", "416 */100"), ("bytes=100-200", "416 */100"), ("bytes=-0", "416 */100"),
            ("bytes=99999999999999999999999-", "416 */100"),
        ])
    func `one byte range is cut out of the stored body (§14.1.2)`(value: String, expected: String) {
        #expect(answer(["Range: \(value)"], to: []) == expected)
    }

    @Test(
        arguments: [
            "bytes=", "bytes=,", "bytes=-", "bytes=1", "bytes=2-1",
            "bytes=a-b", "bytes=1-b", "bytes=--1", "bytes=+1-2", "bytes 0-1", "items=0-1", "",
            "bytes=0-1;", "bytes=0x1-2", "byte=0-1",
        ])
    func `a Range that is no byte range is ignored (§14.2)`(value: String) {
        #expect(answer(["Range: \(value)"], to: []) == "hit")
    }

    @Test(
        arguments: [
            ("bytes=0-1,3-4", "206 multipart"), ("bytes=0-1, ,3-4", "206 multipart"),
            ("bytes=3-4,0-1", "206 multipart"), ("bytes=0-1,-1", "206 multipart"),
            ("bytes=0-1,2-2,90-", "206 multipart"), ("bytes=0-1, ", "206 0-1/100"),
            ("bytes=0-1,100-", "206 0-1/100"), ("bytes=200-,0-1,-0", "206 0-1/100"),
            ("bytes=100-,200-300", "416 */100"), ("bytes=-0,100-", "416 */100"),
            // Larger than the whole, or not understood.
            ("bytes=0-1,1-2", "hit"), ("bytes=0-,5-6", "hit"), ("bytes=5-6,-100", "hit"),
            ("bytes=0-1,a-b", "hit"), ("bytes=0-1,2-1", "hit"), ("bytes=0-1;3-4", "hit"),
            ("bytes=" + (0..<16).map { "\($0)-\($0)" }.joined(separator: ","), "206 multipart"),
            ("bytes=" + (0..<17).map { "\($0)-\($0)" }.joined(separator: ","), "hit"),
        ])
    func `several ranges are the parts of one response (§14.6)`(value: String, expected: String) {
        #expect(answer(["Range: \(value)"], to: []) == expected)
    }

    @Test func `a Range given twice, for HEAD, or on a body of unknown length is ignored`() {
        #expect(answer(["Range: bytes=0-1", "Range: bytes=2-3"], to: []) == "hit")
        #expect(answer(["Range: bytes=0-1"], to: [], method: "HEAD") == "head hit")
        #expect(answer(["Range: bytes=0-1"], to: [], body: nil) == "hit")
    }

    @Test func `an empty body has no satisfiable range, but its suffix is itself`() {
        #expect(answer(["Range: bytes=0-"], to: [], body: 0) == "416 */0")
        #expect(answer(["Range: bytes=0-0"], to: [], body: 0) == "416 */0")
        #expect(answer(["Range: bytes=-5"], to: [], body: 0) == "hit")
    }

    @Test func `If-None-Match is decided before Range (§13.2.2)`() {
        let range = "Range: bytes=0-1"
        #expect(answer(["If-None-Match: \"a\"", range], to: ["ETag: \"a\""]) == "304")
        #expect(answer(["If-None-Match: \"b\"", range], to: ["ETag: \"a\""]) == "206 0-1/100")
    }

    @Test(
        arguments: [
            (["ETag: \"a\""], "\"a\"", true), (["ETag: \"a\""], "\"b\"", false),
            (["ETag: W/\"a\""], "W/\"a\"", false), (["ETag: \"a\""], "W/\"a\"", false),
            (["ETag: W/\"a\""], "\"a\"", false), ([], "\"a\"", false),
            (["ETag: \"a\""], "", false),
            (["Date: \(date())", "Last-Modified: \(date(-9))"], date(-9), true),
            (["Date: \(date())", "Last-Modified: \(date(-9))"], date(-8), false),
            (["Date: \(date())", "Last-Modified: \(date(-9))"], date(-10), false),
            (["Date: \(date())", "Last-Modified: \(date())"], date(), false),
            (["Date: \(date())", "Last-Modified: \(date(9))"], date(9), false),
            (["Date: \(date())"], date(), false),
            (["ETag: \"a\"", "Date: \(date())", "Last-Modified: \(date(-9))"], date(-9), true),
        ] as [([String], String, Bool)])
    func `If-Range takes a strong entity tag, or the very date of a strong Last-Modified (§13.1.5)`(
        fields: [String], value: String, holds: Bool
    ) {
        let request = ["Range: bytes=0-1", "If-Range: \(value)"]
        #expect(answer(request, to: fields) == (holds ? "206 0-1/100" : "hit"))
    }

    @Test func `If-Range without Range, or given twice, changes nothing but to send all`() {
        #expect(answer(["If-Range: \"b\""], to: ["ETag: \"a\""]) == "hit")
        let twice = ["Range: bytes=0-1", "If-Range: \"a\"", "If-Range: \"a\""]
        #expect(answer(twice, to: ["ETag: \"a\""]) == "hit")
    }
}
