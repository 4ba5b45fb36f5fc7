import HTTPCore

/// An environment's origins behind proxies, and the proxies to which requests are sent.
struct ProxiedOrigins {
    /// A request's target and route.
    private struct Target: Hashable {
        let host: String
        let port: UInt16
        let scheme: Scheme
        let route: ProxyRoute
    }

    private var servers: [Target: Origin] = [:]
    private var proxies: [UpstreamProxy: Origin] = [:]
    /// How many there may be before unused ones are searched for: twice as many as were in use the
    /// last time.
    private var limit = ProxiedOrigins.capacity

    /// How many origins are kept; beyond that, unused ones are forgotten.
    private static let capacity = 1024

    var all: [Origin] { Array(servers.values) + Array(proxies.values) }

    /// - Parameter host: in lower case.
    mutating func origin(
        host: String, port: UInt16, scheme: Scheme, through route: ProxyRoute,
        _ policy: PolicySnapshot
    ) -> Origin {
        // TLS uses a tunnel by either route: two origins with the same key would share its limit,
        // but not find each other's idle connections.
        let route = scheme == .https ? ProxyRoute(route.proxy) : route
        let target = Target(host: host, port: port, scheme: scheme, route: route)
        if let known = servers[target] { return known }
        if servers.count + proxies.count >= limit { forgetUnused() }
        let made = make(target, policy)
        servers[target] = made
        return made
    }

    private mutating func make(_ target: Target, _ policy: PolicySnapshot) -> Origin {
        let proxy = target.route.proxy
        let found = policy.target(
            host: target.host, port: target.port,
            by: .request(isSecure: target.scheme == .https))
        let isTunnelled = found.isSecure || target.route.tunnelsClearText
        return Origin(
            key: Origin.Key(
                host: target.host, port: found.port, isSecure: found.isSecure,
                requestedPort: target.port,
                proxyUse: isTunnelled ? .tunnel(proxy) : .forwarded(proxy)),
            policy: policy, entryIndex: found.entryIndex, refusal: found.refusal,
            match: found.match, carrier: isTunnelled ? nil : self.proxy(proxy, policy))
    }

    /// The origin of the proxy itself: no host entry applies to it, and therefore no pinset.
    private mutating func proxy(_ proxy: UpstreamProxy, _ policy: PolicySnapshot) -> Origin {
        if let known = proxies[proxy] { return known }
        let made = Origin(
            key: Origin.Key(
                host: proxy.host, port: proxy.port, isSecure: proxy.isSecure,
                requestedPort: proxy.port, proxyUse: .proxy(proxy)),
            policy: policy, entryIndex: nil, refusal: nil,
            match: policy.destinationMatch(host: proxy.host, port: proxy.port))
        proxies[proxy] = made
        return made
    }

    /// What waits for or uses a carrier refers to the origin that it is for.
    private mutating func forgetUnused() {
        servers.keepNeeded()
        proxies.keepNeeded()
        limit = max(Self.capacity, (servers.count + proxies.count) * 2)
    }
}

extension Origin {
    /// The address that connections are made to: that of the origin itself, or of the proxy in
    /// front of it.
    var connectsTo: (host: String, port: UInt16) {
        if let tunnelProxy { (tunnelProxy.host, tunnelProxy.port) } else { (key.host, key.port) }
    }

    /// Whether the access rules apply to the addresses connected to: not if the operator has named
    /// them.
    var isSubjectToRules: Bool {
        if case .direct = key.proxyUse { !key.isFixed } else { false }
    }
}
