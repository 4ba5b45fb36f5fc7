import HTTPCore

/// Hours of some days of the week in local time, as `mon-fri 08:00-18:00`: days, hours, or both.
/// Hours that end before they begin last into the next day.
package struct WeeklyHours: Sendable, Hashable, CustomStringConvertible {
    /// The minutes of a day.
    private static let minutesOfDay = 24 * 60

    private static let names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

    /// By day, Monday first.
    private let days: [Bool]
    /// The first minute of the day, and the one after the last.
    private let from: Int
    private let to: Int
    package let description: String

    /// Parses days and hours; `nil` if the text is neither.
    package init?(_ text: String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count) else { return nil }
        var days = [Bool](repeating: true, count: 7)
        var hours: (from: Int, to: Int) = (0, Self.minutesOfDay)
        var rest = parts[...]
        if let named = rest.first.flatMap(Self.days) {
            days = named
            rest.removeFirst()
        }
        if let last = rest.popFirst() {
            guard let read = Self.hours(last) else { return nil }
            hours = read
        }
        guard rest.isEmpty else { return nil }
        self.days = days
        (from, to) = hours
        description = text
    }

    /// Whether a minute of the week, which begins on Monday at midnight, is within them.
    package func contains(minuteOfWeek minute: Int) -> Bool {
        let (day, time) = minute.quotientAndRemainder(dividingBy: Self.minutesOfDay)
        if from < to { return days[day] && from <= time && time < to }
        return days[day] && time >= from || days[(day + 6) % 7] && time < to
    }

    /// `mon`, `mon-fri`, `mon,wed,fri-sun`.
    private static func days(_ text: Substring) -> [Bool]? {
        var days = [Bool](repeating: false, count: 7)
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false)
                .map { names.firstIndex(of: String($0)) }
            guard (1...2).contains(ends.count), let first = ends[0], let last = ends[ends.count - 1]
            else { return nil }
            for offset in 0...(last - first + 7) % 7 { days[(first + offset) % 7] = true }
        }
        return days
    }

    /// `08:00-18:00`.
    private static func hours(_ text: Substring) -> (from: Int, to: Int)? {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map(time)
        guard ends.count == 2, let from = ends[0], let to = ends[1], from != to,
            from < minutesOfDay
        else { return nil }
        return (from, to)
    }

    private static func time(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.utf8.count == 2 }),
            parts.allSatisfy({ $0.utf8.allSatisfy { 0x30...0x39 ~= $0 } }),
            let hour = Int(parts[0]), let minute = Int(parts[1]), minute < 60,
            hour < 24 || hour == 24 && minute == 0
        else { return nil }
        return hour * 60 + minute
    }
}
