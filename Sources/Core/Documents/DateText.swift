import HTTPCore

/// Dates as text: UTC, in the format of RFC 3339.
package enum DateText {
    private static let shape: StaticString = "0000-00-00T00:00:00Z"

    /// `2027-06-01T00:00:00Z`, with the fraction of a second if there is one; `nil` outside the
    /// years 0000 to 9999.
    package static func text(_ seconds: Double) -> String? {
        var output = OutputBytes(capacity: 32)
        guard append(seconds, withFraction: true, to: &output) else { return nil }
        return output.text(0..<output.count)
    }

    /// Appends `2027-06-01T00:00:00Z`, or `…00.25Z` with a fraction of a second down to
    /// microseconds, if there is one; anything smaller is truncated. Returns false and appends
    /// nothing outside the years 0000 to 9999.
    static func append(
        _ seconds: Double, withFraction: Bool, to output: inout OutputBytes
    ) -> Bool {
        let years = CivilDate.fourDigitYears
        guard seconds.isFinite, seconds >= Double(years.lowerBound),
            seconds < Double(years.upperBound) + 1
        else { return false }
        var whole = Int64(seconds)
        if Double(whole) > seconds { whole -= 1 }
        var micros = withFraction ? Int64((seconds - Double(whole)) * 1_000_000 + 0.5) : 0
        if micros == 1_000_000 { (whole, micros) = (whole + 1, 0) }
        guard years.contains(whole) else { return false }
        let text = CivilDate(secondsSince1970: whole).rfc3339
        text.span.withUnsafeBytes { output.append($0) }
        if micros > 0 {
            let digits = String(1_000_000 + micros).dropFirst()
            let end = digits.lastIndex { $0 != "0" } ?? digits.startIndex
            output.append(".\(digits[...end])")
        }
        output.append(UInt8(ascii: "Z"))
        return true
    }

    /// The seconds since 1970 of a date and time (RFC 3339 §5.6), or of a date alone, which means
    /// its first second in UTC; `nil` for anything else.
    static func seconds(_ text: UnsafeRawBufferPointer) -> Double? {
        if let seconds = plainSeconds(text) { return Double(seconds) }
        guard let whole = CivilDate.secondsSince1970(rfc3339: text) else { return nil }
        guard let point = text.firstIndex(of: UInt8(ascii: ".")) else { return Double(whole) }
        let digits = text[(point + 1)...].prefix { ASCII.isDigit($0) }.prefix(17)
        let fraction = Double("0." + String(decoding: digits, as: UTF8.self)) ?? 0
        return Double(whole) + fraction
    }

    /// The same for dates as programs write them, `2027-06-01T00:00:00Z`; `nil` for any other.
    private static func plainSeconds(_ text: UnsafeRawBufferPointer) -> Int64? {
        guard text.count == 20 else { return nil }
        var number: Int64 = 0
        var numbers = InlineArray<6, Int64>(repeating: 0)
        var next = 0
        for index in 0..<20 {
            let byte = text[index]
            switch index {
            case 4, 7, 10, 13, 16, 19:
                guard byte == shape.utf8Start[index] else { return nil }
                numbers[next] = number
                (next, number) = (next + 1, 0)
            default:
                guard ASCII.isDigit(byte) else { return nil }
                number = number * 10 + Int64(byte - 0x30)
            }
        }
        var date = CivilDate(year: numbers[0], month: numbers[1], day: numbers[2])
        (date.hour, date.minute, date.second) = (numbers[3], numbers[4], numbers[5])
        return date.isInCalendar ? date.secondsSince1970 : nil
    }
}
