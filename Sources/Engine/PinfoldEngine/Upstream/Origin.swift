import Activity
import Authentication
import CachePolicy
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import PinfoldTLS
import ProxyProtocols

/// An upstream as seen by one worker: a scheme, host and port under one policy, with the
/// connections to it.
package final class Origin {
    /// The identity of an origin.
    package struct Key: Hashable {
        /// Lower case, an address without brackets.
        var host: String
        var port: UInt16
        /// Whether TLS is used.
        var isSecure: Bool
        /// The port that the request named, which decides the host entry: an upgraded request for
        /// port 80 goes to 443.
        var requestedPort: UInt16
        /// Whether the operator configured it as a reverse route's upstream.
        var isFixed: Bool { forwarding != nil }
        /// Which fields tell a reverse route's upstream about the client's side; `nil` for a
        /// forward proxy's destination.
        var forwarding: ForwardingConfiguration?
        /// How a proxy takes part in reaching it.
        var proxyUse = ProxyUse.direct
        /// Whether it is the same server for what cannot be done over HTTP/2.
        var takesOnlyHTTP1 = false
        /// The listener of whose set of servers it is one; `nil` for any other origin.
        var set: String?
        /// Whether its connections are for checks only.
        var isForChecks = false
        /// The form of the PROXY header with which each of its connections begins, and which makes
        /// it that of one client (`UpstreamPool+Private`); `nil` for none.
        var proxyHeader: ProxyHeader.Version?
        /// The path of the Unix socket that it listens on; `nil` if it is reached by its host.
        var unixPath: String?

        /// The ways to it that a rule names; `nil` for those of its host.
        var ruleWays: [WayName]?

        /// The server in logs.
        var serverText: String {
            unixPath.map { UnixSocketPath.scheme + $0 } ?? HostText.text(host, port: port)
        }
    }

    /// How a proxy takes part in reaching a server.
    package enum ProxyUse: Hashable {
        /// A direct connection.
        case direct
        /// A tunnel through a proxy, opened by CONNECT.
        case tunnel(UpstreamProxy)
        /// Requests are sent to a proxy.
        case forwarded(UpstreamProxy)
        /// The origin is such a proxy itself, for all the servers that it forwards to.
        case proxy(UpstreamProxy)
    }

    package let key: Key
    /// The start of its cache keys: the kind of route, and `scheme://host[:port]` without a default
    /// port.
    let keyStart: CacheKeyStart
    /// `host[:port]`: the value of Host.
    package let authority: [UInt8]
    package private(set) var policy: PolicySnapshot
    /// The index of the host entry that applies; `nil` if none does.
    let entryIndex: Int?
    /// The label of its metrics.
    package let route: LabelIndex
    /// The context for TLS; `nil` for clear text.
    let tls: TLSClientContext?
    private(set) var reachability: ServerReachability?
    private(set) var cacheStores = false
    /// Whether the cache is used for its requests as it is. Otherwise it is not used, or the path
    /// decides how (``usesRules``).
    private(set) var usesCachePlainly = false
    /// The rules by which the path of a request decides how the cache is used for it: by another
    /// origin, which is made for that (``init(_:route:)``). Usually `nil`, for none.
    private(set) var ruleSet: CacheRuleSet?
    /// Whether the path of a request decides how the cache is used for it.
    var usesRules: Bool { ruleSet != nil }
    /// Whether its requests are kept away from the cache under some conditions.
    private(set) var hasConditions = false
    /// Its origins by rules, once there has been a request for one; the table forgets them.
    var byRules: OriginsByRules.Routes?
    package private(set) var timeouts: TimeoutsConfiguration
    /// The rules for its requests and responses; usually `nil`, for none.
    private(set) var transformation: RouteTransformation?
    /// Whether the store has been told what its fingerprint means.
    var trustIsDescribed = false
    /// The most bytes of stored content that are decoded, or compressed, for a client.
    private(set) var formBytes = 0
    /// Whether these rules leave requests and the server's responses as they are.
    private(set) var passesUnchanged = true
    /// The rules that its requests may match; `nil` if all of them are served.
    private(set) var rules: HostRules?
    /// Whether X-Purge-Token in its requests is for the gateway.
    private(set) var takesPurgeTokens = false
    /// Whether any field of its requests ends at the gateway before the cache is asked:
    /// X-Purge-Token, or those of a trace.
    private(set) var endsFields = false
    /// Whether its requests may ask for a protocol other than HTTP (``SwitchMode``).
    private(set) var allowsUpgrade = true
    /// Why it must not be contacted, as far as its name, or its address for a literal, determines
    /// that.
    package let refusal: ExchangeError?
    /// The origin whose connections carry its requests: the proxy that forwards them. Usually
    /// `nil`, for this one.
    let carrier: Origin?
    /// The origin that it is for requests whose rule names other ways; `nil` for most.
    private let original: Origin?
    /// The origin itself, whatever ways a rule names.
    var base: Origin { original ?? self }
    /// The proxy that it is, which gets requests in absolute-form; `nil` if it is a server.
    let forwards: UpstreamProxy?
    /// The proxy through which tunnels to it are opened; `nil` if there are none.
    let tunnelProxy: UpstreamProxy?
    /// The ways to it; `nil` for its own connections alone.
    let ways: WayList?
    /// What chooses the server for each of its requests; `nil` unless a reverse route has several.
    let balancer: LoadBalancer?
    /// The most connections to it, of all workers, if that is less than the limit on every server.
    var maxConnections = Int.max
    /// Which patterns of the rules match the host.
    let match: DestinationRules.HostMatch
    /// The trust and access rules under which its responses are obtained; stable over restarts.
    /// Responses stored under others are not used.
    let trust: TrustFingerprint
    /// The part of it that is stored, and by which rules.
    let fingerprint: UInt64
    /// The rules for its path; `nil` if it has none, or paths decide.
    private let cacheRoute: CacheRuleSet.Route?
    /// How its responses are cached.
    private(set) var caching = Caching()
    /// Its server has responded as expected, with TLS or with HTTP in clear text: a connection that
    /// ends without a byte then does not suggest that the port is for the other.
    var portIsProven = false

    var idle = ContiguousArray<any PooledConnection>()
    /// Connections in use that have had room for another stream.
    var shared = ContiguousArray<any PooledConnection>()
    /// How far HTTP/2 is spoken with the server (`Origin+HTTP2`).
    var http2: HTTP2Standing
    let waiters = WaiterQueue()
    /// Connections being established.
    var connecting = 0
    /// What is being done for each of them, the oldest first.
    var underWay: [ConnectionTimeline] = []
    /// Established connections whose servers have not said yet how many streams they allow.
    var settling = 0
    /// Whether connections are being made for all who wait (`UpstreamPool.connectForAll`).
    var isConnectingForAll = false
    /// Established connections, idle and in use.
    var open = 0
    /// Whether it is counted as unused in the table of origins, which has not been checked since.
    var isCountedUnused = false
    /// Whether it waits for a permit of the limit on all connections.
    var isStarved = false
    /// The limit on connections to it, shared by all workers; `nil` until there is a connection.
    var limit: SharedLimit?
    /// Whether this worker is queued for a permit of the limit on its behalf.
    var isQueued = false
    /// Whether it is in its pool's table of limits.
    var isAmongLimited = false
    /// The client for whom the first of its connections was made (``LimitedOrigins``).
    var holder: IPNetwork?
    /// Whether others, for other clients' credentials, have the same limit.
    let sharesLimit: Bool

    /// - Parameter context: the context for TLS; `nil` for the one of its host entry.
    init(
        key: Key, policy: PolicySnapshot, entryIndex: Int?, refusal: ExchangeError?,
        match: DestinationRules.HostMatch, carrier: Origin? = nil,
        context: TLSClientContext? = nil
    ) {
        self.key = key
        self.carrier = carrier
        original = nil
        cacheRoute = nil
        balancer = nil
        forwards = if case .proxy(let proxy) = key.proxyUse { proxy } else { nil }
        tunnelProxy = if case .tunnel(let proxy) = key.proxyUse { proxy } else { nil }
        sharesLimit = (forwards ?? tunnelProxy)?.passesCredentials ?? false
        self.policy = policy
        timeouts = policy.timeouts
        self.entryIndex = entryIndex
        self.refusal = refusal
        self.match = match
        ways = Self.ways(key, policy, entryIndex)
        route = policy.route(entryIndex: entryIndex)
        tls = key.isSecure ? context ?? policy.tls(entryIndex: entryIndex) : nil
        http2 = HTTP2Standing(policy, entryIndex: entryIndex, tls, key)
        trust = policy.fingerprint(entryIndex: entryIndex, isFixed: key.isFixed)
        fingerprint = trust.prefix
        let authority = Self.authority(key)
        self.authority = Array(authority.utf8)
        keyStart = Self.keyStart(
            key, Self.cachedAuthority(key) ?? authority, trust, policy, entryIndex)
        adopt(policy)
    }

    /// An origin for requests whose rule names other ways. It has no connections of its own, and in
    /// clear text a part of the cache for these ways.
    ///
    /// - Parameter names: as the rule has them.
    init(_ base: Origin, by names: [WayName]) {
        var key = base.key
        key.ruleWays = names
        self.key = key
        original = base
        cacheRoute = nil
        balancer = base.balancer
        carrier = base.balancer == nil ? base : nil
        forwards = nil
        tunnelProxy = nil
        sharesLimit = false
        let policy = base.policy
        self.policy = policy
        timeouts = base.timeouts
        entryIndex = base.entryIndex
        refusal = base.refusal
        match = base.match
        maxConnections = base.maxConnections
        // Several servers have their own.
        ways =
            base.balancer == nil
            ? policy.ways(
                host: key.host, port: key.requestedPort, entryIndex: entryIndex, by: names)
                ?? WayList([.direct])
            : nil
        route = base.route
        tls = base.tls
        http2 = HTTP2Standing(policy, entryIndex: entryIndex, tls, key)
        authority = base.authority
        if key.isSecure {
            // Nobody on the way can answer in the server's name.
            trust = base.trust
            keyStart = base.keyStart
        } else {
            trust = policy.fingerprint(base.trust, by: names)
            let former = base.keyStart.bytes
            let prefix = CacheRoute.direct.prefix(by: policy.number(ofWays: names)).utf8
            let hasRoute = !former.starts(with: "http".utf8)
            keyStart = CacheKeyStart(
                hasRoute ? prefix.dropLast() + [UInt8(ascii: "-")] + former : prefix + former,
                isByRules: base.keyStart.isByRules)
        }
        fingerprint = trust.prefix
        adopt(policy)
    }

    /// The ways to it; `nil` if its own connections are taken without looking for one.
    private static func ways(_ key: Key, _ policy: PolicySnapshot, _ entryIndex: Int?) -> WayList? {
        guard case .direct = key.proxyUse else { return nil }
        // A socket is on this machine: no other proxy leads to it.
        let configured =
            key.unixPath == nil
            ? policy.ways(host: key.host, port: key.requestedPort, entryIndex: entryIndex) : nil
        // The search takes connections that are its client's own, and tells which socket it uses.
        let isSpecial = key.proxyHeader != nil || key.unixPath != nil
        return configured ?? (isSpecial ? WayList([.direct]) : nil)
    }

    /// The authority in cache keys of a server on a Unix socket; `nil` for any other, whose own it
    /// is. No server has such a name (RFC 6761 §6.4).
    private static func cachedAuthority(_ key: Key) -> String? {
        key.unixPath.map {
            "\(String(hexadecimal: FNV1a.hash($0), digits: 16)).unix.invalid"
        }
    }

    /// The origin of a route with several servers: its rules and its part of the cache. It has no
    /// connections; each of its requests uses one of the server that is chosen for it.
    ///
    /// - Parameters:
    ///   - first: the first server; in what matters here, all of them are alike.
    ///   - trust: what its responses are obtained under, whichever server sends them.
    init(of balancer: LoadBalancer, first: Origin, trust: TrustFingerprint, policy: PolicySnapshot)
    {
        key = first.key
        carrier = nil
        original = nil
        cacheRoute = nil
        self.balancer = balancer
        forwards = nil
        tunnelProxy = nil
        sharesLimit = false
        // Each server has its own.
        ways = nil
        self.policy = policy
        timeouts = policy.timeouts
        entryIndex = first.entryIndex
        // Each server's own decides whether it is used.
        refusal = nil
        match = first.match
        route = first.route
        tls = first.tls
        http2 = HTTP2Standing(policy, entryIndex: entryIndex, tls, key)
        self.trust = trust
        fingerprint = trust.prefix
        authority = first.authority
        // No server has such a name (RFC 6761 §6.4), and it stays if servers come and go.
        keyStart = Self.keyStart(
            key, "\(key.set ?? "").upstreams.invalid", trust, policy, entryIndex)
        adopt(policy)
    }

    private static func authority(_ key: Key) -> String {
        let bracketed = HostText.bracketed(key.host)
        let isDefault = key.port == (key.isSecure ? 443 : 80)
        return isDefault ? bracketed : "\(bracketed):\(key.port)"
    }

    private static func keyStart(
        _ key: Key, _ authority: String, _ trust: TrustFingerprint, _ policy: PolicySnapshot,
        _ entryIndex: Int?
    ) -> CacheKeyStart {
        let route = cacheRoute(key, trust, policy, entryIndex)
        let scheme = key.isSecure ? "https" : "http"
        return CacheKeyStart(
            Array("\(route.prefix)\(scheme)://\(authority)".utf8),
            isByRules: policy.cacheRules(entryIndex: entryIndex) != nil)
    }

    /// An upgraded request shares the cache with requests for https if both are under the same
    /// rules.
    private static func cacheRoute(
        _ key: Key, _ trust: TrustFingerprint, _ policy: PolicySnapshot, _ entryIndex: Int?
    ) -> CacheRoute {
        if let forwarding = key.forwarding { return .reverse(forwarding.traits) }
        if key.requestedPort == key.port { return .direct }
        let direct = policy.entry(host: key.host, port: key.port)
        return policy.fingerprint(entryIndex: direct, isFixed: false) == trust
            && policy.cachesAlike(entryIndex, direct) ? .direct : .upgraded
    }

    /// An origin for requests to which some of its rules for the cache apply. It has no
    /// connections of its own.
    init(_ base: Origin, route: CacheRuleSet.Route) {
        key = base.key
        original = base.base
        balancer = base.balancer
        carrier = base.balancer == nil ? base : nil
        forwards = base.forwards
        tunnelProxy = base.tunnelProxy
        sharesLimit = base.sharesLimit
        policy = base.policy
        timeouts = base.timeouts
        entryIndex = base.entryIndex
        refusal = base.refusal
        match = base.match
        maxConnections = base.maxConnections
        // The search for a way says that there is none where the server is not asked.
        ways = route.rules.isOffline ?? false ? .offline : base.ways
        self.route = base.route
        tls = base.tls
        http2 = HTTP2Standing(base.policy, entryIndex: entryIndex, tls, key)
        authority = base.authority
        trust = base.trust
        keyStart = CacheKeyStart(base.keyStart.bytes, isByRules: route.query != nil)
        fingerprint = base.fingerprint ^ route.mark
        cacheRoute = route
        adopt(base.policy)
    }

    /// Adopts another snapshot, in which nothing that its connections depend on has changed.
    func adopt(_ policy: PolicySnapshot) {
        self.policy = policy
        trustIsDescribed = false
        let entry = entryIndex.map { policy.configuration.hosts.entries[$0] }
        ruleSet = cacheRoute == nil ? policy.cacheRules(entryIndex: entryIndex) : nil
        cacheStores =
            policy.configuration.cache.isEnabled
            && (cacheRoute?.rules.stores ?? entry?.cache.stores ?? true)
        usesCachePlainly = cacheStores && !usesRules
        caching = Caching(of: self, cacheRoute, entry, policy)
        hasConditions = caching.conditions != nil
        timeouts = policy.timeouts(entryIndex: entryIndex)
        transformation = policy.transformation(entryIndex: entryIndex)
        passesUnchanged = !(transformation?.changesMessages ?? false)
        formBytes = (entry?.response ?? ResponseRules()).maximumBytes
        rules = policy.rules(host: key.host, port: key.requestedPort)
        takesPurgeTokens = policy.configuration.cache.purge?.token != nil
        endsFields = takesPurgeTokens || policy.configuration.tracing.traceparent != .pass
        allowsUpgrade = policy.allowsUpgrade(entryIndex: entryIndex)
        // What happens on the way to a proxy says nothing about the server.
        guard case .direct = key.proxyUse else { return }
        reachability = policy.reachability(host: key.host, port: key.requestedPort)
    }

    /// Its host, in lower case; an address without brackets.
    package var host: String { key.host }
    package var port: UInt16 { key.port }
    /// Whether TLS is used.
    package var isSecure: Bool { key.isSecure }

    /// The gateway's name in messages to it.
    package var gatewayName: GatewayName { transformation?.name ?? .own }

    /// Whether there is neither a connection to it nor anything waiting for one.
    var isUnused: Bool {
        open == 0 && connecting == 0 && waiters.isEmpty && (http2.sibling?.isUnused ?? true)
    }

    /// Whether a table must keep an origin that it holds by this reference.
    ///
    /// An exchange may hold an unused origin and request a connection later, once its content has
    /// arrived or the disk has answered. If the table created another one meanwhile, the connection
    /// would use a permit of the limit that both share, and once idle nobody would find it.
    static func isStillNeeded(_ origin: inout Origin) -> Bool {
        guard origin.isUnused, isKnownUniquelyReferenced(&origin) else {
            origin.isCountedUnused = false
            return true
        }
        return false
    }
}
