import HTTPCore
public import HTTPTypes
import PinfoldConfiguration
public import Retries
public import Serialization

/// How a session sends requests. A value: sessions keep the copy that they were made with.
public struct SessionConfiguration: Sendable {
    /// Whom the session trusts.
    public var securityPolicy = SecurityPolicy.default
    /// Which requests go through a proxy. By default what the environment says counts, as for
    /// other programs; ``securityPolicy`` applies to the servers behind a proxy all the same.
    public var proxies = ProxyConfiguration.environment
    /// The oldest version of TLS that is spoken.
    public var minimumTLS = TLSMinimumVersion.tls12
    /// Fields for requests that do not have them.
    public var fields: HTTPFields = [:]
    /// How long a connection may take to be made, TLS included, in each of its two steps.
    public var connectTimeout = Duration.seconds(10)
    /// How long nothing may move between client and server, from a request's beginning on. The time
    /// in which the caller does not read is not counted.
    public var requestTimeout = Duration.seconds(60)
    /// How long a request may wait for its turn, where it has to: counted from when one of those
    /// that it waits for last came nearer to its end, that is ended, began, had the head of its
    /// response, or moved content. Content whose length is not known (chunked, for instance) counts
    /// for ten times as long, since the request began or the head of the response came: it may have
    /// no end; and of a response only while it is read. Then it fails with
    /// ``ClientError/Reason/timedOut`` and a ``QueueTimeout``. Nil: the request's
    /// ``requestTimeout``.
    public var queueTimeout: Duration?
    /// How long a task may take in all: waiting for its turn, redirects, retries with the waits
    /// before them, and the content of the response.
    public var resourceTimeout = Duration.seconds(7 * 24 * 3600)
    /// How long a connection is kept for another request.
    public var idleConnectionTimeout = Duration.seconds(60)
    /// Requests under way to one origin (scheme, host and port) at a time, and so connections. More
    /// wait, for ``queueTimeout``. A request is under way until its response has been read, or is
    /// let go of. Event streams and open WebSockets do not count.
    public var maximumRequestsPerOrigin = 6
    /// Requests under way at a time in all; event streams and open WebSockets do not count.
    public var maximumRequests = 256
    /// Event streams (``EventSource``, and responses of type `text/event-stream`) at a time, over
    /// all origins: one ``EventSource`` more fails with ``ClientError/Reason/outOfResources``, and
    /// any other response counts as a request under way.
    public var maximumEventStreams = 256
    /// WebSockets that are open, or being opened, at a time: one more fails with
    /// ``ClientError/Reason/outOfResources``.
    public var maximumWebSockets = 256
    /// Which of the requests that wait is next, among those of one priority.
    public var queueOrder = QueueOrder.firstInFirstOut
    /// What is done with redirects.
    public var redirects = RedirectRule.follow()
    /// Which failures and statuses make a task send its request again, and when. By default none
    /// does, as with AFNetworking and Alamofire: the caller knows best what may be done twice.
    /// `RetryPolicy()` is a policy with sensible limits. Content that can be read once only is not
    /// sent again. A download whose content breaks off asks for the rest alone, where it can.
    public var retries = RetryPolicy.never
    /// A request whose kept connection its server closes without a byte of an answer is sent again,
    /// once and on a new connection, whatever its method, where its content can be sent again: as
    /// curl and browsers do. Mostly the server had closed an idle connection and has seen nothing;
    /// it may have failed in the middle of the work, too, which is then done twice. Requests whose
    /// method is idempotent (RFC 9110 section 9.2.2) are sent again in any case.
    public var resendsUnanswered = false
    /// Asked when a server wants credentials that the session does not have
    /// (``SessionManager/credentials``); nil: responses with challenges are the tasks' responses.
    ///
    /// Servers that redirects lead to ask, too, and proxies: a hook answers by
    /// ``AuthenticationChallenge/space`` (see ``ChallengeHook``).
    ///
    /// Basic is answered in clear text, too, as NSURLSession does: anybody on the way reads the
    /// password. A hook sees the scheme of ``AuthenticationChallenge/space`` and may refuse; with
    /// pins nothing is sent in clear text at all.
    public var challenges: ChallengeHook?
    /// Whether ``challenges`` has credentials for a server, whatever the realm: a challenge of its
    /// that cannot be read is then an error. Nil: nobody knows, and the response is the task's.
    package var answersOrigin: (@Sendable (ProtectionSpace) -> Bool)?
    /// What the session proves itself with to servers that ask for it, the first one that is for
    /// the server's host.
    public var clientCertificates: [ClientCertificate] = []
    /// Where cookies are kept; nil: nowhere, and none are sent. By default in memory, in a store of
    /// this configuration and its copies. A Cookie field of the caller's own is sent as it is, in
    /// place of the store's cookies.
    public var cookies: CookieStore? = CookieStore()
    /// Bytes of responses kept in memory to answer the same requests again, by the rules of RFC
    /// 9111 for private caches; 0: none are, and there is no cache at all. A response is kept if it
    /// is no larger than an eighth of this, or fits on disk.
    ///
    /// What was answered to one Authorization does not answer another. A response that sets a
    /// cookie is not kept.
    public var cacheMemoryBytes = 0
    /// Bytes of the cache's file below ``cacheDirectory``; 0: nothing is kept on disk.
    public var cacheDiskBytes = 0
    /// The folder of the cache's file, as an absolute path; it is made, for this user alone, where
    /// it is not there. One process at a time uses it, and one session: others go on in memory.
    public var cacheDirectory: String?
    /// Content codings (gzip, deflate, br) are asked for by Accept-Encoding, where a request does
    /// not have that field, and undone while the content arrives, whoever asked for them. The head
    /// of such a response has no Content-Encoding and no Content-Length. Parts of a whole (206) and
    /// codings that are not known are handed on as they are. Downloads leave codings as they are.
    public var decodesContent = true
    /// Bytes of content that is collected in memory, once it is decoded, if the caller does not
    /// say another number.
    public var maximumContentBytes = 256 << 20
    /// The longest head of a response, in bytes, and its fields.
    public var maximumHeadBytes = 64 << 10
    /// Fields that the head of a response has at most.
    public var maximumFields = 256
    /// Counts the session's tasks from when they begin to their end, those that are suspended
    /// left out; nil: none does. Nothing is shown until it is enabled.
    public var activityIndicator: ActivityIndicator? = .shared
    /// Where completion handlers run, one after the other.
    public var callbacks = CallbackExecution.serial
    /// Is told what happens, in order with the completion handlers and where these are called; see
    /// ``SessionManager/events()``, too.
    public var observer: (@Sendable (SessionEvent) -> Void)?

    /// Each setting at its default.
    public init() {}

    /// What the engine is told: one entry, for all hosts.
    func snapshot() throws(ClientError) -> ConfigurationSnapshot {
        var tls = UpstreamTLS(
            minimum: minimumTLS == .tls13 ? .tls13 : .tls12, roots: securityPolicy.roots)
        tls.profile = nil
        var entry = HostEntry(tls: tls)
        entry.name = "session"
        entry.cacheStores = cacheMemoryBytes > 0
        entry.cacheKeyFields = ["authorization"]
        // What proves nothing by TLS is not asked for it.
        if securityPolicy.mode == .none { entry.clearText = .allow }
        var pinsets: [PinsetEntry] = []
        if let pinset = securityPolicy.pinset {
            if let problem = pinset.problem {
                throw ClientError(problem)
            }
            pinsets = [PinsetEntry(pinset: pinset)]
            entry.pinsets = [0]
        }
        // Entries that differ by what their hosts are shown; the last one is for all others.
        var entries = clientCertificates.map { certificate in
            var shown = entry
            shown.match = certificate.patterns
            shown.tls.clientIdentity = certificate.identity
            return shown
        }
        entries.append(entry)
        var snapshot = ConfigurationSnapshot(
            workers: .fixed(1), listeners: [],
            hosts: HostTable(entries: entries, everyOther: entries.count - 1), pinsets: pinsets,
            tls: tls)
        snapshot.access.allow = DestinationList(
            networks: ["0.0.0.0/0", "::/0"].compactMap { IPNetwork($0) })
        snapshot.cache.isEnabled = cacheMemoryBytes > 0
        snapshot.cache.isShared = false
        snapshot.cache.memoryBytes = cacheMemoryBytes
        snapshot.cache.diskBytes = 0
        snapshot.limits = limits
        snapshot.timeouts = timeouts
        return snapshot
    }

    private var limits: LimitsConfiguration {
        var limits = LimitsConfiguration()
        limits.headBytes = maximumHeadBytes
        limits.fields = maximumFields
        // The session's own queue decides who waits. The engine keeps connections for requests that
        // arrive whole: twice as many, and none of ours waits for that. A proxy that forwards is
        // one host for the requests to all origins.
        let most = max(1, maximumRequests).addingReportingOverflow(max(0, maximumEventStreams))
        limits.connections = 2 * (most.overflow ? 1 << 20 : min(most.partialValue, 1 << 20)) + 2
        limits.upstreamPerHost = limits.connections
        return limits
    }

    /// How long nothing moves is looked at by each transfer, whose time may be another one; the
    /// engine's own times stand behind it.
    private static let longMilliseconds: Int64 = 30 * 24 * 3600 * 1000

    private var timeouts: TimeoutsConfiguration {
        var timeouts = TimeoutsConfiguration()
        timeouts.connectMilliseconds = max(1, connectTimeout.wholeMilliseconds)
        timeouts.idleMilliseconds = idleConnectionTimeout.wholeMilliseconds
        timeouts.firstByteMilliseconds = Self.longMilliseconds
        timeouts.bodyMilliseconds = Self.longMilliseconds
        timeouts.eventStreamMilliseconds = Self.longMilliseconds
        // Tasks do not depend on one another: what one asks for may come late, or be suspended.
        timeouts.collapseMilliseconds = 0
        return timeouts
    }
}

/// The oldest version of TLS that is spoken.
public enum TLSMinimumVersion: String, Sendable, Hashable, CaseIterable {
    /// TLS 1.2 (RFC 5246).
    case tls12 = "1.2"
    /// TLS 1.3 (RFC 8446).
    case tls13 = "1.3"
}

/// Which of the requests that wait is next.
public enum QueueOrder: Sendable, Hashable, CaseIterable {
    /// The one that has waited longest.
    case firstInFirstOut
    /// The one that came last.
    case lastInFirstOut
}

/// How soon a request that has to wait is sent, among those of its session.
public enum TaskPriorityLevel: Sendable, Hashable, CaseIterable, Comparable {
    /// After all others.
    case low
    /// After ``high``, before ``low``.
    case normal
    /// Before all others.
    case high

    /// The highest is 0.
    var index: Int {
        switch self {
        case .high: 0
        case .normal: 1
        case .low: 2
        }
    }
}

/// What is special about one request.
public struct RequestOptions: Sendable {
    /// In place of ``SessionConfiguration/requestTimeout``.
    public var timeout: Duration?
    /// In place of ``SessionConfiguration/queueTimeout``.
    public var queueTimeout: Duration?
    /// What the session's cache may answer.
    public var cachePolicy = RequestProperties.CachePolicy.useProtocol
    /// How soon it is sent where it has to wait.
    public var priority = TaskPriorityLevel.normal
    /// In place of ``SessionConfiguration/proxies``.
    public var proxies: ProxyConfiguration?
    /// In place of ``SessionConfiguration/redirects``.
    public var redirects: RedirectRule?
    /// In place of ``SessionConfiguration/retries``.
    public var retries: RetryPolicy?
    /// In place of ``SessionConfiguration/resendsUnanswered``.
    public var resendsUnanswered: Bool?
    /// Cookies of ``SessionConfiguration/cookies`` are sent, and those of responses kept
    /// (`HTTPShouldHandleCookies`).
    public var handlesCookies = true
    /// In place of ``SessionConfiguration/decodesContent``.
    public var decodesContent: Bool?
    /// In place of ``SessionConfiguration/maximumContentBytes``.
    public var maximumContentBytes: Int?
    /// Is told what moves.
    public var progress: TransferProgress?
    /// What the response is for, where that lasts; nil: it ends by itself.
    var stream: StreamKind?

    /// What the session does with any request.
    public init() {}

    /// What a serializer's properties say.
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
