import Logging

extension Logger {
    /// Logs an event of the exporter of spans.
    func log(_ event: SpanExportEvent) {
        switch event {
        case .failing(let destination, let problem):
            warning(
                "the collector does not accept spans, which will be retried",
                metadata: ["url": "\(destination)", "detail": "\(problem)"])
        case .recovered(let destination):
            notice("the collector accepts spans again", metadata: ["url": "\(destination)"])
        case .rejected(let destination, let spans, let problem):
            warning(
                "the collector rejected spans, which are lost",
                metadata: [
                    "url": "\(destination)", "spans": "\(spans)", "detail": "\(problem)",
                ])
        }
    }
}
