import HTTPCore
import Logging

// Lines of the operational log as JSON:
//
//     {"time":"2026-11-21T16:08:00.123Z","level":"info","message":"request not served","id":"26…",
//      "reason":"loop-detected","status":508}
extension LogLine {
    /// The metadata that are numbers in JSON. Everything else is a string, even where it consists
    /// of digits, so that a member has one type in all lines.
    private static let numbers: Set<String> = [
        "bytes", "entries", "files", "generation", "lines", "pid", "port", "reports", "spans",
        "status", "workers",
    ]
    /// The members of every line, which metadata cannot have.
    private static let own: Set<String> = ["time", "level", "message", "more", "cut"]
    /// The most digits that every reader of JSON takes exactly.
    private static let maximumDigits = 15
    /// What is kept for the end of the line and, before it, of a string.
    private static let endBytes = 16

    /// Appends what follows the time, to the end of the object.
    static func appendMembers(
        _ message: String, more: UInt64, _ level: Logger.Level, _ metadata: Logger.Metadata,
        to line: inout LineBuffer
    ) {
        line.append(",\"level\":\"")
        append(level.rawValue, to: &line)
        line.append("\",\"message\":\"")
        var isCut = appendFitting(message, to: &line)
        line.append("\"")
        if more > 0 {
            line.append(",\"more\":")
            line.append(decimal: more)
        }
        for (key, value) in metadata.sorted(by: { $0.key < $1.key }) where !own.contains(key) {
            // A key comes from the program or its configuration; each byte may become six.
            guard line.count + 6 * key.utf8.count + 6 + endBytes <= maximumBytes else {
                isCut = true
                break
            }
            line.append(",\"")
            append(key, to: &line)
            line.append("\":")
            if appendMember("\(value)", isNumber: numbers.contains(key), to: &line) { isCut = true }
        }
        if isCut { line.append(",\"cut\":true") }
        line.append("}")
    }

    /// Appends a value. Returns whether it was cut off.
    private static func appendMember(
        _ value: String, isNumber: Bool, to line: inout LineBuffer
    ) -> Bool {
        if isNumber, isDecimal(value),
            line.count + value.utf8.count + endBytes <= maximumBytes
        {
            append(value, to: &line)
            return false
        }
        line.append("\"")
        let isCut = appendFitting(value, to: &line)
        line.append("\"")
        return isCut
    }

    /// Whether a text is a number as JSON writes it: without leading zeros.
    private static func isDecimal(_ text: String) -> Bool {
        (1...maximumDigits).contains(text.utf8.count) && (text == "0" || text.utf8.first != 0x30)
            && text.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    }

    /// Appends as many whole characters of a text as there is space for. Returns whether some are
    /// missing.
    private static func appendFitting(_ text: String, to line: inout LineBuffer) -> Bool {
        let room = maximumBytes - line.count - endBytes
        guard 6 * text.utf8.count > room else {
            append(text, to: &line)
            return false
        }
        var used = 0
        var end = text.startIndex
        for scalar in text.unicodeScalars {
            used += scalar.isPlainInJSON ? scalar.utf8.count : 6
            guard used <= room else { break }
            end = text.unicodeScalars.index(after: end)
        }
        append(String(text[..<end]), to: &line)
        return end < text.endIndex
    }
}

extension Unicode.Scalar {
    /// Whether ``JSONText`` writes it as it is. A few others it does, too.
    fileprivate var isPlainInJSON: Bool {
        switch self {
        case "\"", "\\": false
        default: value >= 0x20 && !(0x7F...0x9F).contains(value) && value >> 1 != 0x2028 >> 1
        }
    }
}
