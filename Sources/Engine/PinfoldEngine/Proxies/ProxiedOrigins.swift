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
    /// The origins of a gateway by other ways than directly.
    private var byWay: [Origin.Key: Origin] = [:]
    private var proxies: [UpstreamProxy: Origin] = [:]
    /// How many there may be before unused ones are searched for: twice as many as were in use the
    /// last time.
    private var limit = ProxiedOrigins.capacity

    /// How many origins are kept; beyond that, unused ones are forgotten.
    private static let capacity = 1024

    var all: [Origin] { Array(servers.values) + Array(byWay.values) + Array(proxies.values) }
    private var count: Int { servers.count + byWay.count + proxies.count }

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
        if count >= limit { forgetUnused() }
        let made = make(target, policy)
        servers[target] = made
        return made
    }

    /// The same origin through a gateway's parent.
    /// - Parameter tunnelsClearText: whether the parent must not forward requests itself.
    mutating func origin(
        of origin: Origin, through proxy: UpstreamProxy, tunnelsClearText: Bool
    ) -> Origin {
        // Only in a tunnel does the server get its PROXY header.
        let isTunnelled =
            origin.key.isSecure || tunnelsClearText || !proxy.forwardsRequests
            || origin.key.proxyHeader != nil
        var key = origin.key
        key.proxyUse = isTunnelled ? .tunnel(proxy) : .forwarded(proxy)
        if let known = byWay[key], known.policy === origin.policy {
            known.maxConnections = origin.maxConnections
            return known
        }
        if count >= limit { forgetUnused() }
        let made = Origin(
            key: key, policy: origin.policy, entryIndex: origin.entryIndex,
            refusal: origin.refusal, match: origin.match,
            carrier: isTunnelled ? nil : self.proxy(proxy, origin.policy), context: origin.tls)
        made.maxConnections = origin.maxConnections
        byWay[key] = made
        return made
    }

    /// Forgets servers by other ways than directly.
    /// - Parameter removed: the same servers, without a parent.
    /// - Returns: what they were.
    mutating func remove(_ removed: [Origin]) -> [Origin] {
        guard !byWay.isEmpty else { return [] }
        let keys = Set(removed.map(\.key))
        let found = byWay.filter { keys.contains($0.key.direct) }
        for key in found.keys { byWay[key] = nil }
        return Array(found.values)
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

    /// The origin of the proxy itself. To the library's, no host entry applies, and therefore no
    /// pinset.
    private mutating func proxy(_ proxy: UpstreamProxy, _ policy: PolicySnapshot) -> Origin {
        if let known = proxies[proxy] { return known }
        let made = Origin(
            key: Origin.Key(
                host: proxy.host, port: proxy.port, isSecure: proxy.isSecure,
                requestedPort: proxy.port, proxyUse: .proxy(proxy),
                takesOnlyHTTP1: proxy.standing != nil),
            policy: policy, entryIndex: proxy.entryIndex(under: policy), refusal: nil,
            match: policy.destinationMatch(host: proxy.host, port: proxy.port))
        proxies[proxy] = made
        return made
    }

    /// What waits for or uses a carrier refers to the origin that it is for.
    private mutating func forgetUnused() {
        servers.keepNeeded()
        byWay.keepNeeded()
        proxies.keepNeeded()
        limit = max(Self.capacity, count * 2)
    }
}

extension Origin.Key {
    /// The key of the same server without a parent.
    var direct: Origin.Key {
        var key = self
        key.proxyUse = .direct
        return key
    }
}

extension Origin {
    /// Whether the access rules apply to the addresses connected to: not if the operator has named
    /// them.
    var isSubjectToRules: Bool {
        if case .direct = key.proxyUse { !key.isFixed } else { false }
    }
}
