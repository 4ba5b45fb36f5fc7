import Activity
import Addressing
import CachePolicy
import Configuration
import HTTPCore
import Pinning
import TLS

/// One configuration in force, with everything made from it: immutable, shared by all workers, and
/// numbered. What was obtained under one snapshot (connections, TLS sessions) is not used under
/// another.
package final class PolicySnapshot: Sendable {
    package let generation: UInt64
    package let configuration: ConfigurationSnapshot
    let headLimits: HeadLimits
    let cacheOptions: PolicyOptions
    let destinationRules: DestinationRules
    private let defaultTLS: TLSClientContext
    private let entryTLS: [TLSClientContext]
    /// The metric label's index of each host entry, and of requests that no entry matches.
    private let entryRoutes: [Int]
    let defaultRoute: Int
    private let entryPinsets: [[Int]]
    private let entryReachability: [[HostReachability]]
    private let entryFingerprints: [UInt64]
    private let defaultFingerprint: UInt64

    /// - Parameters:
    ///   - labels: where routes get their label's index.
    ///   - reachability: finds or makes the state of a configured host.
    /// - Throws: what makes a TLS policy impossible.
    package init(
        _ configuration: ConfigurationSnapshot, generation: UInt64, sessions: TLSSessionCache,
        labels: RouteLabels, reachability: (String) -> HostReachability
    ) throws(TLSContextError) {
        self.generation = generation
        self.configuration = configuration
        headLimits = configuration.limits.headLimits
        var options = PolicyOptions()
        options.maximumObjectBytes = UInt64(configuration.cache.maximumObjectBytes)
        cacheOptions = options
        destinationRules = configuration.access.destinationRules
        var contexts = ContextFactory(sessions: sessions)
        defaultTLS = try contexts.make(configuration.tls, pinsets: [])
        var entryTLS: [TLSClientContext] = []
        for entry in configuration.hosts.entries {
            let pinsets = entry.pinsets.map { configuration.pinsets[$0].pinset }
            entryTLS.append(try contexts.make(entry.tls, pinsets: pinsets))
        }
        self.entryTLS = entryTLS
        defaultRoute = labels.index("default")
        entryRoutes = configuration.hosts.entries.map { labels.index("\($0.match[0])") }
        entryPinsets = configuration.hosts.entries.map { entry in
            entry.pinsets.map { labels.pinsetIndex(configuration.pinsets[$0].pinset.name) }
        }
        entryReachability = configuration.hosts.entries.map { entry in
            entry.match.map { reachability("\($0)") }
        }
        defaultFingerprint = Self.fingerprint(trust: configuration.tls, [])
        entryFingerprints = configuration.hosts.entries.map { entry in
            Self.fingerprint(trust: entry.tls, entry.pinsets.map { configuration.pinsets[$0] })
        }
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

    func fingerprint(entryIndex: Int?) -> UInt64 {
        entryIndex.map { entryFingerprints[$0] } ?? defaultFingerprint
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

    func resolve(host: String, port: UInt16) -> Target {
        let entryIndex = entry(host: host, port: port)
        let match = destinationMatch(host: host, port: port)
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

    // MARK: Fingerprints

    /// The same for the same trust, over restarts (FNV-1a): responses obtained under it may be
    /// served under it.
    private static func fingerprint(trust tls: UpstreamTLS, _ pinsets: [PinsetEntry]) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        func absorb(_ bytes: some Sequence<UInt8>) {
            for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            hash = (hash ^ 0xFF) &* 0x100_0000_01B3
        }
        absorb(tls.minimum.rawValue.utf8)
        for source in tls.roots {
            switch source {
            case .system: absorb("system".utf8)
            case .file(_, let certificates): for der in certificates { absorb(der) }
            }
        }
        for named in pinsets {
            let pinset = named.pinset
            absorb(pinset.name.utf8)
            for der in pinset.anchors { absorb(der) }
            absorb("\(pinset.mode) \(pinset.allowInvalidCertificates)".utf8)
            absorb("\(pinset.validatesDomainName)".utf8)
            for pin in pinset.pins { absorb("\(pin)".utf8) }
        }
        return hash
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
