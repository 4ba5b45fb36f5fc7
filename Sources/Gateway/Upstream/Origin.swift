import Activity
import Addressing
import CachePolicy
import Configuration
import EventLoop
import TLS

/// One upstream as one worker knows it: a scheme, host and port under one policy, with the
/// connections to it.
final class Origin {
    /// What tells origins apart.
    struct Key: Hashable {
        /// Lower case, an address without brackets.
        var host: String
        var port: UInt16
        /// TLS is spoken to it.
        var isSecure: Bool
        /// The port that the request named, which decides the host entry: an upgraded request for
        /// port 80 goes to 443.
        var requestedPort: UInt16
        /// The operator named it as a reverse route's upstream.
        var isFixed: Bool
    }

    let key: Key
    /// `scheme://host[:port]` without a default port: the start of its cache keys.
    let cacheKeyPrefix: [UInt8]
    /// `host[:port]`: the value of Host.
    let authority: [UInt8]
    let policy: PolicySnapshot
    /// The index of the host entry that applies; nil for none.
    let entryIndex: Int?
    /// The label of its metrics.
    let route: Int
    /// What TLS is spoken with; nil for clear text.
    let tls: TLSClientContext?
    let reachability: HostReachability?
    let cacheStores: Bool
    let firstByteMilliseconds: Int64
    /// What was decided about the host by name or, for a literal, by address.
    let refusal: DestinationRefusal?
    /// What the rules' patterns say of the host.
    let match: DestinationRules.HostMatch
    /// The trust and the rules of access under which its responses are obtained; the same over
    /// restarts. What was stored under others is not used.
    let fingerprint: UInt64
    /// The cache's policy, with the route's own part of the key.
    let cacheOptions: PolicyOptions

    var idle = ContiguousArray<UpstreamConnection>()
    var waiters = WaiterQueue()
    /// Connections being established.
    var connecting = 0
    /// Connections established: idle and in use.
    var open = 0
    /// The loop's time of the last use.
    var lastUse: Int64 = 0

    init(
        key: Key, policy: PolicySnapshot, entryIndex: Int?, refusal: DestinationRefusal?,
        match: DestinationRules.HostMatch
    ) {
        self.key = key
        self.policy = policy
        self.entryIndex = entryIndex
        self.refusal = refusal
        self.match = match
        route = policy.route(entryIndex: entryIndex)
        tls = key.isSecure ? policy.tls(entryIndex: entryIndex) : nil
        fingerprint = policy.fingerprint(entryIndex: entryIndex, isFixed: key.isFixed)
        let bracketed = key.host.utf8.contains(UInt8(ascii: ":")) ? "[\(key.host)]" : key.host
        let isDefault = key.port == (key.isSecure ? 443 : 80)
        let authority = isDefault ? bracketed : "\(bracketed):\(key.port)"
        self.authority = Array(authority.utf8)
        cacheKeyPrefix = Array("\(key.isSecure ? "https" : "http")://\(authority)".utf8)
        let entry = entryIndex.map { policy.configuration.hosts.entries[$0] }
        cacheStores = policy.configuration.cache.isEnabled && (entry?.cacheStores ?? true)
        var options = policy.cacheOptions
        options.nominatedFields = (entry?.cacheKeyFields ?? []).map { Array($0.utf8) }
            .filter { $0.count <= VaryKey.maximumNameBytes }
        options.honoursCDNCacheControl = key.isFixed
        cacheOptions = options
        firstByteMilliseconds =
            entry?.requestTimeoutMilliseconds
            ?? policy.configuration.timeouts.firstByteMilliseconds
        reachability = policy.reachability(host: key.host, port: key.requestedPort)
    }

    /// Nothing refers to it but the table.
    var isUnused: Bool { open == 0 && connecting == 0 && waiters.isEmpty }
}

/// Who waits for a connection, first come first served.
struct WaiterQueue {
    private struct Waiter {
        var consumer: any UpstreamConsumer
        var wantsFresh: Bool
    }

    private var waiters: [Waiter] = []

    var isEmpty: Bool { waiters.isEmpty }
    var count: Int { waiters.count }

    mutating func append(_ consumer: any UpstreamConsumer, wantsFresh: Bool) {
        waiters.append(Waiter(consumer: consumer, wantsFresh: wantsFresh))
    }

    /// Takes the first who would use the connection.
    mutating func take(isFresh: Bool) -> (any UpstreamConsumer)? {
        guard let index = waiters.firstIndex(where: { isFresh || !$0.wantsFresh }) else {
            return nil
        }
        return waiters.remove(at: index).consumer
    }

    mutating func remove(_ consumer: any UpstreamConsumer) {
        waiters.removeAll { $0.consumer === consumer }
    }

    mutating func takeAll() -> [any UpstreamConsumer] {
        defer { waiters = [] }
        return waiters.map(\.consumer)
    }
}
