import Activity
import EventLoop
import HTTPTypes
import Locking
import Logging
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS

/// Sends requests that share connections, trust, a cache and limits: what AFNetworking's
/// `AFURLSessionManager` is.
///
///     let session = try SessionManager()
///     let response = try await session.data(for: HTTPRequest(.get, "https://example.com/"))
///     print(response.head.status, response.content.count)
///
/// It is used by any number of tasks at a time. When nobody holds it any more, its connections are
/// closed as soon as its last request has ended.
public final class SessionManager: Sendable {
    /// What it was made with.
    public let configuration: SessionConfiguration
    /// What the session answers challenges with.
    public let credentials = CredentialStore()
    let runtime: ClientRuntime
    let number: UInt64
    /// The environment's variables are those of the session's beginning.
    let proxyRules: ProxyRules
    /// Responses kept to answer the same requests again; nil where
    /// ``SessionConfiguration/cacheMemoryBytes`` is 0.
    public let cache: SessionCache?
    /// Runs completion handlers.
    let callbacks: CallbackLine
    /// What servers' certificates are held to, among others.
    let policy: PolicySnapshot
    /// The tasks under way.
    let registry: TaskRegistry
    /// The configuration's timeouts, in milliseconds.
    private let requestMilliseconds: Int64
    private let queueMilliseconds: Int64?
    private let resourceMilliseconds: Int64

    /// - Parameters:
    ///   - configuration: By default that of every client: valid chains of the system's trust
    ///     anchors, no cache, redirects are followed.
    ///   - runtime: The thread that carries it out; nil: ``ClientRuntime/shared()``.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidSecurityPolicy`` for a policy
    ///   that nobody could pass, with ``ClientError/Reason/outOfResources`` where the system gives
    ///   no thread or descriptor.
    public init(
        configuration: SessionConfiguration = SessionConfiguration(),
        runtime: ClientRuntime? = nil
    ) throws(ClientError) {
        let runtime = if let runtime { runtime } else { try ClientRuntime.shared() }
        self.configuration = configuration
        self.runtime = runtime
        requestMilliseconds = configuration.requestTimeout.wholeMilliseconds
        queueMilliseconds = configuration.queueTimeout?.wholeMilliseconds
        resourceMilliseconds = configuration.resourceTimeout.wholeMilliseconds
        number = runtime.nextNumber()
        proxyRules = ProxyRules(configuration.proxies)
        let callbacks = CallbackLine(configuration.callbacks)
        self.callbacks = callbacks
        cache = try SessionCache(configuration, runtime)
        registry = TaskRegistry(
            callbacks, configuration.observer, configuration.activityIndicator
        ) { [poster = runtime.poster, number] in
            poster(.close(session: number, cancelling: false))
        }
        let parts = try Self.parts(number, configuration, runtime, cache, registry)
        policy = parts.policy
        guard runtime.post(.open(parts)) else { throw ClientError.sessionInvalidated() }
    }

    deinit { registry.invalidate() }

    /// Ends the session: no further task begins, and connections are closed when the last one has
    /// ended. Tasks that begin later fail with ``ClientError/Reason/sessionInvalidated``.
    ///
    /// - Parameter cancelling: Tasks under way fail, too, instead of going on to their end.
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
        let shared = SharedEnvironment(
            mailboxes: [mailbox], resolver: runtime.resolver, store: cache?.store,
            logger: Logger(label: "pinfold.client") { _ in SwiftLogNoOpLogHandler() },
            labels: labels,
            activity: ActivityMonitor(
                delays: ActivityDelays(activationMilliseconds: 0, completionMilliseconds: 0)),
            reviewer: configuration.challenges.map { ServerTrust.reviewer($0) })
        // Nobody reads these counters; the engine's code writes them.
        let dimensions = MetricsDimensions(reasons: Reason.tokens.count)
        return SessionParts(
            number: number, policy: policy, shared: shared,
            metrics: WorkerMetrics(dimensions: dimensions),
            queue: RequestQueue(
                perOrigin: configuration.maximumRequestsPerOrigin,
                total: configuration.maximumRequests, order: configuration.queueOrder),
            webSockets: configuration.maximumWebSockets,
            eventStreams: configuration.maximumEventStreams, cache: cache,
            ended: { registry.sessionEnded($0) })
    }

    // MARK: Sending

    /// A request with the fields that the session and its options add to it. It is asked for once,
    /// before redirects: what these leave out stays out.
    func completed(_ request: HTTPRequest, _ options: RequestOptions) -> HTTPRequest {
        var completed = request
        let present = completed.headerFields
        for field in configuration.fields where !present.contains(field.name) {
            completed.headerFields.append(field)
        }
        options.cachePolicy.apply(to: &completed.headerFields)
        if options.decodesContent ?? configuration.decodesContent,
            !completed.headerFields.contains(.acceptEncoding)
        {
            completed.headerFields.append(ContentDecoding.accept(in: completed.headerFields))
        }
        return completed
    }

    /// Begins one exchange of a task.
    ///
    /// - Parameters:
    ///   - authentication: Nil: the task has no credentials of its own.
    ///   - remainingTime: How long it may take, waiting for its turn included.
    ///   - fresh: Only a connection that carried no request before will do.
    func transfer(
        _ request: HTTPRequest, _ content: RequestContent?, _ options: RequestOptions,
        _ authentication: TaskAuthentication?, remainingTime: Duration, fresh: Bool = false
    ) throws(ClientError) -> TransferChannel {
        guard let origin = request.origin, origin.scheme == "http" || origin.scheme == "https"
        else {
            throw ClientError(
                .invalidRequest, "expected an http or https URL with a valid authority",
                of: request)
        }
        let proxy = try proxyRoute(of: request, to: origin, options, authentication)
        // Here, and not on the loop, which others wait for.
        if origin.scheme == "https" {
            policy.prepareTLS(host: origin.host, port: UInt16(origin.port))
        }
        if proxy?.proxy.isSecure ?? false { policy.prepareTLSOfProxies() }
        let channel = TransferChannel(
            runtime.nextNumber(), on: runtime,
            progress: options.progress?.begins(sending: content.map(\.length) ?? 0))
        let milliseconds = options.timeout?.wholeMilliseconds ?? requestMilliseconds
        let queue = options.queueTimeout?.wholeMilliseconds ?? queueMilliseconds ?? milliseconds
        let order = TransferOrder(
            session: number, number: channel.number,
            origin: options.stream?.output == nil ? origin : origin.ofHandshakes,
            head: try RequestHeadText.make(
                of: request, framing: content?.framing ?? Self.framing(of: request.method),
                asksForUpgrade: options.stream?.output != nil),
            content: content?.outgoing(on: runtime) ?? .none,
            contentHasEnd: content.map { $0.length != nil } ?? true, priority: options.priority,
            idleMilliseconds: max(1, milliseconds), queueMilliseconds: max(1, queue),
            remainingMilliseconds: max(1, remainingTime.wholeMilliseconds),
            totalMilliseconds: resourceMilliseconds,
            channel: channel, needsFreshConnection: fresh, proxy: proxy, stream: options.stream,
            takesWhatIsStored: options.cachePolicy.takesWhatIsStored)
        guard runtime.post(.begin(order)) else {
            order.content.close()
            throw ClientError.sessionInvalidated().about(request)
        }
        return channel
    }

    /// Methods whose requests usually have content say that they have none (RFC 9110 section 8.6).
    private static func framing(of method: HTTPRequest.Method) -> RequestHeadText.Framing {
        method == .post || method == .put || method == .patch ? .length(0) : .none
    }
}
