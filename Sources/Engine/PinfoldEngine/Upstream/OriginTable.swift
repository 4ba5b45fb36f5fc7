import CLinux
import HTTPCore

/// A worker's origins, found by what a request names without allocating.
package final class OriginTable {
    /// Origins kept; beyond, those that nothing uses are forgotten.
    private static let capacity = 4096

    private var byHash: [Int: [Entry]] = [:]
    /// How many there may be before those without use are looked for: twice as many as were in use
    /// the last time, so that looking costs each new origin constant time.
    private var limit = OriginTable.capacity
    private var reverse: [ReverseUpstream: Origin] = [:]
    private var proxied = ProxiedOrigins()
    private var count = 0
    /// How many origins have become unused since those without use were looked for.
    private var unused = 0

    private struct Entry {
        var origin: Origin
        let host: [UInt8]
        let port: UInt16
        let scheme: Scheme

        /// The origin is that of another entry, which requests that name TLS themselves find.
        var isAlias: Bool { scheme == .http && origin.key.isSecure && origin.key.port == port }

        /// Whether it is that of a host in lower case.
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

    /// The one asked for last, and what it is the answer to, in lower case: many requests in a row
    /// are for the same. Only its bytes are looked at, so that nothing is retained for a look.
    private var latest: Origin?
    private let latestHost = UnsafeMutableRawBufferPointer.allocate(byteCount: 255, alignment: 8)
    private var latestHostCount = 0
    private var latestPort: UInt16 = 0
    private var latestScheme = Scheme.http

    deinit { latestHost.deallocate() }

    /// The origin of a request's target; nil for a host that is too long to be one. The policy is
    /// fetched only if the target differs from the last one, which it seldom does.
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

    /// Finds or makes one, which is then the latest.
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

    /// The entry of a host in lower case, known or made.
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
        // Two origins of one key would share its limit, and neither find the other's idle
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
        if let known = reverse[upstream] { return known }
        let target = policy.target(
            host: upstream.host, port: upstream.port, by: .fixed(isSecure: upstream.isSecure))
        let origin = Origin(
            key: Origin.Key(
                host: upstream.host, port: upstream.port, isSecure: upstream.isSecure,
                requestedPort: upstream.port, forwarding: upstream.forwarding),
            policy: policy, entryIndex: target.entryIndex, refusal: target.refusal,
            match: target.match)
        reverse[upstream] = origin
        return origin
    }

    /// The origin of a request's target behind a proxy; nil for a host that is too long to be one.
    package func origin(
        host: Span<UInt8>, port: UInt16, scheme: Scheme, through route: ProxyRoute,
        policy: PolicySnapshot
    ) -> Origin? {
        guard host.count > 0, host.count <= 255 else { return nil }
        let host = host.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }.lowercasedASCII
        return proxied.origin(host: host, port: port, scheme: scheme, through: route, policy)
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

    /// Nothing uses one any more. After a burst of names their memory is given back, and need not
    /// wait for another burst: looking again costs each name constant time. One that is asked for
    /// in vain again and again is counted once.
    func becameUnused(_ origin: Origin) {
        guard !origin.isCountedUnused else { return }
        origin.isCountedUnused = true
        unused += 1
        if unused >= Self.capacity / 4, unused >= count / 2 { forgetUnused() }
    }

    private func forgetUnused() {
        unused = 0
        forgetLatest()
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
        byHash.values.flatMap { $0.filter { !$0.isAlias }.map(\.origin) } + reverse.values
            + proxied.all
    }

    /// Takes all origins over to another snapshot, under which their connections may be used on.
    func adopt(_ policy: PolicySnapshot) {
        reverse.keepNeeded()
        for origin in all { origin.adopt(policy) }
    }

    /// Forgets all origins, for a new policy. Connections in use end with their exchange.
    func removeAll() -> [Origin] {
        let origins = all
        forgetLatest()
        byHash = [:]
        reverse = [:]
        proxied = ProxiedOrigins()
        count = 0
        unused = 0
        limit = Self.capacity
        return origins
    }
}
