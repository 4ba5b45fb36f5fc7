import HTTPCore

/// The formats that are checked. All others are annotations, as the drafts allow.
enum TextFormat: String, Sendable, CaseIterable {
    /// RFC 3339, `full-date`.
    case date
    /// RFC 3339, `full-time`.
    case time
    /// RFC 3339, `date-time`.
    case dateTime = "date-time"
    case ipv4
    case ipv6

    func accepts(_ text: UnsafeRawBufferPointer) -> Bool {
        var reader = TimeReader(text)
        switch self {
        case .date: return reader.date() && reader.isAtEnd
        case .time: return reader.time() && reader.isAtEnd
        case .dateTime:
            return reader.date() && reader.skip("Tt") && reader.time() && reader.isAtEnd
        case .ipv4: return Self.isAddress(text, characters: "0123456789.")
        case .ipv6: return Self.isAddress(text, characters: "0123456789abcdefABCDEF:.")
        }
    }

    private static func isAddress(
        _ text: UnsafeRawBufferPointer, characters: StaticString
    ) -> Bool {
        let isSixth = characters.utf8CodeUnitCount > 11
        let allowed = UnsafeRawBufferPointer(
            start: characters.utf8Start, count: characters.utf8CodeUnitCount)
        guard text.count <= 45, text.allSatisfy({ allowed.contains($0) }),
            text.contains(UInt8(ascii: ":")) == isSixth
        else { return false }
        return IPAddress(String(decoding: text, as: UTF8.self)) != nil
    }
}

/// Dates and times in the format of RFC 3339 §5.6.
private struct TimeReader {
    private let text: UnsafeRawBufferPointer
    private var position = 0

    init(_ text: UnsafeRawBufferPointer) { self.text = text }

    var isAtEnd: Bool { position == text.count }

    mutating func date() -> Bool {
        guard let year = number(4), skip("-"), let month = number(2), skip("-"),
            let day = number(2), 1...12 ~= month
        else { return false }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
        return 1...days ~= day
    }

    mutating func time() -> Bool {
        guard let hour = number(2), skip(":"), let minute = number(2), skip(":"),
            let second = number(2), hour < 24, minute < 60, second <= 60
        else { return false }
        if skip(".") {
            guard number(1) != nil else { return false }
            while number(1) != nil {}
        }
        guard let offset = offset() else { return false }
        // A leap second is at the end of a day in UTC.
        let utc = (hour * 60 + minute - offset + 2880) % 1440
        return second < 60 || utc == 1439
    }

    /// The offset from UTC in minutes, to be subtracted.
    private mutating func offset() -> Int? {
        if skip("Zz") { return 0 }
        let isBehind = position < text.count && text[position] == UInt8(ascii: "-")
        guard skip("+-"), let hour = number(2), skip(":"), let minute = number(2), hour < 24,
            minute < 60
        else { return nil }
        return (hour * 60 + minute) * (isBehind ? -1 : 1)
    }

    mutating func skip(_ any: String) -> Bool {
        guard position < text.count, any.utf8.contains(text[position]) else { return false }
        position += 1
        return true
    }

    private mutating func number(_ digits: Int) -> Int? {
        guard position + digits <= text.count else { return nil }
        var value = 0
        for byte in text[position..<position + digits] {
            guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte else { return nil }
            value = value * 10 + Int(byte & 0xF)
        }
        position += digits
        return value
    }
}
