import HTTPCore

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
    /// Requests that a client may have under way at the same time on one connection with HTTP/2.
    package var streams = 100
    /// Requests in progress on one connection with HTTP/2 to a server.
    package var upstreamStreams = 100
    /// How many requests in a row a client may have cancelled, or made us cancel, on one connection
    /// with HTTP/2, and how much of anything else that costs as much and brings nothing.
    package var resets = 100
    /// The limits per client.
    package var perClient = ClientLimits()

    /// Creates the defaults.
    package init() {}

    /// The limits for a head; those that are not configurable have their defaults.
    package var headLimits: HeadLimits {
        HeadLimits(headBytes: headBytes, fields: fields)
    }
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
