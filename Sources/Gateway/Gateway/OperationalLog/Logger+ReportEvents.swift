import Logging
import PinReporting

extension Logger {
    /// Logs what the reporter of pin failures has to tell an operator.
    func log(_ event: ReportEvent) {
        switch event {
        case .folderUnusable(let detail):
            error(
                "pin failure reports wait in memory: their folder cannot be used",
                metadata: ["detail": "\(detail)"])
        case .foundWaiting(let reports):
            info("pin failure reports found waiting", metadata: ["reports": "\(reports)"])
        case .notKept(let reports):
            error(
                "pin failure reports are lost: they could not be written down before the end",
                metadata: ["reports": "\(reports)"])
        case .unreadable(let detail):
            error(
                "a pin failure report cannot be read, and waits",
                metadata: ["detail": "\(detail)"])
        case .damaged(let file):
            warning("a damaged pin failure report was dropped", metadata: ["file": "\(file)"])
        case .foreign(let folder, let files):
            notice(
                "files that are no pin failure reports are left alone in their folder",
                metadata: ["folder": "\(folder)", "files": "\(files)"])
        case .failing(let destination, let problem):
            warning(
                "pin failure reports are not taken, and wait",
                metadata: ["url": "\(destination)", "detail": "\(problem)"])
        case .recovered(let destination):
            notice("pin failure reports are taken again", metadata: ["url": "\(destination)"])
        case .rejected(let destination, let pinset, let status):
            warning(
                "a pin failure report was rejected, and dropped",
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
            warning("pin failure reports were dropped: too many wait", metadata: metadata)
        case .withdrawn(let reports):
            notice(
                "pin failure reports were dropped: their pinsets report nowhere any more",
                metadata: ["reports": "\(reports)"])
        case .useNotWritten(let detail):
            warning(
                "it cannot be written down which pins match", metadata: ["detail": "\(detail)"])
        case .delivered(let destination, let pinset):
            info(
                "pin failure reported",
                metadata: ["url": "\(destination)", "pinset": "\(pinset)"])
        }
    }
}
