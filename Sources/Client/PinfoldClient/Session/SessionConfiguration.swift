import HTTPCore
public import HTTPTypes
import PinfoldConfiguration
public import Tracing
import Trust

/// Configures how a session sends requests. It is a value: a session keeps the copy with which it
/// was created.
public struct SessionConfiguration: Sendable {
    /// Determines which servers the session trusts.
    public var securityPolicy = SecurityPolicy.default
    /// The policies of single hosts, which apply instead of ``securityPolicy``.
    public var trustPolicies = TrustPolicies()
    /// Where the session connects to, and from.
    public var connections = ConnectionOptions()
    /// Determines which requests use a proxy. By default, the environment's variables do, as in
    /// other programs. ``securityPolicy`` applies to the servers behind a proxy as well.
    public var proxies = ProxyConfiguration.environment
    /// The minimum TLS version with servers, through proxies as well, and with proxies themselves.
    /// Where a gateway intercepts TLS, the connection that this is about ends there; the gateway
    /// has a minimum of its own for the servers.
    public var minimumTLS = TLSMinimumVersion.tls12
    /// Which versions of HTTP are spoken with servers.
    public var httpVersion = HTTPVersionChoice.automatic
    /// Fields that are added to requests that do not have them. Only Authorization, Cookie and
    /// Proxy-Authorization are left out when a redirect leads to another origin.
    public var fields: HTTPFields = [:]
    /// The maximum time to establish a connection, for each of its two steps (TCP and TLS).
    public var connectTimeout = Duration.seconds(10)
    /// The maximum time without progress between client and server, counted from the beginning of a
    /// request. Time during which the caller does not read is not counted.
    public var requestTimeout = Duration.seconds(60)
    /// The maximum time that a request is queued without progress by the requests it waits for, or
    /// `nil` for the request's ``requestTimeout``. It is counted from when one of those requests
    /// last made progress: it ended, began, got the head of its response, or transferred content.
    /// For content of unknown length (such as chunked content), which may never end, progress
    /// counts only for ten times as long, from the beginning of the request or from the head of the
    /// response; for a response, also only while it is being read. When the time is over, the
    /// request fails with ``ClientError/Reason/timedOut`` and a ``QueueTimeoutError``.
    public var queueTimeout: Duration?
    /// The maximum total time of a task: in the queue, with its interceptors, redirects, retries
    /// and the delays before them, and the content of the response.
    public var resourceTimeout = Duration.seconds(7 * 24 * 3600)
    /// How long a connection is kept open for another request.
    public var idleConnectionTimeout = Duration.seconds(60)
    /// Changes requests before they are sent, and decides whether they are sent again, or `nil` for
    /// none. Several are combined by ``Interceptor``.
    public var interceptor: (any RequestInterceptor)?
    /// The maximum number of active requests, and so of connections, to an origin (scheme, host and
    /// port). Further requests wait, up to ``queueTimeout``. A request is active until its response
    /// has been read or released. Event streams and open WebSockets are not counted. Over HTTP/2
    /// the requests share a connection: a session of such servers may well allow a hundred.
    public var maximumRequestsPerOrigin = 6
    /// The maximum number of active requests in total. Event streams and open WebSockets are not
    /// counted.
    public var maximumRequests = 256
    /// The maximum number of event streams (``EventSource``, and responses of type
    /// `text/event-stream`) to all origins. A further ``EventSource`` fails with
    /// ``ClientError/Reason/outOfResources``; any other such response counts as an active request.
    public var maximumEventStreams = 256
    /// The maximum number of WebSockets that are open or being opened. A further one fails with
    /// ``ClientError/Reason/outOfResources``.
    public var maximumWebSockets = 256
    /// The order in which queued requests of the same priority are started.
    public var queueOrder = QueueOrder.firstInFirstOut
    /// Determines what is done with redirects.
    public var redirects = RedirectRule.follow()
    /// Determines after which failures and statuses a request is sent again, and when. By default
    /// it never is, as in AFNetworking and Alamofire: the caller knows best what may be repeated.
    /// `RetryPolicy()` is a policy with sensible limits. Content that can be read only once is not
    /// sent again. If the content of a download is interrupted, only the rest is requested where
    /// possible.
    public var retries = RetryPolicy.never
    /// Whether a request is sent again, once and on a new connection, if the server closes its
    /// reused connection without sending a byte of a response. This applies to any method, if the
    /// content can be sent again, as in curl and browsers. Usually the server had closed an idle
    /// connection and never saw the request; but it may also have failed while processing it, and
    /// then the request is processed twice. Requests with an idempotent method (RFC 9110 section
    /// 9.2.2) are sent again in any case.
    public var resendsUnansweredRequests = false
    /// Called if a server requires credentials that the session does not have
    /// (``SessionManager/credentials``). If it is `nil`, tasks get the responses with the
    /// challenges.
    ///
    /// Servers that redirects lead to and proxies can send challenges, too. A hook must check
    /// ``AuthenticationChallenge/protectionSpace`` (see ``ChallengeHook``).
    ///
    /// Basic credentials are also sent in clear text, as NSURLSession does, where anyone on the
    /// path can read the password. A hook can check the scheme of
    /// ``AuthenticationChallenge/protectionSpace`` and refuse. With pins, nothing is ever sent in
    /// clear text.
    public var challenges: ChallengeHook?
    /// Returns whether ``challenges`` has credentials for a server, whatever the realm. If it has,
    /// a challenge of that server that cannot be parsed is an error. If this closure is `nil`, it
    /// is unknown, and the task gets the response.
    package var answersOrigin: (@Sendable (ProtectionSpace) -> Bool)?
    /// The client certificates. A server that requests one gets the first one for its host.
    public var clientCertificates: [ClientCertificate] = []
    /// Where cookies are stored, or `nil` to store and send none. By default, they are in memory,
    /// in a store shared by this configuration and its copies. A Cookie field set by the caller is
    /// sent unchanged, instead of the store's cookies.
    public var cookies: CookieStore? = CookieStore()
    /// The size of the memory cache in bytes, or 0 for no cache at all. Responses are reused
    /// according to the rules of RFC 9111 for private caches. A response is stored if it is no
    /// larger than an eighth of this size, or fits on disk.
    ///
    /// A response to a request with one Authorization is not reused for another one. A response
    /// that sets a cookie is not stored.
    public var cacheMemoryBytes = 0
    /// The size of the cache file in ``cacheDirectory``, in bytes, or 0 for no disk cache.
    public var cacheDiskBytes = 0
    /// The absolute path of the directory for the cache file. If it does not exist, it is created,
    /// accessible only to this user. Only one session of one process can use it at a time; others
    /// use memory only.
    public var cacheDirectory: String?
    /// Whether content codings are requested and decoded. A request without Accept-Encoding then
    /// gets that field (gzip, deflate, br, zstd). Encoded content is decoded while it arrives,
    /// whoever requested the encoding, and the response's head has no Content-Encoding and no
    /// Content-Length. Partial content (206) and unknown codings are passed on unchanged. Downloads
    /// are never decoded.
    public var decodesContent = true
    /// The maximum size of content collected in memory, after decoding, in bytes. It can be changed
    /// for a request.
    public var maximumContentBytes = 256 << 20
    /// The maximum size of a response's head, and of its fields, in bytes.
    public var maximumHeadBytes = 64 << 10
    /// The maximum number of fields in a response's head.
    public var maximumFields = 256
    /// The indicator that counts the session's tasks from beginning to end, without suspended ones,
    /// or `nil` for none. It shows nothing until it is enabled.
    public var activityIndicator: ActivityIndicator? = .shared
    /// What answers the session's requests instead of the network, or `nil` for the network.
    public var transport: (any SessionTransport)?
    /// Where completion handlers run, one after another.
    public var callbacks = CallbackExecution.serial
    /// Receives the session's events, in order with the completion handlers and where these are
    /// called, unless ``SessionManager/maximumWaitingCallbacks`` wait. See also
    /// ``SessionManager/events()``.
    public var observer: (@Sendable (SessionEvent) -> Void)?

    /// Are told of every step of the session's tasks.
    public var eventMonitors: [any EventMonitor] = []

    /// Makes a span of each task, within that of the caller, and lets servers continue the trace;
    /// `nil` for no spans. By default, it is the one that the program has bootstrapped when the
    /// configuration is made (`InstrumentationSystem.bootstrap`). Queries of URLs are not recorded.
    public var tracer = Self.bootstrappedTracer

    /// Creates a configuration with default values.
    public init() {}

    /// The policy for a host.
    func securityPolicy(for host: String, port: Int) -> SecurityPolicy {
        trustPolicies.policy(for: host, port: port) ?? securityPolicy
    }

    /// How long the content of a request waits for the server to ask for it, or `nil` if it is sent
    /// at once.
    func continueTimeout(_ options: RequestOptions) -> Duration? {
        transport == nil && options.stream == nil ? options.continueTimeout : nil
    }

    /// The configuration for the engine.
    func snapshot() throws(ClientError) -> ConfigurationSnapshot {
        let (entries, pinsets) = try entries()
        let tls = entries[entries.count - 1].tls
        var snapshot = ConfigurationSnapshot(
            workers: .fixed(1), listeners: [],
            hosts: HostTable(entries: entries, everyOther: entries.count - 1), pinsets: pinsets,
            tls: tls)
        snapshot.access.allow = DestinationList(
            networks: ["0.0.0.0/0", "::/0"].compactMap { IPNetwork($0) })
        snapshot.cache.isEnabled = cacheMemoryBytes > 0
        snapshot.cache.isShared = false
        snapshot.cache.fill = .whileWanted
        snapshot.cache.memoryBytes = cacheMemoryBytes
        snapshot.cache.diskBytes = 0
        snapshot.limits = limits
        snapshot.timeouts = timeouts
        return snapshot
    }

    /// An entry for each policy and client certificate; the last one is for all other hosts.
    private func entries() throws(ClientError) -> ([HostEntry], [PinsetEntry]) {
        var entries: [HostEntry] = []
        var pinsets: [PinsetEntry] = []
        // Of several entries that match a host, the first one applies.
        for rule in trustPolicies.rules {
            let entry = try entry(of: rule.policy, &pinsets)
            for certificate in clientCertificates {
                let both = rule.patterns.flatMap { pattern in
                    certificate.patterns.compactMap { pattern.intersection($0) }
                }
                if !both.isEmpty {
                    entries.append(entry.matching(both, showing: certificate))
                }
            }
            entries.append(entry.matching(rule.patterns))
        }
        let entry = try entry(of: securityPolicy, &pinsets)
        entries += clientCertificates.map { entry.matching($0.patterns, showing: $0) }
        return (entries + [entry], pinsets)
    }

    private func entry(
        of policy: SecurityPolicy, _ pinsets: inout [PinsetEntry]
    ) throws(ClientError) -> HostEntry {
        var tls = UpstreamTLS(
            minimum: minimumTLS == .tls13 ? .tls13 : .tls12, roots: policy.roots)
        tls.profile = nil
        var entry = HostEntry(tls: tls)
        entry.name = "session"
        entry.http2 = httpVersion.ofServers
        entry.cacheStores = cacheMemoryBytes > 0
        entry.cacheKeyFields = ["authorization"]
        // If TLS would prove nothing, clear text is allowed.
        if policy.mode == .none { entry.clearText = .allow }
        guard let pinset = policy.pinset else { return entry }
        if let problem = pinset.configurationError { throw ClientError(problem) }
        entry.pinsets = [pinsets.count]
        pinsets.append(PinsetEntry(pinset: pinset))
        return entry
    }

    private var limits: LimitsConfiguration {
        var limits = LimitsConfiguration()
        limits.headBytes = maximumHeadBytes
        limits.fields = maximumFields
        // The session's own queue decides which requests wait. The engine keeps connections for
        // requests that arrive at once: twice as many, so that none of ours waits for one. A
        // forwarding proxy counts as one host for the requests to all origins.
        let most = max(1, maximumRequests).addingReportingOverflow(max(0, maximumEventStreams))
        limits.connections = 2 * (most.overflow ? 1 << 20 : min(most.partialValue, 1 << 20)) + 2
        limits.upstreamPerHost = limits.connections
        return limits
    }

    /// Each transfer checks its idle time itself, because it may differ between requests. The
    /// engine's timeouts are only a backstop.
    private static let longMilliseconds: Int64 = 30 * 24 * 3600 * 1000

    private var timeouts: TimeoutsConfiguration {
        var timeouts = TimeoutsConfiguration()
        timeouts.connectMilliseconds = max(1, connectTimeout.wholeMilliseconds)
        timeouts.idleMilliseconds = idleConnectionTimeout.wholeMilliseconds
        timeouts.firstByteMilliseconds = Self.longMilliseconds
        timeouts.bodyMilliseconds = Self.longMilliseconds
        timeouts.eventStreamMilliseconds = Self.longMilliseconds
        // Tasks are independent: the request of one may be late, or suspended, and others must not
        // wait for it.
        timeouts.collapseMilliseconds = 0
        return timeouts
    }
}

extension HostEntry {
    /// The same for hosts with one of these patterns, with a client certificate for them.
    fileprivate func matching(
        _ patterns: [HostPattern], showing certificate: ClientCertificate? = nil
    ) -> HostEntry {
        var entry = self
        entry.match = patterns
        if let certificate { entry.tls.clientIdentity = certificate.identity }
        return entry
    }
}

/// The minimum TLS version.
public enum TLSMinimumVersion: String, Sendable, Hashable, CaseIterable {
    /// TLS 1.2 (RFC 5246).
    case tls12 = "1.2"
    /// TLS 1.3 (RFC 8446).
    case tls13 = "1.3"
}

/// Which versions of HTTP are spoken with a server.
public enum HTTPVersionChoice: Sendable, Hashable, CaseIterable {
    /// HTTP/2 if the server selects it in the TLS handshake (ALPN, RFC 7301), otherwise HTTP/1.1.
    case automatic
    /// HTTP/1.1 alone, which is all that the server is offered.
    case http1Only
    /// HTTP/2 alone. Over TLS, a server that does not select it is refused. In clear text, it is
    /// spoken from the first byte, because nothing can be agreed on there (prior knowledge, RFC
    /// 9113 section 3.3): only for servers that are known to speak it.
    case http2Only

    /// The same for the engine.
    var ofServers: ServerHTTP2 {
        switch self {
        case .automatic: .auto
        case .http1Only: .off
        case .http2Only: .require
        }
    }
}

/// The order in which queued requests are started.
public enum QueueOrder: Sendable, Hashable, CaseIterable {
    /// The request that has waited longest is next.
    case firstInFirstOut
    /// The request that was queued last is next.
    case lastInFirstOut
}

/// Options for a single request.
public struct RequestOptions: Sendable {
    /// Overrides ``SessionConfiguration/requestTimeout``.
    public var timeout: Duration?
    /// Overrides ``SessionConfiguration/queueTimeout``.
    public var queueTimeout: Duration?
    /// How the session's cache may be used.
    public var cachePolicy = RequestProperties.CachePolicy.useProtocol
    /// Which versions of HTTP are spoken with the server, or `nil` for
    /// ``SessionConfiguration/httpVersion``. A session of HTTP/1.1 has no request over HTTP/2. With
    /// one of HTTP/2, a request of HTTP/1.1 fails, as does one of ``HTTPVersionChoice/http2Only``
    /// in any other session (``ClientError/Reason/invalidConfiguration``).
    public var httpVersion: HTTPVersionChoice?
    /// The request's priority while it is queued, and that of its response in the eyes of the
    /// server, which is told if it is not the usual one. A Priority field set by the caller is sent
    /// unchanged.
    public var priority = RequestPriority.normal
    /// Overrides ``SessionConfiguration/proxies``.
    public var proxies: ProxyConfiguration?
    /// Overrides ``SessionConfiguration/redirects``.
    public var redirects: RedirectRule?
    /// Overrides ``SessionConfiguration/retries``.
    public var retries: RetryPolicy?
    /// Overrides ``SessionConfiguration/resendsUnansweredRequests``.
    public var resendsUnansweredRequests: Bool?
    /// An interceptor for this request, which comes before ``SessionConfiguration/interceptor``.
    public var interceptor: (any RequestInterceptor)?
    /// Whether cookies of ``SessionConfiguration/cookies`` are sent, and those of the response
    /// stored (`HTTPShouldHandleCookies`).
    public var handlesCookies = true
    /// Overrides ``SessionConfiguration/decodesContent``.
    public var decodesContent: Bool?
    /// Overrides ``SessionConfiguration/maximumContentBytes``.
    public var maximumContentBytes: Int?
    /// How the content of the request is compressed, or `nil` if it is sent as it is. Content in
    /// memory is compressed before it is sent; other content while it is sent, in chunks, because
    /// its length is then not known. If the request has a Content-Encoding, its content is
    /// compressed already, and left alone.
    public var compression: RequestCompression?
    /// How long the content of the request waits for the server to ask for it, or `nil` if it is
    /// sent at once. The request then has `Expect: 100-continue` (RFC 9110 section 10.1.1).
    ///
    /// The content is sent when the server asks for it, or when the time is over: many servers do
    /// not know this. If it responds instead, the content is not sent, and content that can be read
    /// only once is still there for a redirect, for credentials or for a retry. If it refuses the
    /// expectation (417), the request is sent once more without. Requests without content do not
    /// wait, nor do those that a ``SessionConfiguration/transport`` answers, which reads what it
    /// wants.
    public var continueTimeout: Duration?
    /// Overrides ``HTTPSessionManager/parameterStyle``.
    public var parameterStyle: ParameterStyle?
    /// Overrides ``HTTPSessionManager/encoder``.
    public var encoder: JSONEncoderFactory?
    /// Overrides ``HTTPSessionManager/decoder``.
    public var decoder: JSONDecoderFactory?
    /// Receives the progress of the transfer.
    public var progress: TransferProgress?
    /// The kind of stream if the response has no defined end, otherwise `nil`.
    var stream: StreamKind?

    /// Creates options with default values.
    public init() {}

    /// Creates options from a serializer's properties.
    init(_ properties: RequestProperties) {
        timeout = properties.timeout
        cachePolicy = properties.cachePolicy ?? .useProtocol
        priority =
            switch properties.serviceType {
            case .background: .low
            case .responsive: .high
            case .standard, nil: .normal
            }
        handlesCookies = properties.handlesCookies ?? true
    }
}
