import Logging

/// swift-log's handler for the operational log. The level is the log's, the same for all loggers.
struct OperationalLogHandler: LogHandler {
    let log: OperationalLog
    var metadata: Logger.Metadata = [:]

    init(log: OperationalLog) { self.log = log }

    var logLevel: Logger.Level {
        get { log.logLevel }
        set { log.logLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let metadata = metadata.merging(event.metadata ?? [:]) { $1 }
        log.write(
            "\(event.message)", level: event.level, reason: Self.text(metadata["reason"]),
            subject: Self.subject(metadata)
        ) { metadata }
    }

    /// The subject of a message. No part of it may be chosen by a client.
    private static func subject(_ metadata: Logger.Metadata) -> String {
        text(metadata["entry"] ?? metadata["host"] ?? metadata["listener"])
    }

    private static func text(_ value: Logger.Metadata.Value?) -> String {
        value.map { "\($0)" } ?? ""
    }
}
