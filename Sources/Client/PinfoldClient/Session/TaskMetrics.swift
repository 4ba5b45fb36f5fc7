import HTTPTypes

/// What a session's cache had to do with a response.
public enum CacheUse: String, Sendable, Hashable, CaseIterable {
    /// There is no cache, or it was not asked.
    case none
    /// It had nothing that fits.
    case miss
    /// It answered.
    case hit
    /// It answered with something stale, as the request or the response allowed.
    case stale
    /// It answered after the server had said that nothing changed.
    case confirmed
}

/// How long a task took, and why.
public struct TaskMetrics: Sendable, Hashable {
    /// Why a request was sent.
    public enum Cause: String, Sendable, Hashable, CaseIterable {
        /// It is the task's first.
        case task
        /// The response before it led there.
        case redirect
        /// The response before it asked for credentials.
        case challenge
        /// The one before it failed, or its response said to try again, and the session's
        /// ``SessionConfiguration/retries`` let it be sent again.
        case retry
        /// The kept connection of the one before it was closed without an answer
        /// (``SessionConfiguration/resendsUnanswered``). One that is sent again because its method
        /// is idempotent is no request of its own.
        case resend
    }

    /// One request and its response: there is one more for each redirect, each challenge that was
    /// answered, each retry, and each request that is sent again.
    public struct Transaction: Sendable, Hashable {
        /// The URL that was asked for.
        public var url: String {
            HTTPRequest.url(scheme: scheme, authority: authority, path: path)
        }
        // Put together only where somebody looks.
        private let scheme: String?
        private let authority: String?
        private let path: String?
        /// Why the request was made.
        public var cause: Cause
        /// The status of the response; nil where there was none.
        public var status: Int?
        /// How long it waited for others of its session.
        public var queued: Duration
        /// How long the name was looked up; nil where it was not, or a connection was used again.
        public var lookup: Duration?
        /// How long the connection took to be made, without lookup and handshake; nil as above.
        public var connect: Duration?
        /// How long a proxy took to open a tunnel, TLS with the proxy included; nil as above, and
        /// where there is no tunnel.
        public var tunnel: Duration?
        /// How long the TLS handshake took; nil as above, and for clear text.
        public var handshake: Duration?
        /// From the request's turn to the head of the response.
        public var firstByte: Duration?
        /// From the request to the end of the response; to its head where that is all there is yet.
        public var total: Duration
        /// Whether the connection had carried other requests before.
        public var reusedConnection: Bool
        /// What the session's cache had to do with it.
        public var cache: CacheUse
        /// The address and port of the server, or of the proxy that was asked in its place; nil
        /// where none was.
        public var server: String?
        /// Bytes of content.
        public var sentBytes: Int64
        /// Bytes of the response's content, as they were transferred.
        public var receivedBytes: Int64

        init(
            _ times: TransferTimes, of request: HTTPRequest, cause: TaskMetrics.Cause, status: Int?
        ) {
            (scheme, authority, path) = (request.scheme, request.authority, request.path)
            self.cause = cause
            self.status = status
            queued = .microseconds(times.queued)
            lookup = times.lookup.map { .microseconds($0) }
            connect = times.connect.map { .microseconds($0) }
            tunnel = times.tunnel.map { .microseconds($0) }
            handshake = times.handshake.map { .microseconds($0) }
            firstByte = times.firstByte.map { .microseconds($0) }
            total = .microseconds(max(times.total, times.queued + (times.firstByte ?? 0)))
            reusedConnection = times.wasReused
            cache = times.cache
            server = times.server
            sentBytes = times.sentBytes
            receivedBytes = times.receivedBytes
        }
    }

    /// Whose they are.
    public let task: TaskIdentifier
    /// In the order of the requests; at least one for a task that had a response.
    public var transactions: [Transaction] = []
    /// Redirects that were followed.
    public var redirects: Int { count(of: .redirect) }
    /// Requests that were sent again after a failure, as the session's
    /// ``SessionConfiguration/retries`` say.
    public var retries: Int { count(of: .retry) }
    /// Requests that were sent again as their kept connection was closed without an answer
    /// (``SessionConfiguration/resendsUnanswered``).
    public var resends: Int { count(of: .resend) }

    private func count(of cause: Cause) -> Int { transactions.count { $0.cause == cause } }

    /// From the first request to the end of the last response, waits between them left out.
    public var total: Duration {
        transactions.reduce(.zero) { $0 + $1.total }
    }
}
