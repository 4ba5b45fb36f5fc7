import Activity
import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Trust

/// How requests for a URL would be handled under a configuration, determined by the same functions
/// that decide it for exchanges.
package struct RouteExplanation: Sendable {
    /// The form in which a request comes to the gateway.
    package enum RequestForm: Sendable, Hashable {
        /// CONNECT with the URL's host and port, as clients do for https.
        case connect
        /// The full URL in the request (absolute-form, RFC 9112 §3.2.2).
        case absolute
        /// Any request to the reverse listener of this name, whose upstream is the URL's server.
        case reverse(listener: String)
        /// What the client sends to the URL's server, on a connection that is led to the
        /// transparent listener of this name: TLS for https, a request otherwise.
        case transparent(listener: String)
    }

    /// How such a request is handled.
    package enum Handling: Sendable {
        case refused(ExchangeError)
        /// The tunnel's bytes are relayed without inspection.
        case tunnel
        /// They are relayed once the server's handshake has been verified; the mode applies to
        /// TLS 1.3.
        case inspect(TLS13TunnelMode)
        /// The tunnel ends in the gateway, and requests in it are served like any others.
        case intercept
        /// Intercepted; traffic that is not TLS, and clients that reject the certificate, are
        /// relayed.
        case interceptOrPass
        /// Intercepted; tunnels of clients that reject the certificate are inspected.
        case interceptOrInspect(TLS13TunnelMode)
        /// Received in clear text, sent with TLS to this port.
        case upgrade(port: UInt16)
        /// TLS, as requested.
        case verified
        case clearText
    }

    /// How the access rules treat a destination.
    package struct Destination: Sendable {
        package enum Verdict: String, Sendable, CaseIterable {
            case allowed
            case refused
            /// Its name allows private networks, too; otherwise each address decides.
            case privateAllowed = "private-allowed"
            /// Each address that the name has decides.
            case byAddress = "by-address"
        }

        package let verdict: Verdict
        /// The address concerned; `nil` for the name.
        package let address: IPAddress?
        /// Why, for people; `nil` if there is nothing to explain.
        package let detail: String?

        package init(verdict: Verdict, address: IPAddress?, detail: String?) {
            self.verdict = verdict
            self.address = address
            self.detail = detail
        }

        /// One sentence.
        package var text: String {
            let subject = address.map { "\($0): " } ?? ""
            switch verdict {
            case .allowed: return subject + "allowed"
            case .refused: return "\(subject)refused: \(detail ?? "")"
            case .privateAllowed, .byAddress: return subject + (detail ?? "")
            }
        }
    }

    /// A way to the host.
    package struct ProxyWay: Sendable, Hashable {
        /// As it is named in the configuration.
        package let name: String
        /// The parent's URL without credentials; `nil` for a direct connection.
        package let url: String?
        /// Whether the parent alone resolves the host's name.
        package let resolvesNames: Bool
    }

    /// An address that the host has.
    package struct Address: Sendable {
        package let address: IPAddress
        /// Why the gateway does not connect to it for a request that names the host; `nil` if it
        /// does.
        package let refusal: ExchangeError?
    }

    package let host: String
    package let port: UInt16
    /// The path of the server's Unix socket; `nil` if it is reached by its host.
    package let unixPath: String?
    /// The index of the host entry that applies, and its label; `nil` if none does.
    package let entry: Int?
    package let label: String
    /// The pattern that matches.
    package let pattern: String?
    /// The pinsets that apply to a server, in the order of evaluation.
    package let pinsets: [Pinset]
    /// The Certificate Transparency policy for the server; `nil` if there is none.
    package let transparency: TransparencyPolicy?
    /// Whether HTTP/2 is spoken with the server.
    package let http2: ServerHTTP2
    /// The ways to the host, in the order in which they are tried; `nil` if it is connected to
    /// directly, because nothing else is configured for it.
    package let proxyWays: [ProxyWay]?
    /// How each form of request is handled; empty if no listener accepts such requests.
    package let ways: [(asking: RequestForm, way: Handling)]
    /// How the reverse listeners that send requests there tell the server who the client is.
    package let headers: [String: UpstreamProxyProtocol]
    /// What the rules of `access.rules` say of each of them; empty if there are none.
    package let judgements: [(asking: RequestForm, judgement: RuleExplanation)]
    /// How the access rules treat the destination by its name or, if it is one, its address.
    package let destination: Destination
    /// The host's addresses, in the order in which they are tried.
    package let addresses: [Address]
    /// Why there are none; `nil` if there are some.
    package let lookupFailure: ExchangeError?
    /// Whether stored responses are looked up for at least one way, and why or why not.
    package let cacheIsUsed: Bool
    package let cacheReason: String
    /// The rules for the cache that apply to the path; `nil` if there are none.
    package let cacheRules: CacheRulesExplanation?

    /// - Parameters:
    ///   - policy: the snapshot whose functions are used.
    ///   - target: the target of the requests.
    ///   - found: the host's addresses, or the error for having found none.
    ///   - asking: who asks, and how, for the rules.
    ///   - now: the time by which pinsets expire and rules are judged, in seconds since 1970.
    package init(
        _ policy: PolicySnapshot, _ target: TargetURL,
        addresses found: Result<[IPAddress], ExchangeError>, asking: Asker = Asker(), now: Int64
    ) {
        let configuration = policy.configuration
        let (host, port, isSecure) = (target.host, target.port, target.isSecure)
        let entry = configuration.hostEntry(host: host.utf8.span, port: port)
        let hostEntry = entry.map { configuration.hosts.entries[$0] }
        self.host = host
        self.port = port
        unixPath = target.unixPath
        self.entry = entry
        label = hostEntry?.label ?? "default"
        pattern = hostEntry?.match.first { $0.matches(host: host.utf8.span, port: port) }
            .map { "\($0)" }
        transparency = (hostEntry?.tls ?? configuration.tls).transparency.policy
        http2 = hostEntry?.http2 ?? .auto
        pinsets = (hostEntry?.pinsets ?? []).map { configuration.pinsets[$0].pinset }
        let request = policy.target(host: host, port: port, by: .request(isSecure: isSecure))
        let check = DestinationCheck(
            rules: policy.destinationRules, match: request.match, port: request.port)
        let own = OwnListeners(of: configuration)
        switch found {
        case .success(let found):
            addresses = found.map { Address(address: $0, refusal: check.refusal(of: $0, own: own)) }
            lookupFailure = nil
        case .failure(let failure):
            addresses = []
            lookupFailure = failure
        }
        // No other proxy leads to a socket of this machine.
        let proxies =
            target.unixPath == nil ? policy.ways(host: host, port: port, entryIndex: entry) : nil
        proxyWays = proxies.map { Self.proxyWays($0) }
        let expired = Self.expiry(of: pinsets, at: now)
        var ways: [(asking: RequestForm, way: Handling)] = []
        // Stored responses are looked up before a connection is made, so that they are served even
        // if none can be made.
        var reachesCache = false
        var judgements: [(asking: RequestForm, judgement: RuleExplanation)] = []
        var headers: [String: UpstreamProxyProtocol] = [:]
        func judged(_ form: RequestForm, _ way: Handling) -> Handling {
            guard let judgement = Self.judge(form, way, target, asking, policy, now: now) else {
                return way
            }
            judgements.append((form, judgement))
            return way.orRefused(by: judgement.refusal)
        }
        let (known, failure) = (addresses, lookupFailure)
        /// What becomes of it, if there is no way to the host.
        func reached(_ form: RequestForm, _ way: Handling) -> Handling {
            let rule = judgements.first { $0.asking == form }?.judgement.wayNames ?? []
            let unreachable = Self.unreachable(
                policy.ways(host: host, port: port, entryIndex: entry, by: rule), known, failure)
            return way.orRefused(by: unreachable, expired)
        }
        let asked = configuration.listeners.filter {
            $0.kind.isForward && !$0.kind.isTransparent
                && (asking.listener == nil || asking.listener == $0.name)
                && target.unixPath == nil
        }
        if !asked.isEmpty {
            let takesURLs = asked.contains { $0.kind == .forward }
            if isSecure || !takesURLs {
                let rule = Self.tunnelSettings(target, asking, policy, now: now)
                ways.append(
                    (.connect, judged(.connect, Self.connect(policy, host, port, rule))))
            }
            if takesURLs {
                ways.append((.absolute, judged(.absolute, Self.absolute(request, isSecure))))
            }
            reachesCache = ways.contains { $0.way.looksUpResponses }
            for (index, (form, way)) in ways.enumerated() {
                ways[index].way = reached(form, way)
            }
        }
        for listener in configuration.listeners where listener.kind.isTransparent {
            guard asking.listener == nil || asking.listener == listener.name else { continue }
            var asking = asking
            asking.listener = listener.name
            let rule = Self.tunnelSettings(target, asking, policy, now: now)
            let form = RequestForm.transparent(listener: listener.name)
            let way = judged(
                form,
                isSecure
                    ? Self.connect(policy, host, port, rule) : Self.absolute(request, isSecure))
            reachesCache = reachesCache || way.looksUpResponses
            ways.append((form, reached(form, way)))
        }
        for listener in configuration.listeners {
            let isAsked = listener.upstreamOrigins.contains { upstream in
                upstream.host == host && upstream.port == port
                    && (upstream.scheme == .https) == isSecure
                    && upstream.unixPath == target.unixPath
            }
            guard isAsked else { continue }
            headers[listener.name] = listener.upstreamProxyProtocol
            let fixed = policy.target(host: host, port: port, by: .fixed(isSecure: isSecure))
            let form = RequestForm.reverse(listener: listener.name)
            let way = judged(form, Self.absolute(fixed, isSecure))
            reachesCache = reachesCache || way.looksUpResponses
            ways.append((form, way.orRefused(by: lookupFailure, expired)))
        }
        self.ways = ways
        self.judgements = judgements
        self.headers = headers
        destination = Self.destination(policy, request, host)
        let connects = ways.contains { !$0.way.isRefused }
        (cacheIsUsed, cacheReason) = Self.cache(
            configuration, entry, isReached: reachesCache, connects: connects)
        cacheRules = CacheRulesExplanation(policy, target, entry: entry)
    }

    /// Ways as they are shown.
    static func proxyWays(_ list: WayList?) -> [ProxyWay] {
        (list?.ways ?? [.direct]).map { way in
            ProxyWay(
                name: way.proxy?.standing?.name ?? WayName.direct.text,
                url: way.proxy?.description,
                resolvesNames: !(way.proxy?.needsAddresses(isRestricted: true) ?? true))
        }
    }

    /// Why no way leads to the host, as far as its addresses decide that.
    private static func unreachable(
        _ proxies: WayList?, _ addresses: [Address], _ lookupFailure: ExchangeError?
    ) -> ExchangeError? {
        guard let ways = proxies?.ways else { return lookupFailure ?? refusal(of: addresses) }
        if ways.contains(where: { !($0.proxy?.needsAddresses(isRestricted: true) ?? true) }) {
            return nil
        }
        if let lookupFailure { return lookupFailure }
        // A proxy that resolves the name, too, might choose any of them.
        let choosesItself = ways.contains { ($0.proxy?.scheme ?? .socks5) == .socks5 }
        return choosesItself
            ? refusal(of: addresses) : addresses.lazy.compactMap(\.refusal).first
    }

    /// The error if the gateway may connect to none of the addresses: the last one found.
    private static func refusal(of addresses: [Address]) -> ExchangeError? {
        addresses.contains { $0.refusal == nil } ? nil : addresses.last?.refusal
    }

    /// The error if one of the pinsets refuses every server.
    static func expiry(of pinsets: [Pinset], at now: Int64) -> ExchangeError? {
        for (index, pinset) in pinsets.enumerated() {
            guard let reason = pinset.refusal(at: now) else { continue }
            return .tlsFailed(
                .trust(TrustError(reason, pinsetIndex: index, pinset: pinset.name)))
        }
        return nil
    }

    static func connect(
        _ policy: PolicySnapshot, _ host: String, _ port: UInt16, _ rule: TunnelSettings
    ) -> Handling {
        let authority = BoundAuthority(host: host, port: port)
        let entry = policy.configuration.hostEntry(host: host.utf8.span, port: port)
        let handling = policy.tunnelHandling(
            to: authority, by: rule, mayIntercept: true, isGivenUp: { false })
        switch handling {
        case .refused(let refusal): return .refused(refusal)
        case .relayed: return .tunnel
        case .inspected(let tls13): return .inspect(tls13)
        case .intercepted(_, mayPass: true): return .interceptOrPass
        case .intercepted(_, mayPass: false):
            let inspection = policy.configuration.inspection(entry: entry, by: rule)
            return inspection.map { .interceptOrInspect($0) } ?? .intercept
        }
    }

    static func absolute(_ target: PolicySnapshot.Target, _ isSecure: Bool) -> Handling {
        if let refusal = target.refusal { return .refused(refusal) }
        if isSecure { return .verified }
        return target.isSecure ? .upgrade(port: target.port) : .clearText
    }

    private static func destination(
        _ policy: PolicySnapshot, _ target: PolicySnapshot.Target, _ host: String
    ) -> Destination {
        if let address = IPAddress(literal: host.utf8.span) {
            return verdict(policy, address, target.match)
        }
        if target.match.denied {
            let detail = ExchangeError.destinationRefused(.deniedHost).explanation
            return Destination(verdict: .refused, address: nil, detail: detail)
        }
        if target.match.allowed {
            return Destination(
                verdict: .privateAllowed, address: nil,
                detail: "access.destinations.allow names it, so that private networks are allowed "
                    + "too")
        }
        return Destination(
            verdict: .byAddress, address: nil,
            detail: "no rule names it; its addresses are checked")
    }

    /// How the rules treat an address of the destination.
    private static func verdict(
        _ policy: PolicySnapshot, _ address: IPAddress, _ match: DestinationRules.HostMatch
    ) -> Destination {
        switch policy.destinationRules.decide(address, host: match) {
        case .allowed: Destination(verdict: .allowed, address: address, detail: nil)
        case .refused(let refusal):
            Destination(
                verdict: .refused, address: address,
                detail: ExchangeError.destinationRefused(refusal).explanation)
        }
    }

    /// Whether the cache is used, and why or why not.
    ///
    /// - Parameters:
    ///   - isReached: whether stored responses are looked up for at least one way, if the cache is
    ///     enabled.
    ///   - connects: whether the gateway would connect to the server for at least one way.
    private static func cache(
        _ configuration: ConfigurationSnapshot, _ entry: Int?, isReached: Bool, connects: Bool
    ) -> (Bool, String) {
        guard configuration.cache.isEnabled else { return (false, "cache.enabled is false") }
        guard configuration.cacheStores(entry: entry) else {
            return (false, "the entry has cache.store: false")
        }
        guard isReached else { return (false, "no request gets as far as the cache") }
        return connects
            ? (true, "responses are stored and reused as their header fields allow")
            : (true, "stored responses may be served, although no connection is made")
    }
}

extension RouteExplanation.Handling {
    /// The same, or an earlier refusal.
    fileprivate func orRefused(by refusal: ExchangeError?) -> Self {
        if case .refused = self { return self }
        return refusal.map { .refused($0) } ?? self
    }

    /// The same, or a later refusal: no address may be connected to, or one of the pinsets refuses
    /// every server.
    fileprivate func orRefused(
        by unreachable: ExchangeError?, _ expired: ExchangeError?
    ) -> Self {
        if case .refused = self { return self }
        if let unreachable { return .refused(unreachable) }
        return verifiesServer ? expired.map { .refused($0) } ?? self : self
    }

    /// Whether it is refused.
    package var isRefused: Bool { if case .refused = self { true } else { false } }

    /// Whether stored responses are looked up for the requests, if the cache is enabled.
    var looksUpResponses: Bool {
        switch self {
        case .intercept, .interceptOrPass, .interceptOrInspect, .upgrade, .verified, .clearText:
            true
        case .refused, .tunnel, .inspect: false
        }
    }

    /// Whether nothing is forwarded before the server has been verified.
    var verifiesServer: Bool {
        switch self {
        case .inspect, .intercept, .interceptOrInspect, .upgrade, .verified: true
        case .refused, .tunnel, .interceptOrPass, .clearText: false
        }
    }
}

extension PolicySnapshot {
    /// Creates a snapshot for queries, not for serving: nothing is issued, resumed or counted under
    /// it.
    ///
    /// - Parameter preparesTLS: whether the system's trust anchors are read now.
    package convenience init(
        forQueries configuration: ConfigurationSnapshot, preparesTLS: Bool = true
    ) throws(TLSContextError) {
        try self.init(
            configuration, generation: 1, sessions: TLSSessionCache(), preparesTLS: preparesTLS,
            labels: RouteLabels(), reachability: { EntryReachability(label: $0) })
    }

    /// The TLS context for servers of a host entry; `nil` for hosts that no entry matches.
    package func context(entry: Int?) -> TLSClientContext { tls(entryIndex: entry) }
}
