/// The rest of a date's text; each `take` consumes its part if it matches.
struct HTTPDateText {
    private let bytes: HeadBytes
    private var position = 0

    /// Begins with all of `bytes`.
    init(_ bytes: HeadBytes) { self.bytes = bytes }

    /// Whether everything was consumed.
    var isAtEnd: Bool { position == bytes.count }

    /// Consumes exactly `text`, ignoring case.
    mutating func take(_ text: StaticString) -> Bool {
        guard bytes.count - position >= text.utf8CodeUnitCount else { return false }
        for offset in 0..<text.utf8CodeUnitCount
        where !Self.areSame(bytes[position + offset], text.utf8Start[offset]) {
            return false
        }
        position += text.utf8CodeUnitCount
        return true
    }

    /// Consumes one of the three-letter names in `names` and returns its index.
    mutating func takeName(of names: StaticString) -> Int? {
        guard bytes.count - position >= 3 else { return nil }
        for index in 0..<names.utf8CodeUnitCount / 3 {
            let name = names.utf8Start + 3 * index
            if Self.areSame(bytes[position], name[0]), Self.areSame(bytes[position + 1], name[1]),
                Self.areSame(bytes[position + 2], name[2])
            {
                position += 3
                return index
            }
        }
        return nil
    }

    /// Whether a byte equals the expected one, or is the same letter in the other case.
    private static func areSame(_ byte: UInt8, _ expected: UInt8) -> Bool {
        if byte == expected { return true }
        return byte ^ expected == 0x20 && (expected | 0x20) &- UInt8(ascii: "a") < 26
    }

    /// Consumes exactly `count` digits.
    mutating func takeNumber(_ count: Int) -> Int64? {
        guard bytes.count - position >= count else { return nil }
        var value: Int64 = 0
        for offset in 0..<count {
            let byte = bytes[position + offset]
            guard ASCII.isDigit(byte) else { return nil }
            value = value * 10 + Int64(byte - 0x30)
        }
        position += count
        return value
    }

    /// Consumes what follows `Sun, `: `06 Nov 1994 08:49:37 GMT`.
    mutating func takeIMF() -> CivilDate? {
        guard let day = takeNumber(2), take(" "), let month = takeName(of: CivilDate.monthNames),
            take(" "), let year = takeNumber(4), take(" ")
        else { return nil }
        var date = CivilDate(year: year, month: Int64(month) + 1, day: day)
        return takeTime(&date) && take(" GMT") ? date : nil
    }

    /// Consumes what follows `Sunday, `: `06-Nov-94 08:49:37 GMT`.
    mutating func takeRFC850(currentYear: Int64) -> CivilDate? {
        guard let day = takeNumber(2), take("-"), let month = takeName(of: CivilDate.monthNames),
            take("-"), let digits = takeNumber(2), take(" ")
        else { return nil }
        var year = currentYear - currentYear % 100 + 100 + digits
        while year > currentYear + 50 { year -= 100 }
        var date = CivilDate(year: year, month: Int64(month) + 1, day: day)
        return takeTime(&date) && take(" GMT") ? date : nil
    }

    /// Consumes what follows `Sun `: `Nov  6 08:49:37 1994`.
    mutating func takeAsctime() -> CivilDate? {
        guard let month = takeName(of: CivilDate.monthNames), take(" "),
            let day = take(" ") ? takeNumber(1) : takeNumber(2), take(" ")
        else { return nil }
        var date = CivilDate(year: 0, month: Int64(month) + 1, day: day)
        guard takeTime(&date), take(" "), let year = takeNumber(4) else { return nil }
        date.year = year
        return date
    }

    private mutating func takeTime(_ date: inout CivilDate) -> Bool {
        guard let hour = takeNumber(2), take(":"), let minute = takeNumber(2), take(":"),
            let second = takeNumber(2)
        else { return false }
        date.hour = hour
        date.minute = minute
        date.second = second
        return true
    }
}
