/// Which addresses may be connected to. Pure. Each resolved address is checked, and the address
/// that was checked is the one that is connected to, so that a name cannot change in between.
///
/// A denial wins over everything, then a permission; an address that neither names is allowed only
/// if it is global. A permission by host name opens only private networks: otherwise whoever
/// controls the name's DNS could direct a request to this host, its links or a cloud's metadata
/// service.
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
        for network in deny where network.contains(address) { return .refused(.deniedNetwork) }
        let embedsDenied = address.embedsV4 { embedded in
            deny.contains { $0.contains(embedded) }
        }
        if embedsDenied { return .refused(.deniedNetwork) }
        for network in allow where network.contains(address) { return .allowed }
        guard let scope = address.scope else { return .allowed }
        let refusal = DestinationRefusalReason.scope(scope)
        if host.allowed, host.isAddress || refusal.isOpenedByHostName { return .allowed }
        return .refused(refusal)
    }
}

/// Why an address may not be connected to.
public enum DestinationRefusalReason: Error, Sendable, Hashable, CaseIterable {
    /// A host pattern of the deny list matches the name.
    case deniedHost
    /// The address is in a network of the deny list.
    case deniedNetwork
    /// The address is not global.
    case scope(AddressScope)

    public static let allCases =
        [.deniedHost, .deniedNetwork] + AddressScope.allCases.map { Self.scope($0) }

    /// A word for replies and logs.
    public var token: String {
        switch self {
        case .deniedHost: "denied_host"
        case .deniedNetwork: "denied_network"
        case .scope(let scope): scope.rawValue
        }
    }

    /// Whether a permission for the host's name lifts this refusal; the others need the address or
    /// its network to be allowed.
    public var isOpenedByHostName: Bool {
        switch self {
        case .scope(.private), .scope(.shared): true
        case .deniedHost, .deniedNetwork, .scope: false
        }
    }
}
