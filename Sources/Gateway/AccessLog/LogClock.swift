/// Times as log text, in UTC. Lines of the same second share the work.
struct LogClock {
    private var rfc3339 = CachedSecond()
    private var commonLog = CachedSecond()

    private struct CachedSecond {
        var second = Int64.min
        var text: [UInt8] = []

        /// Appends the text of a second, rendered if it is another one than before.
        mutating func append(
            _ second: Int64, to output: inout LineBuffer,
            _ render: (CivilTime, inout LineBuffer) -> Void
        ) {
            guard second != self.second else { return output.append(text) }
            var rendered = LineBuffer(capacity: 32)
            render(CivilTime(second), &rendered)
            text = Array(rendered.bytes)
            self.second = second
            output.append(text)
        }
    }

    /// Appends `2026-11-21T04:40:13.123Z` (RFC 3339), for milliseconds since 1970.
    mutating func appendRFC3339(_ milliseconds: Int64, to output: inout LineBuffer) {
        let (second, fraction) = LogClock.split(milliseconds)
        rfc3339.append(second, to: &output) { LogClock.renderRFC3339($0, to: &$1) }
        output.append(".")
        output.append(decimal: fraction, digits: 3)
        output.append("Z")
    }

    /// Appends `21/Nov/2026:04:40:13 +0000`, for milliseconds since 1970.
    mutating func appendCommonLog(_ milliseconds: Int64, to output: inout LineBuffer) {
        let (second, _) = LogClock.split(milliseconds)
        commonLog.append(second, to: &output) { LogClock.renderCommonLog($0, to: &$1) }
    }

    private static func split(_ milliseconds: Int64) -> (second: Int64, fraction: Int) {
        // Within the years 0 to 9999, which four digits hold.
        let milliseconds = min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999)
        var second = milliseconds / 1000
        var fraction = milliseconds % 1000
        if fraction < 0 {
            second -= 1
            fraction += 1000
        }
        return (second, Int(fraction))
    }

    private static func renderRFC3339(_ time: CivilTime, to output: inout LineBuffer) {
        output.append(decimal: time.year, digits: 4)
        output.append("-")
        output.append(decimal: time.month, digits: 2)
        output.append("-")
        output.append(decimal: time.day, digits: 2)
        output.append("T")
        renderClock(time, to: &output)
    }

    private static func renderCommonLog(_ time: CivilTime, to output: inout LineBuffer) {
        output.append(decimal: time.day, digits: 2)
        output.append("/")
        let names: StaticString = "JanFebMarAprMayJunJulAugSepOctNovDec"
        names.withUTF8Buffer {
            let name = $0[(3 * (time.month - 1))..<(3 * time.month)]
            output.append(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: name)))
        }
        output.append("/")
        output.append(decimal: time.year, digits: 4)
        output.append(":")
        renderClock(time, to: &output)
        output.append(" +0000")
    }

    private static func renderClock(_ time: CivilTime, to output: inout LineBuffer) {
        output.append(decimal: time.secondOfDay / 3600, digits: 2)
        output.append(":")
        output.append(decimal: time.secondOfDay / 60 % 60, digits: 2)
        output.append(":")
        output.append(decimal: time.secondOfDay % 60, digits: 2)
    }
}

/// A date of the Gregorian calendar and the second of its day, in UTC.
private struct CivilTime {
    var year: Int
    var month: Int
    var day: Int
    var secondOfDay: Int

    /// The time of a number of seconds since 1970. Years are counted from March, so that the leap
    /// day is the last of a year; 400 years (an era) have 146097 days.
    init(_ second: Int64) {
        var days = Int(second / 86_400)
        secondOfDay = Int(second % 86_400)
        if secondOfDay < 0 {
            secondOfDay += 86_400
            days -= 1
        }
        let fromMarch = days + 719_468
        let era = (fromMarch >= 0 ? fromMarch : fromMarch - 146_096) / 146_097
        let dayOfEra = fromMarch - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }
}
