import HTTPTypes

/// The current request and the history that led to it.
struct RequestHistory {
    /// The request, as the interceptors have adapted it.
    var request: HTTPRequest
    /// The same before that, or `nil` if there are no interceptors.
    var unadapted: HTTPRequest?
    var content: RequestContent?
    var cause = TaskMetrics.Cause.task
    var counts = AttemptCounts()
    /// Whether a new connection is needed: the server is not responsible for the request on the
    /// existing connections (421), or has closed the one that was used.
    var needsFreshConnection = false
    /// Whether anything of a request was sent.
    var mayBeProcessed = false
    var metrics: TaskMetrics
    /// The authentication state, or `nil` if there were no challenges and nothing is sent
    /// preemptively.
    var authentication: TaskAuthentication?
    /// The last response.
    var response: HTTPResponse?
    /// The origin of the first request as it was adapted, or `nil` if none was.
    var adaptedOrigin: RequestOrigin?
    /// Whether the task fails whatever a retrier says: one has said so, or there is no time left.
    var isGivenUp = false

    /// The request without the fields that interceptors have added, or `nil` if there are none. It
    /// has their URL, to which the response refers.
    var withoutAdaptedFields: HTTPRequest? {
        guard let unadapted else { return nil }
        var stripped = request
        stripped.headerFields = unadapted.headerFields
        return stripped
    }
}
