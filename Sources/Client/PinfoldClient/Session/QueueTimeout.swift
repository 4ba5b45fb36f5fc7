/// What held the places that a request waited for in vain: ``ClientError/underlying`` of
/// ``ClientError/Reason/timedOut``, where ``SessionConfiguration/queueTimeout`` was over; of a
/// download ``DownloadFailure/underlying``. Nothing of the request was sent.
public struct QueueTimeout: Error, Hashable, Sendable, CustomStringConvertible {
    /// What makes requests wait.
    public enum Limit: Hashable, Sendable {
        /// ``SessionConfiguration/maximumRequestsPerOrigin``.
        case requestsPerOrigin(Int)
        /// ``SessionConfiguration/maximumRequests``.
        case requests(Int)
        /// One WebSocket at a time is opened with a server (RFC 6455 section 4.1).
        case handshakes
    }

    /// What made the request wait.
    public let limit: Limit
    /// For how long none of the requests ahead of it came nearer to its end, as
    /// ``SessionConfiguration/queueTimeout`` counts that.
    public let waited: Duration
    /// Where most of these requests go, as in `https://example.com`.
    public let origin: String
    /// Those with a response of which something has come that nobody reads.
    public let unreadResponses: Int
    /// Those whose tasks are suspended.
    public let suspendedTasks: Int
    /// Those that have no response yet.
    public let unansweredRequests: Int
    /// Those with a response of which all is read that comes, and which does not end.
    public let unendingResponses: Int
    /// Those of ``unendingResponses`` whose length is not known: content may still come of them.
    public let responsesOfUnknownLength: Int

    /// What it is called in logs.
    package static let token = "queue-timeout"

    public var description: String {
        let parts = [
            (unreadResponses, "with a response that nobody reads"),
            (suspendedTasks, "suspended"), (unansweredRequests, "without a response yet"),
            (responsesOfUnknownLength, "with a response whose length is not known"),
            (unendingResponses - responsesOfUnknownLength, "with a response that does not end"),
        ]
        let held = parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
        let milliseconds = waited.wholeMilliseconds
        return switch limit {
        case .requestsPerOrigin(let most):
            "for \(milliseconds) ms none of the \(most) requests to \(origin) that may be under "
                + "way at a time (maximumRequestsPerOrigin) has come nearer to its end: \(held)"
        case .requests(let most):
            "for \(milliseconds) ms none of the \(most) requests that may be under way at a time "
                + "(maximumRequests) has come nearer to its end: \(held), most of them to "
                + origin
        case .handshakes:
            "for \(milliseconds) ms another WebSocket has been being opened with \(origin)"
        }
    }
}

extension ClientError {
    init(_ timeout: QueueTimeout) {
        self.init(
            .timedOut, "it waited for its turn in vain: \(timeout)", token: QueueTimeout.token,
            underlying: timeout)
    }
}
