import CLinux
import PinfoldMetrics

/// The names for a record's indexes, which mean the same before and after a reload (`LabelTable`).
package struct AccessLogLabels: Sendable {
    /// Listener names.
    package var listeners: LabelTable
    /// Names of host entries; the same table as for the metrics.
    package var hosts: LabelTable
    /// Reason tokens; the same list as for the metrics.
    package var reasons: [String]

    /// Creates the labels from these names.
    package init(listeners: LabelTable, hosts: LabelTable, reasons: [String]) {
        self.listeners = listeners
        self.hosts = hosts
        self.reasons = reasons
    }
}

/// The format of a line.
package enum AccessLogFormat: Sendable, CaseIterable {
    /// One JSON object (RFC 8259) per line, in UTF-8.
    case json
    /// Apache's combined format, times in UTC, with the exchange's id and its reason (`-` if there
    /// is none) at the end.
    case combined
}

/// Why the access log could not be opened.
package enum AccessLogError: Error, Sendable, Equatable {
    /// The file could not be opened or created; `code` is the errno.
    case open(path: String, code: Int32)
    /// The thread or its wake-up descriptor could not be created; `code` is the errno.
    case thread(code: Int32)
}

extension AccessLogError: CustomStringConvertible {
    /// What is wrong, with the configuration key concerned.
    package var description: String {
        func text(_ code: Int32) -> String {
            strerror(code).map { String(cString: $0) } ?? "error \(code)"
        }
        return switch self {
        case .open(let path, let code):
            "log.access.path: \"\(path)\" cannot be written: \(text(code))"
        case .thread(let code): "log.access: its thread cannot be started: \(text(code))"
        }
    }
}

/// What the log's thread reports for the operational log.
package enum AccessLogEvent: Sendable, Equatable {
    /// The file could not be reopened; the old one stays in use. `code` is the errno.
    case reopenFailed(path: String, code: Int32)
    /// Lines are being dropped because writing fails; reported once until it works again. `code` is
    /// the errno.
    case writeFailed(code: Int32)
    /// Writing works again, after `lines` lines were lost.
    case writeRecovered(lines: UInt64)
}
