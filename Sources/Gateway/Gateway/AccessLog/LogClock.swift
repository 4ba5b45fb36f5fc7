import HTTPCore

/// Formats times for the log, in UTC. Lines of the same second share the work.
struct LogClock {
    private var rfc3339 = CachedSecond()
    private var commonLog = CachedSecond()

    private struct CachedSecond {
        var second = Int64.min
        var text: [UInt8] = []

        /// Appends the text of a second, rendered if it differs from the previous one.
        mutating func append(
            _ second: Int64, to output: inout LineBuffer,
            _ render: (CivilDate, inout LineBuffer) -> Void
        ) {
            guard second != self.second else { return output.append(text) }
            var rendered = LineBuffer(capacity: 32)
            render(CivilDate(secondsSince1970: second), &rendered)
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
        let years = CivilDate.fourDigitYears
        let milliseconds = min(
            max(milliseconds, years.lowerBound * 1000), years.upperBound * 1000 + 999)
        var second = milliseconds / 1000
        var fraction = milliseconds % 1000
        if fraction < 0 {
            second -= 1
            fraction += 1000
        }
        return (second, Int(fraction))
    }

    private static func renderRFC3339(_ time: CivilDate, to output: inout LineBuffer) {
        let text = time.rfc3339
        for index in text.indices { output.append(text[index]) }
    }

    private static func renderCommonLog(_ time: CivilDate, to output: inout LineBuffer) {
        output.append(decimal: Int(time.day), digits: 2)
        output.append("/")
        let end = 3 * Int(time.month)
        CivilDate.monthNames.withUTF8Buffer {
            let name = $0[(end - 3)..<end]
            output.append(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: name)))
        }
        output.append("/")
        output.append(decimal: Int(time.year), digits: 4)
        output.append(":")
        renderClock(time, to: &output)
        output.append(" +0000")
    }

    private static func renderClock(_ time: CivilDate, to output: inout LineBuffer) {
        output.append(decimal: Int(time.hour), digits: 2)
        output.append(":")
        output.append(decimal: Int(time.minute), digits: 2)
        output.append(":")
        output.append(decimal: Int(time.second), digits: 2)
    }
}
