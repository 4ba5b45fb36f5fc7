import Activity
import CLinux
import HTTPCore
import JSONSchema
import Logging
import PinfoldConfiguration
import PinfoldTLS
import Trust

@testable import PinfoldEngine

extension [UInt8] {
    /// Whether these bytes are among them, from an offset on. A plain comparison takes long in a
    /// debug build.
    func hasBytes(_ bytes: [UInt8], at offset: Int) -> Bool {
        guard offset + bytes.count <= count else { return false }
        return withUnsafeBytes { own in
            bytes.withUnsafeBytes { other in
                guard let start = own.baseAddress, let wanted = other.baseAddress else {
                    return other.isEmpty
                }
                return memcmp(start + offset, wanted, other.count) == 0
            }
        }
    }
}

/// The latest events in a world, in a form that costs almost nothing until it is read.
struct Journal {
    private struct Line {
        var what: StaticString = ""
        var who = 0
        var detail = 0
    }

    private static let length = 64
    private var lines = [Line](repeating: Line(), count: length)
    private var count = 0

    mutating func note(_ what: StaticString, _ who: Int, _ detail: Int) {
        lines[count % Self.length] = Line(what: what, who: who, detail: detail)
        count += 1
    }

    /// The last lines, the oldest first.
    var text: String {
        var text = ""
        for number in max(0, count - Self.length)..<count {
            let line = lines[number % Self.length]
            text += "  \(number): \(line.what) \(line.who) \(line.detail)\n"
        }
        return text
    }
}

/// Reports what an exchange is about to trap for: in a debug build nothing else can.
struct CriticalLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .critical
    let report: @Sendable (String) -> Void

    func log(event: LogEvent) {
        report("\(event.message) \(event.metadata ?? [:])")
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }
}

/// The configurations between which a world is reloaded. Two that follow each other here trust the
/// same servers, or not.
enum SimulationPolicies {
    private static let plain = make(isRuled: false, isRated: false)
    private static let ruled = make(isRuled: true, isRated: false)
    private static let rated = make(isRuled: false, isRated: true)
    private static let ruledAndRated = make(isRuled: true, isRated: true)

    /// - Parameters:
    ///   - isRuled: whether their hosts have rules for responses.
    ///   - isRated: whether they have rules with rates for requests.
    static func all(isRuled: Bool, isRated: Bool) -> [PolicySnapshot] {
        isRuled ? isRated ? ruledAndRated : ruled : isRated ? rated : plain
    }

    private static func make(isRuled: Bool, isRated: Bool) -> [PolicySnapshot] {
        let labels = RouteLabels()
        var made: [PolicySnapshot] = []
        for trust in 0..<2 {
            for variant in 0..<3 {
                made.append(
                    make(
                        trust: trust, variant: variant, isRuled: isRuled, isRated: isRated,
                        following: variant > 0 ? made.last : nil,
                        generation: UInt64(made.count + 1), labels))
            }
        }
        return made
    }

    private static func make(
        trust: Int, variant: Int, isRuled: Bool, isRated: Bool,
        following previous: PolicySnapshot?, generation: UInt64, _ labels: RouteLabels
    ) -> PolicySnapshot {
        var configuration = ConfigurationSnapshot(
            workers: .auto(cores: 1), listeners: [])
        configuration.tls.roots = [.file(path: "/roots.pem", certificates: [])]
        configuration.access.allow = DestinationList(
            networks: networks("203.0.113.0/24", "2001:db8::/32"))
        let denied = [try? HostPattern(SimulatedName.deniedHost)].compactMap { $0 }
        configuration.access.deny = DestinationList(patterns: denied)
        if trust == 1 {
            configuration.access.deny = DestinationList(
                networks: networks("203.0.113.128/25"), patterns: denied)
        }
        if isRuled {
            configuration.hosts = HostTable(entries: SimulatedRules.entries(trust: trust))
        } else {
            configuration.hosts = HostTable(entries: slicedHosts)
        }
        if isRated { configuration.access.rules = SimulatedRates.rules(variant: variant) }
        configuration.limits.upstreamPerHost = [256, 4, 2][variant]
        configuration.limits.perClient.exchanges = [100, 4, 100][variant]
        configuration.timeouts.connectMilliseconds = [500, 5000, 500][variant]
        configuration.timeouts.tunnelMilliseconds =
            [600_000, shortestTunnelMilliseconds, 600_000][variant]
        configuration.timeouts.collapseMilliseconds = [3_600_000, 150, 3_600_000][variant]
        do {
            return try PolicySnapshot(
                configuration, generation: generation, following: previous,
                sessions: TLSSessionCache(), images: SimulatedImages(),
                schemas: JSONSchema.compile, labels: labels
            ) { EntryReachability(label: $0) }
        } catch {
            fatalError("\(error)")
        }
    }

    /// Responses of these are requested in slices, which their contents fill several of.
    private static var slicedHosts: [HostEntry] {
        [("b.test", 256), ("r.test", 300)].compactMap { host, bytes in
            guard let pattern = try? HostPattern(host) else { return nil }
            var entry = HostEntry(tls: UpstreamTLS())
            entry.match = [pattern]
            entry.cache.sliceBytes = bytes
            entry.switchProtocols = .allow
            return entry
        }
    }

    static let shortestTunnelMilliseconds: Int64 = 1500

    private static func networks(_ texts: String...) -> [IPNetwork] {
        texts.compactMap { IPNetwork($0) }
    }
}

extension PolicySnapshot {
    /// Which of the two sets of rules it has, as in `SimulatedAddress.isAllowed`.
    var trust: Int { trustGeneration == 1 ? 0 : 1 }
}
