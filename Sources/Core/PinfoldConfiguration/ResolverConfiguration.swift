import HTTPCore

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
