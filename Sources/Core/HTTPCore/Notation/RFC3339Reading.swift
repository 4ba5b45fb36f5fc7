extension CivilDate {
    /// The seconds since 1970 of a date and time (RFC 3339 §5.6), or of a date alone, which means
    /// its first second in UTC; fractions of a second are truncated. `nil` for anything else.
    public static func secondsSince1970(rfc3339 text: some Collection<UInt8>) -> Int64? {
        var reader = DigitReader(rest: Array(text)[...])
        guard var date = reader.date() else { return nil }
        if reader.rest.isEmpty { return date.isInCalendar ? date.secondsSince1970 : nil }
        guard reader.take("Tt"), let offset = reader.time(into: &date), reader.rest.isEmpty,
            date.isInCalendar
        else { return nil }
        return date.secondsSince1970 - offset
    }
}

/// Reads numbers of fixed width.
private struct DigitReader {
    var rest: ArraySlice<UInt8>

    mutating func number(digits: Int) -> Int64? {
        guard rest.count >= digits else { return nil }
        var value: Int64 = 0
        for byte in rest.prefix(digits) {
            guard ASCII.isDigit(byte) else { return nil }
            value = value * 10 + Int64(byte - UInt8(ascii: "0"))
        }
        rest = rest.dropFirst(digits)
        return value
    }

    /// Consumes one of these characters.
    mutating func take(_ characters: StaticString) -> Bool {
        guard let first = rest.first else { return false }
        let isOne = characters.withUTF8Buffer { $0.contains(first) }
        if isOne { rest = rest.dropFirst() }
        return isOne
    }

    mutating func date() -> CivilDate? {
        guard let year = number(digits: 4), take("-"), let month = number(digits: 2), take("-"),
            let day = number(digits: 2)
        else { return nil }
        return CivilDate(year: year, month: month, day: day)
    }

    /// Reads the time of day into `date`. Returns its offset from UTC in seconds.
    mutating func time(into date: inout CivilDate) -> Int64? {
        guard let hour = number(digits: 2), take(":"), let minute = number(digits: 2), take(":"),
            let second = number(digits: 2)
        else { return nil }
        (date.hour, date.minute, date.second) = (hour, minute, second)
        if take(".") {
            guard number(digits: 1) != nil else { return nil }
            while number(digits: 1) != nil {}
        }
        if take("Zz") { return 0 }
        let isWest = rest.first == UInt8(ascii: "-")
        guard take("+-"), let hours = number(digits: 2), hours < 24, take(":"),
            let minutes = number(digits: 2), minutes < 60
        else { return nil }
        return (hours * 3600 + minutes * 60) * (isWest ? -1 : 1)
    }
}
