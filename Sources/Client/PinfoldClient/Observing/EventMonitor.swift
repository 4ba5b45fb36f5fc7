public import HTTPTypes

/// Is told of every step of a session's tasks, for logs, metrics and tests.
///
///     configuration.eventMonitors = [LoggingEventMonitor(logger)]
///
/// The methods are called in order with the session's completion handlers, and where these are
/// called (``SessionConfiguration/callbacks``). By default, they do nothing. While
/// ``SessionManager/maximumWaitingCallbacks`` wait, events are dropped, and their number is told.
public protocol EventMonitor: Sendable {
    /// A step between the beginning and the end of a task.
    func request(_ task: TaskIdentifier, _ event: RequestEvent)
    /// An event of the session: the beginning and the end of tasks, and of the session.
    func session(_ event: SessionEvent)
    /// So many events were dropped before the next one, because callbacks take too long.
    func missed(_ events: Int)
}

extension EventMonitor {
    /// Does nothing.
    public func request(_ task: TaskIdentifier, _ event: RequestEvent) {}
    /// Does nothing.
    public func session(_ event: SessionEvent) {}
    /// Does nothing.
    public func missed(_ events: Int) {}
}

/// A step of a task.
public enum RequestEvent: Sendable {
    /// Interceptors have adapted a request.
    case adapted(HTTPRequest, from: HTTPRequest)
    /// A request is sent as soon as the session's limits allow. It has its cookies and credentials.
    case sent(HTTPRequest, cause: TaskMetrics.Cause)
    /// The head of a response has arrived.
    case received(HTTPResponse, to: HTTPRequest)
    /// There was no response, or its content was interrupted.
    case failed(ClientError, of: HTTPRequest)
    /// A redirect is followed.
    case redirected(to: HTTPRequest, by: HTTPResponse)
    /// A challenge of a server or a proxy was answered: the request is sent again.
    case challenged(HTTPRequest, by: HTTPResponse)
    /// A request is sent again after a delay, because the session's retry policy or an interceptor
    /// says so.
    case retried(HTTPRequest, after: Duration)
}
