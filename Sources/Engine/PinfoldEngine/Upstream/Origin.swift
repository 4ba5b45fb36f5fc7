import Activity
import Authentication
import CachePolicy
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import PinfoldTLS

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
    package private(set) var timeouts: TimeoutsConfiguration
    /// The rules for its requests and responses; usually `nil`, for none.
    private(set) var transformation: RouteTransformation?
    /// Whether these rules leave requests and the server's responses as they are.
    private(set) var passesUnchanged = true
    /// The rules that its requests may match; `nil` if all of them are served.
    private(set) var rules: HostRules?
    /// Whether its requests may ask for a protocol other than HTTP (``SwitchMode``).
    private(set) var allowsUpgrade = true
    /// Why it must not be contacted, as far as its name, or its address for a literal, determines
    /// that.
    package let refusal: ExchangeError?
    /// The origin whose connections carry its requests: the proxy that forwards them. Usually
    /// `nil`, for this one.
    let carrier: Origin?
    /// The proxy that it is, which gets requests in absolute-form; `nil` if it is a server.
    let forwards: UpstreamProxy?
    /// The proxy through which tunnels to it are opened; `nil` if there are none.
    let tunnelProxy: UpstreamProxy?
    /// Which patterns of the rules match the host.
    let match: DestinationRules.HostMatch
    /// The trust and access rules under which its responses are obtained; stable over restarts.
    /// Responses stored under others are not used.
    let trust: TrustFingerprint
    /// The part of it that is stored.
    let fingerprint: UInt64
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
    /// Whether this worker is queued for a permit of the limit.
    var isQueued = false

    /// - Parameter context: the context for TLS; `nil` for the one of its host entry.
    init(
        key: Key, policy: PolicySnapshot, entryIndex: Int?, refusal: ExchangeError?,
        match: DestinationRules.HostMatch, carrier: Origin? = nil,
        context: TLSClientContext? = nil
    ) {
        self.key = key
        self.carrier = carrier
        forwards = if case .proxy(let proxy) = key.proxyUse { proxy } else { nil }
        tunnelProxy = if case .tunnel(let proxy) = key.proxyUse { proxy } else { nil }
        self.policy = policy
        timeouts = policy.timeouts
        self.entryIndex = entryIndex
        self.refusal = refusal
        self.match = match
        route = policy.route(entryIndex: entryIndex)
        tls = key.isSecure ? context ?? policy.tls(entryIndex: entryIndex) : nil
        http2 = HTTP2Standing(policy, entryIndex: entryIndex, tls, key)
        trust = policy.fingerprint(entryIndex: entryIndex, isFixed: key.isFixed)
        fingerprint = trust.prefix
        let bracketed = HostText.bracketed(key.host)
        let isDefault = key.port == (key.isSecure ? 443 : 80)
        let authority = isDefault ? bracketed : "\(bracketed):\(key.port)"
        self.authority = Array(authority.utf8)
        let route = Self.cacheRoute(key, trust, policy)
        let scheme = key.isSecure ? "https" : "http"
        keyStart = CacheKeyStart(Array("\(route.prefix)\(scheme)://\(authority)".utf8))
        adopt(policy)
    }

    /// An upgraded request shares the cache with requests for https if both are under the same
    /// rules.
    private static func cacheRoute(
        _ key: Key, _ trust: TrustFingerprint, _ policy: PolicySnapshot
    ) -> CacheRoute {
        if let forwarding = key.forwarding { return .reverse(forwarding.traits) }
        if key.requestedPort == key.port { return .direct }
        let direct = policy.entry(host: key.host, port: key.port)
        return policy.fingerprint(entryIndex: direct, isFixed: false) == trust
            ? .direct : .upgraded
    }

    /// How an origin's responses are cached. It is immutable, so that it can be used in place
    /// instead of being copied for each request.
    final class Caching {
        /// The cache's policy, with the route's own part of the key.
        let options: PolicyOptions
        /// The request fields that bypass the cache.
        let bypassFields: BypassFields
        /// Whether what is being stored is received to its end if its client leaves.
        let fill: CacheFill
        /// Bytes of the slices in which responses are requested; `nil` for what clients request.
        let sliceBytes: Int?

        init(
            options: PolicyOptions = PolicyOptions(), bypassFields: BypassFields = BypassFields([]),
            fill: CacheFill = .whileWanted, sliceBytes: Int? = nil
        ) {
            self.options = options
            self.bypassFields = bypassFields
            self.fill = fill
            self.sliceBytes = sliceBytes
        }
    }

    /// Adopts another snapshot, in which nothing that its connections depend on has changed.
    func adopt(_ policy: PolicySnapshot) {
        self.policy = policy
        let entry = entryIndex.map { policy.configuration.hosts.entries[$0] }
        cacheStores = policy.configuration.cacheStores(entry: entryIndex)
        var options = policy.cacheOptions
        let nominated =
            (entry?.keyFields ?? []) + (key.forwarding?.traits.nominatedFields ?? [])
        options.nominatedFields = nominated.map { Array($0.utf8) }
            .filter { $0.count <= VaryKey.maximumNameBytes }
        options.honoursCDNCacheControl = key.isFixed
        options.trustsLastModified = !(entry?.response.translates ?? false)
        if let forwarding = key.forwarding, forwarding.mode != .none {
            options.gatewayFields = [Array("x-forwarded-for".utf8), Array("forwarded".utf8)]
        }
        let bypass = BypassFields(
            policy.configuration.cache.bypassFields, except: entry?.cacheKeyFields ?? [])
        // A reverse route's upstream uses the gateway's own.
        caching = Caching(
            options: options, bypassFields: key.isFixed ? bypass.removing(.forwarding) : bypass,
            fill: entry?.cacheFill ?? policy.configuration.cache.fill,
            sliceBytes: entry?.cacheSliceBytes)
        timeouts = policy.timeouts(entryIndex: entryIndex)
        transformation = policy.transformation(entryIndex: entryIndex)
        passesUnchanged = !(transformation?.changesMessages ?? false)
        rules = policy.rules(host: key.host, port: key.requestedPort)
        allowsUpgrade = policy.allowsUpgrade(entryIndex: entryIndex)
        // What happens on the way to a proxy says nothing about the server.
        guard case .direct = key.proxyUse else { return }
        reachability = policy.reachability(host: key.host, port: key.requestedPort)
    }

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

extension Dictionary where Value == Origin {
    /// Forgets the origins that are unused and not referenced elsewhere.
    mutating func keepNeeded() {
        var known = Array(self)
        self = [:]
        for index in known.indices where Origin.isStillNeeded(&known[index].value) {
            self[known[index].key] = known[index].value
        }
    }
}

extension ForwardingConfiguration {
    /// The part of it that the cache key must contain.
    var traits: ReverseTraits {
        var traits: ReverseTraits = []
        if mode != .none { traits.insert(.forwardsHost) }
        if mode != .none, clientsSpeakTLS { traits.insert(.forwardsTLS) }
        if keepsHost { traits.insert(.keepsHost) }
        if trustsSomebody { traits.insert(.trustsProxies) }
        return traits
    }
}

extension Origin {
    /// The basis of a connection that leaves HTTP.
    func basis(
        from client: Endpoint?, as identity: Identity?, request: AccessRequest?,
        at endpoint: Endpoint?
    ) -> TunnelBasis {
        TunnelBasis(
            BoundAuthority(host: key.host, port: key.requestedPort),
            by: key.isFixed ? .fixed(isSecure: key.isSecure) : .request(isSecure: key.isSecure),
            from: client, as: identity, request: request, at: endpoint,
            proof: key.isSecure ? .verified : .none, under: policy)
    }
}
