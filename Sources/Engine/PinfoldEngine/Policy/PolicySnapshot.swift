import Activity
import Authentication
import CachePolicy
import Clocks
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import PinfoldTLS
import Transformation
import Trust

/// One configuration in force, with everything derived from it: immutable, shared by all workers,
/// and numbered. Connections and TLS sessions obtained under one snapshot are used under the next
/// one only if it trusts the same servers and allows the same destinations.
package final class PolicySnapshot: Sendable {
    package let generation: UInt64
    /// The generation since which nothing that connections and TLS sessions depend on has changed:
    /// those obtained under a snapshot with the same value can still be used.
    package let trustGeneration: UInt64
    package let configuration: ConfigurationSnapshot
    package let headLimits: HeadLimits
    private let systemRoots: SystemRootsVersion
    package let cacheOptions: PolicyOptions
    package let destinationRules: DestinationRules
    /// The rules for requests; `nil` if there are none.
    package let accessRules: AccessRules?
    /// The counts of each rule.
    let ruleCounts: [EventCounts<RuleEvent>]
    /// The generation since which the rules have not changed.
    let rulesGeneration: UInt64
    /// The numbers of all ways that rules name, or have named since the process began: what is
    /// stored by any of them must be invalidated, as the rules may name them again.
    let numbersOfRuleWays: Set<UInt64>
    package let parents: [UpstreamProxy]
    private let defaultTLS: TLSClientContext
    private let entryTLS: [TLSClientContext]
    /// The contexts for probing the servers of tunnels, by host entry; `nil` if they are not
    /// probed.
    private let entryProbeTLS: [TLSClientContext?]
    /// What is known about the servers of tunnels, as long as it is valid.
    let inspections: InspectionLedger
    /// The metric label's index of each host entry, and of requests that no entry matches.
    private let entryRoutes: [LabelIndex]
    let defaultRoute = RouteLabels.defaultHost
    private let entryPinsets: [[LabelIndex]]
    /// The counts of each pinset's pins (`RouteLabels.pinCounts`).
    let pinCounts: [[EventCounts<PinEvent>]]
    private let entryTimeouts: [TimeoutsConfiguration]
    private let entryReachability: [EntryReachability]
    /// The transformation by each host entry's rules; `nil` if it has none.
    private let entryTransformations: [RouteTransformation?]
    /// That of the hosts without an entry.
    private let otherTransformation: RouteTransformation?
    /// What each host entry says about the cache; `nil` if nothing out of the ordinary.
    let entryCacheRules: [CacheRuleSet?]
    /// All names that the gateway uses; `nil` if there is only its own.
    let names: [GatewayName]?
    private let fingerprints: TrustFingerprints
    /// The servers of reverse listeners that have several.
    let serverSets: ServerSets
    private let serverRequirements: ServerRequirementsTable
    /// TLS with clients of listeners, by the listeners' names.
    let clientTLS: [String: ClientTLS]
    /// TLS with the clients of the administrative address; `nil` for clear text.
    package let adminTLS: ClientTLS?
    /// Who may prove to be whom; `nil` if no listener asks. The same object as before as long as
    /// its content is the same.
    package let credentials: CredentialStore?
    /// The generation since which that is the same object.
    let credentialsGeneration: UInt64
    /// By what groups those are counted who ask; `nil` if no listener asks.
    let groups: GroupCounters?
    /// The means of intercepting tunnels; `nil` if none is intercepted.
    let interception: InterceptionPolicy?
    /// The generation since which nothing at all has changed: clients may resume sessions issued
    /// since then.
    package let sessionGeneration: UInt64

    /// - Parameters:
    ///   - previous: the snapshot in force so far, whose TLS contexts, and with them the sessions,
    ///     are reused if possible.
    ///   - ticketKeys: the keys for clients' session tickets; `nil` if none are issued.
    ///   - issuer: issues the certificates for intercepted tunnels; `nil` if none is intercepted.
    ///   - images: decodes images for the rules of host entries; `nil` if that is not possible.
    ///   - showsChains: for a reviewer, connections keep the verified chain, resume no session, and
    ///     ask the reviewer for a certificate if a server requires one.
    ///   - preparesTLS: whether the system's trust anchors are read and the library's contexts
    ///     created now; otherwise by ``prepareTLS(host:port:)``, or for the first TLS connection.
    ///   - stickyKey: the key of the cookies that bind clients to servers; by default one for this
    ///     snapshot and those that follow it.
    ///   - labels: the table of label indexes.
    ///   - reachability: finds or creates the states of a host entry's servers, by its name.
    /// - Throws: if the TLS policy is impossible.
    package init(
        _ configuration: ConfigurationSnapshot, generation: UInt64,
        following previous: PolicySnapshot? = nil, sessions: TLSSessionCache,
        ticketKeys: TLSTicketKeys? = nil, issuer: CertificateIssuer? = nil,
        images: (any ImageTransforming)? = nil, schemas: SchemaCompiling? = nil,
        showsChains: Bool = false, preparesTLS: Bool = true,
        stickyKey: StickyKey = StickyKey(), labels: RouteLabels,
        reachability: (String) -> EntryReachability
    ) throws(TLSContextError) {
        self.generation = generation
        self.configuration = configuration
        headLimits = configuration.limits.headLimits
        var options = PolicyOptions()
        options.maximumObjectBytes = UInt64(configuration.cache.maximumObjectBytes)
        options.isShared = configuration.cache.isShared
        // A hit would set the cookie again, which may have a different value by now.
        if !options.isShared { options.setCookie = .never }
        cacheOptions = options
        destinationRules = configuration.access.destinationRules
        let access = configuration.access
        accessRules = AccessRules(
            access.rules, lists: access.lists, allowsByDefault: access.byDefault == .allow)
        ruleCounts = labels.ruleCounts(access.rules.map(\.name))
        if let previous, previous.configuration.access == access {
            rulesGeneration = previous.rulesGeneration
        } else {
            rulesGeneration = generation
        }
        numbersOfRuleWays = configuration.numbersOfRuleWays(besides: previous?.numbersOfRuleWays)
        parents = UpstreamProxy.parents(of: configuration, labels)
        systemRoots = SystemRootsVersion()
        if let previous, previous.headLimits == headLimits, previous.systemRoots == systemRoots,
            configuration.hasSamePolicy(as: previous.configuration)
        {
            trustGeneration = previous.trustGeneration
            defaultTLS = previous.defaultTLS
            entryTLS = previous.entryTLS
            entryProbeTLS = previous.entryProbeTLS
            inspections = previous.inspections
        } else {
            trustGeneration = generation
            var contexts = ContextFactory(
                sessions: sessions, showsChains: showsChains, systemRoots: systemRoots)
            contexts.preparesTLS = preparesTLS
            defaultTLS = try contexts.make(configuration.tls, pinsets: [], .auto)
            entryTLS = try contexts.make(configuration.hosts.entries, configuration.pinsets)
            entryProbeTLS = try contexts.makeForProbes(
                configuration.hosts.entries, configuration.pinsets)
            inspections = InspectionLedger()
        }
        if let previous, configuration.asksWho == previous.configuration.asksWho,
            configuration.authentication == previous.configuration.authentication
        {
            credentials = previous.credentials
            credentialsGeneration = previous.credentialsGeneration
        } else {
            credentialsGeneration = generation
            credentials =
                configuration.asksWho ? CredentialStore(configuration.authentication) : nil
        }
        groups = GroupCounters(configuration, labels)
        entryRoutes = labels.hostIndexes(configuration.hosts.entries.map(\.label))
        let pinsets = labels.pinsetIndexes(configuration.pinsets.map(\.pinset.name))
        entryPinsets = configuration.hosts.entries.map { $0.pinsets.map { pinsets[$0] } }
        pinCounts = configuration.pinsets.map {
            labels.pinCounts(pinset: $0.pinset.name, pins: $0.pinset.distinguishedPins)
        }
        entryTimeouts = configuration.hosts.entries.map {
            configuration.timeouts.replaced(by: $0.timeouts)
        }
        entryReachability = configuration.hosts.entries.map { entry in
            let states = reachability(entry.label)
            // Exact names are tracked from the start.
            states.add(exactly: entry.exactNames)
            return states
        }
        names = configuration.names
        entryCacheRules = configuration.hosts.entries.map { CacheRuleSet($0) }
        otherTransformation = RouteTransformation(name: configuration.via)
        entryTransformations = configuration.hosts.entries.map {
            RouteTransformation(
                $0, name: $0.via ?? configuration.via, images: images, schemas: schemas)
        }
        let fingerprints = try TrustFingerprints(configuration)
        self.fingerprints = fingerprints
        serverSets = try ServerSets(
            configuration, following: previous?.serverSets, key: stickyKey,
            now: Clock.monotonicMilliseconds()
        ) { origin in
            let entry = configuration.hostEntry(host: origin.host.utf8.span, port: origin.port)
            return fingerprints.of(entry: entry, isFixed: true)
        }
        serverRequirements = try ServerRequirementsTable(configuration, systemRoots: systemRoots)
        if let previous, previous.configuration == configuration {
            sessionGeneration = previous.sessionGeneration
            clientTLS = previous.clientTLS
            adminTLS = previous.adminTLS
            interception = previous.interception
        } else {
            sessionGeneration = generation
            var made: [String: ClientTLS] = [:]
            for listener in configuration.listeners {
                guard let tls = listener.tls else { continue }
                made[listener.name] = try ClientTLS(
                    tls, offer: listener.http2.offer,
                    scope: listener.name, ticketKeys: ticketKeys)
            }
            clientTLS = made
            // A session is resumed only where it began: names of listeners have no slash.
            adminTLS = try configuration.admin.tls.map { (tls) throws(TLSContextError) in
                try ClientTLS(
                    tls, offer: ClientHTTP2.off.offer, scope: "/admin",
                    ticketKeys: ticketKeys)
            }
            interception = try InterceptionPolicy(
                configuration.interception, issuer: issuer,
                // Neither under another configuration nor in another process.
                scope: "\(ticketKeys?.origin ?? "")/\(generation)/interception",
                ticketKeys: ticketKeys)
        }
    }

    /// The means of intercepting tunnels to an authority (all of them, or those with TLS 1.3);
    /// `nil` if they are not intercepted.
    ///
    /// - Parameter rule: what the rule says that allows the tunnel; likewise below.
    package func interception(
        for authority: BoundAuthority, by rule: TunnelSettings
    ) -> InterceptionPolicy? {
        guard let interception else { return nil }
        let entry = entry(host: authority.host, port: authority.port)
        return configuration.intercepts(entry: entry, by: rule)
            || configuration.inspection(entry: entry, by: rule) == .intercept
            ? interception : nil
    }

    /// Whether every tunnel to it is intercepted.
    func intercepts(_ authority: BoundAuthority, by rule: TunnelSettings) -> Bool {
        interception != nil
            && configuration.intercepts(
                entry: entry(host: authority.host, port: authority.port), by: rule)
    }

    /// Whether tunnels to an authority may be relayed without inspection: if they are neither
    /// intercepted nor inspected, or if its entry explicitly allows that for traffic that is not
    /// TLS and for clients that keep rejecting the certificate.
    package func mayPass(_ authority: BoundAuthority, by rule: TunnelSettings) -> Bool {
        let entry = entry(host: authority.host, port: authority.port)
        return configuration.passesClearText(entry: entry, by: rule)
            || !configuration.intercepts(entry: entry, by: rule)
                && configuration.inspection(entry: entry, by: rule) == nil
    }

    /// Whether interception of tunnels to an authority ends for clients that keep rejecting the
    /// certificate.
    package func fallsBack(_ authority: BoundAuthority, by rule: TunnelSettings) -> Bool {
        configuration.fallsBack(
            entry: entry(host: authority.host, port: authority.port), by: rule)
    }

    /// Whether tunnels to an authority that are not intercepted are inspected.
    package func inspects(_ authority: BoundAuthority, by rule: TunnelSettings) -> Bool {
        configuration.inspection(
            entry: entry(host: authority.host, port: authority.port), by: rule) != nil
    }

    /// Whether who asked for a tunnel could still prove to be that, by the same password or token.
    /// - Parameter now: seconds since 1970.
    package func confirms(_ identity: Identity, at now: Int64) -> Bool {
        credentials?.confirms(identity, at: now) ?? false
    }

    package var timeouts: TimeoutsConfiguration { configuration.timeouts }

    // MARK: Hosts

    package func route(entryIndex: Int?) -> LabelIndex {
        entryIndex.map { entryRoutes[$0] } ?? defaultRoute
    }

    package func tls(entryIndex: Int?) -> TLSClientContext {
        entryIndex.map { entryTLS[$0] } ?? defaultTLS
    }

    /// Reads the system's trust anchors and creates the library's context for a host, if that has
    /// not been done yet.
    package func prepareTLS(host: String, port: UInt16) {
        tls(entryIndex: entry(host: host, port: port)).prepare()
    }

    /// The same for the library's proxies.
    package func prepareTLSOfProxies() { defaultTLS.prepare() }

    /// The context for probing the server of a tunnel.
    func probeTLS(entryIndex: Int?) -> TLSClientContext {
        entryIndex.flatMap { entryProbeTLS[$0] } ?? tls(entryIndex: entryIndex)
    }

    func timeouts(for authority: BoundAuthority) -> TimeoutsConfiguration {
        timeouts(entryIndex: entry(host: authority.host, port: authority.port))
    }

    /// The timeouts of a host entry, or of hosts that no entry matches.
    package func timeouts(entryIndex: Int?) -> TimeoutsConfiguration {
        entryIndex.map { entryTimeouts[$0] } ?? timeouts
    }

    /// The transformation by the rules of a host entry; `nil` if it has none.
    func transformation(entryIndex: Int?) -> RouteTransformation? {
        entryIndex.map { entryTransformations[$0] } ?? otherTransformation
    }

    /// Whether requests to the hosts of an entry may ask for another protocol than HTTP.
    func allowsUpgrade(entryIndex: Int?) -> Bool {
        switch entryIndex.map({ configuration.hosts.entries[$0].switchProtocols }) ?? .auto {
        case .allow: true
        case .refuse: false
        case .auto: !(transformation(entryIndex: entryIndex)?.looksIntoMessages ?? false)
        }
    }

    /// The labels' indexes of the pinsets that apply, in the order of evaluation.
    func pinsets(entryIndex: Int?) -> [LabelIndex] {
        entryIndex.map { entryPinsets[$0] } ?? []
    }

    /// - Parameter isFixed: whether it is a reverse listener's upstream, to which the access rules
    ///   do not apply.
    func fingerprint(entryIndex: Int?, isFixed: Bool) -> TrustFingerprint {
        fingerprints.of(entry: entryIndex, isFixed: isFixed)
    }

    /// What the server of a host must prove.
    func requirements(entryIndex: Int?) -> ServerRequirements {
        serverRequirements.of(entry: entryIndex)
    }

    /// The state of a host, identified by its name, and by its port if the pattern has one.
    package func reachability(host: String, port: UInt16) -> ServerReachability? {
        guard let index = entry(host: host, port: port),
            let pattern = configuration.hosts.entries[index].match
                .first(where: { $0.matches(host: host.utf8.span, port: port) })
        else { return nil }
        let states = entryReachability[index]
        if pattern.exactName != nil { return states.server("\(pattern)") }
        return states.server(pattern.port == nil ? host : HostText.text(host, port: port))
    }

    /// The index of the host entry that applies; `nil` if none does.
    func entry(host: String, port: UInt16) -> Int? {
        configuration.hostEntry(host: host.utf8.span, port: port)
    }

    func destinationMatch(host: String, port: UInt16) -> DestinationRules.HostMatch {
        configuration.access.hostMatch(host: host.utf8.span, port: port)
    }

    /// The kind of a request, as far as it decides how its destination is reached.
    package enum Approach {
        case tunnel
        /// An absolute URL; `isSecure` means https.
        case request(isSecure: Bool)
        /// A reverse listener's upstream, to which the access rules do not apply.
        case fixed(isSecure: Bool)
    }

    /// What is known about a destination before its name is resolved.
    package struct Target {
        let entryIndex: Int?
        /// The port to connect to: an upgrade may lead to a different port than the one requested.
        let port: UInt16
        /// Whether TLS is used.
        let isSecure: Bool
        let match: DestinationRules.HostMatch
        /// Why it must not be reached in this way: its pinsets would be bypassed, or its name or
        /// address is denied.
        let refusal: ExchangeError?
    }

    /// - Parameter port: the port that the request names. After an upgrade, a denial applies to
    ///   either port, and a permission only to the one connected to.
    /// - Parameter rule: what the rule says that allows a tunnel.
    package func target(
        host: String, port: UInt16, by approach: Approach, _ rule: TunnelSettings = .none
    ) -> Target {
        let entryIndex = entry(host: host, port: port)
        var connected = port
        var isSecure = false
        switch approach {
        case .tunnel: break
        case .fixed(let secure): isSecure = secure
        case .request(let secure):
            let upgrades =
                !secure
                && (entryIndex.map { configuration.hosts.entries[$0].upgradesToHTTPS } ?? false)
            isSecure = secure || upgrades
            if upgrades, port == 80 { connected = 443 }
        }
        var match = destinationMatch(host: host, port: connected)
        if connected != port, destinationMatch(host: host, port: port).denied {
            match.denied = true
        }
        var refusal = listing(host, port, approach)
        if refusal == nil {
            refusal = bypass(host, entryIndex, approach, isSecure: isSecure, rule)
        }
        if refusal == nil { refusal = destinationRefusal(host, match, approach) }
        return Target(
            entryIndex: entryIndex, port: connected, isSecure: isSecure, match: match,
            refusal: refusal)
    }

    /// Whether the host is refused because no entry names it (`access.hosts: listed`).
    private func listing(
        _ host: String, _ port: UInt16, _ approach: Approach
    ) -> ExchangeError? {
        if case .fixed = approach { return nil }
        guard configuration.access.hosts == .listed,
            !configuration.hosts.lists(host: host.utf8.span, port: port)
        else { return nil }
        return .hostNotListed(BoundAuthority(host: host, port: port))
    }

    private func bypass(
        _ host: String, _ entryIndex: Int?, _ approach: Approach, isSecure: Bool,
        _ rule: TunnelSettings
    ) -> ExchangeError? {
        var serverApproach: ServerApproach = isSecure ? .verifiedTLS : .clearText
        if case .tunnel = approach { serverApproach = .tunnel }
        let bypass = configuration.pinBypass(
            host: host.utf8.span, entry: entryIndex, by: serverApproach, rule)
        switch bypass {
        case .clearText: return .access(.clearTextRefused)
        case .tunnel: return .access(.tunnelRefused)
        case .port: return .access(.pinnedPortRefused)
        case nil: return nil
        }
    }

    private func destinationRefusal(
        _ host: String, _ match: DestinationRules.HostMatch, _ approach: Approach
    ) -> ExchangeError? {
        if case .fixed = approach { return nil }
        if match.denied { return .destinationRefused(.deniedHost) }
        guard let address = IPAddress(literal: host.utf8.span),
            case .refused(let reason) = destinationRules.decide(address, host: match)
        else { return nil }
        return .destinationRefused(reason)
    }
}
