/// A request was queued for too long, because other requests occupied the slots that it needed. It
/// is the ``ClientError/underlying`` error of ``ClientError/Reason/timedOut`` if
/// ``SessionConfiguration/queueTimeout`` has expired; for a download, it is
/// ``DownloadError/underlying``. Nothing of the request was sent.
public struct QueueTimeoutError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The limit that makes requests wait.
    public enum Limit: Hashable, Sendable {
        /// ``SessionConfiguration/maximumRequestsPerOrigin``.
        case requestsPerOrigin(Int)
        /// ``SessionConfiguration/maximumRequests``.
        case requests(Int)
        /// Only one WebSocket at a time may be opened to a server (RFC 6455 section 4.1).
        case handshakes
    }

    /// The limit that made the request wait.
    public let limit: Limit
    /// How long none of the requests ahead of it made progress, in the sense of
    /// ``SessionConfiguration/queueTimeout``.
    public let waited: Duration
    /// The origin of most of these requests, as in `https://example.com`.
    public let origin: String
    /// The number of requests whose response has data that nobody reads.
    public let unreadResponses: Int
    /// The number of requests whose tasks are suspended.
    public let suspendedTasks: Int
    /// The number of requests without a response so far.
    public let unansweredRequests: Int
    /// The number of requests whose response has been read as far as it has arrived, but does not
    /// end.
    public let unfinishedResponses: Int
    /// The number among ``unfinishedResponses`` whose length is unknown, so that more content may
    /// arrive.
    public let responsesOfUnknownLength: Int

    /// The token used in logs.
    package static let token = "queue-timeout"

    public var description: String {
        let parts = [
            (unreadResponses, "with a response that nobody reads"),
            (suspendedTasks, "suspended"), (unansweredRequests, "without a response yet"),
            (responsesOfUnknownLength, "with a response whose length is not known"),
            (unfinishedResponses - responsesOfUnknownLength, "with a response that does not end"),
        ]
        let held = parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
        let milliseconds = waited.wholeMilliseconds
        return switch limit {
        case .requestsPerOrigin(let most):
            "for \(milliseconds) ms, none of the \(most) requests to \(origin) that may be active "
                + "at a time (maximumRequestsPerOrigin) has made progress: \(held)"
        case .requests(let most):
            "for \(milliseconds) ms, none of the \(most) requests that may be active at a time "
                + "(maximumRequests) has made progress: \(held), most of them to \(origin)"
        case .handshakes:
            "for \(milliseconds) ms, another WebSocket to \(origin) has been in its handshake"
        }
    }
}

extension ClientError {
    init(_ timeout: QueueTimeoutError) {
        self.init(
            .timedOut, "it was queued for too long: \(timeout)", token: QueueTimeoutError.token,
            underlying: timeout)
    }
}
