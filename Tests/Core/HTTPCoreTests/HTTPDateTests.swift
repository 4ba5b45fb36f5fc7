import Foundation
import HTTPCore
import Testing

@Suite("Dates (RFC 9110 §5.6.7)")
struct HTTPDateTests {
    /// 2026-01-01T00:00:00Z
    private static let now: Int64 = 1_767_225_600

    private func parse(_ text: String, now: Int64 = Self.now) -> Int64? {
        HTTPDate.parse(latin1(text).span, now: now)
    }

    private func format(_ seconds: Int64) -> String {
        written { $0.append(date: seconds) }
    }

    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Wed Nov 16 08:49:37 1994", 784_975_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
            // Caches match dates in any letter case (RFC 9111 §4.2).
            ("SUN, 06 nov 1994 08:49:37 gMT", 784_111_777),
            ("sUNDAY, 06-NOV-94 08:49:37 gmt", 784_111_777),
            ("sun nOV  6 08:49:37 1994", 784_111_777),
            // The day name need not be the right one for the date.
            ("Mon, 26 Jul 1997 05:00:00 GMT", 869_893_200),
        ] as [(String, Int64)])
    func `the three formats are read`(text: String, seconds: Int64) {
        #expect(parse(text) == seconds)
    }

    @Test(arguments: [
        "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
    ])
    func `long day names belong to RFC 850 dates`(name: String) {
        #expect(parse("\(name), 06-Nov-94 08:49:37 GMT") == 784_111_777)
        #expect(parse("\(name.prefix(3)), 06 Nov 1994 08:49:37 GMT") == 784_111_777)
        #expect(parse("\(name.prefix(3)) Nov  6 08:49:37 1994") == 784_111_777)
        #expect(parse("\(name), 06 Nov 1994 08:49:37 GMT") == nil)
        #expect(parse("\(name.prefix(3)), 06-Nov-94 08:49:37 GMT") == nil)
        #expect(parse("\(name.dropLast()), 06-Nov-94 08:49:37 GMT") == nil)
    }

    @Test(arguments: [
        "", "0", "-1", "S", "Sun", "Sun,", "now", "784111777",
        "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 utc",
        "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37 GMT ", " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMTx", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun\u{C} 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08\u{1A}49:37 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT", "Sun, 06  Nov 1994 08:49:37 GMT",
        "Son, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nox 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 32 Jan 1994 08:49:37 GMT",
        "Sun, 29 Feb 1994 08:49:37 GMT", "Thu, 29 Feb 1900 00:00:00 GMT",
        "Thu, 29 Feb 2100 00:00:00 GMT", "Sun, 30 Feb 2000 08:49:37 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov -994 08:49:37 GMT",
        "Sun Nov 06  08:49:37 1994", "Sun Nov 6 08:49:37 1994", "Sun Nov  6 08:49:37 94",
        "Sun Nov  0 08:49:37 1994", "Sun Nov 31 08:49:37 1994", "Sun Nov  6 08:49:37 1994 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday, 6-Nov-94 08:49:37 GMT",
        "Sunday, 31-Nov-94 08:49:37 GMT", "Sunday, 29-Feb-94 08:49:37 GMT",
        "Sun\u{FF} 06 Nov 1994 08:49:37 GMT",
    ])
    func `what is no date of the calendar in one of the formats is refused`(text: String) {
        #expect(parse(text) == nil)
    }

    @Test func `every prefix of a date, and every date with one byte changed, is safe`() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            let bytes = latin1(text)
            for count in 0..<bytes.count {
                #expect(HTTPDate.parse(Array(bytes[..<count]).span, now: Self.now) == nil)
                for byte in UInt8.min...UInt8.max {
                    var changed = bytes
                    changed[count] = byte
                    guard let seconds = HTTPDate.parse(changed.span, now: Self.now) else {
                        continue
                    }
                    #expect(format(seconds).utf8.count == HTTPDate.length)
                }
            }
        }
    }

    /// Dates in the usual letter case are read in another way than others.
    @Test func `a date means the same in any letter case, with any byte changed`() {
        func inOtherCase(_ bytes: [UInt8]) -> [UInt8] {
            bytes.map { ASCII.isLetter($0) ? $0 ^ 0x20 : $0 }
        }
        for seconds in stride(from: Self.now, to: Self.now + 86_400 * 366, by: 86_400 * 30 + 3607) {
            let bytes = latin1(format(seconds))
            #expect(HTTPDate.parse(bytes.span, now: Self.now) == seconds)
            #expect(HTTPDate.parse(inOtherCase(bytes).span, now: Self.now) == seconds)
            for place in bytes.indices {
                for byte in UInt8.min...UInt8.max {
                    var changed = bytes
                    changed[place] = byte
                    let usual = HTTPDate.parse(changed.span, now: Self.now)
                    let other = HTTPDate.parse(inOtherCase(changed).span, now: Self.now)
                    if usual != other { Issue.record("\(changed)") }
                }
            }
        }
    }

    @Test(arguments: [
        // (now's year, two digits, expected year)
        (2026, 26, 2026), (2026, 75, 2075), (2026, 76, 2076), (2026, 77, 1977), (2026, 0, 2000),
        (2026, 99, 1999), (1999, 0, 2000), (1999, 49, 2049), (1999, 50, 1950), (2099, 5, 2105),
        (2000, 50, 2050), (2000, 51, 1951),
    ])
    func `a two-digit year is at most 50 years ahead`(now: Int, digits: Int, year: Int) {
        let nowSeconds = parse("Thu, 01 Jan \(now) 00:00:00 GMT", now: 0)
        let twoDigits = digits < 10 ? "0\(digits)" : "\(digits)"
        let seconds = parse("Monday, 01-Mar-\(twoDigits) 00:00:00 GMT", now: nowSeconds ?? 0)
        #expect(seconds.map { format($0).hasSuffix("01 Mar \(year) 00:00:00 GMT") } == true)
    }

    @Test func `what is formatted is parsed back`() {
        var seconds: Int64 = -62_167_219_200
        while seconds <= 253_402_300_799 {
            let text = format(seconds)
            if parse(text) != seconds { Issue.record("\(seconds) \(text)") }
            seconds += 86_400 * 13 + 3607
        }
        for year in stride(from: 1600, through: 2400, by: 1) {
            for day in ["28 Feb", "01 Mar", "31 Dec", "01 Jan"] {
                let seconds = parse("Sun, \(day) \(year) 12:00:00 GMT")
                #expect(seconds.map { format($0).contains("\(day) \(year) 12:00:00") } == true)
            }
        }
    }

    @Test func `dates agree with the system's calendar`() {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        for seconds in stride(from: Int64(-2_000_000_000), to: 8_000_000_000, by: 7_654_321) {
            let date = Date(timeIntervalSince1970: TimeInterval(seconds))
            #expect(format(seconds) == formatter.string(from: date))
        }
    }

    @Test func `years beyond four digits are clamped`() {
        #expect(format(.max) == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(format(.min) == "Sat, 01 Jan 0000 00:00:00 GMT")
    }
}
