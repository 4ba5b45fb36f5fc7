/// Which addresses may be connected to. Pure. Each resolved address is checked, and the address
/// that was checked is the one that is connected to, so that a name cannot change in between.
///
/// A denial wins over everything, then a permission; an address that neither names is allowed only
/// if its scope is ``AddressScope/global``. A permission by host name opens only private networks:
/// otherwise whoever controls the name's DNS could direct a request to this host, its links or a
/// cloud's metadata service.
public struct DestinationRules: Sendable, Hashable {
    /// Networks whose addresses are allowed, whatever their scope.
    public var allow: [IPNetwork]
    /// Networks whose addresses are refused.
    public var deny: [IPNetwork]

    /// Creates rules from the two lists; if both are empty, only global addresses are allowed.
    public init(allow: [IPNetwork] = [], deny: [IPNetwork] = []) {
        self.allow = allow
        self.deny = deny
    }

    /// How the configuration's host patterns apply to the name that the address was resolved from.
    public struct HostMatch: Sendable, Hashable {
        /// A pattern of the allow list matches.
        public var allowed: Bool
        /// The request names an address rather than a host name: only that address is allowed.
        public var isAddress: Bool
        /// A pattern of the deny list matches.
        public var denied: Bool

        /// Creates a match from the results of both lists.
        public init(allowed: Bool = false, denied: Bool = false, isAddress: Bool = false) {
            self.allowed = allowed
            self.denied = denied
            self.isAddress = isAddress
        }
    }

    /// The decision about one address.
    public enum Decision: Sendable, Hashable {
        /// The address may be connected to.
        case allowed
        /// It may not be connected to, for this reason.
        case refused(DestinationRefusalReason)
    }

    /// Decides about one address.
    ///
    /// A mapped address is treated as its IPv4 equivalent. For other addresses that embed an IPv4
    /// address (NAT64, 6to4), the embedded address can be denied but not allowed: to allow them,
    /// list their network.
    public func decide(_ address: IPAddress, host: HostMatch = HostMatch()) -> Decision {
        if host.denied { return .refused(.deniedHost) }
        let embedded = address.embeddedV4
        for network in deny {
            if network.contains(address) { return .refused(.deniedNetwork) }
            if let embedded, network.contains(embedded) { return .refused(.deniedNetwork) }
        }
        for network in allow where network.contains(address) { return .allowed }
        guard let refusal = DestinationRefusalReason(scope: address.scope) else { return .allowed }
        if host.allowed, host.isAddress || refusal.isOpenedByHostName { return .allowed }
        return .refused(refusal)
    }
}

/// Why an address may not be connected to. The raw value is the token in metrics and logs.
public enum DestinationRefusalReason: String, Error, Sendable, Hashable, CaseIterable {
    /// A host pattern of the deny list matches the name.
    case deniedHost = "denied_host"
    /// The address is in a network of the deny list.
    case deniedNetwork = "denied_network"
    /// The address is this host's.
    case loopback = "loopback"
    /// The address is link-local.
    case linkLocal = "link_local"
    /// The address is in a private network.
    case privateNetwork = "private"
    /// The address is in a carrier's shared space.
    case shared = "shared"
    /// The address is a cloud's metadata service.
    case metadata = "metadata"
    /// The address is unspecified.
    case unspecified = "unspecified"
    /// The address is a multicast group.
    case multicast = "multicast"
    /// The address is the broadcast address.
    case broadcast = "broadcast"
    /// The address is reserved: documentation, benchmarking, unallocated and the like.
    case reserved = "reserved"

    /// Whether a permission for the host's name lifts this refusal; the others need the address or
    /// its network to be allowed.
    public var isOpenedByHostName: Bool {
        switch self {
        case .privateNetwork, .shared: true
        case .deniedHost, .deniedNetwork, .loopback, .linkLocal, .metadata, .unspecified,
            .multicast, .broadcast, .reserved:
            false
        }
    }

    /// The reason for refusing a scope; `nil` for the global scope.
    public init?(scope: AddressScope) {
        switch scope {
        case .global: return nil
        case .loopback: self = .loopback
        case .linkLocal: self = .linkLocal
        case .private: self = .privateNetwork
        case .shared: self = .shared
        case .metadata: self = .metadata
        case .unspecified: self = .unspecified
        case .multicast: self = .multicast
        case .broadcast: self = .broadcast
        case .reserved: self = .reserved
        }
    }
}
