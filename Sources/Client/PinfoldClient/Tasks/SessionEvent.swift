public import HTTPTypes

/// What happens to the tasks of a session, and to the session.
public enum SessionEvent: Sendable {
    /// A task has begun, or goes on after it was suspended.
    case didResume(TaskIdentifier, request: HTTPRequest)
    /// A task was suspended.
    case didSuspend(TaskIdentifier, request: HTTPRequest)
    /// A task has ended, well or not; its last event.
    case didComplete(TaskCompletion)
    /// A finished download is where it was wanted.
    case downloadMoved(TaskIdentifier, to: String)
    /// A finished download could not be moved to where it was wanted.
    case downloadFailedToMove(TaskIdentifier, to: String, error: ClientError)
    /// The session has ended with its last task; the last event. There is an error where nobody
    /// asked for it, as when its runtime was closed.
    case sessionInvalidated(ClientError?)
}

/// How a task has ended.
public struct TaskCompletion: Sendable {
    /// Which one.
    public let task: TaskIdentifier
    /// What was asked for last, after redirects.
    public let request: HTTPRequest
    /// The head of the last response; nil where there is none.
    public let response: HTTPResponse?
    /// Nil: the response has arrived as a whole, whatever its status.
    public let error: ClientError?
    /// How long it took, attempt by attempt.
    public let metrics: TaskMetrics
}

extension TaskCompletion {
    /// Of one that came to nothing before it had begun.
    init(of task: TaskHandle, error: ClientError) {
        self.init(
            task: task.identifier, request: task.request, response: nil, error: error,
            metrics: TaskMetrics(task: task.identifier))
    }
}

extension SessionManager {
    /// Events that wait for one reader at most; then the oldest ones are dropped.
    public static let maximumWaitingEvents = 4096

    /// What happens from now on, in order. Each call makes another sequence; it ends with
    /// ``SessionEvent/sessionInvalidated(_:)``. Of what its reader leaves waiting, the latest
    /// ``maximumWaitingEvents`` are kept.
    public func events() -> AsyncStream<SessionEvent> { registry.events() }

    /// The tasks that have begun and are not completed, the oldest first.
    public var tasks: [TaskHandle] { registry.handles }

    /// Cancels the tasks that have begun; those that begin later do.
    public func cancelAll() {
        for task in tasks { task.cancel() }
    }
}
