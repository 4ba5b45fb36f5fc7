import HTTPCore
import Testing

/// Days and seconds of the calendar, and their text.
@Suite("Dates of the calendar")
struct CivilDateTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"), (1_811_808_000, "2027-06-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"), (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
            // RFC 3339 has no year 10000, and none before 0000.
            (253_402_300_800, "9999-12-31T23:59:59Z"), (.max, "9999-12-31T23:59:59Z"),
            (-62_167_219_200, "0000-01-01T00:00:00Z"), (.min, "0000-01-01T00:00:00Z"),
        ] as [(Int64, String)])
    func `times print in UTC`(_ seconds: Int64, _ text: String) {
        #expect(CivilDate.text(secondsSince1970: seconds) == text)
    }

    @Test(
        arguments: [
            (0, 86_400, 1), (0, 86_399, 0), (86_400, 0, -1), (1, .max, .max / 86_400),
            (1, .min, .min / 86_400), (-2, .max, .max / 86_400), (.max, .min, .min / 86_400),
            (.min, .max, .max / 86_400),
        ] as [(Int64, Int64, Int64)])
    func `days between any two times are counted`(_ start: Int64, _ end: Int64, _ days: Int64) {
        #expect(CivilDate.days(from: start, to: end) == days)
    }

    @Test(
        arguments: [
            0, -1, 86_399, 86_400, -86_400, -86_401, 951_782_400, -2_203_891_200, Int64.min,
            Int64.min + 1, Int64.max - 1, Int64.max,
        ])
    func `every count of seconds has a date, which has that count`(_ seconds: Int64) {
        let date = CivilDate(secondsSince1970: seconds)
        #expect(date.isInCalendar)
        // Before the first whole day of 64 bits, the computation would pass a midnight below their
        // range.
        if seconds > Int64.min + 86_400 { #expect(date.secondsSince1970 == seconds) }
    }

    @Test func `one day follows the other through a whole era, and the week with it`() {
        let first: Int64 = -135_140
        var last = CivilDate(secondsSince1970: (first - 1) * 86_400)
        for day in first..<first + 146_097 {
            let date = CivilDate(secondsSince1970: day * 86_400)
            let isNext =
                date.day == last.day + 1 && date.month == last.month && date.year == last.year
                || date.day == 1 && date.month == last.month + 1 && date.year == last.year
                || date.day == 1 && date.month == 1 && last.month == 12 && last.day == 31
                    && date.year == last.year + 1
            guard isNext, date.isInCalendar, date.daysSince1970 == day,
                date.weekday == (last.weekday + 1) % 7
            else {
                Issue.record("day \(day): \(date) after \(last)")
                return
            }
            last = date
        }
    }

    @Test(
        arguments: [
            ("Jan", 1), ("jan", 1), ("MAY", 5), ("dEc", 12), ("", nil), ("an", nil), ("anF", nil),
            ("Janu", nil), ("*an", nil), ("Xyz", nil),
        ] as [(String, Int64?)])
    func `a month has one name of three letters, in any case`(name: String, month: Int64?) {
        #expect(CivilDate.month(named: name.utf8) == month)
    }
}
