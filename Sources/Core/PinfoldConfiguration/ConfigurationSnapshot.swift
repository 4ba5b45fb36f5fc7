import HTTPCore

/// One validated, immutable configuration: everything the gateway needs to know, with every default
/// filled in, every path absolute and every file it names already read.
///
/// The target `ConfigurationFile` creates a snapshot from a file; once in force, it never changes.
/// A reload creates another one; the process numbers them (the generation is not part of the
/// configuration, so that two loads of the same text are equal).
package struct ConfigurationSnapshot: Sendable, Equatable {
    /// Whether the configuration is read again when its files change.
    package var watch = false
    /// The number of threads that each run an event loop.
    package var workers: WorkerCount
    /// The gateway's name in messages (`via`); `nil` for its own.
    package var via: GatewayName?
    /// The listening sockets for clients, at least one, in the order written.
    package var listeners: [ListenerConfiguration]
    /// The administrative listener: metrics, health, live page, API.
    package var admin: AdminConfiguration
    /// Against what clients prove who they are, where a listener wants to know.
    package var authentication: AuthenticationConfiguration
    /// Who may connect, and to what.
    package var access: AccessConfiguration
    /// The other proxies through which servers may be reached, in the order written.
    package var parents: [ParentConfiguration] = []
    /// By which ways servers are reached unless a host entry says otherwise.
    package var ways = WaysConfiguration()
    /// The settings of hosts, in the order written: the first matching entry applies.
    package var hosts: HostTable
    /// The named pinsets, in the order written. ``HostEntry/pinsets`` holds indices into it.
    package var pinsets: [PinsetEntry]
    /// Of which servers the keys are remembered.
    package var pinObservation = PinObservationConfiguration()
    /// Which tunnels are intercepted, and the authority that issues certificates for them.
    package var interception: InterceptionConfiguration
    /// How upstream servers are verified unless a host entry overrides it.
    package var tls: UpstreamTLS
    /// The two tiers of the response cache.
    package var cache: CacheConfiguration
    /// Which name servers are used, and how long answers are kept.
    package var resolver: ResolverConfiguration
    /// The delays of the activity indicator.
    package var activity: ActivityConfiguration
    /// The limits on sizes.
    package var limits: LimitsConfiguration
    /// The limits on times.
    package var timeouts: TimeoutsConfiguration
    /// The operational log's level and the access log.
    package var log: LogConfiguration
    /// How the gateway says that it did not serve a request.
    package var errorReplies = ErrorRepliesConfiguration()
    /// The traces that exchanges belong to.
    package var tracing = TracingConfiguration()
    /// Where a policy comes from; `nil` if nothing does.
    package var policy: PolicyConfiguration?
    /// The policy that is in it; `nil` if none is.
    package var policyInForce: PolicyInForce?
    /// The environment variables whose values it has, for whoever prints them.
    package var variables = UsedVariables()

    /// Creates a configuration with these values, and defaults for the rest.
    package init(
        workers: WorkerCount, via: GatewayName? = nil, listeners: [ListenerConfiguration],
        admin: AdminConfiguration = AdminConfiguration(),
        authentication: AuthenticationConfiguration = AuthenticationConfiguration(),
        access: AccessConfiguration = AccessConfiguration(),
        hosts: HostTable = HostTable(entries: []), pinsets: [PinsetEntry] = [],
        interception: InterceptionConfiguration = InterceptionConfiguration(),
        tls: UpstreamTLS = UpstreamTLS(), cache: CacheConfiguration = CacheConfiguration(),
        resolver: ResolverConfiguration = ResolverConfiguration(),
        activity: ActivityConfiguration = ActivityConfiguration(),
        limits: LimitsConfiguration = LimitsConfiguration(),
        timeouts: TimeoutsConfiguration = TimeoutsConfiguration(),
        log: LogConfiguration = LogConfiguration()
    ) {
        self.workers = workers
        self.via = via
        self.listeners = listeners
        self.admin = admin
        self.authentication = authentication
        self.access = access
        self.hosts = hosts
        self.pinsets = pinsets
        self.interception = interception
        self.tls = tls
        self.cache = cache
        self.resolver = resolver
        self.activity = activity
        self.limits = limits
        self.timeouts = timeouts
        self.log = log
    }

    /// Whether a connection, TLS session or stored response obtained under `other` may still be
    /// used under this configuration: true if nothing differs that decides whom to trust and what
    /// may be reached, and how (`access` except its rules, `parents`, `ways`, `hosts`, `pinsets`
    /// except `reportTo`, and `tls`).
    package func hasSamePolicy(as other: ConfigurationSnapshot) -> Bool {
        access.reachesTheSame(as: other.access) && hosts == other.hosts && tls == other.tls
            && parents == other.parents && ways == other.ways
            && pinsets.count == other.pinsets.count
            && zip(pinsets, other.pinsets).allSatisfy { $0.evaluatesAlike($1) }
    }

    /// The gateway's name in messages about the hosts of an entry; `nil` for its own.
    package func name(entry index: Int?) -> GatewayName? {
        index.flatMap { hosts.entries[$0].via } ?? via
    }

    /// All names that the gateway uses; `nil` if there is only its own.
    package var names: [GatewayName]? {
        let names = [via] + hosts.entries.indices.map { name(entry: $0) }
        return names.allSatisfy { $0 == nil } ? nil : names.map { $0 ?? .own }
    }

    /// Whether any listener wants to know who is asking.
    package var asksWho: Bool { listeners.contains { !$0.authentication.isEmpty } }

    /// Whether responses of an entry's hosts are looked up and stored.
    /// - Parameter index: The entry that applies to host and port; `nil` if there is none.
    package func cacheStores(entry index: Int?) -> Bool {
        cache.isEnabled && (index.map { hosts.entries[$0].cacheStores } ?? true)
    }

    /// The host entry that applies to a request, or `nil` if none matches.
    /// - Parameters:
    ///   - host: The host name in lower case, or the address without brackets; no port.
    ///   - port: The port of the request's target.
    @inlinable
    package func hostEntry(host: Span<UInt8>, port: UInt16) -> Int? {
        hosts.index.entry(host: host, port: port) ?? hosts.everyOther
    }

    /// The same for bytes in memory that the caller keeps valid during the call.
    @inlinable
    package func hostEntry(host: UnsafeRawBufferPointer, port: UInt16) -> Int? {
        hosts.index.entry(host: host, port: port) ?? hosts.everyOther
    }
}

/// The number of worker threads.
package enum WorkerCount: Sendable, Equatable {
    /// One per core that the process may use; the value is the number of cores when the
    /// configuration was loaded.
    case auto(cores: Int)
    /// The number in the configuration.
    case fixed(Int)

    /// The number of threads to start, at least one.
    package var count: Int {
        switch self {
        case .auto(let cores): max(1, cores)
        case .fixed(let count): count
        }
    }
}
