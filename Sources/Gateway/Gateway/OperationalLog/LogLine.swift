import HTTPCore
import Logging

/// Formats lines of the operational log:
///
///     2026-11-21T16:08:00.123Z info request not served id=26… reason=loop-detected status=508
///
/// Values that contain anything except letters, digits and the punctuation of addresses and tokens
/// are quoted, and escaped as in JSON, so that whatever a client or server sent stays within its
/// value.
struct LogLine {
    /// The longest line; anything longer is cut off.
    static let maximumBytes = 8 * 1024

    /// Whether a line begins with its level as the journal reads it: `<4>` is a warning.
    private let hasPriorities: Bool
    private var clock = LogClock()

    init(hasPriorities: Bool = false) { self.hasPriorities = hasPriorities }

    /// Appends a line with its line feed.
    mutating func append(
        _ message: String, level: Logger.Level, metadata: Logger.Metadata, wallMilliseconds: Int64,
        to lines: inout [UInt8]
    ) {
        // Each byte of a text may become six.
        var line = LineBuffer(capacity: Self.maximumBytes)
        if hasPriorities { line.append(level.journalPrefix) }
        clock.appendRFC3339(wallMilliseconds, to: &line)
        line.append(" ")
        Self.append(level.rawValue, to: &line)
        line.append(" ")
        Self.append(message, to: &line)
        for (key, value) in metadata.sorted(by: { $0.key < $1.key }) {
            line.append(" ")
            Self.append(key, to: &line)
            line.append("=")
            Self.append(value: "\(value)", to: &line)
        }
        line.append(UInt8(ascii: "\n"))
        lines.append(contentsOf: line.bytes)
        // If it did not fit, the line feed was cut off as well.
        if lines.last != UInt8(ascii: "\n") { lines.append(UInt8(ascii: "\n")) }
    }

    private static func append(_ text: String, to line: inout LineBuffer) {
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
