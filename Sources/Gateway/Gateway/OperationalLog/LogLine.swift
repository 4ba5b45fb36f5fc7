import HTTPCore
import Logging
import PinfoldConfiguration

/// Formats lines of the operational log, as text
///
///     2026-11-21T16:08:00.123Z info request not served id=26… reason=loop-detected status=508
///
/// or as JSON (`LogLine+JSON`). In text, values that contain anything except letters, digits and
/// the punctuation of addresses and tokens are quoted, and escaped as in JSON, so that whatever a
/// client or server sent stays within its value.
struct LogLine {
    /// The longest line; anything longer is cut off.
    static let maximumBytes = 8 * 1024

    /// How lines are written.
    var format: LogConfiguration.Format

    /// Whether a line begins with its level as the journal reads it: `<4>` is a warning.
    private let hasPriorities: Bool
    private var clock = LogClock()

    init(format: LogConfiguration.Format = .text, hasPriorities: Bool = false) {
        self.format = format
        self.hasPriorities = hasPriorities
    }

    /// Appends a line with its line feed.
    ///
    /// - Parameter more: how many further lines like this one were left out; 0 if it is one line.
    mutating func append(
        _ message: String, more: UInt64 = 0, level: Logger.Level, metadata: Logger.Metadata,
        wallMilliseconds: Int64, to lines: inout [UInt8]
    ) {
        // Each byte of a text may become six.
        var line = LineBuffer(capacity: Self.maximumBytes)
        if hasPriorities { line.append(level.journalPrefix) }
        switch format {
        case .text:
            clock.appendRFC3339(wallMilliseconds, to: &line)
            line.append(" ")
            Self.append(level.rawValue, to: &line)
            line.append(" ")
            Self.append(message, to: &line)
            if more > 0 { Self.append(" … and \(Self.grouped(more)) more", to: &line) }
            Self.append(metadata, to: &line)
        case .json:
            line.append("{\"time\":\"")
            clock.appendRFC3339(wallMilliseconds, to: &line)
            line.append("\"")
            Self.appendMembers(message, more: more, level, metadata, to: &line)
        }
        line.append(UInt8(ascii: "\n"))
        lines.append(contentsOf: line.bytes)
        // If it did not fit, the line feed was cut off as well.
        if lines.last != UInt8(ascii: "\n") { lines.append(UInt8(ascii: "\n")) }
    }

    /// `12345` as `12,345`.
    static func grouped(_ number: UInt64) -> String {
        var text = ""
        for (index, digit) in "\(number)".reversed().enumerated() {
            if index > 0, index % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return String(text.reversed())
    }

    private static func append(_ metadata: Logger.Metadata, to line: inout LineBuffer) {
        for (key, value) in metadata.sorted(by: { $0.key < $1.key }) {
            line.append(" ")
            append(key, to: &line)
            line.append("=")
            append(value: "\(value)", to: &line)
        }
    }

    static func append(_ text: String, to line: inout LineBuffer) {
        var text = text
        text.withUTF8 { JSONText.append(UnsafeRawBufferPointer($0), to: &line) }
    }

    private static func append(value: String, to line: inout LineBuffer) {
        let isPlain = !value.isEmpty && value.utf8.allSatisfy { Self.isPlain($0) }
        if !isPlain { line.append("\"") }
        append(value, to: &line)
        if !isPlain { line.append("\"") }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: ":"),
            UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "/"), UInt8(ascii: "["),
            UInt8(ascii: "]"), UInt8(ascii: "*"), UInt8(ascii: "%"), UInt8(ascii: "+"):
            true
        default: false
        }
    }
}

extension Logger.Level {
    /// The level's priority (syslog(3)), as the journal reads it at the start of a line.
    var journalPrefix: StaticString {
        switch self {
        case .critical: "<2>"
        case .error: "<3>"
        case .warning: "<4>"
        case .notice: "<5>"
        case .info: "<6>"
        case .debug, .trace: "<7>"
        }
    }
}
