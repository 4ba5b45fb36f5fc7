import CLinux
import HTTPCore
import PinfoldConfiguration

/// A worker's origins, found by a request's target without allocating.
package final class OriginTable {
    /// How many origins are kept; beyond that, unused ones are forgotten.
    private static let capacity = 4096

    private var byHash: [Int: [Entry]] = [:]
    /// How many there may be before unused ones are searched for: twice as many as were in use the
    /// last time, so that the search costs each new origin constant time.
    private var limit = OriginTable.capacity
    private var reverse: [ReverseUpstream: Origin] = [:] {
        didSet { lastReverse = nil }
    }
    /// The last one that was asked for, which is mostly the next one: to compare it takes less than
    /// to hash it.
    private var lastReverse: (upstream: ReverseUpstream, origin: Origin)?
    private var proxied = ProxiedOrigins()
    /// The origins of routes with several servers.
    private var balanced: [BalancedRoute: Origin] = [:] {
        didSet { lastBalanced = nil }
    }
    private var lastBalanced: (route: BalancedRoute, origin: Origin)?
    /// The origins by ways that rules name, by those that they are for.
    private var ruled: [ObjectIdentifier: [Origin]] = [:]
    private var ruledCount = 0
    /// The origins by rules for the cache.
    var byRules = OriginsByRules()
    private var count = 0
    /// How many origins have become unused since the last search.
    private var unused = 0

    private struct Entry {
        var origin: Origin
        let host: [UInt8]
        let port: UInt16
        let scheme: Scheme

        /// Whether the origin belongs to another entry, the one found by requests for https.
        var isAlias: Bool { scheme == .http && origin.key.isSecure && origin.key.port == port }

        /// Whether it is for this host, given in lower case.
        @inline(__always)
        func names(_ host: UnsafeRawBufferPointer, _ port: UInt16, _ scheme: Scheme) -> Bool {
            guard self.port == port, self.scheme == scheme, self.host.count == host.count,
                let start = host.baseAddress
            else { return false }
            return self.host.withUnsafeBytes { known in
                known.baseAddress.map { memcmp($0, start, known.count) == 0 } ?? false
            }
        }
    }

    /// The origin found last and its target in lower case: many consecutive requests have the same
    /// target. Only its bytes are compared, so that nothing is retained for the comparison.
    private var latest: Origin?
    private let latestHost = UnsafeMutableRawBufferPointer.allocate(byteCount: 255, alignment: 8)
    private var latestHostCount = 0
    private var latestPort: UInt16 = 0
    private var latestScheme = Scheme.http

    deinit {
        byRules.removeAll()
        latestHost.deallocate()
    }

    /// The origin of a request's target; `nil` if the host is too long to be one. The policy is
    /// fetched only if the target differs from the last one, which is rare.
    @inline(__always)
    package func origin(
        host: Span<UInt8>, port: UInt16, scheme: Scheme, policy: @autoclosure () -> PolicySnapshot
    ) -> Origin? {
        if port == latestPort, scheme == latestScheme, host.count == latestHostCount,
            host.withUnsafeBytes({ isLatest($0) })
        {
            return latest
        }
        return find(host: host, port: port, scheme: scheme, policy: policy())
    }

    /// Finds or creates an origin, which is then the latest.
    private func find(
        host: Span<UInt8>, port: UInt16, scheme: Scheme, policy: PolicySnapshot
    ) -> Origin? {
        guard host.count > 0, host.count <= 255 else { return nil }
        for index in host.indices { latestHost[index] = ASCII.lowercased(host[index]) }
        let origin = entry(
            UnsafeRawBufferPointer(rebasing: latestHost[0..<host.count]), port, scheme, policy
        ).origin
        (latest, latestHostCount, latestPort, latestScheme) = (origin, host.count, port, scheme)
        return origin
    }

    private func isLatest(_ host: UnsafeRawBufferPointer) -> Bool {
        guard let start = host.baseAddress, let known = latestHost.baseAddress else { return false }
        return memcmp(known, start, host.count) == 0
    }

    private func forgetLatest() {
        latest = nil
        latestHostCount = 0
    }

    /// The entry of a host in lower case, existing or new.
    private func entry(
        _ host: UnsafeRawBufferPointer, _ port: UInt16, _ scheme: Scheme, _ policy: PolicySnapshot
    ) -> Entry {
        var hasher = Hasher()
        hasher.combine(bytes: host)
        hasher.combine(port)
        hasher.combine(scheme == .https)
        let hash = hasher.finalize()
        if let known = byHash[hash]?.first(where: { $0.names(host, port, scheme) }) {
            return known
        }
        let name = String(decoding: host, as: UTF8.self)
        let target = policy.target(host: name, port: port, by: .request(isSecure: scheme == .https))
        // Two origins with the same key would share its limit, but not find each other's idle
        // connections.
        let isUpgradedOnly = scheme == .http && target.isSecure && target.port == port
        let origin =
            isUpgradedOnly
            ? entry(host, port, .https, policy).origin : make(name, port, target, policy)
        let made = Entry(origin: origin, host: Array(host), port: port, scheme: scheme)
        insert(made, hash)
        return made
    }

    /// The origin behind a reverse listener.
    package func origin(of upstream: ReverseUpstream, policy: PolicySnapshot) -> Origin {
        if let lastReverse, lastReverse.upstream == upstream { return lastReverse.origin }
        if let known = reverse[upstream] {
            lastReverse = (upstream, known)
            return known
        }
        let target = policy.target(
            host: upstream.host, port: upstream.port, by: .fixed(isSecure: upstream.isSecure))
        let origin = Origin(
            key: Origin.Key(
                host: upstream.host, port: upstream.port, isSecure: upstream.isSecure,
                requestedPort: upstream.port, forwarding: upstream.forwarding,
                takesOnlyHTTP1: upstream.proxyHeader != nil, proxyHeader: upstream.proxyHeader,
                unixPath: upstream.unixPath),
            policy: policy, entryIndex: target.entryIndex, refusal: target.refusal,
            match: target.match)
        reverse[upstream] = origin
        return origin
    }

    /// The origin of a reverse listener with several servers; `nil` if there is no such listener
    /// any more.
    package func origin(of route: BalancedRoute, policy: PolicySnapshot) -> Origin? {
        if let lastBalanced, lastBalanced.route == route { return lastBalanced.origin }
        if let known = balanced[route] {
            lastBalanced = (route, known)
            return known
        }
        guard let set = policy.serverSet(of: route) else { return nil }
        let made = Self.make(route, set, following: nil, policy)
        balanced[route] = made
        return made
    }

    /// Moves the routes with several servers to another snapshot.
    /// - Returns: the servers that they do not have any more.
    private func adoptBalanced(_ policy: PolicySnapshot) -> [Origin] {
        var removed: [Origin] = []
        for (route, origin) in balanced {
            let set = policy.serverSet(of: route)
            guard let former = origin.balancer, former.set !== set else { continue }
            let made = set.flatMap { Self.make(route, $0, following: former, policy) }
            balanced[route] = made
            let kept = made?.balancer?.servers ?? []
            removed += former.servers.filter { server in !kept.contains { $0 === server } }
        }
        return removed
    }

    /// The origin of a request's target behind a proxy; `nil` if the host is too long to be one.
    package func origin(
        host: Span<UInt8>, port: UInt16, scheme: Scheme, through route: ProxyRoute,
        policy: PolicySnapshot
    ) -> Origin? {
        guard host.count > 0, host.count <= 255 else { return nil }
        let host = host.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }.lowercasedASCII
        return proxied.origin(host: host, port: port, scheme: scheme, through: route, policy)
    }

    /// An origin through a gateway's parent.
    /// - Parameter tunnelsClearText: whether the parent must not forward requests itself.
    func origin(
        of origin: Origin, through proxy: UpstreamProxy, tunnelsClearText: Bool
    ) -> Origin {
        proxied.origin(of: origin, through: proxy, tunnelsClearText: tunnelsClearText)
    }

    /// An origin by the ways that a rule names, existing or new.
    func ruled(_ base: Origin, _ names: [WayName]) -> Origin {
        let id = ObjectIdentifier(base)
        if let known = ruled[id]?.first(where: {
            $0.key.ruleWays == names && $0.policy === base.policy
        }) {
            return known
        }
        if ruledCount >= Self.capacity { forgetRuled() }
        let made = Origin(base, by: names)
        ruled[id, default: []].append(made)
        ruledCount += 1
        return made
    }

    /// They have no connections, and are made again when they are needed.
    private func forgetRuled() {
        ruled = [:]
        ruledCount = 0
        byRules.removeAll()
    }

    private func make(
        _ host: String, _ port: UInt16, _ target: PolicySnapshot.Target, _ policy: PolicySnapshot
    ) -> Origin {
        Origin(
            key: Origin.Key(
                host: host, port: target.port, isSecure: target.isSecure, requestedPort: port),
            policy: policy, entryIndex: target.entryIndex, refusal: target.refusal,
            match: target.match)
    }

    private func insert(_ entry: Entry, _ hash: Int) {
        if count >= limit { forgetUnused() }
        byHash[hash, default: []].append(entry)
        count += 1
    }

    /// An origin has become unused. After a burst of names their memory is released without waiting
    /// for another burst; the search costs each name constant time. An origin that is repeatedly
    /// requested in vain is counted once.
    func becameUnused(_ origin: Origin) {
        guard !origin.isCountedUnused else { return }
        origin.isCountedUnused = true
        unused += 1
        if unused >= Self.capacity / 4, unused >= count / 2 { forgetUnused() }
    }

    private func forgetUnused() {
        unused = 0
        forgetLatest()
        forgetRuled()
        var known = byHash.flatMap { hash, entries in entries.map { (hash: hash, entry: $0) } }
        byHash = [:]
        count = 0
        known.removeAll { $0.entry.isAlias }
        for index in known.indices where Origin.isStillNeeded(&known[index].entry.origin) {
            byHash[known[index].hash, default: []].append(known[index].entry)
            count += 1
        }
        limit = max(Self.capacity, count * 2)
    }

    package var all: [Origin] {
        let all =
            byHash.values.flatMap { $0.filter { !$0.isAlias }.map(\.origin) } + reverse.values
            + proxied.all + balanced.values + balanced.values.flatMap { $0.balancer?.servers ?? [] }
        return all + all.compactMap(\.http2.sibling)
    }

    /// Moves all origins to another snapshot, under which their connections can still be used.
    /// - Returns: those that get no requests any more, by whatever way.
    func adopt(_ policy: PolicySnapshot) -> [Origin] {
        lastReverse = nil
        forgetRuled()
        reverse.keepNeeded()
        let removed = balanced.isEmpty ? [] : adoptBalanced(policy)
        for origin in all { origin.adopt(policy) }
        return removed.isEmpty ? [] : proxied.remove(removed) + removed
    }

    /// Forgets all origins, for a new policy. Connections in use end with their exchanges.
    func removeAll() -> [Origin] {
        let origins = all
        forgetLatest()
        forgetRuled()
        byHash = [:]
        reverse = [:]
        proxied = ProxiedOrigins()
        balanced = [:]
        count = 0
        unused = 0
        limit = Self.capacity
        return origins
    }
}
