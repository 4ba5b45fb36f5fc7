import EventLoop
import HTTPTypes
import Locking
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS

/// Sends requests that share connections, a security policy, a cache and limits. This corresponds
/// to AFNetworking's `AFURLSessionManager`.
///
///     let session = try SessionManager()
///     let response = try await session.data(for: HTTPRequest(.get, "https://example.com/"))
///     print(response.head.status, response.content.count)
///
/// It can be used by any number of tasks concurrently. When its last reference is released, its
/// connections are closed as soon as its last request has ended.
public final class SessionManager: Sendable {
    /// The configuration with which the session was created.
    public let configuration: SessionConfiguration
    /// The credentials with which the session answers challenges.
    public let credentials = CredentialStore()
    /// The runtime that carries out its requests.
    public let runtime: ClientRuntime
    let number: UInt64
    /// The proxy rules, with the environment's variables as of the session's creation.
    let proxyRules: ProxyRules
    /// The cache of responses, or `nil` if ``SessionConfiguration/cacheMemoryBytes`` is 0.
    public let cache: SessionCache?
    /// Runs completion handlers.
    package let callbacks: CallbackQueue
    /// The policy in the engine's form. Among other things, server certificates are evaluated with
    /// it.
    let policy: PolicySnapshot
    /// The active tasks.
    let registry: TaskRegistry
    /// Ends tasks whose interceptors take too long.
    let interceptorWatch: InterceptorWatch
    /// The configuration's timeouts in milliseconds.
    private let requestMilliseconds: Int64
    private let queueMilliseconds: Int64?
    private let resourceMilliseconds: Int64

    /// Creates a session.
    ///
    /// - Parameters:
    ///   - configuration: The configuration. The default requires valid chains to the system's
    ///     trust anchors, has no cache, and follows redirects.
    ///   - runtime: The session's runtime, or `nil` for ``ClientRuntime/shared()``.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidSecurityPolicy`` if the policy
    ///   would reject every server, or if the transport leads to a session that lacks the policies
    ///   or client certificates (see ``SessionManager/transport``), or with
    ///   ``ClientError/Reason/outOfResources`` if the system cannot provide a thread or a
    ///   descriptor.
    public init(
        configuration: SessionConfiguration = SessionConfiguration(),
        runtime: ClientRuntime? = nil
    ) throws(ClientError) {
        try configuration.checkTransport()
        let runtime = if let runtime { runtime } else { try ClientRuntime.shared() }
        self.configuration = configuration
        self.runtime = runtime
        requestMilliseconds = configuration.requestTimeout.wholeMilliseconds
        queueMilliseconds = configuration.queueTimeout?.wholeMilliseconds
        resourceMilliseconds = configuration.resourceTimeout.wholeMilliseconds
        number = runtime.nextNumber()
        interceptorWatch = InterceptorWatch(configuration.resourceTimeout)
        proxyRules = ProxyRules(configuration.proxies)
        let callbacks = CallbackQueue(configuration.callbacks)
        self.callbacks = callbacks
        cache = try SessionCache(configuration, runtime)
        registry = TaskRegistry(
            callbacks, configuration.observer, configuration.activityIndicator,
            monitors: configuration.eventMonitors
        ) { [poster = runtime.poster, number] in
            poster(.close(session: number, cancelling: false))
        }
        let parts = try Self.parts(number, configuration, runtime, cache, registry)
        policy = parts.policy
        guard runtime.post(.open(parts)) else { throw ClientError.sessionInvalidated() }
    }

    deinit { registry.invalidate() }

    /// Invalidates the session: no more tasks are started, and connections are closed when the last
    /// task has ended. Tasks started later fail with ``ClientError/Reason/sessionInvalidated``.
    ///
    /// - Parameter cancelling: Whether active tasks fail, too, instead of continuing to their end.
    public func invalidate(cancelling: Bool = false) {
        registry.invalidate()
        guard cancelling else { return }
        for task in tasks { task.cancel(.sessionInvalidated()) }
        runtime.post(.close(session: number, cancelling: true))
    }

    private static func parts(
        _ number: UInt64, _ configuration: SessionConfiguration, _ runtime: ClientRuntime,
        _ cache: SessionCache?, _ registry: TaskRegistry
    ) throws(ClientError) -> SessionParts {
        let labels = RouteLabels()
        let snapshot = try configuration.snapshot()
        let policy: PolicySnapshot
        do throws(TLSContextError) {
            policy = try PolicySnapshot(
                snapshot, generation: 1, sessions: TLSSessionCache(),
                showsChains: configuration.challenges != nil, preparesTLS: false,
                labels: labels
            ) { EntryReachability(label: $0) }
        } catch {
            throw ClientError(error)
        }
        let mailbox: Mailbox<EngineMessage>
        do throws(Errno) {
            mailbox = try Mailbox<EngineMessage>()
        } catch {
            throw ClientError(.outOfResources, "no descriptor: \(error)", underlying: error)
        }
        let places = SessionPlaces(configuration.connections)
        let shared = SharedEnvironment(
            mailboxes: [mailbox], resolver: runtime.resolver, store: cache?.store,
            labels: labels, reviewer: configuration.challenges.map { ServerTrust.reviewer($0) },
            names: places)
        // Nobody reads these counters, but the engine's code writes them.
        let dimensions = MetricsDimensions(reasons: Reason.tokens.count)
        return SessionParts(
            number: number, policy: policy, shared: shared,
            metrics: WorkerMetrics(dimensions: dimensions),
            queue: RequestQueue(
                perOrigin: configuration.maximumRequestsPerOrigin,
                total: configuration.maximumRequests, order: configuration.queueOrder),
            webSockets: configuration.maximumWebSockets,
            eventStreams: configuration.maximumEventStreams, cache: cache,
            transport: configuration.transport.map {
                TransportParts(transport: $0, configuration: configuration)
            },
            connections: configuration.connections, places: places,
            ended: { registry.sessionEnded($0) })
    }

    // MARK: Sending

    /// Returns a request with the fields added by the session and the options. It is called once,
    /// before redirects: fields removed by these are not added again.
    func completed(_ request: HTTPRequest, _ options: RequestOptions) -> HTTPRequest {
        var completed = request
        let present = completed.headerFields
        for field in configuration.fields where !present.contains(field.name) {
            completed.headerFields.append(field)
        }
        options.cachePolicy.apply(to: &completed.headerFields)
        options.priority.apply(to: &completed.headerFields)
        if options.decodesContent ?? configuration.decodesContent,
            !completed.headerFields.contains(.acceptEncoding)
        {
            completed.headerFields.append(ContentDecoding.accept(in: completed.headerFields))
        }
        return completed
    }

    /// Starts an exchange of a task.
    ///
    /// - Parameters:
    ///   - authentication: The task's authentication state, or `nil` if it has no credentials of
    ///     its own.
    ///   - remainingTime: The maximum time for the exchange, including the time in the queue.
    ///   - fresh: Whether only a connection that has carried no request yet may be used.
    ///   - expecting: Whether the content may wait for the server to ask for it.
    func transfer(
        _ request: HTTPRequest, _ content: RequestContent?, _ options: RequestOptions,
        _ authentication: TaskAuthentication?, remainingTime: Duration, fresh: Bool = false,
        expecting: Bool = true
    ) throws(ClientError) -> TransferChannel {
        guard let origin = request.origin, origin.scheme == "http" || origin.scheme == "https"
        else {
            throw ClientError(
                .invalidRequest, "expected an http or https URL with a valid authority",
                of: request)
        }
        guard configuration.transport == nil || options.stream?.output == nil else {
            throw ClientError(
                .invalidConfiguration, "a session with a transport opens no WebSockets",
                of: request)
        }
        let proxy = try proxyRoute(of: request, to: origin, options, authentication)
        prepareTLS(with: origin, through: proxy)
        let channel = TransferChannel(
            runtime.nextNumber(), on: runtime,
            progress: options.progress?.begins(sending: content.map(\.length) ?? 0))
        let milliseconds = options.timeout?.wholeMilliseconds ?? requestMilliseconds
        let queue = options.queueTimeout?.wholeMilliseconds ?? queueMilliseconds ?? milliseconds
        let wait =
            expecting && content != nil && content?.length != 0
            ? configuration.continueTimeout(options) : nil
        let transferRequest = TransferRequest(
            session: number, number: channel.number,
            origin: options.stream?.output == nil ? origin : origin.handshakeOrigin,
            head: try RequestHeadText.make(
                of: request, framing: content?.framing ?? Self.framing(of: request.method),
                asksForUpgrade: options.stream?.output != nil, expectsContinue: wait != nil),
            content: content?.outgoing(on: runtime) ?? .none,
            contentHasEnd: content.map { $0.length != nil } ?? true, priority: options.priority,
            idleMilliseconds: max(1, milliseconds), queueMilliseconds: max(1, queue),
            remainingMilliseconds: max(1, remainingTime.wholeMilliseconds),
            totalMilliseconds: resourceMilliseconds,
            channel: channel, needsFreshConnection: fresh, proxy: proxy, stream: options.stream,
            acceptsAnyStored: options.cachePolicy.acceptsAnyStored,
            speaksOnlyHTTP1: try speaksOnlyHTTP1(request, options),
            continueMilliseconds: wait?.wholeMilliseconds,
            describesConnection: registry.describesConnections)
        guard runtime.post(.begin(transferRequest)) else {
            transferRequest.content.close()
            throw ClientError.sessionInvalidated().about(request)
        }
        return channel
    }

    /// Whether a request is made over HTTP/1.1 alone, although the session may speak HTTP/2.
    func speaksOnlyHTTP1(
        _ request: HTTPRequest, _ options: RequestOptions
    ) throws(ClientError) -> Bool {
        guard let version = options.httpVersion else { return false }
        let session = configuration.httpVersion
        switch (version, session) {
        case (.automatic, _), (.http2Only, .http2Only): return false
        case (.http1Only, .automatic), (.http1Only, .http1Only): return true
        case (.http1Only, .http2Only), (.http2Only, .automatic), (.http2Only, .http1Only):
            throw ClientError(
                .invalidConfiguration,
                "a request with httpVersion .\(version) in a session with .\(session)",
                of: request)
        }
    }

    /// Makes what TLS needs here and not on the loop, for which others wait.
    func prepareTLS(with origin: RequestOrigin, through proxy: ProxyRoute?) {
        if origin.scheme == "https", configuration.transport == nil {
            policy.prepareTLS(host: origin.host, port: UInt16(origin.port))
        }
        if proxy?.proxy.isSecure ?? false { policy.prepareTLSOfProxies() }
    }

    /// A method that usually has content declares that there is none (RFC 9110 section 8.6).
    private static func framing(of method: HTTPRequest.Method) -> RequestHeadText.Framing {
        method == .post || method == .put || method == .patch ? .length(0) : .none
    }
}
