import HTTPCore

/// Where a client's connection was going when the system led it here, and what that has to do with
/// the hosts that the client names on it.
///
/// Requests go to the addresses that a host has according to the gateway's own resolver, under the
/// port of this address. So whoever names a host that does not have the address reaches that host,
/// and the address under no name. Whether it is one of the host's is found out for the log.
package final class OriginalDestination {
    /// What the client speaks.
    package enum Opening: Sendable, Equatable {
        /// HTTP in clear text: each request names its host.
        case http
        /// TLS: the first message names the host.
        case tls
        /// Something else, or nothing yet: the address is the host.
        case other
    }

    /// What the address has to do with a host.
    package enum Relation: Sendable, Equatable {
        /// The host's addresses are not known (yet).
        case unknown
        /// It is one of them.
        case its
        /// It is none of them.
        case foreign
    }

    /// How many hosts of one connection are compared with the address.
    private static let maximumHosts = 16

    /// The address, IPv4 unmapped, and the port.
    package let endpoint: Endpoint
    package let opening: Opening
    private var relations: [String: Relation] = [:]

    package init(_ endpoint: Endpoint, opening: Opening) {
        self.endpoint = Endpoint(address: endpoint.address.unmapped, port: endpoint.port)
        self.opening = opening
    }

    /// The address as the host of requests that name none.
    package var host: String { String(endpoint.address.text) }

    /// What is known about a host, in lower case.
    package func relation(to host: String) -> Relation { relations[host] ?? .unknown }

    /// Whether a host is yet to be compared with the address.
    func mayCompare(with host: String) -> Bool {
        relations[host] == nil && relations.count < Self.maximumHosts
    }

    /// Takes note that a host's addresses are being looked up.
    func beginComparison(with host: String) { relations[host] = .unknown }

    /// Takes note of a host's addresses, which may be a part of them.
    /// - Returns: what the address has to do with them.
    func compare(_ addresses: [IPAddress], areAll: Bool, of host: String) -> Relation {
        let isIts = addresses.contains { $0.unmapped == endpoint.address }
        let relation: Relation = isIts ? .its : areAll ? .foreign : .unknown
        relations[host] = relation
        return relation
    }
}
