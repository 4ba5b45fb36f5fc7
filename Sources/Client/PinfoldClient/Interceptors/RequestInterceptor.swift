public import HTTPTypes

/// Changes requests before they are sent, for example adds a token.
public protocol RequestAdapter: Sendable {
    /// Whether requests to other origins than that of the task's first request are adapted, too.
    /// Redirects lead to such requests. By default they are not, so that nothing that an adapter
    /// adds is sent to a server for which it was not meant.
    var interceptsOtherOrigins: Bool { get }

    /// Returns the request to send.
    ///
    /// It is called before each request of a task: the first one, and those that follow redirects,
    /// challenges and retries. Each time it gets the request as it was before adaptation.
    ///
    /// When the task is cancelled, or takes longer than ``SessionConfiguration/resourceTimeout``,
    /// the Swift task in which this is called is cancelled. It should return or throw then, because
    /// the task ends only after that. What it returns or throws is not used any more.
    ///
    /// - Parameters:
    ///   - request: The request, with the session's fields, but without cookies and credentials.
    ///   - attempt: What is known of it.
    /// - Throws: Any error. The task then fails with that error, if it is a ``ClientError``, or
    ///   with ``ClientError/Reason/requestAdaptationFailed``, unless a ``RequestRetrier`` has the
    ///   request sent again.
    func adapt(_ request: HTTPRequest, for attempt: RequestAttempt) async throws -> HTTPRequest
}

/// Decides whether a request is sent again.
public protocol RequestRetrier: Sendable {
    /// See ``RequestAdapter/interceptsOtherOrigins``. It applies in the same way to the requests
    /// about which a retrier is asked.
    var interceptsOtherOrigins: Bool { get }

    /// Returns whether a request is sent again.
    ///
    /// It is called for each response that the task would get, whatever its status, and for each
    /// error with which it would fail, also that of an adapter: so after redirects, challenges and
    /// the ``SessionConfiguration/retries`` of the session. It is not called if the content of the
    /// request can be read only once, and not for tasks that are cancelled or have no time left. If
    /// a task ends while this is called, the same happens as in ``RequestAdapter/adapt(_:for:)``.
    ///
    /// - Parameters:
    ///   - request: The request as it was adapted, or, if that has failed, as it was before.
    ///   - outcome: The response, the error, or both.
    ///   - attempt: What is known of the request.
    func retry(
        _ request: HTTPRequest, dueTo outcome: RequestOutcome, for attempt: RequestAttempt
    ) async -> RetryResult
}

/// Changes requests before they are sent, and decides whether they are sent again.
///
/// An interceptor belongs to a session (``SessionConfiguration/interceptor``) or to a request
/// (``RequestOptions/interceptor``). If there are both, the request's comes first.
public protocol RequestInterceptor: RequestAdapter, RequestRetrier {}

extension RequestAdapter {
    /// Other origins are left out.
    public var interceptsOtherOrigins: Bool { false }
}

extension RequestRetrier {
    /// Other origins are left out.
    public var interceptsOtherOrigins: Bool { false }
}

extension RequestInterceptor {
    /// Other origins are left out.
    public var interceptsOtherOrigins: Bool { false }

    /// Returns the request unchanged.
    public func adapt(
        _ request: HTTPRequest, for attempt: RequestAttempt
    ) async throws -> HTTPRequest { request }

    /// Sends no request again.
    public func retry(
        _ request: HTTPRequest, dueTo outcome: RequestOutcome, for attempt: RequestAttempt
    ) async -> RetryResult { .doNotRetry }
}

/// What is known of a request that is about to be sent, or was sent.
public struct RequestAttempt: Sendable, Hashable {
    /// The identifier of the task.
    public let task: TaskIdentifier
    /// Why the request is sent.
    public let cause: TaskMetrics.Cause
    /// How often retriers have had the task's request sent again. Beyond
    /// ``maximumRetryCount`` they are not asked.
    public let retryCount: Int
    /// Whether the request is to another origin than the task's first request, because a redirect
    /// led there.
    public let isToOtherOrigin: Bool

    /// How often each interceptor has had it sent again, or `nil` if that is not known.
    private let tally: RetryTally?

    /// The maximum number of times that retriers can have a task's request sent again.
    public static let maximumRetryCount = 100

    /// Creates the description of an attempt, for tests of interceptors. Every interceptor that
    /// counts its own retries takes all of ``retryCount`` for these.
    public init(
        task: TaskIdentifier = .next(), cause: TaskMetrics.Cause = .task, retryCount: Int = 0,
        isToOtherOrigin: Bool = false
    ) {
        self.init(task, cause, retryCount, isToOtherOrigin: isToOtherOrigin, tally: nil)
    }

    init(
        _ task: TaskIdentifier, _ cause: TaskMetrics.Cause, _ retryCount: Int,
        isToOtherOrigin: Bool, tally: RetryTally?
    ) {
        (self.task, self.cause) = (task, cause)
        (self.retryCount, self.isToOtherOrigin) = (retryCount, isToOtherOrigin)
        self.tally = tally
    }

    /// How often an interceptor has had the task's request sent again.
    func retries(of interceptor: InterceptorIdentity) -> Int {
        tally?.count(of: interceptor) ?? retryCount
    }

    /// Counts that an interceptor has the request sent again.
    func countRetry(of interceptor: InterceptorIdentity) { tally?.add(interceptor) }
}

/// What has become of a request.
public struct RequestOutcome: Sendable {
    /// The head of the response, or `nil` if there is none.
    public let response: HTTPResponse?
    /// The error, or `nil` if there is none. If there is a response as well, its content was
    /// interrupted.
    public let error: ClientError?

    /// Creates an outcome, for tests of retriers.
    public init(response: HTTPResponse? = nil, error: ClientError? = nil) {
        (self.response, self.error) = (response, error)
    }
}

/// What a retrier decides.
public enum RetryResult: Sendable {
    /// The request is sent again immediately.
    case retry
    /// The request is sent again after a delay. If the delay is longer than the time left for the
    /// task, it is not.
    case retryWithDelay(Duration)
    /// The task gets the response, or fails with its error.
    case doNotRetry
    /// The task fails with this error, if it is a ``ClientError``, or with
    /// ``ClientError/Reason/requestRetryFailed``.
    case doNotRetryWithError(any Error)
}
