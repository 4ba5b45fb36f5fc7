import CacheStore
import Logging
import PinfoldConfiguration

extension Logger.Level {
    /// The configured level.
    init(_ level: LogConfiguration.Level) {
        switch level {
        case .trace: self = .trace
        case .debug: self = .debug
        case .info: self = .info
        case .notice: self = .notice
        case .warning: self = .warning
        case .error: self = .error
        case .critical: self = .critical
        }
    }
}

extension Logger {
    /// Logs an event of the cache's store.
    func log(_ event: StoreEvent) {
        switch event {
        case .diskReady(let entries, let bytes, let milliseconds):
            info(
                "cache opened",
                metadata: [
                    "entries": "\(entries)", "bytes": "\(bytes)", "took": "\(milliseconds)ms",
                ])
        case .diskOff(let reason, let detail, let retrySeconds):
            error(
                "the cache's disk tier is off; responses are kept only in memory",
                metadata: [
                    "reason": "\(reason.rawValue)", "detail": "\(detail)",
                    "tried_again": retrySeconds.map { "in \($0)s" } ?? "never",
                ])
        case .setAside(let path, let detail):
            error(
                "a damaged cache database was set aside",
                metadata: ["path": "\(path)", "detail": "\(detail)"])
        case .discarded(let reason):
            error(
                "the cache database was removed; a new one is created when the disk tier is back",
                metadata: ["reason": "\(reason.rawValue)"])
        case .filesChanged(let detail):
            error(
                "the cache's files were changed by another program; a new database was created",
                metadata: ["detail": "\(detail)"])
        case .damagedEntry(let id):
            warning("a damaged cache entry was dropped", metadata: ["entry": "\(id)"])
        case .removedIncomplete(let entries):
            info("incomplete cache entries were removed", metadata: ["entries": "\(entries)"])
        case .handedOver(let reading, let milliseconds):
            info(
                "the cache database was handed over; responses are kept only in memory",
                metadata: ["still_read": "\(reading)", "took": "\(milliseconds)ms"])
        case .sharing(true):
            info("the cache database is shared with the process that had it before")
        case .sharing(false):
            info("the cache database is no longer shared")
        case .migrated(let from, let to):
            notice("the cache database was migrated", metadata: ["from": "\(from)", "to": "\(to)"])
        }
    }
}
