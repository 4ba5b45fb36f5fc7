import HTTPCore

/// The two tiers of the response cache.
package struct CacheConfiguration: Sendable, Equatable {
    /// False: nothing is stored and nothing is answered from the cache.
    package var isEnabled = true
    /// Several users share it, as those of a gateway; else it is one client's own.
    package var isShared = true
    /// The memory tier's size; 0 means that nothing is kept in memory.
    package var memoryBytes = 64 << 20
    /// The disk tier's size; 0 means that there is no disk tier.
    package var diskBytes = 1 << 30
    /// Responses that the disk tier keeps at most.
    package var diskEntries = 524_288
    /// Variants (by Vary) that are kept of one URL.
    package var variantsPerURL = 64
    /// The absolute path of the folder of `cache.sqlite`; it need not exist yet.
    package var path = ""
    /// Where reports of pin failures wait until they are delivered: a folder beside the cache's
    /// database, whether there is a cache or not.
    package var reportFolder: String { inFolder("pin-reports") }
    /// The file that says when which pin matched, likewise.
    package var pinUseFile: String { inFolder("pin-use") }

    private func inFolder(_ name: String) -> String {
        path + (path.hasSuffix("/") ? "" : "/") + name
    }

    /// The largest body that is stored. A tier that is smaller than this stores less.
    package var maximumObjectBytes = 256 << 20
    /// Request fields, in lower case, that keep a request out of the cache where they are no part
    /// of its key.
    package var bypassFields = Self.defaultBypassFields

    /// The defaults.
    package init() {}

    /// Whether the store goes on as it is: the rest is policy, which a reload changes.
    package func hasSameStore(as other: CacheConfiguration) -> Bool {
        var policy = other
        policy.bypassFields = bypassFields
        return self == policy
    }

    /// Fields by which servers and frameworks are known to choose what they answer.
    package static let defaultBypassFields = [
        "forwarded", "x-forwarded-host", "x-forwarded-port", "x-forwarded-prefix",
        "x-forwarded-proto", "x-forwarded-scheme", "x-forwarded-server", "x-host",
        "x-http-method", "x-http-method-override", "x-method-override", "x-original-url",
        "x-rewrite-url",
    ]
}

/// Name resolution.
package struct ResolverConfiguration: Sendable, Equatable {
    /// Which servers are asked.
    package enum Servers: Sendable, Equatable {
        /// Those of the system (`/etc/resolv.conf`).
        case system
        /// These, in order; at least one.
        case list([Endpoint])
    }

    /// Which servers are asked.
    package var servers = Servers.system
    /// Answers are kept at least this long, whatever their TTL.
    package var minimumTTLSeconds: Int64 = 0
    /// Answers are kept at most this long, whatever their TTL; not less than the minimum.
    package var maximumTTLSeconds: Int64 = 3_600

    /// The defaults.
    package init() {}
}

/// The delays of the activity indicator.
package struct ActivityConfiguration: Sendable, Equatable {
    /// How long there must have been activity before it shows.
    package var activationDelayMilliseconds: Int64 = 1_000
    /// How long there must have been none before it no longer shows.
    package var completionDelayMilliseconds: Int64 = 170

    /// The defaults.
    package init() {}
}

/// What one client network (an IPv4 address, an IPv6 /64) may have at once, over all workers.
package struct ClientLimits: Sendable, Equatable {
    /// Connections open; one more is closed at once.
    package var connections: Int
    /// Exchanges on their way to an origin, and tunnels; one more is refused.
    package var exchanges: Int

    /// The given numbers, by default those for the default of all connections.
    package init(connections: Int = 15_000, exchanges: Int = 10_000) {
        self.connections = connections
        self.exchanges = exchanges
    }
}

/// The sizes that nothing may exceed.
package struct LimitsConfiguration: Sendable, Equatable {
    /// Client connections open at once, over all workers.
    package var connections = 20_000
    /// Bytes of a request's or a response's head.
    package var headBytes = 32 << 10
    /// Field lines of a head.
    package var fields = 128
    /// Connections to one upstream (scheme, host, port) at once, over all workers.
    package var upstreamPerHost = 256
    /// Exchanges waiting for a connection to one upstream at once; one more is refused.
    package var pending = 1_024
    /// Bytes of buffers for requests whose head has not arrived whole, over all workers.
    package var bufferBytes = 64 << 20
    /// What one client may have.
    package var perClient = ClientLimits()

    /// The defaults.
    package init() {}

    /// The limits of a head, the ones that are not configurable at their defaults.
    package var headLimits: HeadLimits {
        HeadLimits(headBytes: headBytes, fields: fields)
    }
}

/// The times that nothing may exceed.
package struct TimeoutsConfiguration: Sendable, Equatable {
    /// From a request's first byte (or the connection's accept) to the end of its head.
    package var headMilliseconds: Int64 = 10_000
    /// A kept-alive connection between two requests.
    package var idleMilliseconds: Int64 = 60_000
    /// From the first connection attempt to an established connection, TLS included.
    package var connectMilliseconds: Int64 = 5_000
    /// From the request's last byte sent upstream to the response's first.
    package var firstByteMilliseconds: Int64 = 60_000
    /// Between two reads or writes of a body, on either side.
    package var bodyMilliseconds: Int64 = 60_000
    /// A tunnel or an upgraded connection with nothing moving in either direction.
    package var tunnelMilliseconds: Int64 = 600_000
    /// Between two parts of a response of type `text/event-stream`, in place of `body`.
    package var eventStreamMilliseconds: Int64 = 600_000
    /// How long a request waits for the response to another one for the same; 0: none waits.
    package var collapseMilliseconds: Int64 = 5_000
    /// How long listeners still accept after SIGTERM, while /readyz already says no.
    package var drainDelayMilliseconds: Int64 = 0
    /// How long exchanges in flight may go on after that; 0 closes at once.
    package var graceMilliseconds: Int64 = 30_000

    /// The defaults.
    package init() {}
}

/// What a host entry has in place of `timeouts`; nil leaves a time as it is there.
package struct HostTimeouts: Sendable, Equatable {
    package var connectMilliseconds: Int64?
    package var firstByteMilliseconds: Int64?
    package var bodyMilliseconds: Int64?
    package var tunnelMilliseconds: Int64?
    package var eventStreamMilliseconds: Int64?

    package init() {}
}

extension TimeoutsConfiguration {
    /// The times of a host, those of its entry in place of these.
    package func replaced(by host: HostTimeouts) -> TimeoutsConfiguration {
        var times = self
        times.connectMilliseconds = host.connectMilliseconds ?? connectMilliseconds
        times.firstByteMilliseconds = host.firstByteMilliseconds ?? firstByteMilliseconds
        times.bodyMilliseconds = host.bodyMilliseconds ?? bodyMilliseconds
        times.tunnelMilliseconds = host.tunnelMilliseconds ?? tunnelMilliseconds
        times.eventStreamMilliseconds = host.eventStreamMilliseconds ?? eventStreamMilliseconds
        return times
    }
}

/// What is logged.
package struct LogConfiguration: Sendable, Equatable {
    /// The levels of the operational log, the names of swift-log.
    package enum Level: String, Sendable, Equatable, CaseIterable {
        case trace
        case debug
        case info
        case notice
        case warning
        case error
        case critical
    }

    /// The least level that is written to standard error.
    package var level = Level.info
    /// The access log, or nil: none is written.
    package var access: AccessLogConfiguration?

    /// The defaults.
    package init() {}
}

/// Where and how the access log is written.
package struct AccessLogConfiguration: Sendable, Equatable {
    /// One line per exchange, in one of two shapes.
    package enum Format: String, Sendable, Equatable, CaseIterable {
        /// One JSON object.
        case json
        /// The combined log format of web servers.
        case combined
    }

    /// The path that stands for the process's standard output.
    package static let standardOutput = "-"

    /// The absolute path of the file, opened for appending and created when missing; or
    /// ``standardOutput``.
    package var path = ""
    /// The shape of a line.
    package var format = Format.json

    /// The defaults.
    package init() {}
}
