import HTTPCore

/// The two tiers of the response cache.
package struct CacheConfiguration: Sendable, Equatable {
    /// If false, nothing is stored and nothing is answered from the cache.
    package var isEnabled = true
    /// Whether it is shared by several users, as a gateway's is; otherwise it belongs to one
    /// client.
    package var isShared = true
    /// The size of the memory tier; 0 if nothing is kept in memory.
    package var memoryBytes = 64 << 20
    /// The size of the disk tier; 0 if there is no disk tier.
    package var diskBytes = 1 << 30
    /// The maximum number of responses in the disk tier.
    package var diskEntries = 524_288
    /// The maximum number of variants (by Vary) of one URL.
    package var variantsPerURL = 64
    /// The absolute path of the directory of `cache.sqlite`; it need not exist yet.
    package var path = ""
    /// Where reports of pin failures are queued until they are delivered: a directory next to the
    /// cache's database, whether or not there is a cache.
    package var reportFolder: String { inFolder("pin-reports") }
    /// The file that records when which pin matched; in the same directory.
    package var pinUseFile: String { inFolder("pin-use") }

    private func inFolder(_ name: String) -> String {
        path + (path.hasSuffix("/") ? "" : "/") + name
    }

    /// The largest body that is stored. A tier that is smaller than this stores less.
    package var maximumObjectBytes = 256 << 20
    /// Request fields, in lower case, that make a request bypass the cache unless they are part of
    /// its key.
    package var bypassFields = Self.defaultBypassFields

    /// Creates the defaults.
    package init() {}

    /// Whether the store can be kept: everything else is policy, which a reload changes.
    package func hasSameStore(as other: CacheConfiguration) -> Bool {
        var policy = other
        policy.bypassFields = bypassFields
        return self == policy
    }

    /// Fields that servers and frameworks are known to use for choosing their response.
    package static let defaultBypassFields = [
        "forwarded", "x-forwarded-host", "x-forwarded-port", "x-forwarded-prefix",
        "x-forwarded-proto", "x-forwarded-scheme", "x-forwarded-server", "x-host",
        "x-http-method", "x-http-method-override", "x-method-override", "x-original-url",
        "x-rewrite-url",
    ]
}

/// Name resolution.
package struct ResolverConfiguration: Sendable, Equatable {
    /// Which name servers are used.
    package enum Servers: Sendable, Equatable {
        /// Those of the system (`/etc/resolv.conf`).
        case system
        /// These, in order; at least one.
        case list([Endpoint])
    }

    /// Which name servers are used.
    package var servers = Servers.system
    /// The minimum time for which answers are kept, whatever their TTL.
    package var minimumTTLSeconds: Int64 = 0
    /// The maximum time for which answers are kept, whatever their TTL; not less than the minimum.
    package var maximumTTLSeconds: Int64 = 3_600

    /// Creates the defaults.
    package init() {}
}

/// The delays of the activity indicator.
package struct ActivityConfiguration: Sendable, Equatable {
    /// How long activity must last before it is shown.
    package var activationDelayMilliseconds: Int64 = 1_000
    /// How long there must be no activity before it is hidden.
    package var completionDelayMilliseconds: Int64 = 170

    /// Creates the defaults.
    package init() {}
}

/// What one client network (an IPv4 address, an IPv6 /64) may have at the same time, over all
/// workers.
package struct ClientLimits: Sendable, Equatable {
    /// Open connections; any more are closed immediately.
    package var connections: Int
    /// Exchanges on their way to an origin, and tunnels; any more are refused.
    package var exchanges: Int

    /// Creates limits; the defaults fit the default limit on all connections.
    package init(connections: Int = 15_000, exchanges: Int = 10_000) {
        self.connections = connections
        self.exchanges = exchanges
    }
}

/// The limits on sizes and numbers.
package struct LimitsConfiguration: Sendable, Equatable {
    /// Simultaneous client connections, over all workers.
    package var connections = 20_000
    /// The size of a request's or a response's head in bytes.
    package var headBytes = 32 << 10
    /// The number of field lines in a head.
    package var fields = 128
    /// Simultaneous connections to one upstream (scheme, host, port), over all workers.
    package var upstreamPerHost = 256
    /// Exchanges waiting at the same time for a connection to one upstream; any more are refused.
    package var pending = 1_024
    /// The size of buffers for requests whose heads are incomplete, over all workers.
    package var bufferBytes = 64 << 20
    /// The limits per client.
    package var perClient = ClientLimits()

    /// Creates the defaults.
    package init() {}

    /// The limits for a head; those that are not configurable have their defaults.
    package var headLimits: HeadLimits {
        HeadLimits(headBytes: headBytes, fields: fields)
    }
}

/// The limits on times.
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
    /// A tunnel or an upgraded connection without traffic in either direction.
    package var tunnelMilliseconds: Int64 = 600_000
    /// Between two parts of a `text/event-stream` response, in place of `body`.
    package var eventStreamMilliseconds: Int64 = 600_000
    /// How long a request waits for another request's response to the same URL; 0 if none waits.
    package var collapseMilliseconds: Int64 = 5_000
    /// How long listeners still accept after SIGTERM, while /readyz already answers 503.
    package var drainDelayMilliseconds: Int64 = 0
    /// How long exchanges in flight may then continue; 0 closes them immediately.
    package var graceMilliseconds: Int64 = 30_000

    /// Creates the defaults.
    package init() {}
}

/// A host entry's overrides of `timeouts`; `nil` if a time is not overridden.
package struct HostTimeouts: Sendable, Equatable {
    package var connectMilliseconds: Int64?
    package var firstByteMilliseconds: Int64?
    package var bodyMilliseconds: Int64?
    package var tunnelMilliseconds: Int64?
    package var eventStreamMilliseconds: Int64?

    package init() {}
}

extension TimeoutsConfiguration {
    /// These times, overridden by those of a host's entry.
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

    /// The lowest level that is written to standard error.
    package var level = Level.info
    /// The access log; `nil` if none is written.
    package var access: AccessLogConfiguration?

    /// Creates the defaults.
    package init() {}
}

/// Where and how the access log is written.
package struct AccessLogConfiguration: Sendable, Equatable {
    /// One line per exchange, in one of two formats.
    package enum Format: String, Sendable, Equatable, CaseIterable {
        /// One JSON object.
        case json
        /// The combined log format of web servers.
        case combined
    }

    /// The path that stands for the process's standard output.
    package static let standardOutput = "-"

    /// The absolute path of the file, opened for appending and created if missing; or
    /// ``standardOutput``.
    package var path = ""
    /// The format of a line.
    package var format = Format.json

    /// Creates the defaults.
    package init() {}
}
