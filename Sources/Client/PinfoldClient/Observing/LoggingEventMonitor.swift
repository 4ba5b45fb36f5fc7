import HTTPTypes
public import Logging

/// Logs the steps of a session's tasks with swift-log: the steps themselves at debug level, the end
/// of each task at info level, and failures as warnings.
///
/// Credentials are never logged, nor are fields and contents; queries only on request. An error is
/// logged as its ``ClientError/token``, because its explanation may quote a URL with its query.
public struct LoggingEventMonitor: EventMonitor {
    private let logger: Logger
    private let showsQueries: Bool

    /// Creates a monitor.
    ///
    /// - Parameters:
    ///   - logger: Where the lines go.
    ///   - showsQueries: Whether the queries of URLs and the explanations of errors are logged,
    ///     which may contain secrets.
    public init(_ logger: Logger, showsQueries: Bool = false) {
        (self.logger, self.showsQueries) = (logger, showsQueries)
    }

    public func request(_ task: TaskIdentifier, _ event: RequestEvent) {
        guard logger.logLevel <= .debug else { return }
        switch event {
        case .adapted(let request, _): debug(task, "request adapted", request)
        case .sent(let request, let cause):
            debug(task, "request sent", request, ["cause": "\(cause.rawValue)"])
        case .received(let response, let request):
            debug(task, "response received", request, ["status": "\(response.status.code)"])
        case .failed(let error, let request):
            debug(task, "attempt failed", request, shown(error))
        case .redirected(let request, let response):
            debug(task, "redirect followed", request, ["status": "\(response.status.code)"])
        case .challenged(let request, let response):
            debug(task, "challenge answered", request, ["status": "\(response.status.code)"])
        case .retried(let request, let wait):
            debug(task, "request retried", request, ["delay": "\(wait)"])
        }
    }

    public func session(_ event: SessionEvent) {
        switch event {
        case .didResume(let task, let request): debug(task, "task resumed", request)
        case .didSuspend(let task, let request): debug(task, "task suspended", request)
        case .didComplete(let end): completed(end)
        case .downloadMoved(let task, let path):
            logger.info("download complete", metadata: ["task": "\(task)", "path": "\(path)"])
        case .downloadFailedToMove(let task, let path, let error):
            logger.warning(
                "download not moved",
                metadata: shown(error, ["task": "\(task)", "path": "\(path)"]))
        case .sessionInvalidated(let error):
            logger.debug("session ended", metadata: error.map { shown($0) } ?? [:])
        }
    }

    public func missed(_ events: Int) {
        logger.warning("events dropped", metadata: ["events": "\(events)"])
    }

    private func completed(_ end: TaskCompletion) {
        var metadata = self.metadata(end.task, end.request)
        metadata["seconds"] = "\(end.metrics.total / .seconds(1))"
        metadata["attempts"] = "\(end.metrics.transactions.count)"
        if let response = end.response { metadata["status"] = "\(response.status.code)" }
        guard let error = end.error else {
            return logger.info("task complete", metadata: metadata)
        }
        // Whoever cancels a task knows.
        logger.log(
            level: error.reason == .cancelled ? .info : .warning, "task failed",
            metadata: shown(error, metadata))
    }

    /// An error, and what is logged with it.
    private func shown(_ error: ClientError, _ metadata: Logger.Metadata = [:]) -> Logger.Metadata {
        var metadata = metadata
        metadata["reason"] = "\(error.token)"
        if showsQueries { metadata["error"] = "\(error.explanation)" }
        return metadata
    }

    private func debug(
        _ task: TaskIdentifier, _ message: Logger.Message, _ request: HTTPRequest,
        _ more: Logger.Metadata = [:]
    ) {
        logger.debug(
            message, metadata: metadata(task, request).merging(more) { own, _ in own })
    }

    private func metadata(_ task: TaskIdentifier, _ request: HTTPRequest) -> Logger.Metadata {
        let url = ClientError.shown(request.url)
        return [
            "task": "\(task)", "method": "\(request.method)",
            "url": "\(showsQueries ? url : String(url.prefix { $0 != "?" }))",
        ]
    }
}
