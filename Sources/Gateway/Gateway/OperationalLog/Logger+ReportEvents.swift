import Logging
import PinReporting

extension Logger {
    /// Logs an event of the pin failure reporter.
    func log(_ event: ReportEvent) {
        switch event {
        case .folderUnusable(let detail):
            error(
                "pin failure reports are kept in memory: their directory cannot be used",
                metadata: ["detail": "\(detail)"])
        case .foundWaiting(let reports):
            info("found waiting pin failure reports", metadata: ["reports": "\(reports)"])
        case .notKept(let reports):
            error(
                "pin failure reports are lost: they could not be saved before the process ended",
                metadata: ["reports": "\(reports)"])
        case .unreadable(let detail):
            error(
                "a pin failure report cannot be read at the moment",
                metadata: ["detail": "\(detail)"])
        case .damaged(let file):
            warning("a damaged pin failure report was dropped", metadata: ["file": "\(file)"])
        case .foreign(let folder, let files):
            notice(
                "the directory of pin failure reports contains other files, which are left alone",
                metadata: ["folder": "\(folder)", "files": "\(files)"])
        case .failing(let destination, let problem):
            warning(
                "pin failure reports are not accepted, and will be retried",
                metadata: ["url": "\(destination)", "detail": "\(problem)"])
        case .recovered(let destination):
            notice("pin failure reports are accepted again", metadata: ["url": "\(destination)"])
        case .rejected(let destination, let pinset, let status):
            warning(
                "a pin failure report was rejected and dropped",
                metadata: [
                    "url": "\(destination)", "pinset": "\(pinset)", "status": "\(status)",
                ])
        case .expired(let reports):
            warning(
                "pin failure reports were dropped: they waited too long",
                metadata: ["reports": "\(reports)"])
        case .full(let reports, let destination):
            var metadata: Metadata = ["reports": "\(reports)"]
            if let destination { metadata["url"] = "\(destination)" }
            warning("pin failure reports were dropped: too many are waiting", metadata: metadata)
        case .withdrawn(let reports):
            notice(
                "pin failure reports were dropped: their pinsets no longer report",
                metadata: ["reports": "\(reports)"])
        case .useNotWritten(let detail):
            warning(
                "the record of matched pins cannot be saved", metadata: ["detail": "\(detail)"])
        case .delivered(let destination, let pinset):
            info(
                "pin failure reported",
                metadata: ["url": "\(destination)", "pinset": "\(pinset)"])
        }
    }
}
