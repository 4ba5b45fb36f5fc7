/// HTTP's dates (RFC 9110 §5.6.7) as seconds since 1970-01-01T00:00:00Z.
///
///     IMF-fixdate  = day-name "," SP 2DIGIT SP month SP 4DIGIT SP time SP "GMT"
///     rfc850-date  = day-name-l "," SP 2DIGIT "-" month "-" 2DIGIT SP time SP "GMT"
///     asctime-date = day-name SP month SP ( 2DIGIT / SP DIGIT ) SP time SP 4DIGIT
///
/// Letter case is ignored: RFC 9110 makes the formats case-sensitive, but RFC 9111 §4.2 asks
/// caches, which are what reads dates here, to match them in any case. The day name must be valid,
/// but need not be the right one for the date: it adds no information, and dates written by hand
/// get it wrong.
public enum HTTPDate {
    /// The length of an IMF-fixdate.
    public static let length = 29

    static let dayNames: StaticString = "SunMonTueWedThuFriSat"

    /// Parses a date in any of the three formats. `nil` if it is in none of them, or not in the
    /// calendar. `now` (seconds since 1970) determines the century of RFC 850's two-digit years: a
    /// year that would be more than 50 years in the future is the most recent past year with these
    /// digits.
    public static func parse(_ bytes: Span<UInt8>, now: Int64) -> Int64? {
        bytes.withUnsafeBufferPointer { buffer in
            guard let bytes = HeadBytes(buffer, count: buffer.count) else { return nil }
            return parseUsual(bytes) ?? parse(bytes, now: now)
        }
    }

    /// Parses an IMF-fixdate with its names in the usual letter case, which nearly all dates are:
    /// in four words, without a step for each part. `nil` for everything else.
    private static func parseUsual(_ bytes: HeadBytes) -> Int64? {
        guard bytes.count == length else { return nil }
        // `Sun, 06 `, `Nov 1994`, ` 08:49:3` and `9:37 GMT`: first their separators.
        let (day, year) = (bytes.word(at: 0), bytes.word(at: 8))
        let (time, end) = (bytes.word(at: 16), bytes.word(at: 21))
        guard day & 0xFF00_00FF_FF00_0000 == 0x2000_0020_2C00_0000,
            year & 0xFF00_0000 == 0x2000_0000,
            time & 0x00FF_0000_FF00_00FF == 0x003A_0000_3A00_0020,
            end &>> 32 == CaseFolding.short(" GMT"), isDayName(day & 0xFF_FFFF),
            let month = month(year & 0xFF_FFFF)
        else { return nil }
        var areDigits = true
        func number(_ word: UInt64, at place: UInt64) -> Int64 {
            let tens = UInt8(truncatingIfNeeded: word &>> (8 &* place)) &- 0x30
            let ones = UInt8(truncatingIfNeeded: word &>> (8 &* place &+ 8)) &- 0x30
            areDigits = areDigits && tens < 10 && ones < 10
            return Int64(tens) &* 10 &+ Int64(ones)
        }
        var date = CivilDate(
            year: number(year, at: 4) &* 100 &+ number(year, at: 6), month: month,
            day: number(day, at: 5))
        date.hour = number(time, at: 1)
        date.minute = number(time, at: 4)
        date.second = number(end, at: 2)
        return areDigits && date.isInCalendar ? date.secondsSince1970 : nil
    }

    private static func isDayName(_ letters: UInt64) -> Bool {
        switch letters {
        case CaseFolding.short("Sun"), CaseFolding.short("Mon"), CaseFolding.short("Tue"),
            CaseFolding.short("Wed"), CaseFolding.short("Thu"), CaseFolding.short("Fri"),
            CaseFolding.short("Sat"):
            true
        default: false
        }
    }

    private static func month(_ letters: UInt64) -> Int64? {
        switch letters {
        case CaseFolding.short("Jan"): 1
        case CaseFolding.short("Feb"): 2
        case CaseFolding.short("Mar"): 3
        case CaseFolding.short("Apr"): 4
        case CaseFolding.short("May"): 5
        case CaseFolding.short("Jun"): 6
        case CaseFolding.short("Jul"): 7
        case CaseFolding.short("Aug"): 8
        case CaseFolding.short("Sep"): 9
        case CaseFolding.short("Oct"): 10
        case CaseFolding.short("Nov"): 11
        case CaseFolding.short("Dec"): 12
        default: nil
        }
    }

    private static func parse(_ bytes: HeadBytes, now: Int64) -> Int64? {
        var text = HTTPDateText(bytes)
        guard let day = text.takeName(of: dayNames) else { return nil }
        let date: CivilDate?
        if text.take(" ") {
            date = text.takeAsctime()
        } else if text.take(", ") {
            date = text.takeIMF()
        } else if text.take(restOfDayName(day)), text.take(", ") {
            date = text.takeRFC850(currentYear: CivilDate(secondsSince1970: now).year)
        } else {
            return nil
        }
        guard let date, text.isAtEnd, date.isInCalendar else { return nil }
        return date.secondsSince1970
    }

    private static func restOfDayName(_ day: Int) -> StaticString {
        switch day {
        case 2: "sday"
        case 3: "nesday"
        case 4: "rsday"
        case 6: "urday"
        default: "day"
        }
    }

    /// The IMF-fixdate of `seconds`; years outside 0000 to 9999 are clamped.
    public static func format(_ seconds: Int64) -> InlineArray<29, UInt8> {
        let date = CivilDate(nearestSecondsSince1970: seconds)
        var text = InlineArray<29, UInt8>(repeating: 0x20)
        put(dayNames, date.weekday, into: &text, at: 0)
        text[3] = Byte.comma
        put(date.day, into: &text, at: 5)
        put(CivilDate.monthNames, Int(date.month) - 1, into: &text, at: 8)
        put(date.year / 100, into: &text, at: 12)
        put(date.year % 100, into: &text, at: 14)
        put(date.hour, into: &text, at: 17)
        text[19] = Byte.colon
        put(date.minute, into: &text, at: 20)
        text[22] = Byte.colon
        put(date.second, into: &text, at: 23)
        put("GMT", 0, into: &text, at: 26)
        return text
    }

    private static func put(
        _ names: StaticString, _ index: Int, into text: inout InlineArray<29, UInt8>, at offset: Int
    ) {
        for letter in 0..<3 { text[offset + letter] = names.utf8Start[3 * index + letter] }
    }

    private static func put(
        _ number: Int64, into text: inout InlineArray<29, UInt8>, at offset: Int
    ) {
        text[offset] = 0x30 &+ UInt8(truncatingIfNeeded: number / 10)
        text[offset + 1] = 0x30 &+ UInt8(truncatingIfNeeded: number % 10)
    }
}
