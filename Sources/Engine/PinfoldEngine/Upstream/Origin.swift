import Activity
import CachePolicy
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import PinfoldTLS

/// One upstream as one worker knows it: a scheme, host and port under one policy, with the
/// connections to it.
package final class Origin {
    /// What tells origins apart.
    package struct Key: Hashable {
        /// Lower case, an address without brackets.
        var host: String
        var port: UInt16
        /// TLS is spoken to it.
        var isSecure: Bool
        /// The port that the request named, which decides the host entry: an upgraded request for
        /// port 80 goes to 443.
        var requestedPort: UInt16
        /// The operator named it as a reverse route's upstream.
        var isFixed: Bool { forwarding != nil }
        /// What a reverse route's upstream is told about the client's side; nil for a forward
        /// proxy's destination.
        var forwarding: ForwardingConfiguration?
        /// What lies between.
        var way = Way.direct
    }

    /// What lies between this program and a server.
    package enum Way: Hashable {
        /// Nothing that it knows of.
        case direct
        /// A tunnel through a proxy, which is asked for by CONNECT.
        case tunnel(UpstreamProxy)
        /// A proxy that is given the requests.
        case forwarded(UpstreamProxy)
        /// Nothing: it is such a proxy itself, for all the servers that it forwards to.
        case proxy(UpstreamProxy)
    }

    package let key: Key
    /// The start of its cache keys: the kind of route, and `scheme://host[:port]` without a default
    /// port.
    let keyStart: CacheKeyStart
    /// `host[:port]`: the value of Host.
    package let authority: [UInt8]
    package private(set) var policy: PolicySnapshot
    /// The index of the host entry that applies; nil for none.
    let entryIndex: Int?
    /// The label of its metrics.
    package let route: LabelIndex
    /// What TLS is spoken with; nil for clear text.
    let tls: TLSClientContext?
    private(set) var reachability: ServerReachability?
    private(set) var cacheStores = false
    package private(set) var timeouts: TimeoutsConfiguration
    /// The rules for what it is sent and sends; nil, mostly: there are none.
    private(set) var transformation: RouteTransformation?
    /// Whether its requests may ask for a protocol other than HTTP (``SwitchMode``).
    private(set) var mayLeaveHTTP = true
    /// Why it must not be reached, as far as its name, or its address for a literal, tells.
    package let refusal: ExchangeError?
    /// The origin whose connections carry its requests: the proxy that forwards them. nil, mostly:
    /// it is this one.
    let carrier: Origin?
    /// The proxy that it is, which requests are given in absolute-form; nil: it is a server.
    let forwards: UpstreamProxy?
    /// The proxy that tunnels to it are made through; nil: there are none.
    let tunnelProxy: UpstreamProxy?
    /// What the rules' patterns say of the host.
    let match: DestinationRules.HostMatch
    /// The trust and the rules of access under which its responses are obtained; the same over
    /// restarts. What was stored under others is not used.
    let trust: TrustFingerprint
    /// What the store keeps of it.
    let fingerprint: UInt64
    /// What the cache does with its responses.
    private(set) var caching = Caching()
    /// Its server has answered as it is spoken to, with TLS or with HTTP in clear text: a
    /// connection that ends without a byte is no sign that its port is for the other.
    var portIsProven = false

    var idle = ContiguousArray<UpstreamConnection>()
    let waiters = WaiterQueue()
    /// Connections being established.
    var connecting = 0
    /// Connections established: idle and in use.
    var open = 0
    /// The table of origins has been told that nothing uses it, and has not looked since.
    var isCountedUnused = false
    /// It waits for a place among all connections.
    var isStarved = false
    /// The limit of connections to it, of all workers; nil until one is made.
    var limit: SharedLimit?
    /// This worker stands in line for a place of the limit.
    var isQueued = false

    init(
        key: Key, policy: PolicySnapshot, entryIndex: Int?, refusal: ExchangeError?,
        match: DestinationRules.HostMatch, carrier: Origin? = nil
    ) {
        self.key = key
        self.carrier = carrier
        forwards = if case .proxy(let proxy) = key.way { proxy } else { nil }
        tunnelProxy = if case .tunnel(let proxy) = key.way { proxy } else { nil }
        self.policy = policy
        timeouts = policy.timeouts
        self.entryIndex = entryIndex
        self.refusal = refusal
        self.match = match
        route = policy.route(entryIndex: entryIndex)
        tls = key.isSecure ? policy.tls(entryIndex: entryIndex) : nil
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

    /// An upgraded request shares the cache with those that name TLS themselves where both are
    /// under the same rules.
    private static func cacheRoute(
        _ key: Key, _ trust: TrustFingerprint, _ policy: PolicySnapshot
    ) -> CacheRoute {
        if let forwarding = key.forwarding { return .reverse(forwarding.traits) }
        if key.requestedPort == key.port { return .direct }
        let direct = policy.entry(host: key.host, port: key.port)
        return policy.fingerprint(entryIndex: direct, isFixed: false) == trust
            ? .direct : .upgraded
    }

    /// What the cache does with responses of an origin. It never changes, so that it can be used
    /// where it is instead of being copied for each request.
    final class Caching {
        /// The cache's policy, with the route's own part of the key.
        let options: PolicyOptions
        /// The request fields that keep out of the cache.
        let bypassFields: BypassFields

        init(
            options: PolicyOptions = PolicyOptions(), bypassFields: BypassFields = BypassFields([])
        ) {
            self.options = options
            self.bypassFields = bypassFields
        }
    }

    /// Goes on under another snapshot, in which nothing has changed of what its connections
    /// depend on.
    func adopt(_ policy: PolicySnapshot) {
        self.policy = policy
        let entry = entryIndex.map { policy.configuration.hosts.entries[$0] }
        cacheStores = policy.configuration.cacheStores(entry: entryIndex)
        var options = policy.cacheOptions
        let nominated =
            (entry?.cacheKeyFields ?? []) + (key.forwarding?.traits.nominatedFields ?? [])
        options.nominatedFields = nominated.map { Array($0.utf8) }
            .filter { $0.count <= VaryKey.maximumNameBytes }
        options.honoursCDNCacheControl = key.isFixed
        options.trustsLastModified = !(entry?.response.translates ?? false)
        if let forwarding = key.forwarding, forwarding.mode != .none {
            options.fieldsOfOurs = [Array("x-forwarded-for".utf8), Array("forwarded".utf8)]
        }
        let bypass = BypassFields(
            policy.configuration.cache.bypassFields, except: entry?.cacheKeyFields ?? [])
        // A reverse route's upstream gets the gateway's own.
        caching = Caching(
            options: options, bypassFields: key.isFixed ? bypass.removing(.forwarding) : bypass)
        timeouts = policy.timeouts(entryIndex: entryIndex)
        transformation = policy.transformation(entryIndex: entryIndex)
        mayLeaveHTTP = policy.mayLeaveHTTP(entryIndex: entryIndex)
        // What happens on the way to a proxy tells nothing of the server.
        guard case .direct = key.way else { return }
        reachability = policy.reachability(host: key.host, port: key.requestedPort)
    }

    /// There is neither a connection to it nor anybody who waits for one.
    var isUnused: Bool { open == 0 && connecting == 0 && waiters.isEmpty }

    /// Whether a table has to go on knowing an origin that it holds by this reference.
    ///
    /// One without use may be what an exchange has found and will ask for a connection later: when
    /// its content has come, or the disk has answered. If the table made another one meanwhile, the
    /// connection would take up a place of the limit that both share, and once it is idle nobody
    /// would find it there.
    static func isStillNeeded(_ origin: inout Origin) -> Bool {
        guard origin.isUnused, isKnownUniquelyReferenced(&origin) else {
            origin.isCountedUnused = false
            return true
        }
        return false
    }
}

extension Dictionary where Value == Origin {
    /// Forgets the origins that nothing uses and nobody else refers to.
    mutating func keepNeeded() {
        var known = Array(self)
        self = [:]
        for index in known.indices where Origin.isStillNeeded(&known[index].value) {
            self[known[index].key] = known[index].value
        }
    }
}

extension ForwardingConfiguration {
    /// What of it the cache's key has to tell.
    var traits: ReverseTraits {
        var traits: ReverseTraits = []
        if mode != .none { traits.insert(.tellsHost) }
        if mode != .none, clientsSpeakTLS { traits.insert(.tellsTLS) }
        if keepsHost { traits.insert(.keepsHost) }
        if trustsSomebody { traits.insert(.trustsProxies) }
        return traits
    }
}

extension Origin {
    /// What a connection that leaves HTTP stands on.
    func basis(from client: Endpoint?, at endpoint: Endpoint?) -> TunnelBasis {
        TunnelBasis(
            BoundAuthority(host: key.host, port: key.requestedPort),
            by: key.isFixed ? .fixed(isSecure: key.isSecure) : .request(isSecure: key.isSecure),
            from: client, at: endpoint, proof: key.isSecure ? .verified : .none, under: policy)
    }
}
