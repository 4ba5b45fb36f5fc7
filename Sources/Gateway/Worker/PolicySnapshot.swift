import Activity
import Addressing
import CachePolicy
import Configuration
import HTTPCore
import Pinning
import TLS

/// One configuration in force, with everything made from it: immutable, shared by all workers, and
/// numbered. What was obtained under one snapshot (connections, TLS sessions) is used under the
/// next one only if that trusts the same servers and allows the same destinations.
package final class PolicySnapshot: Sendable {
    package let generation: UInt64
    /// The generation since which nothing has changed of what connections and TLS sessions depend
    /// on: those obtained under a snapshot with the same one are used on.
    let trustGeneration: UInt64
    package let configuration: ConfigurationSnapshot
    let headLimits: HeadLimits
    private let systemRoots: SystemRootsVersion
    let cacheOptions: PolicyOptions
    let destinationRules: DestinationRules
    private let defaultTLS: TLSClientContext
    private let entryTLS: [TLSClientContext]
    /// The metric label's index of each host entry, and of requests that no entry matches.
    private let entryRoutes: [Int]
    let defaultRoute: Int
    private let entryPinsets: [[Int]]
    private let entryReachability: [[HostReachability]]
    private let fingerprints: TrustFingerprints

    /// - Parameters:
    ///   - previous: the snapshot in force so far, whose TLS contexts, and with them the sessions,
    ///     go on if they may.
    ///   - labels: where routes get their label's index.
    ///   - reachability: finds or makes the state of a configured host.
    /// - Throws: what makes a TLS policy impossible.
    package init(
        _ configuration: ConfigurationSnapshot, generation: UInt64,
        following previous: PolicySnapshot? = nil, sessions: TLSSessionCache, labels: RouteLabels,
        reachability: (String) -> HostReachability
    ) throws(TLSContextError) {
        self.generation = generation
        self.configuration = configuration
        headLimits = configuration.limits.headLimits
        var options = PolicyOptions()
        options.maximumObjectBytes = UInt64(configuration.cache.maximumObjectBytes)
        cacheOptions = options
        destinationRules = configuration.access.destinationRules
        systemRoots = SystemRootsVersion()
        if let previous, previous.headLimits == headLimits, previous.systemRoots == systemRoots,
            configuration.hasSamePolicy(as: previous.configuration)
        {
            trustGeneration = previous.trustGeneration
            defaultTLS = previous.defaultTLS
            entryTLS = previous.entryTLS
        } else {
            trustGeneration = generation
            var contexts = ContextFactory(sessions: sessions)
            defaultTLS = try contexts.make(configuration.tls, pinsets: [])
            entryTLS = try contexts.make(configuration.hosts.entries, configuration.pinsets)
        }
        defaultRoute = labels.index("default")
        entryRoutes = configuration.hosts.entries.map { labels.index("\($0.match[0])") }
        entryPinsets = configuration.hosts.entries.map { entry in
            entry.pinsets.map { labels.pinsetIndex(configuration.pinsets[$0].pinset.name) }
        }
        entryReachability = configuration.hosts.entries.map { entry in
            entry.match.map { reachability("\($0)") }
        }
        fingerprints = try TrustFingerprints(configuration)
    }

    var timeouts: TimeoutsConfiguration { configuration.timeouts }

    // MARK: Hosts

    func route(entryIndex: Int?) -> Int { entryIndex.map { entryRoutes[$0] } ?? defaultRoute }

    func tls(entryIndex: Int?) -> TLSClientContext {
        entryIndex.map { entryTLS[$0] } ?? defaultTLS
    }

    /// The labels' indexes of the pinsets that apply, in the order of evaluation.
    func pinsets(entryIndex: Int?) -> [Int] {
        entryIndex.map { entryPinsets[$0] } ?? []
    }

    /// - Parameter isFixed: of a reverse listener's upstream, which no rule of access applies to.
    func fingerprint(entryIndex: Int?, isFixed: Bool) -> TrustFingerprint {
        fingerprints.of(entry: entryIndex, isFixed: isFixed)
    }

    /// The state of the pattern that makes an entry apply to a host.
    func reachability(host: String, port: UInt16) -> HostReachability? {
        guard let index = entry(host: host, port: port) else { return nil }
        let patterns = configuration.hosts.entries[index].match
        let match = patterns.firstIndex { $0.matches(host: host.utf8.span, port: port) }
        return match.map { entryReachability[index][$0] }
    }

    private func entry(host: String, port: UInt16) -> Int? {
        configuration.hostEntry(host: host.utf8.span, port: port)
    }

    func destinationMatch(host: String, port: UInt16) -> DestinationRules.HostMatch {
        let bytes = host.utf8.span
        return DestinationRules.HostMatch(
            allowed: configuration.access.allow.contains(host: bytes, port: port),
            denied: configuration.access.deny.contains(host: bytes, port: port))
    }

    /// What is known of a destination before its name is resolved.
    struct Target {
        let entryIndex: Int?
        let match: DestinationRules.HostMatch
        /// The name is denied, or it is an address that is.
        let refusal: DestinationRefusal?
        let allowsTunnel: Bool
    }

    /// - Parameter port: what the request names. An upgrade may connect to another one: then a
    ///   denial counts at either, and a permission only at the one connected to.
    func resolve(host: String, port: UInt16, upgradesHTTP: Bool = false) -> Target {
        let entryIndex = entry(host: host, port: port)
        let upgrades =
            upgradesHTTP && port == 80
            && entryIndex.map { configuration.hosts.entries[$0].upgradesToHTTPS } ?? false
        var match = destinationMatch(host: host, port: upgrades ? 443 : port)
        if upgrades, destinationMatch(host: host, port: port).denied { match.denied = true }
        var refusal: DestinationRefusal? = match.denied ? .deniedHost : nil
        if let address = IPAddress(host) ?? IPAddress(host: host.utf8.span),
            case .refused(let reason) = destinationRules.decide(address, host: match)
        {
            refusal = reason
        }
        let mode = entryIndex.map { configuration.hosts.entries[$0].tunnel } ?? .pass
        return Target(
            entryIndex: entryIndex, match: match, refusal: refusal, allowsTunnel: mode == .pass)
    }
}

/// Makes TLS contexts, each set of roots loaded once.
private struct ContextFactory {
    let sessions: TLSSessionCache
    private var loaded: [(sources: [RootSource], roots: LoadedRoots)] = []

    init(sessions: TLSSessionCache) { self.sessions = sessions }

    mutating func make(
        _ tls: UpstreamTLS, pinsets: [Pinset]
    ) throws(TLSContextError) -> TLSClientContext {
        var settings = TLSClientSettings()
        settings.minimumVersion = tls.minimum == .tls13 ? .tls13 : .tls12
        settings.policy = SecurityPolicy(pinsets: pinsets)
        return try TLSClientContext(settings, roots: try roots(tls.roots), sessions: sessions)
    }

    mutating func make(
        _ entries: [HostEntry], _ pinsets: [PinsetEntry]
    ) throws(TLSContextError) -> [TLSClientContext] {
        var contexts: [TLSClientContext] = []
        for entry in entries {
            contexts.append(
                try make(entry.tls, pinsets: entry.pinsets.map { pinsets[$0].pinset }))
        }
        return contexts
    }

    private mutating func roots(_ sources: [ConfiguredRoots]) throws(TLSContextError)
        -> LoadedRoots
    {
        let wanted = sources.flatMap { source -> [RootSource] in
            switch source {
            case .system: [.system]
            case .file(let path, let certificates):
                certificates.map { .file(name: path, contents: $0) }
            }
        }
        if let known = loaded.first(where: { $0.sources == wanted }) { return known.roots }
        let roots = try LoadedRoots(wanted)
        loaded.append((wanted, roots))
        return roots
    }
}
