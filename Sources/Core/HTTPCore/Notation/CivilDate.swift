/// A date and time of the proleptic Gregorian calendar in UTC, and its conversion to seconds.
public struct CivilDate: Sendable, Equatable {
    /// The astronomical year; 0 is 1 BC.
    public var year: Int64
    /// 1 to 12.
    public var month: Int64
    /// 1 to 31.
    public var day: Int64
    public var hour: Int64 = 0
    public var minute: Int64 = 0
    /// 0 to 59, or 60 in a leap second.
    public var second: Int64 = 0

    /// The seconds since 1970 of the years 0000 to 9999, which is the range of the dates of HTTP,
    /// RFC 3339 and X.509.
    public static var fourDigitYears: ClosedRange<Int64> { -62_167_219_200...253_402_300_799 }

    /// The English month names, three letters each, January first.
    public static var monthNames: StaticString { "JanFebMarAprMayJunJulAugSepOctNovDec" }

    /// The month (from 1) with this three-letter name, in any case; `nil` if there is none.
    public static func month(named letters: some Collection<UInt8>) -> Int64? {
        guard letters.count == 3 else { return nil }
        let names = UnsafeBufferPointer(
            start: monthNames.utf8Start, count: monthNames.utf8CodeUnitCount)
        for month in 0..<12 {
            let name = names[3 * month..<3 * month + 3]
            let isSame = name.elementsEqual(letters) {
                ASCII.lowercased($0) == ASCII.lowercased($1)
            }
            if isSame { return Int64(month + 1) }
        }
        return nil
    }

    /// The date at midnight; the caller ensures that the values are in range.
    public init(year: Int64, month: Int64, day: Int64) {
        self.year = year
        self.month = month
        self.day = day
    }

    /// The date that is `seconds` after 1970-01-01T00:00:00Z.
    public init(secondsSince1970 seconds: Int64) {
        let days = Self.floorDivide(seconds, by: 86_400)
        let rest = (seconds % 86_400 + 86_400) % 86_400
        // Computed in 400-year eras whose years begin on March 1, so that the leap day is a year's
        // last day.
        let shifted = days + 719_468
        let era = Self.floorDivide(shifted, by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        hour = rest / 3600
        minute = rest % 3600 / 60
        second = rest % 60
    }

    /// The date that is `seconds` after 1970-01-01T00:00:00Z, or the nearest one within the years
    /// 0000 to 9999.
    public init(nearestSecondsSince1970 seconds: Int64) {
        let years = Self.fourDigitYears
        self.init(secondsSince1970: min(max(seconds, years.lowerBound), years.upperBound))
    }

    /// Days from 1970-01-01 to this date.
    public var daysSince1970: Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = Self.floorDivide(shiftedYear, by: 400)
        let yearOfEra = shiftedYear - era * 400
        let monthFromMarch = month > 2 ? month - 3 : month + 9
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// Seconds from 1970-01-01T00:00:00Z; a leap second counts as the second after it.
    public var secondsSince1970: Int64 {
        daysSince1970 * 86_400 + hour * 3600 + minute * 60 + second
    }

    /// Whole days from one time to another, both in seconds since 1970. Works even if the
    /// difference in seconds would overflow, as with the end of a certificate that cannot be read.
    public static func days(from start: Int64, to end: Int64) -> Int64 {
        let (difference, isTooLarge) = end.subtractingReportingOverflow(start)
        guard isTooLarge else { return difference / 86_400 }
        return (end < start ? Int64.min : .max) / 86_400
    }

    /// 0 for Sunday to 6 for Saturday.
    public var weekday: Int { Int((daysSince1970 % 7 + 11) % 7) }

    /// Whether the day, month and time exist.
    public var isInCalendar: Bool {
        (1...12).contains(month) && (1...Self.days(in: month, of: year)).contains(day)
            && (0...23).contains(hour) && (0...59).contains(minute) && (0...60).contains(second)
    }

    private static func days(in month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func floorDivide(_ value: Int64, by divisor: Int64) -> Int64 {
        value / divisor - (value % divisor < 0 ? 1 : 0)
    }
}
