/// One validated, immutable configuration: everything the gateway needs to know, with every
/// default filled in, every path absolute and every file it names already read.
///
/// The target `ConfigurationFile` makes a snapshot from a file; in force, it never changes. A
/// reload makes another one; the process numbers them (that generation is not part of the
/// configuration itself, so that two loads of the same text are equal).
package struct ConfigurationSnapshot: Sendable, Equatable {
    /// How many threads run a loop each.
    package var workers: WorkerCount
    /// The listening sockets for clients, at least one, in the order written.
    package var listeners: [ListenerConfiguration]
    /// The administrative listener: metrics, health, live page, API.
    package var admin: AdminConfiguration
    /// Who may connect, and where to.
    package var access: AccessConfiguration
    /// What applies to which host, in the order written: the first matching entry applies.
    package var hosts: HostTable
    /// The named pinsets, in the order written. ``HostEntry/pinsets`` holds indexes into it.
    package var pinsets: [PinsetEntry]
    /// Which tunnels are intercepted, and by whose authority.
    package var interception: InterceptionConfiguration
    /// How upstream servers are verified where a host entry does not say otherwise.
    package var tls: UpstreamTLS
    /// The two tiers of the response cache.
    package var cache: CacheConfiguration
    /// Where names are resolved, and how long answers are kept.
    package var resolver: ResolverConfiguration
    /// The delays of the activity indicator.
    package var activity: ActivityConfiguration
    /// The sizes that nothing may exceed.
    package var limits: LimitsConfiguration
    /// The times that nothing may exceed.
    package var timeouts: TimeoutsConfiguration
    /// The operational log's level and the access log.
    package var log: LogConfiguration

    /// A configuration of these values, and the defaults for the rest.
    package init(
        workers: WorkerCount, listeners: [ListenerConfiguration],
        admin: AdminConfiguration = AdminConfiguration(),
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
        self.listeners = listeners
        self.admin = admin
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
    /// used under this configuration: true when nothing differs that decides whom to trust and
    /// what may be reached (`access`, `hosts`, `pinsets` but for `reportTo`, and `tls`).
    package func hasSamePolicy(as other: ConfigurationSnapshot) -> Bool {
        access == other.access && hosts == other.hosts && tls == other.tls
            && pinsets.count == other.pinsets.count
            && zip(pinsets, other.pinsets).allSatisfy { $0.judgesAlike($1) }
    }

    /// Whether responses of the hosts of an entry are looked up and stored.
    /// - Parameter index: The entry that applies to host and port; nil for none.
    package func cacheStores(entry index: Int?) -> Bool {
        cache.isEnabled && (index.map { hosts.entries[$0].cacheStores } ?? true)
    }

    /// The host entry that applies to a request, or nil when none matches.
    /// - Parameters:
    ///   - host: The host name in lower case, or the address without brackets; no port.
    ///   - port: The port of the request's target.
    @inlinable
    package func hostEntry(host: Span<UInt8>, port: UInt16) -> Int? {
        hosts.index.entry(host: host, port: port) ?? hosts.everyOther
    }

    /// The same for bytes in memory that the caller keeps alive during the call.
    @inlinable
    package func hostEntry(host: UnsafeRawBufferPointer, port: UInt16) -> Int? {
        hosts.index.entry(host: host, port: port) ?? hosts.everyOther
    }
}

/// The number of worker threads.
package enum WorkerCount: Sendable, Equatable {
    /// One per online core; the number found when the configuration was loaded.
    case auto(onlineCores: Int)
    /// The number written.
    case fixed(Int)

    /// The number of threads to start, at least one.
    package var count: Int {
        switch self {
        case .auto(let onlineCores): max(1, onlineCores)
        case .fixed(let count): count
        }
    }
}
