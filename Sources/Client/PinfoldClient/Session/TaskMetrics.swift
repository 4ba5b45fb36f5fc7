import HTTPCore
import HTTPTypes
import PinfoldMetrics
import PinfoldTLS

/// How a response relates to the session's cache.
public enum CacheUse: String, Sendable, Hashable, CaseIterable {
    /// There is no cache, or it was not used.
    case none
    /// The cache had no matching response.
    case miss
    /// The response came from the cache.
    case hit
    /// The response came from the cache although it was stale, as the request or the response
    /// allowed.
    case stale
    /// The response came from the cache after the server had confirmed it.
    case confirmed
}

/// How long a task took, and for which requests.
public struct TaskMetrics: Sendable, Hashable {
    /// The reason why a request was sent.
    public enum Cause: String, Sendable, Hashable, CaseIterable {
        /// It is the task's first request.
        case task
        /// The previous response was a redirect.
        case redirect
        /// The previous response required credentials.
        case challenge
        /// The previous request failed, or its response allowed it to be tried again, and
        /// ``SessionConfiguration/retries`` allowed a repetition.
        case retry
        /// The reused connection of the previous request was closed without a response
        /// (``SessionConfiguration/resendsUnansweredRequests``). If it is sent again because its
        /// method is idempotent, it does not count as a separate request.
        case resend
        /// The server of the previous request does not know what it means to expect 100 (Continue),
        /// and answered 417 (``RequestOptions/continueTimeout``).
        case expectation
    }

    /// A request and its response. There is one more for each redirect, answered challenge, retry,
    /// and request that is sent again.
    public struct Transaction: Sendable, Hashable {
        /// The URL of the request.
        public var url: String {
            HTTPRequest.url(scheme: scheme, authority: authority, path: path)
        }
        // Assembled only on demand.
        private let scheme: String?
        private let authority: String?
        private let path: String?
        /// The reason for the request.
        public var cause: Cause
        /// The status of the response, or `nil` if there was none.
        public var status: Int?
        /// How long the request was queued.
        public var queued: Duration
        /// The duration of the name resolution, or `nil` if there was none or a connection was
        /// reused.
        public var lookup: Duration?
        /// The duration of connecting, without name resolution and handshake; `nil` in the same
        /// cases.
        public var connect: Duration?
        /// How long a proxy took to open a tunnel, including TLS with the proxy; `nil` in the same
        /// cases, and without a tunnel.
        public var tunnel: Duration?
        /// The duration of the TLS handshake; `nil` in the same cases, and in clear text.
        public var handshake: Duration?
        /// The time from when the request became active to the head of the response.
        public var firstByte: Duration?
        /// What the exchange spent its time on. What is in none of its phases is in `queued`, or is
        /// the library's own time.
        package var phases: PhaseTimes
        /// The time from the request to the end of the response, or to its head if no more has
        /// arrived yet.
        public var total: Duration
        /// Whether the connection had carried other requests before.
        public var reusedConnection: Bool
        /// The protocol that the server was spoken to in, by its ALPN name: `h2` or `http/1.1`;
        /// `nil` if there was no connection.
        public var protocolName: String?
        /// What the handshake of TLS agreed on, if there was one and a ``ConnectionMonitor`` wants
        /// to know.
        package var tls: TLSSummary?
        /// How the response relates to the session's cache.
        public var cache: CacheUse
        /// The address and port of the server, or of the proxy used instead; `nil` if there was no
        /// connection.
        public var server: String?
        /// The number of bytes of content sent.
        public var sentBytes: Int64
        /// The number of bytes of content received, as they were transferred.
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
            phases = times.phases
            firstByte = times.firstByte.map { .microseconds($0) }
            total = .microseconds(max(times.total, times.queued + (times.firstByte ?? 0)))
            reusedConnection = times.wasReused
            protocolName = times.carrier?.protocolName
            tls = times.tls
            cache = times.cache
            server = times.server
            sentBytes = times.sentBytes
            receivedBytes = times.receivedBytes
        }
    }

    /// The identifier of the task.
    public let task: TaskIdentifier
    /// The transactions in order of the requests. There is at least one if the task got a response.
    public var transactions: [Transaction] = []
    /// The number of redirects that were followed.
    public var redirects: Int { count(of: .redirect) }
    /// The number of requests repeated after a failure (``SessionConfiguration/retries``).
    public var retries: Int { count(of: .retry) }
    /// The number of requests repeated because their reused connection was closed without a
    /// response (``SessionConfiguration/resendsUnansweredRequests``).
    public var resends: Int { count(of: .resend) }

    private func count(of cause: Cause) -> Int { transactions.count { $0.cause == cause } }

    /// The time from the first request to the end of the last response, without the delays between
    /// them.
    public var total: Duration {
        transactions.reduce(.zero) { $0 + $1.total }
    }
}

extension HTTPCarrier {
    /// The name in ALPN (RFC 7301).
    fileprivate var protocolName: String {
        switch self {
        case .http1: "http/1.1"
        case .http2: "h2"
        }
    }
}
