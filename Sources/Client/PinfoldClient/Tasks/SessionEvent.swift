public import HTTPTypes

/// An event of a session or of one of its tasks.
public enum SessionEvent: Sendable {
    /// A task has started, or continues after it was suspended.
    case didResume(TaskIdentifier, request: HTTPRequest)
    /// A task was suspended.
    case didSuspend(TaskIdentifier, request: HTTPRequest)
    /// A task has ended, successfully or not. This is its last event.
    case didComplete(TaskCompletion)
    /// A completed download has been moved to its destination.
    case downloadMoved(TaskIdentifier, to: String)
    /// A completed download could not be moved to its destination.
    case downloadFailedToMove(TaskIdentifier, to: String, error: ClientError)
    /// The session has ended, after its last task. This is the last event. There is an error if it
    /// did not end on request, for example because its runtime was closed.
    case sessionInvalidated(ClientError?)
}

/// How a task has ended.
public struct TaskCompletion: Sendable {
    /// The identifier of the task.
    public let task: TaskIdentifier
    /// The last request, after redirects.
    public let request: HTTPRequest
    /// The head of the last response, or `nil` if there was none.
    public let response: HTTPResponse?
    /// The error, or `nil` if the response has arrived completely, whatever its status.
    public let error: ClientError?
    /// How long the task took, attempt by attempt.
    public let metrics: TaskMetrics
}

extension TaskCompletion {
    /// Creates the completion of a task that failed before it began.
    init(of task: TaskHandle, error: ClientError) {
        self.init(
            task: task.identifier, request: task.request, response: nil, error: error,
            metrics: TaskMetrics(task: task.identifier))
    }
}

extension SessionManager {
    /// The maximum number of events buffered for a reader; beyond that, the oldest are dropped.
    public static let maximumWaitingEvents = 4096

    /// Returns the events from now on, in order. Each call returns another sequence, which ends
    /// with ``SessionEvent/sessionInvalidated(_:)``. At most the latest ``maximumWaitingEvents``
    /// events are buffered.
    public func events() -> AsyncStream<SessionEvent> { registry.events() }

    /// The tasks that have started and not completed, the oldest first.
    public var tasks: [TaskHandle] { registry.handles }

    /// Cancels the tasks that have started. Tasks started later are not affected.
    public func cancelAll() {
        for task in tasks { task.cancel() }
    }
}
