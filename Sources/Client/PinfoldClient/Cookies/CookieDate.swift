import HTTPCore

/// Parses dates in Expires attributes (RFC 6265, section 5.1.1): any text from which a time, a day,
/// a month and a year can be extracted, in any order.
enum CookieDate {
    /// Returns the date in seconds since 1970, or `nil` if the text is not a date.
    static func parse(_ text: String) -> Int64? {
        var found = Parts()
        for token in text.utf8.split(whereSeparator: isDelimiter) { found.take(Array(token)) }
        guard let time = found.time, let day = found.day, let month = found.month,
            var year = found.year
        else { return nil }
        if (70...99).contains(year) { year += 1900 }
        if (0...69).contains(year) { year += 2000 }
        guard year >= 1601, time.hour <= 23, time.minute <= 59, time.second <= 59 else {
            return nil
        }
        var date = CivilDate(year: year, month: month, day: day)
        (date.hour, date.minute, date.second) = time
        return date.isInCalendar ? date.secondsSince1970 : nil
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    private struct Parts {
        var time: (hour: Int64, minute: Int64, second: Int64)?
        var day: Int64?
        var month: Int64?
        var year: Int64?

        /// A token is classified by the first of four tests that it passes.
        mutating func take(_ token: [UInt8]) {
            if time == nil, let found = Self.time(token) {
                time = found
            } else if day == nil, let found = Self.number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = Self.month(token) {
                month = found
            } else if year == nil, let found = Self.number(token, digits: 2...4) {
                year = found
            }
        }

        private static func month(_ token: [UInt8]) -> Int64? {
            CivilDate.month(named: token.prefix(3))
        }

        /// Reads the given number of leading digits, which no further digit may follow.
        private static func number(_ token: [UInt8], digits: ClosedRange<Int>) -> Int64? {
            let found = token.prefix(while: ASCII.isDigit)
            guard digits.contains(found.count) else { return nil }
            return found.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
        }

        /// Reads `hh:mm:ss`, one or two digits each. Anything may follow that is not a digit.
        private static func time(
            _ token: [UInt8]
        ) -> (hour: Int64, minute: Int64, second: Int64)? {
            let fields = token.split(
                separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3, fields[0].count <= 2, fields[1].count <= 2,
                let hour = number(Array(fields[0]), digits: 1...2),
                let minute = number(Array(fields[1]), digits: 1...2),
                let second = number(Array(fields[2]), digits: 1...2),
                fields[..<2].joined().allSatisfy(ASCII.isDigit)
            else { return nil }
            return (hour, minute, second)
        }
    }
}
