import HTTPCore
import Trust

/// Who may use the gateway and what it may connect to.
package struct AccessConfiguration: Sendable, Equatable {
    /// The networks whose clients are served; all others are refused.
    package var clients = Self.loopback
    /// Which hosts may be requested.
    package var hosts = ReachableHosts.any
    /// The ports that CONNECT may name.
    package var connectPorts = ConnectPorts.ports([443])
    /// Destinations to allow although their address is loopback, link-local, private or metadata.
    package var allow = DestinationList()
    /// Destinations to refuse in any case: deny takes precedence over allow.
    package var deny = DestinationList()
    /// The named lists of domains and networks, in the order written.
    package var lists: [AccessList] = []
    /// What happens to requests of certain clients, for certain hosts, and so on: the first rule
    /// that matches decides. None of them opens what is refused for another reason.
    package var rules: [AccessRule] = []
    /// Whether requests that no rule matches are served.
    package var byDefault = AccessDefault.allow

    /// Creates the defaults.
    package init() {}

    /// Whether nothing differs that decides where connections may lead: all but the rules and their
    /// lists, which concern requests.
    package func reachesTheSame(as other: AccessConfiguration) -> Bool {
        var other = other
        (other.rules, other.lists, other.byDefault) = (rules, lists, byDefault)
        return self == other
    }

    /// 127.0.0.0/8 and ::1/128.
    static let loopback = ["127.0.0.0/8", "::1/128"].compactMap { IPNetwork($0) }

    /// The networks of both lists, as the rules against which each resolved address is checked.
    package var destinationRules: DestinationRules {
        DestinationRules(allow: allow.networks, deny: deny.networks)
    }

    /// Which host patterns of the two lists match the host that a request names. An address is
    /// denied, but not allowed, like an IPv4 address that it embeds.
    /// - Parameters:
    ///   - host: The host name, or the address without brackets; no port.
    ///   - port: The port of the request's target.
    package func hostMatch(host: Span<UInt8>, port: UInt16) -> DestinationRules.HostMatch {
        let address = IPAddress(literal: host)
        let embedsDenied = address?.embedsV4 { embedded in
            deny.contains(host: embedded.description.utf8.span, port: port)
        }
        return DestinationRules.HostMatch(
            allowed: allow.contains(host: host, port: port),
            denied: deny.contains(host: host, port: port) || embedsDenied ?? false,
            isAddress: address != nil)
    }

    /// Whether a client with this address is served.
    package func serves(client: IPAddress) -> Bool {
        clients.contains { $0.contains(client: client) }
    }
}

/// The hosts that may be requested of forward listeners.
package enum ReachableHosts: String, Sendable, Equatable, CaseIterable {
    /// All of them, as far as nothing else refuses them.
    case any
    /// Those that an entry of `hosts` names.
    case listed
}

/// What happens to requests that no rule matches.
package enum AccessDefault: String, Sendable, Equatable, CaseIterable {
    case allow
    case deny
}

/// The ports that CONNECT may name.
package enum ConnectPorts: Sendable, Equatable {
    /// Every port.
    case any
    /// These ports, in the order written; an empty list refuses every CONNECT.
    case ports([UInt16])

    /// Whether CONNECT may name this port.
    package func contains(_ port: UInt16) -> Bool {
        switch self {
        case .any: true
        case .ports(let ports): ports.contains(port)
        }
    }
}

/// The networks and host patterns of `access.destinations`.
package struct DestinationList: Sendable, Equatable {
    /// The networks; a single address is a network of one.
    package let networks: [IPNetwork]
    /// The patterns, which are matched against the host named in the request, in the order written.
    package let patterns: [HostPattern]
    @usableFromInline let index: HostIndex

    /// Builds the index of the patterns.
    package init(networks: [IPNetwork] = [], patterns: [HostPattern] = []) {
        self.networks = networks
        self.patterns = patterns
        index = HostIndex(patterns: patterns.map { [$0] })
    }

    /// Its elements as they are written.
    package var texts: [String] { networks.map(\.description) + patterns.map(\.description) }

    /// Whether a resolved address is in one of the networks.
    package func contains(_ address: IPAddress) -> Bool {
        networks.contains { $0.contains(address) }
    }

    /// Whether one of the patterns matches the request's host.
    /// - Parameters:
    ///   - host: The host name in lower case, or the address without brackets; no port.
    ///   - port: The port of the request's target.
    package func contains(host: Span<UInt8>, port: UInt16) -> Bool {
        index.entry(host: host, port: port) != nil
    }
}
