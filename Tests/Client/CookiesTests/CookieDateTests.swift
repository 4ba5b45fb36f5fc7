import Testing

@testable import PinfoldClient

@Suite("The dates of cookies")
struct CookieDateTests {
    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("1 jan 1970 0:0:0", 0),
            ("1970 Jan 01 00:00:00", 0),
            ("00:00:00 01 january 70", 0),
            ("Fri, 01-Jan-2038 00:00:00 GMT", 2_145_916_800),
            ("01-Jan-69 00:00:00", 3_124_224_000),
            ("29 Feb 2024 12:00:00 UTC", 1_709_208_000),
            ("1 Jan 1970 00:00:00.999+05", 0),
            ("1th Janvier 1970 00:00:00", 0),
            ("1 Jan 1601 00:00:00", -11_644_473_600),
        ] as [(String, Int64)])
    func `are parsed with their parts in any order`(text: String, seconds: Int64) {
        #expect(CookieDate.parse(text) == seconds)
    }

    @Test(
        arguments: [
            "", "tomorrow", "1 Jan 1970", "Jan 1970 00:00:00", "1 1970 00:00:00",
            "1 Jan 00:00:00", "1 Jan 1600 00:00:00", "32 Jan 1970 00:00:00",
            "30 Feb 2024 00:00:00", "29 Feb 2023 00:00:00", "0 Jan 1970 00:00:00",
            "1 Jan 1970 24:00:00", "1 Jan 1970 00:60:00", "1 Jan 1970 00:00:60",
            "1 Jan 1970 00:00", "1 Jan 1970 000:00:00", "1 Jan 197 00:00:00",
            "1 Jan 19700 00:00:00", "1 Jan 1970 00x:00:00",
        ])
    func `are invalid if a part is missing or out of range`(text: String) {
        #expect(CookieDate.parse(text) == nil)
    }
}
