import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import PinfoldResolver
import PinfoldTLS

// An environment for what the program itself asks servers for: reports of pin failures, and what
// the command line finds out about a server. No client, no access rule and no pinset is involved.
extension Environment {
    /// Creates an environment for the program's own connections. It has no cache, logs nothing, and
    /// nobody reads its counters.
    ///
    /// - Parameters:
    ///   - loop: what carries everything out, in turns that are the caller's to run.
    ///   - policy: limits and timeouts (``PolicySnapshot/init(forOwnConnections:_:)``).
    package convenience init(
        standaloneOn loop: EventLoop, resolver: Resolver, policy: PolicySnapshot
    ) throws(Errno) {
        self.init(
            index: 0, loop: loop, policy: policy,
            shared: SharedEnvironment(mailboxes: [try Mailbox()], resolver: resolver),
            metrics: WorkerMetrics(dimensions: MetricsDimensions(reasons: Reason.tokens.count)))
        try start()
    }
}

extension PolicySnapshot {
    /// Creates a snapshot for the program's own connections. No server is judged by it: each
    /// connection has a context of its own.
    package convenience init(
        forOwnConnections timeouts: TimeoutsConfiguration,
        _ limits: LimitsConfiguration = LimitsConfiguration()
    ) throws(TLSContextError) {
        let configuration = ConfigurationSnapshot(
            workers: .fixed(1), listeners: [], limits: limits, timeouts: timeouts)
        try self.init(forQueries: configuration, preparesTLS: false)
    }
}

extension Origin {
    /// A server that the operator has named for the program's own requests. The rules on
    /// destinations do not apply to it, and with TLS it is verified by `context` alone.
    package convenience init(
        named server: UpstreamOrigin, context: TLSClientContext, policy: PolicySnapshot
    ) {
        self.init(
            key: Key(
                host: server.host, port: server.port, isSecure: server.scheme == .https,
                requestedPort: server.port, forwarding: ForwardingConfiguration()),
            policy: policy, entryIndex: nil, refusal: nil, match: DestinationRules.HostMatch(),
            context: context)
    }
}
