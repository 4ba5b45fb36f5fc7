/// What is logged.
package struct LogConfiguration: Sendable, Equatable {
    /// The levels of the operational log, the names of swift-log.
    package enum Level: String, Sendable, Equatable, CaseIterable {
        case trace
        case debug
        case info
        case notice
        case warning
        case error
        case critical
    }

    /// How a line of the operational log is written.
    package enum Format: String, Sendable, Equatable, CaseIterable {
        /// Time, level, message, and values with their names.
        case text
        /// One JSON object.
        case json
    }

    /// The lowest level that is written to standard error.
    package var level = Level.info
    /// How a line is written there.
    package var format = Format.text
    /// The access log; `nil` if none is written.
    package var access: AccessLogConfiguration?

    /// Creates the defaults.
    package init() {}
}

/// Where and how the access log is written.
package struct AccessLogConfiguration: Sendable, Equatable {
    /// One line per exchange, in one of two formats.
    package enum Format: String, Sendable, Equatable, CaseIterable {
        /// One JSON object.
        case json
        /// The combined log format of web servers.
        case combined
    }

    /// The path that stands for the process's standard output.
    package static let standardOutput = "-"

    /// The absolute path of the file, opened for appending and created if missing; or
    /// ``standardOutput``.
    package var path = ""
    /// The format of a line.
    package var format = Format.json
    /// What a line tells, in this order; empty for everything.
    package var fields: [AccessLogField] = []
    /// Which exchanges have a line.
    package var sampling = AccessLogSampling()

    /// Creates the defaults.
    package init() {}
}
